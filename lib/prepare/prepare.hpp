/// Text to token shards: what ./prepare does.
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
  std::string field = "text";  // of JSON lines
  std::string tokenizer;       // as open_tokenizer takes it; empty: train one
  std::size_t train_bpe = 0;   // vocabulary of the one to train; 0: none
  text::PiecePattern pattern = text::PiecePattern::gpt2;
  std::size_t train_bytes = 500'000'000;  // of text the BPE is trained on, from the beginning
  std::filesystem::path output;
  double valid_fraction = 0.01;  // of the documents
  std::size_t shard_tokens = 100'000'000;
  std::size_t threads = 1;
  bool force = false;  // replace an output folder that is there
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
/// Each document is followed by the end-of-text token. Whether a document is for validation depends
/// on its number alone; if all the input is one text document, its end is taken. Everything is
/// written to a folder beside `output` that is renamed when it is complete. Throws UserError.
PrepareSummary prepare_text(const PrepareOptions& options, Log& log);

/// Whether ./prepare made `output` before; then it says so.
bool is_made(const std::filesystem::path& output, Log& log);

/// Real text that is on every machine with a C++ compiler: the headers of its standard library, in
/// order of their paths, up to `max_bytes`. Throws UserError if none are found, saying where it
/// looked.
std::vector<std::filesystem::path> standard_library_headers(std::size_t max_bytes);

/// 8 MB of those headers, each a document, and a BPE of 1,024 tokens trained on them; into
/// data/cpp_headers unless `options` name another output.
void set_cpp_headers(PrepareOptions& options);

}  // namespace tern::prepare
