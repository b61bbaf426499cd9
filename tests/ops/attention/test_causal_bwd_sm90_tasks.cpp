// Tasks of the causal attention kernels.
#include <gtest/gtest.h>

#include <vector>

#include "ops/attention/cuda/causal_bwd_sm90/tasks.hpp"

namespace tern::ops::cuda::causal_bwd_sm90 {
namespace {

void expect_each_block_once(const Problem& p, Owner owner, int head_size) {
  const TaskOrder order(p, owner, head_size);
  const int heads = owner == Owner::queries ? p.heads : p.kv_heads, blocks = blocks_of(p.tokens);
  std::vector<int> seen(static_cast<std::size_t>(p.batch * heads * blocks));
  ASSERT_EQ(order.tasks, p.batch * heads * blocks);
  for (int i = 0; i < order.tasks; ++i) {
    const Task t = order.at(i);
    ASSERT_TRUE(t.sequence >= 0 && t.sequence < p.batch && t.head >= 0 && t.head < heads &&
                t.block >= 0 && t.block < blocks);
    ++seen[static_cast<std::size_t>((t.sequence * heads + t.head) * blocks + t.block)];
  }
  for (const int times : seen) EXPECT_EQ(times, 1);
}

TEST(CausalBackwardTasks, TakeEachBlockOnce) {
  for (const int tokens : {64, 72, 200, 1024, 8192, 40000})
    for (const int batch : {1, 3, 32})
      for (const Owner owner : {Owner::queries, Owner::keys})
        for (const int head_size : {64, 128})
          expect_each_block_once({batch, tokens, 12, 3, 1}, owner, head_size);
}

TEST(CausalBackwardTasks, EndWithTheShortest) {
  const Problem p{32, 1024, 16, 16, 1};
  for (const Owner owner : {Owner::queries, Owner::keys}) {
    const TaskOrder order(p, owner, 64);
    const auto length = [&](int i) {
      const TileRange range = tiles_for(owner, order.at(i).block, tiles_of(p.tokens));
      return range.last - range.first;
    };
    EXPECT_EQ(length(0), tiles_of(p.tokens));
    for (int i = order.tasks - 32; i < order.tasks; ++i) EXPECT_EQ(length(i), block_tiles);
  }
}

TEST(CausalBackwardTasks, CoverThePairsThatCausalityAllows) {
  for (const int tokens : {64, 72, 200, 1000})
    for (int query = 0; query < tokens; query += 7)
      for (int key = 0; key <= query; key += 5) {
        const int tiles = tiles_of(tokens);
        const auto holds = [](const TileRange& r, int row) {
          return row / tile_rows >= r.first && row / tile_rows < r.last;
        };
        EXPECT_TRUE(holds(tiles_for(Owner::queries, query / block_rows, tiles), key));
        EXPECT_TRUE(holds(tiles_for(Owner::keys, key / block_rows, tiles), query));
      }
}

}  // namespace
}  // namespace tern::ops::cuda::causal_bwd_sm90
