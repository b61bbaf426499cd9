// The mesh of ranks, its groups, and what they exchange, for 1, 2 and 4 ranks.
#include "comm/mesh.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "comm/device_data.hpp"
#include "refusal.hpp"

namespace tern::comm {
namespace {

std::string refusal(int ranks, int data, int tensor, int pipeline) {
  return test::refusal([&] { extents_for(ranks, data, tensor, pipeline); });
}

TEST(Extents, AllRanksThatTensorAndPipelineLeave) {
  const Extents extents = extents_for(8, 0, 2, 2);
  EXPECT_EQ(extents.data, 2);
  EXPECT_EQ(extents.ranks(), 8);
  EXPECT_EQ(extents_for(6, 3, 2, 1).data, 3);
}

TEST(Extents, OtherRanksAreRefusedWithWhatWouldWork) {
  EXPECT_NE(refusal(6, 2, 2, 1)
                .find("2 x 2 x 1 = 4, but the job has 6 ranks; start 4 ranks, or "
                      "set data = 3"),
            std::string::npos);
  EXPECT_NE(refusal(5, 2, 2, 1).find("start 4 ranks"), std::string::npos);
  EXPECT_EQ(refusal(5, 2, 2, 1).find("data = 2 (or 0"), std::string::npos);
  EXPECT_NE(refusal(6, 0, 2, 2).find("start 4 or 8 ranks"), std::string::npos);
  EXPECT_NE(refusal(1, 0, 2, 1).find("start 2 ranks"), std::string::npos);
}

/// The world ranks of a group, in its order.
std::vector<std::int64_t> members(Group& group, int world_rank) {
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(group.size()), 0);
  ranks[static_cast<std::size_t>(group.rank())] = world_rank;
  group.all_reduce(ranks.data(), ranks.size(), Sum::sum);
  return ranks;
}

using Ranks = std::vector<std::int64_t>;

TEST(Mesh, TensorRanksAreNeighborsThenStages) {
  auto all = world();
  const int size = all->size(), rank = all->rank();
  if (size < 4) {
    const Mesh mesh(std::move(all), {1, size, 1}, size);
    EXPECT_EQ(mesh.tensor().rank(), rank);
    EXPECT_EQ(mesh.kv_replicas().size(), size);
    EXPECT_EQ(mesh.pipeline().size() * mesh.data().size() * mesh.ends().size(), 1);
    return;
  }
  const Mesh mesh(std::move(all), {1, 2, 2});
  EXPECT_EQ(members(mesh.tensor(), rank), rank < 2 ? Ranks({0, 1}) : Ranks({2, 3}));
  EXPECT_EQ(members(mesh.pipeline(), rank), rank % 2 == 0 ? Ranks({0, 2}) : Ranks({1, 3}));
  EXPECT_EQ(members(mesh.ends(), rank), rank % 2 == 0 ? Ranks({0, 2}) : Ranks({1, 3}));
  EXPECT_EQ(members(mesh.replica(), rank), Ranks({0, 1, 2, 3}));
  EXPECT_EQ(members(mesh.data(), rank), Ranks({rank}));
  EXPECT_EQ(mesh.kv_replicas().size(), 1);
}

TEST(Mesh, DataReplicas) {
  auto all = world();
  const int size = all->size(), rank = all->rank();
  if (size < 4) {
    const Mesh mesh(std::move(all), {size, 1, 1});
    EXPECT_EQ(mesh.data().rank(), rank);
    EXPECT_EQ(mesh.replica().size(), 1);
    return;
  }
  const Mesh mesh(std::move(all), {2, 2, 1}, 2);
  EXPECT_EQ(members(mesh.data(), rank), rank % 2 == 0 ? Ranks({0, 2}) : Ranks({1, 3}));
  EXPECT_EQ(members(mesh.kv_replicas(), rank), rank < 2 ? Ranks({0, 1}) : Ranks({2, 3}));
  const auto replica = mesh.one_replica();
  EXPECT_EQ(replica->data().size(), 1);
  EXPECT_EQ(members(replica->world(), rank), rank < 2 ? Ranks({0, 1}) : Ranks({2, 3}));
  EXPECT_EQ(replica->kv_replicas().size(), 2);
}

TEST(Mesh, MiddleStagesAreNoEnds) {
  auto all = world();
  const int size = all->size(), rank = all->rank();
  const Mesh mesh(std::move(all), {1, 1, size});
  const bool end = rank == 0 || rank == size - 1;
  EXPECT_EQ(mesh.ends().size(), end ? std::min(size, 2) : 1);
}

/// As stages of a pipeline do it: forward they receive, and what they send waits for the backward
/// pass, where they receive again.
TEST(Exchange, StagesSendWhenTheyReceive) {
  auto all = world();
  const int size = all->size(), rank = all->rank();
  const Mesh mesh(std::move(all), {1, 1, size});
  Group& stages = mesh.pipeline();
  using Data = test::DeviceData<double>;
  const auto filled = [](double value) { return std::vector<double>(1000, value); };
  const Data own(filled(rank)), previous(filled(-1)), next(filled(-1));
  const auto message = [](const Data& data, int with) {
    return Group::Message{data.data(), data.bytes(), with};
  };
  if (rank > 0) stages.exchange({}, message(previous, rank - 1), test::DefaultStream());
  if (rank + 1 < size)
    stages.exchange(message(own, rank + 1), message(next, rank + 1), test::DefaultStream());
  if (rank > 0) stages.exchange(message(own, rank - 1), {}, test::DefaultStream());
  EXPECT_EQ(previous.read(), filled(rank - 1));
  EXPECT_EQ(next.read(), filled(rank + 1 < size ? rank + 1 : -1));
}

}  // namespace
}  // namespace tern::comm
