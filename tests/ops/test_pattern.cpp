// Attention patterns: what is said of a tile must follow from what is said of its pairs.
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "ops/pattern.hpp"
#include "ops/portable/detail/attention_tiles.hpp"

namespace tern::ops {
namespace {

std::vector<Pattern> patterns() {
  std::vector<Pattern> list;
  for (int offset : {-9, -1, 0, 1, 5, 40})
    for (auto kind : {Pattern::Kind::full, Pattern::Kind::causal}) list.push_back({kind, offset});
  return list;
}

Tile tile_by_pairs(const Pattern& pattern, int q0, int q1, int k0, int k1) {
  int allowed = 0;
  for (int q = q0; q < q1; ++q)
    for (int k = k0; k < k1; ++k) allowed += pattern.allowed(0, q, k);
  return allowed == 0 ? Tile::none : allowed == (q1 - q0) * (k1 - k0) ? Tile::all : Tile::mixed;
}

TEST(Pattern, TilesFollowFromPairs) {
  for (const Pattern& pattern : patterns())
    for (int height : {1, 2, 3, 8})
      for (int width : {1, 2, 5, 8})
        for (int q = 0; q < 14; ++q)
          for (int k = 0; k < 25; ++k)
            ASSERT_EQ(pattern.tile(0, q, q + height, k, k + width),
                      tile_by_pairs(pattern, q, q + height, k, k + width))
                << fmt::format("offset {} tile {} {} {} {}", pattern.query_offset, q, height, k,
                               width);
}

TEST(Pattern, CountsItsPairs) {
  for (auto kind : {Pattern::Kind::full, Pattern::Kind::causal})
    for (int tokens : {1, 2, 17}) {
      const Pattern pattern{kind, 0};
      int allowed = 0;
      for (int q = 0; q < tokens; ++q)
        for (int k = 0; k < tokens; ++k) allowed += pattern.allowed(0, q, k);
      EXPECT_EQ(pattern.pairs(tokens), allowed);
    }
}

using namespace portable::attention;

TEST(AttentionTiles, FitTheGpu) {
  for (Pass pass : {Pass::forward, Pass::backward_query, Pass::backward_key})
    for (int size = 1; size <= 256; ++size) {
      const TileShape tile = tile_shape(Place::gpu, pass, 1000, size, 4);
      const std::size_t bytes = scratch_bytes(Place::gpu, pass, tile, size, 4);
      EXPECT_TRUE(tile.own == 8 || tile.own == 16 || tile.own == 32);
      if (size <= 128) {
        EXPECT_EQ(scratch_level(Place::gpu, bytes), 0) << size;
      }
      if (size <= 64 && pass == Pass::forward) {
        EXPECT_EQ(tile.own, 32);
      }
      if (scratch_level(Place::gpu, bytes) == 0) {  // what Kokkos adds fits, too
        EXPECT_LE(bytes, std::size_t{42 * 1024});
      }
    }
}

TEST(AttentionTiles, OfTheHostStayInItsCache) {
  for (Pass pass : {Pass::forward, Pass::backward_query, Pass::backward_key})
    for (int length : {1, 16, 17, 1000}) {
      const TileShape tile = tile_shape(Place::host, pass, length, 256, 4);
      EXPECT_EQ(tile.own, length <= 16 ? 16 : length < 512 ? 32 : 64);
      EXPECT_LE(scratch_bytes(Place::host, pass, tile, 256, 4), std::size_t{1024 * 1024});
    }
}

}  // namespace
}  // namespace tern::ops
