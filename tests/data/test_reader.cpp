#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <numeric>
#include <thread>

#include "data/reader.hpp"
#include "data/shard_writer.hpp"
#include "scratch.hpp"

namespace tern::data {
namespace {

using test::Scratch;

constexpr std::size_t length = 8, window_count = 50;

/// Shards whose window w holds the tokens w * length, w * length + 1, ...
class ReaderTest : public testing::Test {
 protected:
  ReaderTest() {
    std::vector<std::int32_t> tokens(window_count * length + 1);
    std::iota(tokens.begin(), tokens.end(), 0);
    ShardWriter writer(scratch_.path(), "train", tokens.size(), 1000);
    writer.append(tokens);
    writer.finish();
    shards_ = std::make_unique<Shards>(open());
    source_ = std::make_unique<NextTokenSource>(*shards_, length);
  }

  Shards open() const {
    return Shards({(scratch_ / "train_*.bin").string()}, window_count * length + 1, 1);
  }

  static ReaderOptions options(std::size_t sequences, std::size_t threads = 1,
                               bool shuffle = true) {
    return {.sequences = sequences,
            .length = length,
            .seed = 7,
            .shuffle = shuffle,
            .threads = threads,
            .depth = 3};
  }

  static std::size_t window_of(const Batch& batch, std::size_t sequence) {
    return static_cast<std::size_t>(batch.inputs[sequence * length]) / length;
  }

