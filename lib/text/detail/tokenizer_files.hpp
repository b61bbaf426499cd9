/// Reads and writes the files that byte-level BPE tokenizers come in.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "text/bpe_training.hpp"
#include "text/detail/bpe_tokenizer.hpp"

namespace tern::text::detail {

/// A tokenizer.json of Hugging Face's tokenizers library. What cannot be followed to the letter
/// (another model, normalizer, pre-tokenizer or decoder) is refused by name: UserError.
BpeDescription read_tokenizer_json(const std::filesystem::path& file);

/// GPT-2's pair of files: the vocabulary as a JSON object from token to id, and the merges, one a
/// line.
BpeDescription read_gpt2_files(const std::filesystem::path& vocabulary,
                               const std::filesystem::path& merges);

/// Writes a tokenizer.json that the tokenizers library loads. Throws UserError if the disk refuses
/// it.
void write_tokenizer_json(const std::filesystem::path& file, const std::vector<std::string>& tokens,
                          const std::vector<Merge>& merges, PiecePattern pattern,
                          const std::vector<AddedToken>& added);

/// Id of the token that separates documents, by the names in use for it; -1 if none is there.
std::int32_t find_end_of_text(const std::vector<AddedToken>& added);

}  // namespace tern::text::detail
