// Sizes of the kernels under any mask, and which entries of a pattern they read.
#include <gtest/gtest.h>

#include <set>

#include "base/random.hpp"
#include "ops/attention/cuda/any_sm80/tiles.hpp"

namespace tern::ops::cuda::any_sm80 {
namespace {

constexpr int head_sizes[] = {32, 64, 128}, row_bytes[] = {64, 128, 256, 512};
constexpr Pass passes[] = {Pass::forward, Pass::backward_query, Pass::backward_key};

TEST(PatternAttention, ServesWhatHasTiles) {
  for (const int size : head_sizes) EXPECT_TRUE(serves(size));
  for (const int size : {0, 16, 48, 96, 256}) EXPECT_FALSE(serves(size));
}

TEST(PatternAttention, BlocksFitAMultiprocessor) {
  constexpr int a100 = 164 * 1024, h200 = 228 * 1024, reserved = 1024;
  for (const int width : {2, 4})
    for (const int size : head_sizes)
      for (const Pass pass : passes) {
        const HeadRow row{size, width};
        const int shared = width == 2 ? a100 : h200;
        EXPECT_LE(shared_bytes(pass, row) + reserved, shared);
        if (size <= 64) {
          EXPECT_LE(resident_blocks(pass, row) * (shared_bytes(pass, row) + reserved), shared);
        }
      }
}

TEST(PatternAttention, PiecesFillTheirTile) {
  for (const int bytes : row_bytes) {
    std::set<int> offsets;
    for (int row = 0; row < tile_rows; ++row)
      for (int piece = 0; piece < bytes / piece_bytes; ++piece)
        offsets.insert(piece_offset(row, piece, bytes));
    EXPECT_EQ(static_cast<int>(offsets.size()), tile_bytes(bytes) / piece_bytes);
    EXPECT_EQ(*offsets.begin(), 0);
    EXPECT_EQ(*offsets.rbegin(), tile_bytes(bytes) - piece_bytes);
  }
}

TEST(PatternAttention, EightRowsOfAPieceMeetAllBanks) {
  for (const int bytes : row_bytes)
    for (int first = 0; first < tile_rows; first += 8)
      for (int piece = 0; piece < bytes / piece_bytes; ++piece) {
        std::set<int> banks;
        for (int row = first; row < first + 8; ++row)
          banks.insert(piece_offset(row, piece, bytes) % 128);
        EXPECT_EQ(banks.size(), 8u) << bytes << ' ' << first << ' ' << piece;
      }
}

/// Lane (g, t) reads column g of eight of every second of eight rows: 2t, or 2t + 1.
TEST(PatternAttention, WordsOfEightColumnsMeetAllBanks) {
  for (const int bytes : {128, 256, 512})
    for (int first = 0; first < 2; ++first)
      for (int column0 = 0; column0 < bytes / 4; column0 += 8) {
        std::set<int> banks;
        for (int lane = 0; lane < 32; ++lane) {
          const int column = column0 + lane / 4, row = first + lane % 4 * 2;
          banks.insert((piece_offset(row, column / 4, bytes) + column % 4 * 4) % 128 / 4);
        }
        EXPECT_EQ(banks.size(), 32u) << bytes << ' ' << first << ' ' << column0;
      }
}

/// Two random spans for each query; every fifth sees nothing.
SpanTable random_spans(std::size_t batch, int queries, int keys) {
  SpanTable table(batch, queries);
  for (std::size_t b = 0; b < batch; ++b)
    for (int q = 0; q < queries; ++q) {
      const Random4 r = philox(5, Stream::test, b, 0, static_cast<std::uint32_t>(q));
      const auto span = [&](std::uint32_t first, std::uint32_t length) -> Span {
        const int begin = static_cast<int>(first % keys);
        return {begin, std::min(keys, begin + static_cast<int>(length % 70))};
      };
      if (q % 5) table.at(b, q) = {span(r.word[0], r.word[1]), span(r.word[2], r.word[3])};
    }
  table.finish();
  return table;
}

void expect_read_right(const Pattern& pattern, int batch, const Extent& extent) {
  for (int b = 0; b < batch; ++b)
    for (int group = 0; group < 2 + extent.queries / chunk_rows; ++group) {
      const SpanHull hull = hull_of(pattern, extent, b, group);
      for (int q = group * chunk_rows; q < (group + 1) * chunk_rows; ++q) {
        const KeySpans seen = spans_of(pattern, extent, b, q);
        for (int k = 0; k < extent.keys + 20; ++k) {
          const bool inside = q < extent.queries && k < extent.keys;
          ASSERT_EQ(seen.holds(k), inside && pattern.allowed(b, q, k)) << q << ' ' << k;
          if (seen.holds(k)) {
            ASSERT_TRUE(hull.widest.meets(k, k + 1));
            ASSERT_TRUE(tiles_meet(pattern, extent, b, q / tile_rows, k / tile_rows));
          }
          if (q < extent.queries && hull.common.covers(k, k + 1)) {
            ASSERT_TRUE(seen.holds(k)) << q << ' ' << k;
          }
        }
      }
    }
}

TEST(PatternAttention, ReadsSpans) {
  for (const int tokens : {1, 16, 70, 150}) {
    const SpanTable table = random_spans(2, tokens, tokens);
    expect_read_right(table.pattern(table.spans().data(), table.hulls().data()), 2,
                      {tokens, tokens});
  }
}

TEST(PatternAttention, ReadsCausalAndFull) {
  for (const auto kind : {Pattern::Kind::causal, Pattern::Kind::full})
    for (const int past : {0, 1, 37}) {
      expect_read_right({kind, past}, 1, {70, 70 + past});
      expect_read_right({kind, past}, 1, {1, 1 + past});
      expect_read_right({kind, past}, 1, {90, 33});
    }
}

TEST(PatternAttention, SkipsWhatNoPairNeeds) {
  const Pattern causal;
  for (int q = 0; q < 4; ++q)
    for (int k = 0; k < 4; ++k) EXPECT_EQ(tiles_meet(causal, {256, 256}, 0, q, k), k <= q);
  SpanTable nothing(1, 200);
  nothing.finish();
  const Pattern none = nothing.pattern(nothing.spans().data(), nothing.hulls().data());
  for (int q = 0; q < 4; ++q)
    for (int k = 0; k < 4; ++k) EXPECT_FALSE(tiles_meet(none, {200, 200}, 0, q, k));
}

}  // namespace
}  // namespace tern::ops::cuda::any_sm80
