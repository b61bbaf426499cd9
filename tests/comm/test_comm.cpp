// Collectives of comm::world(), of a group that stages device data in host memory, and of
// comm::single_rank_group(), for 1, 2 and 4 ranks, against sums made by hand.
#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

#include "base/host.hpp"
#include "comm/comm.hpp"
#include "comm/detail/staged_group.hpp"
#include "comm/device_data.hpp"
#include "comm/hosts.hpp"

namespace tern::comm {
namespace {

using test::DeviceData;

std::unique_ptr<Group> staged() {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  return std::make_unique<detail::StagedGroup>(comm, "staged");
}

class Collectives : public testing::TestWithParam<std::unique_ptr<Group> (*)()> {
 protected:
  std::unique_ptr<Group> group = GetParam()();
  int rank = group->rank(), size = group->size();
};
INSTANTIATE_TEST_SUITE_P(, Collectives, testing::Values(&world, &staged), [](const auto& group) {
  return group.param == &world ? "World" : "Staged";
});

TEST_P(Collectives, HostReductions) {
  double values[3] = {1.0 + rank, -2.0 * rank, 5};
  group->all_reduce(values, 3, Sum::sum);
  EXPECT_DOUBLE_EQ(values[0], size + size * (size - 1) / 2.0);
  EXPECT_DOUBLE_EQ(values[1], -1.0 * size * (size - 1));
  EXPECT_DOUBLE_EQ(values[2], 5.0 * size);
  std::int64_t extremes[2] = {rank, -rank};
  group->all_reduce(&extremes[0], 1, Sum::max);
  group->all_reduce(&extremes[1], 1, Sum::min);
  EXPECT_EQ(extremes[0], size - 1);
  EXPECT_EQ(extremes[1], 1 - size);
}

TEST_P(Collectives, AllRanksOfThisTestAreOnOneHost) {
  const Hosts found = hosts();
  ASSERT_EQ(found.count(), 1);
  EXPECT_EQ(found.most, size);
  EXPECT_EQ(found.text(), host_name());
  EXPECT_EQ((Hosts{{"a", "b", "c", "d"}, 2}.text()), "a, b, c, d");
  EXPECT_EQ((Hosts{{"a", "b", "c", "d", "e"}, 2}.text()), "a, b, c and 2 more");
}

TEST_P(Collectives, AnyIsTrueIfOneRankSaysSo) {
  EXPECT_FALSE(group->any(false));
  EXPECT_TRUE(group->any(rank == size - 1));
}

TEST_P(Collectives, Broadcast) {
  const int root = size - 1;
  std::vector<int> data(17, rank == root ? 42 : -1);
  group->broadcast(data.data(), data.size() * sizeof(int), root);
  EXPECT_EQ(data, std::vector<int>(17, 42));
}

/// rank r's element i is 1000 r + i.
DeviceData<float> numbered(int rank, std::size_t n) {
  std::vector<float> data(n);
  for (std::size_t i = 0; i < n; ++i)
    data[i] = 1000.0f * static_cast<float>(rank) + static_cast<float>(i);
  return DeviceData<float>(data);
}

/// The sum of these over `size` ranks.
float summed(int size, std::size_t i) {
  return 500.0f * static_cast<float>(size * (size - 1)) +
         static_cast<float>(size) * static_cast<float>(i);
}

TEST_P(Collectives, AllReduce) {
  const auto data = numbered(rank, 101);
  group->all_reduce(data.data(), data.size(), test::DefaultStream());
  const auto sums = data.read();
  for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums[i], summed(size, i));
}

TEST_P(Collectives, ReduceScatterLeavesTheSumInTheOwnPart) {
  const std::size_t part = 33, first = part * static_cast<std::size_t>(rank);
  const auto data = numbered(rank, part * static_cast<std::size_t>(size));
  group->reduce_scatter(data.data(), part, test::DefaultStream());
  const auto sums = data.read();
  for (std::size_t i = first; i < first + part; ++i) EXPECT_EQ(sums[i], summed(size, i));
}

TEST_P(Collectives, AllGatherInPlace) {
  const std::size_t part = 7;
  std::vector<std::int64_t> values(part * static_cast<std::size_t>(size), -1);
  for (std::size_t i = 0; i < part; ++i)
    values[static_cast<std::size_t>(rank) * part + i] = rank * 100 + static_cast<int>(i);
  const DeviceData<std::int64_t> data(values);
  group->all_gather(data.data(), part * sizeof(std::int64_t), test::DefaultStream());
  const auto gathered = data.read();
  for (std::size_t i = 0; i < gathered.size(); ++i)
    EXPECT_EQ(gathered[i], static_cast<std::int64_t>(i / part * 100 + i % part));
}

TEST_P(Collectives, BroadcastOfTheDevice) {
  const int root = size - 1;
  const DeviceData<float> data(std::vector<float>(19, static_cast<float>(rank)));
  group->broadcast_device(data.data(), data.bytes(), root, test::DefaultStream());
  EXPECT_EQ(data.read(), std::vector<float>(19, static_cast<float>(root)));
}

TEST_P(Collectives, ExchangeAlongALine) {
  const auto sent = numbered(rank, 51);
  const DeviceData<float> received(std::vector<float>(51, -1));
  const int next = rank + 1 < size ? rank + 1 : Group::nobody;
  std::vector<int> neighbors;
  if (rank > 0) neighbors.push_back(rank - 1);
  if (next != Group::nobody) neighbors.push_back(next);
  group->connect(neighbors);
  group->exchange({sent.data(), sent.bytes(), next}, {received.data(), received.bytes(), rank - 1},
                  test::DefaultStream());
  const auto expected = rank > 0 ? numbered(rank - 1, 51).read() : std::vector<float>(51, -1);
  EXPECT_EQ(received.read(), expected);
}

/// `large` on rank 0, 3/8 of the distance of the numbers of T there on the others: rounded one by
/// one, each of these would be lost.
template <class T>
void expect_rounded_once(comm::Group& group, float large, float distance) {
  const DeviceData<T> data(std::vector<T>(33, T(group.rank() == 0 ? large : 0.375f * distance)));
  group.all_reduce(data.data(), data.size(), test::DefaultStream());
  const float others = static_cast<float>(group.size() - 1),
              sum = large + 0.375f * distance * others;
#if defined(TERN_WITH_NCCL)
  const float slack = distance * others;  // NCCL rounds where ranks meet
#else
  const float slack = 0;
#endif
  for (const T value : data.read())
    EXPECT_NEAR(static_cast<float>(value), static_cast<float>(T(sum)), slack) << type_name<T>();
}

TEST_P(Collectives, SixteenBitsAreRoundedOnceOnTheHost) {
  expect_rounded_once<bf16>(*group, 256, 2);
  expect_rounded_once<fp16>(*group, 2048, 2);
}

/// Element i of what a rank sends to another in a round.
float sent_by(int rank, int to, int round, std::size_t i) {
  return static_cast<float>(1000 * rank + 100 * to + round) + static_cast<float>(i) / 65536;
}

/// Both slots in turn and, every third time, only the first. A slot has a place for each rank.
TEST(PartsOfRanks, ComeInOrder) {
  const auto group = world();
  const int ranks = group->size(), own = group->rank();
  const auto many = static_cast<std::size_t>(ranks);
  const std::size_t n = 33333, slots = PartExchange::slots, bytes = n * sizeof(float);
  const DeviceData<float> received(std::vector<float>(slots * many * n, -1));
  const auto exchange = group->part_exchange(received.data(), many * bytes);
  if (ranks == 1) {
    EXPECT_EQ(exchange, nullptr);
    return;
  }
  ASSERT_NE(exchange, nullptr) << "the GPUs do not reach each other's memory";
  const test::DefaultStream stream;
  for (int round = 0; round < 20; ++round) {
    std::vector<float> values(slots * many * n);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = sent_by(own, static_cast<int>(i / n % many), round, i);
    const DeviceData<float> sent(values);
    const std::size_t used = round % 3 == 0 ? 1 : slots;
    for (std::size_t slot = 0; slot < used; ++slot) {
      std::vector<Part> parts;
      for (int other = 0; other < ranks; ++other) {
        const auto place = static_cast<std::size_t>(other);
        if (other != own)
          parts.push_back({other, sent.data() + (slot * many + place) * n, bytes,
                           static_cast<std::size_t>(own) * bytes, place * bytes});
      }
      exchange->send(slot, parts, stream);
    }
    for (std::size_t slot = 0; slot < used; ++slot) exchange->await(slot, stream);
    const std::vector<float> all = received.read();
    for (std::size_t slot = 0; slot < used; ++slot) exchange->release(slot, stream);
    for (std::size_t i = 0; i < used * many * n; ++i) {
      const std::size_t slot = i / (many * n), from = i / n % many;
      if (static_cast<int>(from) == own) continue;
      const std::size_t there = (slot * many + static_cast<std::size_t>(own)) * n + i % n;
      ASSERT_EQ(all[i], sent_by(static_cast<int>(from), own, round, there)) << "round " << round;
    }
  }
}

TEST(Alone, IsOneRankWhateverTheJob) {
  const auto group = single_rank_group();
  EXPECT_EQ(group->rank(), 0);
  EXPECT_EQ(group->size(), 1);
  double value = 3;
  group->all_reduce(&value, 1, Sum::sum);
  EXPECT_EQ(value, 3);
}

}  // namespace
}  // namespace tern::comm
