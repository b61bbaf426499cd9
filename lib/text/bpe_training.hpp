/// Trains a byte-level BPE (Sennrich et al., arXiv 1508.07909, on bytes as in GPT-2).
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tern::text {

/// How text is cut into the pieces within which bytes are merged.
enum class PiecePattern { gpt2, gpt4 };

struct BpeTrainingOptions {
  /// Number of tokens: 256 bytes, the merges' results, and the special ones, which are the last.
  std::size_t vocabulary = 0;
  PiecePattern pattern = PiecePattern::gpt2;
  std::size_t threads = 1;
  /// Tokens that no text becomes; <|endoftext|> separates documents.
  std::vector<std::string> special = {"<|endoftext|>"};
};

/// Counts the pieces of texts, then joins the most frequent pair again and again; of pairs equally
/// frequent that of the lower token numbers comes first, so the result depends on the texts alone
/// and neither on their order nor on the threads.
class BpeTrainer {
 public:
  /// Throws UserError for a vocabulary too small for the bytes and the special tokens.
  explicit BpeTrainer(const BpeTrainingOptions& options);
  ~BpeTrainer();

  /// Adds texts, in parallel. Bytes that are not valid UTF-8 are not learned from.
  void add(const std::vector<std::string_view>& texts);

  /// Trains, and writes `folder`/tokenizer.json, which open_tokenizer and Hugging Face's tokenizers
  /// read. Throws UserError if the texts have too few repeated pairs for the vocabulary.
  void train(const std::filesystem::path& folder);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tern::text
