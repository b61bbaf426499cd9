// Chunks, boxes of flat ranges, coverage by ranks, and the hash of the sums.
#include "checkpoint/detail/layout.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "base/random.hpp"
#include "checkpoint/detail/sums.hpp"
#include "scratch.hpp"

namespace tern::checkpoint::detail {
namespace {

TEST(Layout, ChunksAreSmallEvenAndContiguous) {
  EXPECT_EQ(chunk_shape({}), Shape{});
  EXPECT_EQ(chunk_shape({0, 4}), Shape{});
  EXPECT_EQ(chunk_shape({97}), Shape{97});
  EXPECT_EQ(chunk_shape({1024, 1024}), (Shape{512, 1024}));
  EXPECT_EQ(chunk_shape({768, 768}), (Shape{384, 768}));
  EXPECT_EQ(chunk_shape({50304, 1024}), (Shape{509, 1024}));
  EXPECT_EQ(chunk_shape({3, 1 << 20}), (Shape{1, 1 << 19}));
  EXPECT_EQ(chunk_shape({8, 2048, 768}), (Shape{1, 512, 768}));
  for (const Shape& shape : {Shape{1'000'003}, Shape{7, 500'001}, Shape{151'936, 2560}}) {
    const Shape chunk = chunk_shape(shape);
    EXPECT_LE(element_count(chunk), std::size_t{1} << 19);
    std::size_t stored = 1;
    for (std::size_t i = 0; i < shape.size(); ++i)
      stored *= (shape[i] + chunk[i] - 1) / chunk[i] * chunk[i];
    EXPECT_LT(static_cast<double>(stored), 1.01 * static_cast<double>(element_count(shape)));
  }
}

/// Flat places of a box's elements, in its own row-major order.
std::vector<std::size_t> places(const Shape& shape, const Box& box) {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < box.count; ++i) {
    std::size_t rest = i, place = 0, stride = 1;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      place += (box.start[axis] + rest % box.size[axis]) * stride;
      rest /= box.size[axis];
      stride *= shape[axis];
    }
    result.push_back(place);
  }
  return result;
}

TEST(Layout, BoxesTileFlatRanges) {
  for (const Shape& shape : {Shape{12}, Shape{4, 5}, Shape{3, 4, 5}, Shape{2, 1, 3, 4}}) {
    const std::size_t total = element_count(shape);
    for (std::size_t first = 0; first < total; ++first)
      for (std::size_t count = 1; first + count <= total; ++count) {
        const auto boxes = boxes_of_range(shape, first, count);
        EXPECT_LE(boxes.size(), 2 * shape.size() - 1);
        std::vector<std::size_t> all, expected(count);
        for (const Box& box : boxes)
          for (const std::size_t place : places(shape, box)) all.push_back(place);
        std::iota(expected.begin(), expected.end(), first);
        ASSERT_EQ(all, expected) << first << " " << count;
      }
  }
}

TEST(Layout, CoverTrimsOverlapsAndFindsGaps) {
  const std::vector<Tensor> tensors{{"/a", {10}}, {"/b", {4}}};
  const auto covered =
      cover(tensors, {{1, 0, 4, 100, 1}, {0, 4, 6, 0, 1}, {0, 0, 6, 50, 0}, {0, 5, 2, 9, 2}});
  ASSERT_EQ(covered.size(), 3u);
  EXPECT_EQ(covered[1].first, 6u);
  EXPECT_EQ(covered[1].count, 4u);
  EXPECT_EQ(covered[1].offset, 2u);
  EXPECT_EQ(covered[1].rank, 1);
  EXPECT_THROW(cover(tensors, {{0, 0, 10, 0, 0}}), std::runtime_error);
  EXPECT_THROW(cover(tensors, {{0, 0, 10, 0, 0}, {1, 1, 3, 0, 0}}), std::runtime_error);
  EXPECT_THROW(cover(tensors, {{0, 0, 5, 0, 0}, {0, 6, 4, 0, 0}, {1, 0, 4, 0, 0}}),
               std::runtime_error);
}

TEST(Layout, BandsAreRowsOfOneRankThatFollowEachOther) {
  // 4 rows of 6: rank 0 holds columns 0 to 3, rank 1 the others; rank 1's shard has a gap before
  // the last row.
  std::vector<Extent> extents;
  for (std::size_t row = 0; row < 4; ++row) {
    extents.push_back({0, 6 * row, 4, 10 + 4 * row, 0});
    extents.push_back({0, 6 * row + 4, 2, 2 * row + (row == 3 ? 5 : 0), 1});
  }
  const auto found = bands({4, 6}, extents);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].rows, 4u);
  EXPECT_EQ(found[1].rows, 3u);
  EXPECT_EQ(found[1].extent.first, 4u);
  EXPECT_EQ(found[2].rows, 1u);
  EXPECT_EQ(found[2].extent.offset, 11u);
  // A flat range over several rows is one extent, and so are parts of a vector.
  EXPECT_EQ(bands({4, 6}, {{0, 0, 12, 0, 0}, {0, 12, 12, 12, 0}}).size(), 2u);
  EXPECT_EQ(bands({24}, {{0, 0, 12, 0, 0}, {0, 12, 12, 12, 0}}).size(), 2u);
}

TEST(Sums, AreXxh64OfFilesReadInPieces) {
  EXPECT_EQ(hash_of(""), 0xef46db3751d8e999u);
  EXPECT_EQ(hash_of("abc"), 0x44bc2cf5ad770999u);
  EXPECT_EQ(hash_of("Nobody inspects the spammish repetition"), 0xfbcea83c8a378bf1u);
  const test::Scratch scratch;
  std::string text((std::size_t{9} << 20) + 5, 'x');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i % 251);
  scratch.write("large", text);
  const Sum sum = sum_of(scratch / "large");
  EXPECT_EQ(sum.hash, hash_of(text));
  EXPECT_EQ(sum.size, text.size());
}

}  // namespace
}  // namespace tern::checkpoint::detail
