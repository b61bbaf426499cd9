/// File formats of byte-level BPE tokenizers.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "text/bpe_training.hpp"
#include "text/detail/bpe_tokenizer.hpp"

namespace tern::text::detail {

/// Reads a tokenizer.json of Hugging Face tokenizers. Throws UserError that names any unsupported
/// model, normalizer, pre-tokenizer, post-processor or decoder.
BpeDescription read_tokenizer_json(const std::filesystem::path& file);

/// Reads GPT-2's two files: the vocabulary, a JSON object from token to id, and the merges, one per
/// line. Throws UserError.
BpeDescription read_gpt2_files(const std::filesystem::path& vocabulary,
                               const std::filesystem::path& merges);

/// Writes a tokenizer.json for Hugging Face tokenizers. Throws UserError if it cannot be written.
void write_tokenizer_json(const std::filesystem::path& file, const std::vector<std::string>& tokens,
                          const std::vector<Merge>& merges, PiecePattern pattern,
                          const std::vector<AddedToken>& added);

/// Id of the token that separates documents, found by its usual names; -1 if there is none.
std::int32_t find_end_of_text(const std::vector<AddedToken>& added);

}  // namespace tern::text::detail