  Scratch scratch_;
  std::unique_ptr<Shards> shards_;
  std::unique_ptr<NextTokenSource> source_;
};

TEST(ShuffledRow, IsAPermutationOfEachEpoch) {
  for (const std::size_t windows : {1, 2, 3, 7, 16, 17, 100, 1000, 4097}) {
    for (const std::uint64_t epoch : {0, 1, 5}) {
      std::vector<bool> seen(windows, false);
      for (std::size_t i = 0; i < windows; ++i) {
        const std::size_t w = shuffled_row(epoch * windows + i, windows, 42);
        ASSERT_LT(w, windows);
        ASSERT_FALSE(seen[w]) << "window " << w << " twice in epoch " << epoch << " of " << windows;
        seen[w] = true;
      }
    }
  }
}

TEST(ShuffledRow, DependsOnSeedAndEpochAndMixes) {
  constexpr std::size_t windows = 1000;
  const auto order = [&](std::uint64_t epoch, std::uint64_t seed) {
    std::vector<std::size_t> result(windows);
    for (std::size_t i = 0; i < windows; ++i)
      result[i] = shuffled_row(epoch * windows + i, windows, seed);
    return result;
  };
  const auto base = order(0, 1);
  EXPECT_EQ(base, order(0, 1));
  for (const auto& other : {order(1, 1), order(0, 2), order(0, std::uint64_t{1} << 40)}) {
    std::size_t same = 0;
    for (std::size_t i = 0; i < windows; ++i) same += base[i] == other[i];
    EXPECT_LT(same, 10u);  // two random permutations share one place on average
  }
  // Of neighbors in a random order, half ascend, with a standard deviation of sqrt(1001 / 12) = 9.
  std::size_t ascents = 0;
  for (std::size_t i = 1; i < windows; ++i) ascents += base[i - 1] < base[i];
  EXPECT_NEAR(static_cast<double>(ascents), 500, 50);
}

TEST_F(ReaderTest, TargetsAreTheNextTokens) {
  Reader reader(*source_, options(3), 0, 1, 0);
  for (int step = 0; step < 20; ++step) {
    const Batch batch = reader.next();
    ASSERT_EQ(batch.sequences, 3u);
    ASSERT_EQ(batch.tokens_per_sequence, length);
    EXPECT_GE(batch.wait_seconds, 0);
    for (std::size_t b = 0; b < 3; ++b) {
      const std::uint64_t sample = static_cast<std::uint64_t>(step) * 3 + b;
      EXPECT_EQ(batch.samples[b], sample);
      const std::size_t window = shuffled_row(sample, window_count, 7);
      for (std::size_t t = 0; t < length; ++t) {
        ASSERT_EQ(batch.inputs[b * length + t], static_cast<std::int32_t>(window * length + t));
        ASSERT_EQ(batch.targets[b * length + t], batch.inputs[b * length + t] + 1);
      }
    }
  }
}

/// All windows of four micro-batches' worth of 8 sequences, in the order of their samples.
TEST_F(ReaderTest, ASetOfSamplesIsTheSameForEverySplitOverRanks) {
  const auto visited = [&](std::size_t ranks) {
    std::map<std::uint64_t, std::size_t> windows;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      Reader reader(*source_, options(8 / ranks), rank, ranks, 0);
      for (int step = 0; step < 4; ++step) {
        const Batch batch = reader.next();
        for (std::size_t b = 0; b < batch.sequences; ++b)
          EXPECT_TRUE(windows.emplace(batch.samples[b], window_of(batch, b)).second);
      }
    }
    return windows;
  };
  const auto one = visited(1);
  EXPECT_EQ(one.size(), 32u);
  EXPECT_EQ(one.rbegin()->first, 31u);
  EXPECT_EQ(one, visited(2));
  EXPECT_EQ(one, visited(4));
  EXPECT_EQ(one, visited(8));
}

TEST_F(ReaderTest, AResumedReaderGoesOnWhereItStopped) {
  Reader whole(*source_, options(4), 1, 2, 0);
  for (int step = 0; step < 9; ++step) whole.next();
  Reader resumed(*source_, options(4), 1, 2, 9);
  for (int step = 0; step < 9; ++step) {
    const Batch a = whole.next(), b = resumed.next();
    EXPECT_EQ(a.samples, b.samples);
    EXPECT_EQ(a.inputs, b.inputs);
    EXPECT_EQ(a.targets, b.targets);
  }
}

TEST(StepRows, AreWholeAndHaveTheSamplesOfEachStepOnAverage) {
  const StepRows steps{32, 292, 2100};
  EXPECT_EQ(steps.most(), 5u);
  EXPECT_NEAR(steps.mean(), 4.45, 0.01);
  EXPECT_EQ(steps.first(0), 0u);
  std::uint64_t rows = 0;
  for (std::uint64_t step = 0; step < 525; ++step) {  // eight epochs
    EXPECT_EQ(steps.first(step), rows);
    EXPECT_TRUE(steps.of(step) == 4 || steps.of(step) == 5) << step;
    EXPECT_NEAR(static_cast<double>(rows), static_cast<double>(step) * steps.mean(), 1);
    rows += steps.of(step);
  }
  EXPECT_EQ(rows, 8u * 292);
  EXPECT_LT(steps.first(65), 292u);  // an epoch is 66 steps, the last with rows of the next one
  EXPECT_GE(steps.first(66), 292u);
  const StepRows of_rows{8};
  for (const std::uint64_t step : {0, 1, 1000000000}) {
    EXPECT_EQ(of_rows.first(step), 8 * step);
    EXPECT_EQ(of_rows.of(step), 8u);
  }
  EXPECT_EQ(of_rows.most(), 8u);
  const StepRows large{1 << 30, 3000000000, 9000000000};
  EXPECT_EQ(large.first(1000000000), (std::uint64_t{1} << 30) * 1000000000 / 3);
}

TEST(StepRows, GrowByMultiplesOfTheFirstStep) {
  for (const auto& [start, count, growth] :
       {std::array<std::uint64_t, 3>{4, 20, 13}, {8, 8, 5}, {3, 300, 7}, {1, 2, 100}}) {
    StepRows steps{count};
    steps.start = start, steps.growth = growth;
    std::uint64_t rows = 0;
    for (std::uint64_t step = 0; step < 2 * growth; ++step) {
      EXPECT_EQ(steps.first(step), rows);
      const std::uint64_t wanted =
          step < growth ? start * (1 + step * (count / start - 1) / growth) : count;
      EXPECT_EQ(steps.of(step), wanted) << step << " of " << start << " to " << count;
      rows += wanted;
    }
    EXPECT_EQ(steps.rows_in(2 * growth), static_cast<double>(rows));
    EXPECT_EQ(steps.most(), count);
    EXPECT_EQ(steps.mean(), static_cast<double>(count));
  }
}

/// Each step has its rows on any number of ranks; micro-batches without any are left out.
TEST_F(ReaderTest, StepsOfSamplesHaveTheSameRowsForEverySplit) {
  const StepRows rows{9, window_count, 90};  // five rows per step
  const StepRows uneven{4, window_count, 90};
  StepRows growing{4};
  growing.start = 1, growing.growth = 30;
  for (const StepRows& steps : {rows, uneven, growing})
    for (const auto& [ranks, sequences, accumulation] :
         {std::array<std::size_t, 3>{1, 1, 5}, {1, 2, 3}, {2, 1, 3}, {4, 1, 2}, {3, 4, 1}})
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        ReaderOptions split = options(sequences, 2);
        split.accumulation = accumulation;
        split.steps = steps;
        constexpr std::uint64_t start = 3, end = 40;
        Reader reader(*source_, split, rank, ranks, start * accumulation);
        for (std::uint64_t step = start; step < end; ++step) {
          const std::uint64_t together = ranks * sequences;
          for (std::uint64_t place = 0; place < steps.of(step); place += together) {
            const Batch batch = reader.next();
            ASSERT_EQ(batch.step_number, step);
            EXPECT_EQ(batch.step.samples, static_cast<std::int64_t>(steps.of(step)));
            const std::uint64_t first = place + rank * sequences;
            const std::uint64_t count =
                first < steps.of(step) ? std::min(sequences, steps.of(step) - first) : 0;
            ASSERT_EQ(batch.samples.size(), count);
            for (std::uint64_t b = 0; b < count; ++b) {
              EXPECT_EQ(batch.samples[b], steps.first(step) + first + b);
              EXPECT_EQ(window_of(batch, b), shuffled_row(batch.samples[b], window_count, 7));
            }
            for (std::size_t b = count * length; b < sequences * length; ++b)
              EXPECT_EQ(batch.targets[b], -1);
          }
        }
      }
}

