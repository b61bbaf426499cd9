#include <algorithm>
#include <set>

#include "base/random.hpp"
#include "data/detail/packing.hpp"
#include "data/sample_source.hpp"
#include "scratch.hpp"

namespace tern::data {
namespace {

using test::expect_user_error;
using Tokens = std::vector<std::int32_t>;

constexpr std::int32_t E = 256;  // the end token of 'bytes'

const text::Tokenizer& bytes() {
  static const auto tokenizer = text::open_tokenizer("bytes");
  return *tokenizer;
}

/// Question "qq", plan "p", execution "xxx".
Sample small() { return {"qq", "p", "xxx", ""}; }

SampleRules small_rules() {
  SampleRules rules;
  rules.question_tokens = 4;
  rules.plan_tokens = 5;
  rules.execution_tokens = 7;
  rules.execution_block = 3;
  return rules;
}

/// The row as the batch's row `at`.
SampleRows batch_of(const SampleSource& source, std::size_t row, std::size_t at = 0) {
  Batch batch;
  source.append(row, at, batch);
  return batch.as<SampleRows>();
}

/// Samples of many lengths, the same on every machine.
std::vector<Sample> many(std::size_t count) {
  std::vector<Sample> samples(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Random4 r = philox(5, Stream::test, 0, static_cast<std::uint32_t>(i), 0);
    samples[i] = {std::string(10 + r.word[0] % 50, 'q'), std::string(r.word[1] % 40, 'p'),
                  std::string(5 + r.word[2] % 80, 'x') + std::to_string(i), ""};
  }
  return samples;
}

SampleRules many_rules() {
  SampleRules rules;
  rules.question_tokens = 64;
  rules.plan_tokens = 48;
  rules.execution_tokens = 96;
  rules.plan_block = 16;
  rules.seed = 3;
  return rules;
}

TEST(SampleSource, HierarchyHasTwoLevels) {
  const SampleSource source({small()}, bytes(), small_rules());
  EXPECT_EQ(source.rows(), 1u);
  EXPECT_EQ(source.positions(), 4u + 2 * (5 + 7));
  const SampleRows batch = batch_of(source, 0, 6);
  ASSERT_EQ(batch.pieces.size(), 1u);
  const SamplePiece& p = batch.pieces[0];
  EXPECT_EQ(p.row, 6u);
  EXPECT_EQ(p.first, 0u);
  EXPECT_EQ(p.prefix, 3u);
  EXPECT_EQ(p.length, (std::array<std::uint32_t, 2>{5, 6}));  // the whole plan; two blocks of 3
  EXPECT_EQ(p.block, (std::array<std::uint32_t, 2>{5, 3}));
  EXPECT_EQ(batch.tokens, (Tokens{'q', 'q', E, 'p', E, E, E, E, 'x', 'x', 'x', E, E, E}));
  const Counts c = source.counts(0);
  EXPECT_EQ(c.tokens, (std::array<std::int64_t, 2>{2, 4}));
  EXPECT_EQ(c.blocks, (std::array<std::int64_t, 2>{1, 2}));
  EXPECT_EQ(c.samples, 1);
  EXPECT_EQ(c.data_tokens, 9);
  EXPECT_DOUBLE_EQ(source.fill(), (3 + 2 * (5 + 6)) / 28.0);
}

TEST(SampleSource, FlatHasOneLevel) {
  SampleRules rules = small_rules();
  rules.hierarchical = false;
  const SampleSource conditioned({small()}, bytes(), rules);
  EXPECT_EQ(conditioned.positions(), 4u + 2 * 12);
  SampleRows batch = batch_of(conditioned, 0);
  EXPECT_EQ(batch.tokens, (Tokens{'q', 'q', E, 'p', E, 'x', 'x', 'x', E}));
  EXPECT_EQ(batch.pieces[0].prefix, 3u);
  EXPECT_EQ(batch.pieces[0].length, (std::array<std::uint32_t, 2>{0, 6}));
  EXPECT_EQ(conditioned.counts(0).tokens, (std::array<std::int64_t, 2>{0, 6}));
  EXPECT_EQ(conditioned.counts(0).blocks, (std::array<std::int64_t, 2>{0, 2}));

  rules.conditioned = false;
  rules.execution_block = 4;
  const SampleSource plain({small()}, bytes(), rules);
  EXPECT_EQ(plain.positions(), 2u * 16);
  batch = batch_of(plain, 0);
  EXPECT_EQ(batch.tokens, (Tokens{'q', 'q', E, 'p', E, 'x', 'x', 'x', E, E, E, E}));
  EXPECT_EQ(batch.pieces[0].prefix, 0u);
  EXPECT_EQ(batch.pieces[0].length, (std::array<std::uint32_t, 2>{0, 12}));
  EXPECT_EQ(batch.pieces[0].block, (std::array<std::uint32_t, 2>{0, 4}));
  EXPECT_EQ(plain.counts(0).tokens, (std::array<std::int64_t, 2>{0, 9}));
  EXPECT_EQ(plain.counts(0).data_tokens, 9);

  rules.conditioned = true;
  rules.plan_tokens = 0;  // no plan at all
  const SampleSource without({small()}, bytes(), rules);
  EXPECT_EQ(batch_of(without, 0).tokens, (Tokens{'q', 'q', E, 'x', 'x', 'x', E}));
}

TEST(SampleSource, ALevelIsNotFilledBeyondItsMaximum) {
  const SampleSource source({{"q", "", "xxxxx", ""}}, bytes(), small_rules());
  const SampleRows batch = batch_of(source, 0);
  EXPECT_EQ(batch.pieces[0].length, (std::array<std::uint32_t, 2>{5, 6}));
  const SampleSource full({{"q", "", "xxxxxx", ""}}, bytes(), small_rules());
  EXPECT_EQ(batch_of(full, 0).pieces[0].length, (std::array<std::uint32_t, 2>{5, 7}));
  EXPECT_EQ(full.counts(0).blocks, (std::array<std::int64_t, 2>{1, 3}));
  EXPECT_EQ(full.counts(0).tokens, (std::array<std::int64_t, 2>{1, 7}));
}

TEST(SampleSource, CutsWhatIsTooLong) {
  const std::vector<Sample> samples = {{"12345", "abcdef", "ABCDEFGHI", ""}, small()};
  SampleRules rules = small_rules();
  rules.packing = false;
  const SampleSource cut(samples, bytes(), rules);
  EXPECT_EQ(cut.rows(), 2u);
  EXPECT_EQ(batch_of(cut, 0).tokens,
            (Tokens{'3', '4', '5', E, 'a', 'b', 'c', 'd', E, 'A', 'B', 'C', 'D', 'E', 'F', E}));
  const Truncation& t = cut.truncation();
  EXPECT_EQ(std::tuple(t.samples, t.left_out, t.questions, t.plans, t.executions),
            std::tuple(2u, 0u, 1u, 1u, 1u));
  EXPECT_EQ(std::tuple(t.longest_question, t.longest_plan, t.longest_execution),
            std::tuple(6u, 7u, 10u));
  rules.cut = false;
  const SampleSource left(samples, bytes(), rules);
  EXPECT_EQ(left.rows(), 1u);
  EXPECT_EQ(left.samples_of(0), std::vector<std::size_t>{1});
  EXPECT_EQ(left.truncation().left_out, 1u);
  EXPECT_EQ(left.truncation().plans, 1u);
  EXPECT_EQ(batch_of(left, 0).tokens, batch_of(cut, 1).tokens);
}

TEST(SampleSource, PromptsAreThoseOfTraining) {
  for (const Sample& sample : {small(), Sample{"12345", "abcdef", "x", ""}}) {
    const SampleSource source({sample}, bytes(), small_rules());
    const Tokens row = batch_of(source, 0).tokens;
    const Tokens question = question_tokens(sample, bytes(), small_rules());
    const Tokens plan = plan_tokens(sample, bytes(), small_rules());
    EXPECT_EQ(question.size(), batch_of(source, 0).pieces[0].prefix);
    EXPECT_TRUE(std::equal(question.begin(), question.end(), row.begin()));
    EXPECT_TRUE(std::equal(plan.begin(), plan.end(), row.begin() + question.size()));
    EXPECT_EQ(plan.back(), E);
  }
}

TEST(SampleSource, TextsEndAtEndTokens) {
  EXPECT_EQ(level_text({'a', 'b', E, E, 'c'}, bytes()), "ab");
  EXPECT_EQ(level_text({'a', 'b'}, bytes()), "ab");
  EXPECT_EQ(level_text({E, 'a'}, bytes()), "");
  EXPECT_EQ(level_text({}, bytes()), "");
  using Texts = std::vector<std::string>;
  EXPECT_EQ(segment_texts({'a', E, 'b', 'c', E, E, E}, bytes(), 2), (Texts{"a", "bc"}));
  EXPECT_EQ(segment_texts({'a', E, 'b'}, bytes(), 3), (Texts{"a", "b"}));
}

/// Packed or not, each sample stands in one row, its tokens there are those it has alone, and the
/// counts are those of the pieces.
void check_rows(const std::vector<Sample>& samples, const SampleRules& rules) {
  const SampleSource source(samples, bytes(), rules);
  std::vector<int> seen(samples.size());
  std::size_t used = 0;
  for (std::size_t row = 0; row < source.rows(); ++row) {
    const SampleRows batch = batch_of(source, row, 1);
    ASSERT_EQ(batch.pieces.size(), source.samples_of(row).size());
    std::size_t positions = 0, first = 0;
    Counts counts;
    for (std::size_t i = 0; i < batch.pieces.size(); ++i) {
      const SamplePiece& piece = batch.pieces[i];
      const std::size_t sample = source.samples_of(row)[i];
      const SampleSource alone({samples[sample]}, bytes(), rules);
      const Tokens expected = batch_of(alone, 0).tokens;
      EXPECT_EQ(piece.row, 1u);
      EXPECT_EQ(piece.first, first);
      EXPECT_EQ(piece.tokens(), expected.size());
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), batch.tokens.begin() + first));
      first += piece.tokens();
      positions += piece.positions();
      counts += alone.counts(0);
      ++seen[sample];
    }
    EXPECT_EQ(first, batch.tokens.size());
    EXPECT_LE(positions, source.positions());
    EXPECT_EQ(source.counts(row), counts);
    used += positions;
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), static_cast<std::ptrdiff_t>(samples.size()));
  EXPECT_DOUBLE_EQ(source.fill(), static_cast<double>(used) /
                                      static_cast<double>(source.rows() * source.positions()));
}

