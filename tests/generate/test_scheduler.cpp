// The scheduler and its pages, without a model: under random requests and tiny caches every pass is
// within its limits, pages are never shared wrongly, and every request ends.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "generate/detail/scheduler.hpp"

namespace tern::generate::detail {
namespace {

using Tokens = std::vector<std::int32_t>;

/// Stands in for the model: each place of the cache holds the prefix of its sequence up to there,
/// so that a row can be checked to see exactly its own.
class Shadow {
 public:
  explicit Shadow(std::size_t page_tokens) : page_tokens_(page_tokens) {}

  void run(const Pass& pass) {
    // All rows are stored before any attends.
    for (std::size_t n = 0; n < pass.rows(); ++n) {
      EXPECT_TRUE(written_.insert(pass.places[n]).second) << "two rows in one place";
      held_[pass.places[n]] = {pass.positions[n], pass.tokens[n]};
    }
    if (reads_own_pass(pass)) {
      EXPECT_FALSE(pass.settled) << "a single row reads what another row of the pass stores";
      ++unsettled_;
    }
    written_.clear();
  }
  /// Passes in which a single row reads what another row stores.
  std::size_t unsettled() const { return unsettled_; }
  /// The tokens that the row sees.
  Tokens seen(const Pass& pass, std::size_t row) const {
    Tokens tokens;
    for (std::int32_t p = 0; p <= pass.positions[row]; ++p) {
      const auto P = static_cast<std::int32_t>(page_tokens_);
      const auto page = pass.tables[static_cast<std::size_t>(pass.table_of[row] + p / P)];
      const auto at = held_.find(page * P + p % P);
      if (at == held_.end() || at->second.first != p) {
        ADD_FAILURE() << "position " << p << " is not where it should be";
        return {};
      }
      tokens.push_back(at->second.second);
    }
    return tokens;
  }

 private:
  bool reads_own_pass(const Pass& pass) const {
    const auto P = static_cast<std::int32_t>(page_tokens_);
    for (std::size_t row = 0; row < pass.singles; ++row)
      for (std::int32_t p = 0; p < pass.positions[row]; ++p)
        if (written_.count(pass.tables[static_cast<std::size_t>(pass.table_of[row] + p / P)] * P +
                           p % P) > 0)
          return true;
    return false;
  }

