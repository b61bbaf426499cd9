// Attention masks of block diffusion, compared with dense masks written from the definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "objective/batches.hpp"
#include "objective/detail/block_rows.hpp"

namespace tern::objective::detail {
namespace {

using test::Made;

constexpr std::int32_t vocabulary = 50;

/// What a position is, said in words.
struct Place {
  enum class Kind { padding, prefix, clean, noisy } kind = Kind::padding;
  std::size_t sample = 0, block = 0, token = 0;  // blocks counted over both levels
};

std::size_t block_number(const Made& made, std::size_t token) {
  if (token < made.length[0]) return token / made.block[0];
  const std::size_t plan_blocks =
      made.length[0] == 0 ? 0 : (made.length[0] - 1) / made.block[0] + 1;
  return plan_blocks + (token - made.length[0]) / made.block[1];
}

std::vector<Place> places_of(const std::vector<Made>& samples, std::size_t rows,
                             std::size_t positions) {
  std::vector<Place> places(rows * positions);
  std::vector<std::size_t> used(rows, 0);
  for (std::size_t s = 0; s < samples.size(); ++s) {
    const Made& made = samples[s];
    const auto next = [&]() -> Place& { return places[made.row * positions + used[made.row]++]; };
    for (std::size_t i = 0; i < made.prefix; ++i) next() = {Place::Kind::prefix, s, 0, i};
    for (const auto kind : {Place::Kind::clean, Place::Kind::noisy})
      for (std::size_t i = 0; i < made.length[0] + made.length[1]; ++i)
        next() = {kind, s, block_number(made, i), made.prefix + i};
  }
  return places;
}

/// The definition.
bool sees(const Place& query, const Place& key) {
  using Kind = Place::Kind;
  if (query.kind == Kind::padding || key.kind == Kind::padding || query.sample != key.sample)
    return false;
  if (key.kind == Kind::prefix) return true;
  if (query.kind == Kind::prefix) return false;
  if (key.kind == Kind::noisy) return query.kind == Kind::noisy && query.block == key.block;
  return query.kind == Kind::noisy ? key.block < query.block : key.block <= query.block;
}

ops::Pattern pattern_of(const BlockRows& rows) {
  return rows.table().pattern(rows.table().spans().data(), rows.table().hulls().data());
}

struct Tally {
  std::size_t patterns = 0, pairs = 0, differences = 0;
  std::size_t tiles = 0, wrong = 0, undecided = 0, decidable = 0;
};

void check_tiles(const ops::Pattern& pattern, std::size_t row, int positions,
                 const std::vector<char>& dense, int height, int width, Tally& tally) {
  const auto size = static_cast<std::size_t>(positions);
  for (int q = 0; q < positions; q += height)
    for (int k = 0; k < positions; k += width) {
      const int q1 = std::min(q + height, positions), k1 = std::min(k + width, positions);
      int allowed = 0;
      for (int i = q; i < q1; ++i)
        for (int j = k; j < k1; ++j)
          allowed += dense[static_cast<std::size_t>(i) * size + static_cast<std::size_t>(j)];
      const ops::Tile truth = allowed == 0                     ? ops::Tile::none
                              : allowed == (q1 - q) * (k1 - k) ? ops::Tile::all
                                                               : ops::Tile::mixed;
      const ops::Tile said = pattern.tile(static_cast<int>(row), q, q1, k, k1);
      ++tally.tiles;
      tally.decidable += truth != ops::Tile::mixed;
      if (said == truth) continue;
      if (said == ops::Tile::mixed)
        ++tally.undecided;
      else
        ++tally.wrong;
    }
}

void check(const std::vector<Made>& samples, std::size_t rows, std::size_t positions,
           Tally& tally) {
  BlockRows block_rows(rows, positions, vocabulary - 1);
  block_rows.fill(
      test::batch_of(samples, rows, positions, test::random_tokens_of(samples, vocabulary, 1)), {});
  const ops::Pattern pattern = pattern_of(block_rows);
  const std::vector<Place> places = places_of(samples, rows, positions);
  ++tally.patterns;
  std::vector<char> dense(positions * positions);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t q = 0; q < positions; ++q)
      for (std::size_t k = 0; k < positions; ++k) {
        const bool truth = sees(places[r * positions + q], places[r * positions + k]);
        dense[q * positions + k] = truth;
        ++tally.pairs;
        tally.differences +=
            truth != pattern.allowed(static_cast<int>(r), static_cast<int>(q), static_cast<int>(k));
      }
    for (const int height : {1, 8, 16, 32, 64})
      for (const int width : {8, 16, 64})
        check_tiles(pattern, r, static_cast<int>(positions), dense, height, width, tally);
  }
}

