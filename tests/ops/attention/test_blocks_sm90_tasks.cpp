// Tasks and tiles of the kernels under key spans for Hopper.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.hpp"
#include "ops/attention/cuda/blocks_sm90/tasks.hpp"

namespace tern::ops::cuda::blocks_sm90 {
namespace {

constexpr Pass passes[] = {Pass::forward, Pass::backward_query, Pass::backward_key};

/// Numbers of [0, below).
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : seed_(seed) {}
  int operator()(int below) {
    const Random4 words = philox(seed_, Stream::diffusion_time, count_++, 0, 0);
    return static_cast<int>(words.word[0] % static_cast<unsigned>(below));
  }

 private:
  std::uint64_t seed_, count_ = 0;
};

/// Blocks of 16 queries with the same two spans, some shifted by a row, some empty.
SpanTable some_spans(int tokens) {
  SpanTable table(1, static_cast<std::size_t>(tokens));
  Draw draw(5);
  KeySpans spans;
  for (int q = 0; q < tokens; ++q) {
    if (q % 16 == 0)
      for (Span* s : {&spans.context, &spans.own}) {
        s->first = draw(tokens);
        s->last = std::min(tokens, s->first + draw(200));
      }
    if (draw(40) == 0) spans.context.last = spans.context.first;
    table.at(0, static_cast<std::size_t>(q)) = spans;
  }
  table.finish();
  return table;
}

Pattern kind_of(Pattern::Kind kind) {
  Pattern pattern;
  pattern.kind = kind;
  return pattern;
}

void expect_tiles_bound_their_pairs(const Pattern& pattern, int tokens) {
  const Problem p{pattern, {tokens, tokens}, 1, 1, 1, 1};
  for (int i = 0; i < tiles_of(tokens); ++i)
    for (int j = 0; j < tiles_of(tokens); ++j) {
      bool some = false, all = true;
      for (int q = i * tile_rows; q < std::min(tokens, (i + 1) * tile_rows); ++q)
        for (int k = j * tile_rows; k < (j + 1) * tile_rows; ++k) {
          const bool seen = k < tokens && pattern.allowed(0, q, k);
          some |= seen;
          all &= seen;
        }
      const Tile tile = tile_of(p, 0, i, j);
      EXPECT_FALSE(some && tile == Tile::none) << i << " " << j;
      EXPECT_FALSE(!all && tile == Tile::all) << i << " " << j;
    }
}

TEST(BlocksTasks, TakeEachBlockOnce) {
  for (const int tokens : {64, 72, 200, 1024, 8192, 40000})
    for (const Pass pass : passes)
      for (const int tiles : {2, 3}) {
        const Problem p{{}, {tokens, tokens}, 3, 12, 3, 1};
        const TaskOrder order(p, pass, tiles);
        const int blocks = (tiles_of(tokens) + tiles - 1) / tiles;
        std::vector<int> seen(static_cast<std::size_t>(p.batch * order.heads * blocks));
        ASSERT_EQ(static_cast<std::size_t>(order.tasks), seen.size());
        for (int i = 0; i < order.tasks; ++i) {
          const Task t = order.at(i);
          ASSERT_TRUE(t.sequence >= 0 && t.head >= 0 && t.head < order.heads && t.block >= 0 &&
                      t.block < blocks);
          ++seen.at(
              static_cast<std::size_t>((t.sequence * order.heads + t.head) * blocks + t.block));
        }
        EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), order.tasks);
      }
}

TEST(BlocksTasks, TilesBoundTheirPairs) {
  for (const int tokens : {64, 72, 200, 520}) {
    const SpanTable table = some_spans(tokens);
    expect_tiles_bound_their_pairs(table.pattern(table.spans().data(), table.hulls().data()),
                                   tokens);
    expect_tiles_bound_their_pairs(kind_of(Pattern::Kind::causal), tokens);
    expect_tiles_bound_their_pairs(kind_of(Pattern::Kind::full), tokens);
  }
}

TEST(BlocksTasks, CausalTilesAreExact) {
  const Problem p{kind_of(Pattern::Kind::causal), {512, 512}, 1, 1, 1, 1};
  for (int i = 0; i < 8; ++i)
    for (int j = 0; j < 8; ++j)
      EXPECT_EQ(tile_of(p, 0, i, j), j > i ? Tile::none : j == i ? Tile::mixed : Tile::all);
}

TEST(BlocksTasks, StepsKeepWhatTheyAreMadeOf) {
  const int seen = static_cast<int>(Tile::mixed) << 4 | static_cast<int>(Tile::all) << 2;
  for (const bool last : {false, true}) {
    const Step step = Step::make(4711, seen, last);
    EXPECT_EQ(step.tile(), 4711);
    EXPECT_EQ(step.last(), last);
    EXPECT_EQ(step.seen_by(0), Tile::none);
    EXPECT_EQ(step.seen_by(1), Tile::all);
    EXPECT_EQ(step.seen_by(2), Tile::mixed);
    EXPECT_EQ(step.seen_by(3), Tile::none);
  }
}

TEST(BlocksTasks, WordsSayWhatIsSeen) {
  const Seen seen{0x80000005u, 0x80000001u};
  EXPECT_EQ(seen.of(0), Tile::mixed);
  EXPECT_EQ(seen.of(1), Tile::none);
  EXPECT_EQ(seen.of(2), Tile::all);
  EXPECT_EQ(seen.of(31), Tile::mixed);
  const Problem p{{}, {200, 40 * tile_rows}, 3, 2, 1, 1};
  EXPECT_EQ(seen_words(p), 2);
  EXPECT_EQ(seen_at(p, 2, 3, 1) + 1, static_cast<std::int64_t>(seen_size(p)));
}

TEST(BlocksTasks, WindowsHoldWhatTheSpansHold) {
  Draw draw(6);
  for (int n = 0; n < 2000; ++n) {
    const auto number = [&] { return draw(140) - 50; };
    const KeySpans spans{{number(), number()}, {number(), number()}};
    const int first = number(), width = n % 2 == 0 ? 16 : 32;
    unsigned expected = 0;
    for (int i = 0; i < width; ++i) expected |= static_cast<unsigned>(spans.holds(first + i)) << i;
    EXPECT_EQ(window(spans, first, width), expected);
  }
}

}  // namespace
}  // namespace tern::ops::cuda::blocks_sm90