  std::size_t page_tokens_, unsettled_ = 0;
  std::map<std::int32_t, std::pair<std::int32_t, std::int32_t>> held_;  // place: position, token
  std::set<std::int32_t> written_;
};

/// A token that depends on all before it.
std::int32_t next_token(const Tokens& tokens, std::int32_t id) {
  std::uint32_t h = static_cast<std::uint32_t>(id % 3);  // some requests have equal texts
  for (const std::int32_t t : tokens) h = h * 31 + static_cast<std::uint32_t>(t) + 7;
  return static_cast<std::int32_t>(h / 8 % 40);
}

void expect_within(const Pass& pass, const Scheduler::Limits& limits,
                   const EngineOptions& options) {
  EXPECT_LE(pass.rows(), limits.rows);
  EXPECT_LE(pass.segments.size(), limits.segments);
  EXPECT_LE(pass.tables.size(), limits.tables);
  EXPECT_LE(pass.splits.size(), limits.splits);
  EXPECT_LE(pass.tiles.size(), limits.tiles);
  EXPECT_LE(pass.rows() - pass.singles, options.prefill_tokens);
  std::int32_t row = 0;
  std::set<std::int32_t> covered;
  for (std::size_t s = 0; s < pass.segments.size(); ++s) {
    EXPECT_EQ(pass.segments[s].row, row);
    EXPECT_EQ(s < pass.singles, pass.segments[s].rows == 1);
    row += pass.segments[s].rows;
  }
  EXPECT_EQ(static_cast<std::size_t>(row), pass.rows());
  ASSERT_EQ(pass.first_splits.size(), pass.singles + 1);
  EXPECT_EQ(static_cast<std::size_t>(pass.first_splits.back()), pass.splits.size());
  for (std::size_t s = 0; s < pass.singles; ++s) {
    std::int32_t key = 0;
    for (std::int32_t i = pass.first_splits[s]; i < pass.first_splits[s + 1]; ++i) {
      const ops::Split& split = pass.splits[static_cast<std::size_t>(i)];
      EXPECT_EQ(split.row, pass.segments[s].row);
      EXPECT_EQ(split.position, pass.segments[s].position);
      EXPECT_EQ(split.table, pass.segments[s].table);
      EXPECT_EQ(split.first, key);
      key += ops::PagedRows::split_keys;
    }
    EXPECT_GT(key, pass.segments[s].position);
    EXPECT_LE(key - ops::PagedRows::split_keys, pass.segments[s].position);
  }
  for (const ops::Piece& t : pass.tiles) {
    const ops::Segment& s = pass.segments[static_cast<std::size_t>(t.segment)];
    for (int p = t.part * ops::PagedRows::tile_rows; p < (t.part + 1) * ops::PagedRows::tile_rows;
         ++p)
      if (p >= s.position && p < s.position + s.rows) covered.insert(s.row + p - s.position);
  }
  EXPECT_EQ(covered.size(), pass.rows() - pass.singles);
}

/// `unsettled`: + passes in which a single row reads what another row stores.
Stats answer_randomly(unsigned seed, std::size_t& unsettled) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return random() % n; };
  EngineOptions options;
  options.batch = 1 + below(12), options.max_model_len = 48 + below(80);
  options.micro_batches = 1 + seed % 3;
  options.prefill_tokens = 1 + below(40), options.prefix_cache = below(4) > 0;
  const std::size_t P = 4, length = (options.max_model_len + P - 1) / P;
  options.pages = length / 2 + below(3 * length);
  options.stop_tokens = {4};
  options.max_model_len = std::min(options.max_model_len, options.pages * P);
  Scheduler scheduler(options, P, 8);
  std::map<std::uint64_t, Request> open;
  Shadow shadow(P);
  std::uint64_t submitted = 0, passes = 0, idle = 0;
  while (submitted < 60 || scheduler.busy()) {
    if (submitted < 60 && (below(2) || !scheduler.busy())) {
      Tokens prompt(1 + below(options.max_model_len - 1), 1);
      for (std::size_t i = 30; i < prompt.size(); ++i)
        prompt[i] = static_cast<std::int32_t>(below(2));
      const std::size_t room = options.max_model_len - prompt.size();
      const Request request{submitted++, prompt, 1 + below(room)};
      open[request.id] = request;
      scheduler.submit(request);
    }
    if (++passes > 100000) ADD_FAILURE() << "it never ends";
    if (testing::Test::HasFailure()) return {};
    scheduler.plan();
    idle = scheduler.in_flight() || !scheduler.busy() ? 0 : idle + 1;
    EXPECT_LT(idle, options.micro_batches) << "nothing is done";
    const Pass& pass = scheduler.pass(options.micro_batches - 1);  // as on the last stage
    expect_within(pass, Scheduler::limits(options, P), options);
    shadow.run(pass);
    Tokens drawn;
    for (std::size_t i = 0; i < pass.drawn.size(); ++i) {
      const Request& request = open.at(static_cast<std::uint64_t>(pass.ids[2 * i]));
      const Tokens seen = shadow.seen(pass, static_cast<std::size_t>(pass.drawn[i]));
      EXPECT_EQ(seen.size(), request.prompt.size() + static_cast<std::size_t>(pass.numbers[i]));
      EXPECT_TRUE(std::equal(request.prompt.begin(), request.prompt.end(), seen.begin()));
      drawn.push_back(next_token(seen, pass.ids[2 * i]));
    }
    for (const Answer& answer : scheduler.finish(drawn.data())) {
      const Request request = open.at(answer.id);
      open.erase(answer.id);
      Tokens text = request.prompt, expected;
      while (expected.size() < request.max_new) {
        const std::int32_t token = next_token(text, static_cast<std::int32_t>(answer.id));
        if (token == 4) break;
        expected.push_back(token);
        text.push_back(token);
      }
      EXPECT_EQ(answer.tokens, expected);
    }
  }
  EXPECT_TRUE(open.empty());
  EXPECT_EQ(scheduler.stats().pages_in_use, 0u);
  unsettled += shadow.unsettled();
  return scheduler.stats();
}

TEST(Scheduler, AnswersRandomRequestsFromTinyCaches) {
  std::size_t preemptions = 0, reused = 0, unsettled = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    const Stats stats = answer_randomly(seed, unsettled);
    if (HasFailure()) return;
    preemptions += stats.preemptions;
    reused += stats.reused_tokens;
  }
  EXPECT_GT(preemptions, 100u);
  EXPECT_GT(reused, 1000u);
  EXPECT_GT(unsettled, 0u);
}

TEST(Scheduler, APassIsNotSettledWhoseSingleRowReadsAPageThatItFills) {
  EngineOptions options;
  options.batch = 2, options.pages = 8;
  Scheduler scheduler(options, 4, 10);
  scheduler.submit({1, {1, 2, 3, 4, 5}, 3});
  scheduler.submit({2, {1, 2, 3, 4, 6}, 3});
  const Pass& pass = scheduler.plan();
  EXPECT_EQ(pass.singles, 1u);  // of the second request, which found the first one's page
  EXPECT_FALSE(pass.settled);
  scheduler.finish(Tokens{7, 8}.data());
  scheduler.plan();
  EXPECT_EQ(pass.singles, 2u);
  EXPECT_TRUE(pass.settled);
}