/// One to four samples a row, of all shapes, and padding at the end of most rows.
std::vector<Made> random_samples(std::mt19937& generator, std::size_t rows, std::size_t positions) {
  const auto upto = [&](std::uint32_t n) { return static_cast<std::uint32_t>(generator() % n); };
  std::vector<Made> samples;
  for (std::uint32_t r = 0; r < rows; ++r) {
    std::size_t used = 0;
    for (std::uint32_t tries = 1 + upto(4); tries > 0; --tries) {
      Made made{r, upto(3) ? upto(20) : 0, {upto(2) ? upto(24) : 0, 1 + upto(40)}, {}};
      for (std::size_t l = 0; l < data::levels; ++l) {
        const std::uint32_t n = std::max(1u, made.length[l]);
        const std::uint32_t blocks[] = {1, n, 1 + upto(n), 4, 16};
        made.block[l] = blocks[upto(5)];
      }
      if (used + test::positions_of(made) > positions) continue;
      used += test::positions_of(made);
      samples.push_back(made);
    }
  }
  return samples;
}

TEST(BlockPattern, IsTheDenseMaskOfTheDefinition) {
  Tally tally;
  std::mt19937 generator(20);
  for (int n = 0; n < 300; ++n) {
    const std::size_t rows = 1 + generator() % 3, positions = 40 + generator() % 200;
    check(random_samples(generator, rows, positions), rows, positions, tally);
  }
  const std::vector<std::vector<Made>> shapes = {
      {},                                                // padding alone
      {test::flat(0, 0, 32, 1)},                         // L' = 1
      {test::flat(0, 0, 32, 32)},                        // L' = L
      {test::flat(0, 0, 33, 16)},                        // a short last block
      {test::flat(0, 5, 32, 8)},                         // question
      {{0, 7, {9, 20}, {9, 8}}},                         // plan at once, then execution
      {{0, 7, {9, 20}, {4, 20}}},                        // plan in blocks, execution at once
      {{0, 3, {5, 6}, {5, 2}}, {0, 4, {6, 5}, {2, 1}}},  // two in a row
      {{0, 6, {0, 0}, {0, 0}}, {0, 0, {0, 12}, {0, 3}}}  // a prefix alone
  };
  for (const auto& samples : shapes) check(samples, 1, 80, tally);
  std::printf(
      "%zu patterns, %zu pairs, %zu differences; %zu tiles, %zu wrongly none or all, %zu of the "
      "%zu that are none or all called mixed (%.2f%%)\n",
      tally.patterns, tally.pairs, tally.differences, tally.tiles, tally.wrong, tally.undecided,
      tally.decidable,
      100 * static_cast<double>(tally.undecided) / static_cast<double>(tally.decidable));
  EXPECT_EQ(tally.differences, 0u);
  EXPECT_EQ(tally.wrong, 0u);
  EXPECT_LT(tally.undecided, tally.decidable / 1000);
}

/// What the kernels use it for: whole rows at tiles of 64 by 64.
TEST(BlockPattern, DecidesNearlyAllTilesOfRealRows) {
  const std::vector<Made> samples = {{0, 128, {128, 256}, {128, 16}},
                                     test::flat(1, 0, 448, 16),
                                     {2, 55, {52, 80}, {52, 16}},
                                     {2, 61, {40, 96}, {40, 16}}};
  Tally tally;
  BlockRows rows(3, 896, vocabulary - 1);
  rows.fill(test::batch_of(samples, 3, 896, test::random_tokens_of(samples, vocabulary, 1)), {});
  const ops::Pattern pattern = pattern_of(rows);
  const std::vector<Place> places = places_of(samples, 3, 896);
  std::vector<char> dense(896 * 896);
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t q = 0; q < 896; ++q)
      for (std::size_t k = 0; k < 896; ++k)
        dense[q * 896 + k] = sees(places[r * 896 + q], places[r * 896 + k]);
    check_tiles(pattern, r, 896, dense, 64, 64, tally);
  }
  std::printf("%zu tiles of 64 x 64: %zu of the %zu that are none or all called mixed\n",
              tally.tiles, tally.undecided, tally.decidable);
  EXPECT_EQ(tally.wrong, 0u);
  EXPECT_LE(tally.undecided, tally.decidable / 50);
}

