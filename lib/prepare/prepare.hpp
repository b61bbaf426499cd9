/// Conversion of text to token shards (./prepare text).
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "prepare/documents.hpp"
#include "text/bpe_training.hpp"

namespace tern::prepare {

struct PrepareOptions {
  std::vector<std::filesystem::path> inputs;
  InputFormat format = InputFormat::automatic;
  std::string field = "text";  // field of JSON lines
  std::string tokenizer;       // as in open_tokenizer(); empty: train one
  std::size_t train_bpe = 0;   // vocabulary of the BPE to train; 0: none
  text::PiecePattern pattern = text::PiecePattern::gpt2;
  std::size_t train_bytes = 500'000'000;  // text to train the BPE on, from the beginning
  std::filesystem::path output;
  double valid_fraction = 0.01;  // of documents
  std::size_t shard_tokens = 100'000'000;
  std::size_t threads = 1;
  bool force = false;  // replace an existing output folder
};

struct SplitSummary {
  std::size_t documents = 0, bytes = 0, tokens = 0, shards = 0;
};
struct PrepareSummary {
  SplitSummary train, valid;
  std::size_t vocabulary = 0;
  double seconds = 0;
};

/// Writes `output`/train_*.bin, valid_*.bin, meta.json and, if a BPE was trained, tokenizer.json.
/// Each document ends with the end-of-text token. Whether a document is for validation depends only
/// on its index (see detail/split_documents.hpp); of a single text document the end is. The folder
/// is renamed into place when complete. Throws UserError.
PrepareSummary prepare_text(const PrepareOptions& options, Log& log);

/// Whether ./prepare made `output` before; if so, logs it.
bool is_made(const std::filesystem::path& output, Log& log);

/// Headers of the C++ standard library, real text on every machine with a compiler: sorted by path,
/// up to `max_bytes` in total. Throws UserError that names the places searched if there are none.
std::vector<std::filesystem::path> standard_library_headers(std::size_t max_bytes);

/// Options for 8 MB of those headers, one document each, and a BPE of 1,024 tokens trained on them;
/// in data/cpp_headers unless `options` name another output.
void set_cpp_headers(PrepareOptions& options);

}  // namespace tern::prepare
