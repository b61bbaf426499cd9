/// Mutated decks either parse, and then print and parse again to the same values, or are refused
/// with a UserError; anything else (a crash, another exception, a hang against the time limit)
/// fails.
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "deck/corpus.hpp"

namespace tern::test {
namespace {

constexpr int mutants_per_seed = 30000;

struct Count {
  int decks = 0, accepted = 0, refused = 0;
};

void try_one(const std::string& text, const std::vector<std::string>& overrides, Count& count) {
  ++count.decks;
  try {
    const deck::Deck deck = deck::parse(text, "mutant", overrides);
    ++count.accepted;
    ASSERT_EQ(deck::parse(deck::print(deck, false), "printed"), deck) << text;
    if (count.accepted % 16 == 0) {
      ASSERT_EQ(deck::parse(deck::print(deck, true), "printed"), deck) << text;
    }
  } catch (const UserError& error) {
    ++count.refused;
    ASSERT_NE(std::string(error.what()), "");
  }
}

TEST(Fuzz, MutatedDecksParseOrAreRefused) {
  const std::vector<std::string> texts = seeds();
  Count count;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Mutator mutator(seed);
    std::string text = texts[0];
    for (int i = 0; i < mutants_per_seed && !HasFatalFailure(); ++i) {
      // One in two starts from the last mutant, so that changes accumulate.
      if (mutator.below(2) == 0) text = texts[mutator.below(texts.size())];
      text = mutator.mutate(std::move(text), texts);
      try_one(text, {}, count);
    }
  }
  std::printf("%d mutated decks: %d accepted, %d refused\n", count.decks, count.accepted,
              count.refused);
  EXPECT_GE(count.decks, 100000);
  EXPECT_GT(count.accepted, count.decks / 50);
  EXPECT_GT(count.refused, count.decks / 10);
}

TEST(Fuzz, MutatedOverridesParseOrAreRefused) {
  const std::vector<std::string> texts = {"optimizer.lr=1e-3",       "data.train='a.bin', b.bin",
                                          "optimizer.betas(2)=0.98", "campaign.name=it's",
                                          "generation.prompt=\"a\"", "model.qk_norm=T",
                                          "optimizer.betas=2*0.5"};
  Count count;
  Mutator mutator(5);
  for (int i = 0; i < 20000 && !HasFatalFailure(); ++i)
    try_one("", {mutator.mutate(texts[mutator.below(texts.size())], texts)}, count);
  std::printf("%d mutated overrides: %d accepted, %d refused\n", count.decks, count.accepted,
              count.refused);
  EXPECT_GT(count.accepted, 1000);
  EXPECT_GT(count.refused, 1000);
}

}  // namespace
}  // namespace tern::test