/// Arriola et al., appendix: M_BD, M_OBC and M_BC over [x_t | x_0]; ours is [x_0 | x_t].
TEST(BlockPattern, WithoutPrefixIsTheMaskOfThePaper) {
  std::size_t cases = 0, differences = 0;
  for (const std::uint32_t n : {1u, 5u, 16u, 30u, 32u})
    for (std::uint32_t block = 1; block <= n; ++block, ++cases) {
      BlockRows rows(1, 2 * n, vocabulary - 1);
      const std::vector<Made> samples = {test::flat(0, 0, n, block)};
      rows.fill(test::batch_of(samples, 1, 2 * n, test::random_tokens_of(samples, vocabulary, 1)),
                {});
      const ops::Pattern pattern = pattern_of(rows);
      const auto ours = [&](std::uint32_t i) { return static_cast<int>(i < n ? n + i : i - n); };
      for (std::uint32_t q = 0; q < 2 * n; ++q)
        for (std::uint32_t k = 0; k < 2 * n; ++k) {
          const bool x0_q = q >= n, x0_k = k >= n;
          const std::uint32_t block_q = (x0_q ? q - n : q) / block;
          const std::uint32_t block_k = (x0_k ? k - n : k) / block;
          const bool block_diagonal = block_q == block_k && x0_q == x0_k;
          const bool offset_block_causal = block_q > block_k && x0_k && !x0_q;
          const bool block_causal = block_q >= block_k && x0_k && x0_q;
          differences += (block_diagonal || offset_block_causal || block_causal) !=
                         pattern.allowed(0, ours(q), ours(k));
        }
    }
  std::printf("%zu block lengths, %zu differences\n", cases, differences);
  EXPECT_EQ(differences, 0u);
}

TEST(BlockRows, TokensPositionsAndLevelsStandWhereTheyBelong) {
  const std::vector<Made> samples = {
      {0, 3, {5, 6}, {5, 2}}, {0, 4, {6, 5}, {2, 1}}, {2, 0, {0, 12}, {0, 5}}};
  const auto tokens = test::random_tokens_of(samples, vocabulary, 3);
  BlockRows rows(3, 60, vocabulary - 1);
  rows.fill(test::batch_of(samples, 3, 60, tokens), {});
  const std::vector<Place> places = places_of(samples, 3, 60);
  std::vector<std::size_t> first(samples.size(), 0);
  for (std::size_t s = 1; s < samples.size(); ++s)
    first[s] = first[s - 1] + test::tokens_of({samples[s - 1]});
  std::map<std::int32_t, std::int32_t> masked;
  for (std::size_t m = 0; m < rows.masked().size(); ++m)
    masked[rows.masked()[m]] = rows.targets()[m];
  EXPECT_TRUE(std::is_sorted(rows.masked().begin(), rows.masked().end()));
  EXPECT_GT(masked.size(), 3u);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Place& p = places[i];
    const bool padding = p.kind == Place::Kind::padding;
    const std::int32_t token = padding ? 0 : tokens[first[p.sample] + p.token];
    const bool is_masked = masked.count(static_cast<std::int32_t>(i)) > 0;
    EXPECT_EQ(rows.tokens()[i], is_masked ? vocabulary - 1 : token) << i;
    if (is_masked) {
      EXPECT_EQ(p.kind, Place::Kind::noisy);
      EXPECT_EQ(masked[static_cast<std::int32_t>(i)], token);
    }
    EXPECT_EQ(rows.positions()[i], padding ? 0 : static_cast<std::int32_t>(p.token)) << i;
    std::int32_t level = 0;
    if (p.kind == Place::Kind::clean || p.kind == Place::Kind::noisy)
      level = p.token - samples[p.sample].prefix < samples[p.sample].length[0] ? 1 : 2;
    EXPECT_EQ(rows.levels()[i], level) << i;
  }
}

}  // namespace
}  // namespace tern::objective::detail