/// Rows (of prompts, that decode) of each pass until all requests have ended, for prompts of 6
/// tokens, 2 new ones each and 4 rows of prompts per pass.
std::vector<std::pair<std::size_t, std::size_t>> rows_of_passes(std::size_t requests,
                                                                EngineOptions options) {
  options.prefill_tokens = 4, options.max_model_len = 8;
  Scheduler scheduler(options, 4, 10);
  for (std::uint64_t id = 0; id < requests; ++id)
    scheduler.submit({id, Tokens(6, static_cast<std::int32_t>(id)), 2});
  std::vector<std::pair<std::size_t, std::size_t>> rows;
  while (scheduler.busy() && rows.size() < 100) {
    const Pass& pass = scheduler.plan();
    rows.emplace_back(pass.rows() - pass.singles, pass.singles);
    scheduler.finish(Tokens(pass.drawn.size(), 9).data());
  }
  return rows;
}

TEST(Scheduler, RequestsDecodeTogetherAfterThePromptsIfNoneWaitsForAPlace) {
  EngineOptions options;
  options.batch = 4, options.pages = 16;
  using Rows = std::vector<std::pair<std::size_t, std::size_t>>;
  EXPECT_EQ(rows_of_passes(4, options),
            (Rows{{4, 0}, {4, 0}, {4, 0}, {4, 0}, {4, 0}, {4, 0}, {0, 4}}));
  options.batch = 2;  // the others need the places of those that end
  const Rows waiting = rows_of_passes(4, options);
  EXPECT_EQ(waiting[2], (std::pair<std::size_t, std::size_t>{4, 1}));
}

TEST(Scheduler, RequestsDecodeWhileTheCacheHasNoRoomForPrompts) {
  EngineOptions options;
  options.batch = 4, options.pages = 4;
  const auto rows = rows_of_passes(4, options);
  EXPECT_LT(rows.size(), 100u);
  EXPECT_GT(rows.back().second, 0u);
}

TEST(Scheduler, MicroBatchesTakeTurns) {
  EngineOptions options;
  options.batch = 3, options.pages = 8, options.micro_batches = 2;
  Scheduler scheduler(options, 4, 10);
  for (std::uint64_t id = 1; id <= 4; ++id) scheduler.submit({id, {1, 2}, 2});
  const auto ids = [&](std::size_t age) {
    Tokens all;
    const Pass& pass = scheduler.pass(age);
    for (std::size_t i = 0; i < pass.ids.size(); i += 2) all.push_back(pass.ids[i]);
    return all;
  };
  scheduler.plan();
  EXPECT_TRUE(scheduler.finish(nullptr).empty());  // no pass is that old
  scheduler.plan();
  std::vector<Tokens> both{ids(0), ids(1)};
  EXPECT_EQ(both[0].size() + both[1].size(), 3u) << "requests at once";
  EXPECT_GT(std::min(both[0].size(), both[1].size()), 0u) << "each has its own";
  EXPECT_TRUE(scheduler.finish(Tokens{5, 5}.data()).empty());
  scheduler.plan();
  EXPECT_EQ(ids(0), both[1]);
  EXPECT_EQ(scheduler.pass(0).numbers, Tokens(both[1].size(), 1));
  EXPECT_EQ(ids(1), both[0]);
}

TEST(Scheduler, KeepsRequestNumbersOfMoreThan32Bits) {
  EngineOptions options;
  options.batch = 1, options.pages = 8;
  Scheduler scheduler(options, 16, 10);
  scheduler.submit({(std::uint64_t{7} << 32) + 5, {1}, 1});
  const Pass& pass = scheduler.plan();
  EXPECT_EQ(pass.ids, (Tokens{5, 7}));
}

TEST(PagePool, FindsOnlyWhatIsEqualFromTheBeginningOn) {
  PagePool pool(4, 2, true);
  const Tokens text{1, 2, 3, 4, 5};
  const std::int32_t first = pool.take(), second = pool.take();
  const auto content = pool.publish(first, 0, text, 0);
  pool.publish(second, content, text, 2);
  pool.release({first, second});
  EXPECT_EQ(pool.available(), 4u);
  EXPECT_EQ(pool.find({3, 4}, 1).pages.size(), 0u);  // not the beginning of a text
  EXPECT_EQ(pool.find({1, 2, 3, 5}, 2).pages, Tokens{first});
  pool.release({first});
  const auto found = pool.find(text, 2);
  EXPECT_EQ(found.pages, (Tokens{first, second}));
  EXPECT_EQ(pool.available(), 2u);
  pool.take(), pool.take();
  pool.release({first, second});
  EXPECT_EQ(pool.take(), second);  // the end is taken before the beginning
  EXPECT_EQ(pool.find(text, 2).pages, Tokens{first});
}

TEST(PagePool, APageWhoseBeginningWasReplacedIsNotFound) {
  PagePool pool(3, 1, true);
  const std::int32_t a = pool.take(), b = pool.take();
  const auto content = pool.publish(a, 0, {1, 2}, 0);
  pool.publish(b, content, {1, 2}, 1);
  pool.release({b});
  pool.release({a});
  pool.take();                // the empty one
  EXPECT_EQ(pool.take(), b);  // forgets b
  pool.release({b});
  EXPECT_EQ(pool.find({1, 2}, 2).pages, Tokens{a});
}

}  // namespace
}  // namespace tern::generate::detail