TEST(SampleSource, EachSampleStandsInOneRow) {
  const auto samples = many(500);
  SampleRules rules = many_rules();
  check_rows(samples, rules);
  rules.packing = false;
  check_rows(samples, rules);
  rules.packing = true;
  rules.hierarchical = false;
  rules.positions = 1000;
  check_rows(samples, rules);
  rules.conditioned = false;
  check_rows(samples, rules);
}

TEST(SampleSource, PackingFillsRows) {
  const auto samples = many(3000);
  SampleRules rules = many_rules();
  rules.positions = 1024;
  EXPECT_GT(SampleSource(samples, bytes(), rules).fill(), 0.98);
  rules.positions = 0;
  EXPECT_GT(SampleSource(samples, bytes(), rules).fill(), 0.83);
  rules.packing = false;
  EXPECT_LT(SampleSource(samples, bytes(), rules).fill(), 0.7);
}

TEST(SampleSource, RowsDependOnTheSeedAlone) {
  const auto samples = many(3000);
  SampleRules rules = many_rules();
  const auto rows = [&] {
    const SampleSource source(samples, bytes(), rules);
    std::vector<std::vector<std::size_t>> all;
    Tokens tokens;
    for (std::size_t row = 0; row < source.rows(); ++row) {
      all.push_back(source.samples_of(row));
      const SampleRows batch = batch_of(source, row);
      tokens.insert(tokens.end(), batch.tokens.begin(), batch.tokens.end());
    }
    return std::pair{all, tokens};
  };
  const auto one = rows();
  rules.threads = 3;
  EXPECT_TRUE(rows() == one);
  rules.seed = 4;
  EXPECT_FALSE(rows().first == one.first);
}

