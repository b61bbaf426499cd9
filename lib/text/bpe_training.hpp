/// Training of byte-level BPE (Sennrich et al., arXiv 1508.07909, on bytes as in GPT-2).
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tern::text {

/// Pre-tokenizer pattern: splits text into the pieces within which bytes are merged.
enum class PiecePattern { gpt2, gpt4 };

struct BpeTrainingOptions {
  /// Number of tokens: 256 bytes, then the results of merges, then special tokens.
  std::size_t vocabulary = 0;
  PiecePattern pattern = PiecePattern::gpt2;
  std::size_t threads = 1;
  /// Tokens that encode() never produces from text; <|endoftext|> separates documents.
  std::vector<std::string> special = {"<|endoftext|>"};
};

/// Counts the pieces of texts, then repeatedly merges the most frequent pair; ties go to the pair
/// with the lower token ids, so the result depends only on the texts, not on their order or the
/// number of threads.
class BpeTrainer {
 public:
  /// Throws UserError if the vocabulary is too small for bytes and special tokens.
  explicit BpeTrainer(const BpeTrainingOptions& options);
  ~BpeTrainer();

  /// Adds texts, in parallel. Ignores bytes that are not valid UTF-8.
  void add(const std::vector<std::string_view>& texts);

  /// Trains and writes `folder`/tokenizer.json, readable by open_tokenizer and Hugging Face
  /// tokenizers. Throws UserError if the texts have too few repeated pairs for the vocabulary.
  void train(const std::filesystem::path& folder);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tern::text
