#include "objective/detail/block_rows.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/random.hpp"
#include "data/reader.hpp"

namespace tern::objective::detail {
namespace {

/// One uniform number per token, four per Philox call.
class Uniforms {
 public:
  Uniforms(std::uint64_t seed, Stream stream, std::uint64_t row)
      : seed_(seed), stream_(stream), row_(row) {}
  double at(std::size_t i) {
    if (i / 4 != group_) {
      group_ = i / 4;
      words_ = philox(seed_, stream_, row_, 0, static_cast<std::uint32_t>(group_));
    }
    return uniform(words_.word[i % 4]);
  }

 private:
  std::uint64_t seed_;
  Stream stream_;
  std::uint64_t row_;
  std::size_t group_ = static_cast<std::size_t>(-1);
  Random4 words_{};
};

std::int32_t number(std::size_t value) { return static_cast<std::int32_t>(value); }

/// Calls body(level, first, count) for each block of a piece; first counts from the prefix's end.
template <class F>
void for_each_block(const data::SamplePiece& piece, const F& body) {
  std::size_t begin = 0;
  for (std::size_t level = 0; level < data::levels; ++level) {
    const std::size_t length = piece.length[level], block = piece.block[level];
    TERN_REQUIRE(length == 0 || block > 0, "blocks of no tokens");
    for (std::size_t first = 0; first < length; first += block)
      body(level, begin + first, std::min(block, length - first));
    begin += length;
  }
}

}  // namespace

double spread_time(const Clip& clip, std::int64_t cell, std::int64_t cells, std::uint64_t step,
                   std::uint64_t seed, double number) {
  const auto all = static_cast<std::uint64_t>(cells);
  // Independent of the place in the batch, or long and short times would always be on the same
  // rows.
  const std::size_t part =
      data::shuffled_row(step * all + static_cast<std::uint64_t>(cell), all, ~seed);
  const double u = (static_cast<double>(part) + number) / static_cast<double>(cells);
  return clip.low + (clip.high - clip.low) * u;
}

BlockRows::BlockRows(std::size_t batch, std::size_t positions, std::int32_t mask_token)
    : positions_of_row_(positions),
      mask_token_(mask_token),
      tokens_(batch * positions),
      positions_(batch * positions),
      levels_(batch * positions),
      table_(batch, positions) {}

void BlockRows::fill(const data::Batch& batch, const Noise& noise) {
  for (std::vector<std::int32_t>* v : {&tokens_, &positions_, &levels_})
    std::fill(v->begin(), v->end(), 0);
  table_.clear();
  masked_.clear();
  targets_.clear();
  block_of_.clear();
  blocks_.clear();
  drawn_ = {};
  std::size_t begin = 0, in_row = 0;
  std::uint32_t row = 0;
  for (const data::SamplePiece& piece : batch.as<data::SampleRows>().pieces) {
    if (piece.row != row) begin = in_row = 0;
    row = piece.row;
    TERN_REQUIRE(begin + piece.positions() <= positions_of_row_,
                 "a sample of {} positions at {} of a row of {}", piece.positions(), begin,
                 positions_of_row_);
    lay_out(batch, piece, begin);
    draw(batch, piece, noise, begin, in_row);
    begin += piece.positions();
    in_row += piece.tokens();
  }
  table_.finish();
}

/// Tokens, position numbers, levels and spans of a piece, without noise.
void BlockRows::lay_out(const data::Batch& batch, const data::SamplePiece& piece,
                        std::size_t begin) {
  const std::size_t row = piece.row * positions_of_row_, prefix = piece.prefix;
  const std::size_t n = piece.tokens() - prefix, clean = begin + prefix, noisy = clean + n;
  const std::int32_t* token = batch.as<data::SampleRows>().tokens.data() + piece.first;
  const auto put = [&](std::size_t at, std::size_t i, std::size_t level, ops::KeySpans spans) {
    tokens_[row + at] = token[i];
    positions_[row + at] = number(i);
    levels_[row + at] = number(level);
    table_.at(piece.row, at) = spans;
  };
  for (std::size_t i = 0; i < prefix; ++i)
    put(begin + i, i, 0, {{number(begin), number(clean)}, {}});
  for_each_block(piece, [&](std::size_t level, std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) {
      put(clean + i, prefix + i, level + 1, {{number(begin), number(clean + first + count)}, {}});
      put(noisy + i, prefix + i, level + 1,
          {{number(begin), number(clean + first)},
           {number(noisy + first), number(noisy + first + count)}});
    }
  });
}

/// Masks tokens of a piece's noisy copy; `in_row`: tokens of its row already drawn for.
void BlockRows::draw(const data::Batch& batch, const data::SamplePiece& piece, const Noise& noise,
                     std::size_t begin, std::size_t in_row) {
  const std::uint64_t row_number = batch.samples[piece.row];
  Uniforms times(noise.seed, noise.evaluating ? Stream::evaluation_time : Stream::diffusion_time,
                 row_number);
  Uniforms masks(noise.seed, noise.evaluating ? Stream::evaluation_mask : Stream::diffusion_mask,
                 row_number);
  const std::size_t body = piece.tokens() - piece.prefix;
  const std::size_t noisy = piece.row * positions_of_row_ + begin + piece.prefix + body;
  for_each_block(piece, [&](std::size_t level, std::size_t first, std::size_t count) {
    // A block of one token is always masked: its likelihood needs no sampling.
    const Clip clip = piece.block[level] == 1 ? Clip{1, 1} : noise.clip[level];
    const std::int64_t cell = batch.before.blocks[level] + drawn_[level]++;
    const std::size_t place = in_row + piece.prefix + first;
    const double t = spread_time(clip, cell, batch.step.blocks[level], batch.step_number,
                                 noise.seed, times.at(place));
    const auto block = static_cast<std::uint32_t>(blocks_.size());
    blocks_.push_back({level, static_cast<std::uint32_t>(count), t, clip.low > 0.5 ? 1 : 1 / t});
    for (std::size_t i = 0; i < count; ++i) {
      if (masks.at(place + i) >= t) continue;
      std::int32_t& token = tokens_[noisy + first + i];
      masked_.push_back(number(noisy + first + i));
      targets_.push_back(token);
      block_of_.push_back(block);
      token = mask_token_;
    }
  });
}

}  // namespace tern::objective::detail