TEST_F(ReaderTest, ThreadsDoNotChangeTheOrder) {
  Reader one(*source_, options(2, 1), 0, 1, 0), many(*source_, options(2, 5), 0, 1, 0);
  for (int step = 0; step < 200; ++step) {
    const Batch a = one.next(), b = many.next();
    ASSERT_EQ(a.samples, b.samples);
    ASSERT_EQ(a.inputs, b.inputs);
  }
}

TEST_F(ReaderTest, WithoutShufflingWindowsAreReadInOrderAndAgain) {
  Reader reader(*source_, options(20, 2, false), 0, 1, 0);
  std::vector<std::size_t> windows;
  for (int step = 0; step < 5; ++step) {
    const Batch batch = reader.next();
    for (std::size_t b = 0; b < 20; ++b) windows.push_back(window_of(batch, b));
  }
  for (std::size_t i = 0; i < windows.size(); ++i) EXPECT_EQ(windows[i], i % window_count);
}

TEST_F(ReaderTest, WhatAPrefetchThreadMeetsReachesTheCaller) {
  std::filesystem::resize_file(scratch_ / "train_00000.bin", 1024 + 100);
  Reader reader(*source_, options(2, 2), 0, 1, 0);
  for (int again = 0; again < 2; ++again)
    test::expect_user_error([&] { reader.next(); }, {"train_00000.bin", "shrank"});
}

TEST_F(ReaderTest, ASequenceLongerThanAllShardsIsTheUsersError) {
  ReaderOptions too_long = options(1);
  too_long.length = window_count * length + 1;
  test::expect_user_error(
      [&] { Reader(NextTokenSource(*shards_, too_long.length), too_long, 0, 1, 0); },
      {"401 tokens", "last target", "shorter &model context"});
}

/// A source that counts the calls in progress and those made.
class Watched : public NextTokenSource {
 public:
  using NextTokenSource::NextTokenSource;
  void append(std::size_t row, std::size_t at, Batch& batch) const override {
    ++within;
    NextTokenSource::append(row, at, batch);
    ++calls;
    --within;
  }
  mutable std::atomic<int> within = 0, calls = 0;
};

TEST_F(ReaderTest, MayBeLeftWithBatchesInFlight) {
  const Watched source(*shards_, length);
  for (std::uint64_t first = 0; first < 50; ++first) {
    {
      Reader reader(source, options(1, 4), 0, 1, first);
      if (first % 2 == 0) {
        EXPECT_EQ(reader.next().samples, std::vector<std::uint64_t>{first});
      }
    }
    EXPECT_EQ(source.within, 0) << "a thread still reads";
    const int calls = source.calls;
    std::this_thread::yield();
    EXPECT_EQ(source.calls, calls) << "a thread reads on";
  }
  EXPECT_GE(source.calls, 25);
}

TEST(SortRowsByToken, SortsByTokenThenRow) {
  const std::vector<std::int32_t> tokens = {5, 0, 5, 2, 0, 9, 2, 5};
  std::vector<std::int32_t> order = {1, 2, 3};
  sort_rows_by_token(tokens, order);
  EXPECT_EQ(order, (std::vector<std::int32_t>{1, 4, 3, 6, 0, 2, 7, 5}));
  sort_rows_by_token({}, order);
  EXPECT_TRUE(order.empty());
  sort_rows_by_token({3}, order);
  EXPECT_EQ(order, std::vector<std::int32_t>{0});
  EXPECT_THROW(sort_rows_by_token({1, -1}, order), InternalError);
}

TEST(SortRowsByToken, EqualsAStableSort) {
  std::vector<std::int32_t> tokens(5000), order, expected(5000);
  std::uint64_t state = 1;
  for (std::int32_t& token : tokens)
    token = static_cast<std::int32_t>((state = state * 6364136223846793005u + 1) >> 33) % 300;
  std::iota(expected.begin(), expected.end(), 0);
  std::stable_sort(expected.begin(), expected.end(),
                   [&](std::int32_t a, std::int32_t b) { return tokens[a] < tokens[b]; });
  sort_rows_by_token(tokens, order);
  EXPECT_EQ(order, expected);
}

}  // namespace
}  // namespace tern::data
