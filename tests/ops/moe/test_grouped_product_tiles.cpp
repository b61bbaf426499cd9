// Sizes of the tiles of grouped products.
#include <gtest/gtest.h>

#include <set>

#include "base/random.hpp"
#include "ops/moe/cuda/detail/grouped_product_tiles.hpp"

namespace tern::ops::cuda::grouped {
namespace {

template <class T>
void expect_fit() {
  constexpr int shared = 228 * 1024, reserved = 1024, registers = 65536;  // an H200's
  EXPECT_LE(T::resident * (T::shared_bytes + reserved), shared);
  EXPECT_LE(T::rows * T::columns * 2, T::stages * T::stage_bytes);  // results pass through
  EXPECT_LE(T::resident * threads * (T::warp_rows * T::warp_columns / 32), registers / 2);
  EXPECT_EQ(T::warp_rows % 16 + T::warp_columns % 16, 0);
  EXPECT_EQ(T::rows * (depth / piece_size) % threads, 0);
}

TEST(GroupedTiles, BlocksFitAMultiprocessor) {
  expect_fit<Small>();
  expect_fit<Medium>();
  expect_fit<Large>();
}

TEST(GroupedTiles, HeightFollowsTheRowsOfAGroup) {
  EXPECT_EQ(size_for(64 * 8, 128), Size::small);  // decoding 64 sequences with 30B-A3B
  EXPECT_EQ(size_for(512 * 8, 128), Size::medium);
  EXPECT_EQ(size_for(2048 * 8, 128), Size::large);
  EXPECT_EQ(size_for(1, 1), Size::small);
}

TEST(GroupedTiles, NoMoreThanThereAreBlocksFor) {
  for (std::uint32_t trial = 0; trial < 500; ++trial)
    for (const std::size_t height : {16, 64, 128}) {
      const auto word = [&](std::uint32_t i) {
        return philox(3, Stream::test, trial, 0, i).word[0];
      };
      const std::size_t groups = 1 + word(0) % 40, spread = 1 + word(1) % 200;
      std::size_t rows = 0, tiles = 0;
      for (std::uint32_t g = 0; g < groups; ++g) {
        const std::size_t count = word(2 + g) % 3 ? word(100 + g) % spread : 0;
        rows += count, tiles += (count + height - 1) / height;
      }
      EXPECT_LE(tiles, max_tiles(rows, groups, height));
    }
  EXPECT_EQ(max_tiles(0, 8, 16), 0u);
  EXPECT_EQ(max_tiles(5, 8, 16), 5u);
}

TEST(GroupedTiles, PiecesFillTheirTileAndMeetAllBanks) {
  for (const int pieces : {8, 16}) {
    std::set<int> offsets;
    for (int row = 0; row < 64; row += 8)
      for (int piece = 0; piece < pieces; ++piece) {
        std::set<int> banks;
        for (int r = row; r < row + 8; ++r) {
          offsets.insert(piece_offset(r, piece, pieces));
          banks.insert(piece_offset(r, piece, pieces) % 128);
        }
        EXPECT_EQ(banks.size(), 8u) << row << ' ' << piece;
      }
    EXPECT_EQ(offsets.size(), static_cast<std::size_t>(64 * pieces));
    EXPECT_EQ(*offsets.rbegin(), 64 * pieces * 16 - 16);
  }
}

}  // namespace
}  // namespace tern::ops::cuda::grouped
