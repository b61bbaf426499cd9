#include "data/source.hpp"

#include <algorithm>

namespace tern::data {

std::string Source::show(std::size_t, std::size_t, const Batch&, const text::Tokenizer&) const {
  return {};
}

void NextTokenSource::start(Batch& batch) const {
  batch.inputs.assign(batch.sequences * length_, 0);
  batch.targets.assign(batch.sequences * length_, -1);
}

void NextTokenSource::append(std::size_t row, std::size_t at, Batch& batch) const {
  std::vector<std::int32_t> window(length_ + 1);
  shards_.read(row, length_, window.data());
  std::copy(window.begin(), window.end() - 1, batch.inputs.data() + at * length_);
  std::copy(window.begin() + 1, window.end(), batch.targets.data() + at * length_);
}

Counts NextTokenSource::counts(std::size_t) const {
  Counts counts;
  counts.tokens[only_level] = counts.data_tokens = static_cast<std::int64_t>(length_);
  counts.samples = 1;
  return counts;
}

void BlockSource::append(std::size_t row, std::size_t at, Batch& batch) const {
  std::vector<std::int32_t> window(length_ + 1);
  shards_.read(row, length_, window.data());
  auto& [tokens, pieces] = batch.make<SampleRows>();
  SamplePiece piece;
  piece.row = static_cast<std::uint32_t>(at);
  piece.first = tokens.size();
  piece.length[only_level] = static_cast<std::uint32_t>(length_);
  piece.block[only_level] = static_cast<std::uint32_t>(block_);
  pieces.push_back(piece);
  tokens.insert(tokens.end(), window.begin(), window.end() - 1);
}

Counts BlockSource::counts(std::size_t) const {
  Counts counts;
  counts.tokens[only_level] = counts.data_tokens = static_cast<std::int64_t>(length_);
  counts.blocks[only_level] = static_cast<std::int64_t>((length_ + block_ - 1) / block_);
  counts.samples = 1;
  return counts;
}

}  // namespace tern::data