TEST(SampleSource, PacksAMillion) {
  std::vector<std::uint32_t> sizes(1'000'000);
  std::size_t sum = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Random4 r = philox(1, Stream::test, 1, static_cast<std::uint32_t>(i), 0);
    sizes[i] = i % 10 == 0 ? 0 : 100 + r.word[0] % 797;
    sum += sizes[i];
  }
  const auto rows = detail::pack(sizes, 896, 7);
  std::vector<char> seen(sizes.size());
  for (const auto& row : rows) {
    std::size_t size = 0;
    for (const std::size_t thing : row) {
      size += sizes[thing];
      EXPECT_FALSE(seen[thing]);
      seen[thing] = 1;
    }
    EXPECT_LE(size, 896u);
  }
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), 900'000);
  EXPECT_GT(static_cast<double>(sum) / static_cast<double>(rows.size() * 896), 0.9);
}

TEST(SampleSource, MistakesAreNamed) {
  const auto fails = [](const SampleRules& rules, std::initializer_list<std::string> parts) {
    expect_user_error([&] { SampleSource({small()}, bytes(), rules); }, parts);
  };
  SampleRules rules = small_rules();
  rules.positions = 24;  // the sample needs 25
  fails(rules, {"24 positions", "25"});
  rules.positions = 25;
  EXPECT_EQ(SampleSource({small()}, bytes(), rules).fill(), 1);
  rules = small_rules();
  rules.cut = false;
  rules.execution_tokens = 3;
  fails(rules, {"none of the 1 samples fits in 4 + 5 + 3", "3, 2, 4"});
  rules = small_rules();
  rules.plan_tokens = 0;
  fails(rules, {"4 + 0 + 7", "at least one"});
  expect_user_error([] { SampleSource({}, bytes(), small_rules()); }, {"no samples"});
}

}  // namespace
}  // namespace tern::data
