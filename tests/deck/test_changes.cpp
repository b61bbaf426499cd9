// What a resumed deck changes of the checkpoint's.
#include <gtest/gtest.h>

#include "deck/changes.hpp"
#include "deck/renamed.hpp"
#include "scratch.hpp"

namespace tern::deck {
namespace {

std::string stored(const std::string& text) { return print(parse(text, "d"), false); }

std::string listed(const std::string& before, const std::string& now) {
  return text_of(changes_of(stored(before), parse(now, "d")).others);
}

TEST(DeckChanges, LengthOfTheRunIsListedLikeAnyOther) {
  EXPECT_EQ(
      listed("&campaign max_steps = 60 /", "&campaign max_steps = 120 / &optimizer lr = 5e-4 /"),
      "campaign.max_steps = 120, not 60\noptimizer.lr = 5e-04, not 3e-04");
  EXPECT_EQ(listed("&campaign max_hours = 1 /", "&campaign max_hours = 2 /"),
            "campaign.max_hours = 2.0, not 1.0");
  EXPECT_EQ(listed("&campaign seed = 1 /", "&campaign seed = 2 /"), "campaign.seed = 2, not 1");
}

TEST(DeckChanges, WhereARunIsAndWhatItWritesAreNot) {
  EXPECT_EQ(listed("",
                   "&campaign name = 'other' / &output log_every = 1 / &cost peak_tflops = 9 / "
                   "&generation samples = 3 / &parallel wait_minutes = 5 /"),
            "");
}

TEST(DeckChanges, ModelsAreTakenApart) {
  const DeckChanges changes =
      changes_of(stored("&model layers = 3 dropout = 0.1 /"), parse("&model layers = 4 /", "d"));
  EXPECT_TRUE(changes.readable);
  EXPECT_EQ(changes.before.model.layers, 3);
  EXPECT_EQ(text_of(changes.model), "model.layers = 4, not 3");
  EXPECT_EQ(text_of(changes.others), "model.dropout = 0.0, not 0.1");
  EXPECT_FALSE(changes_of("&nothing /", Deck()).readable);
}

TEST(DeckChanges, DecksOfEarlierVersionsCountBatches) {
  std::string old = stored("&batch per_rank = 4 / &evaluation rows = 64 /");
  const std::string rows = "\n  rows = 64\n";
  old.replace(old.find(rows), rows.size(), "\n  batches = 16\n");
  const DeckChanges same =
      changes_of(old, parse("&batch per_rank = 4 / &evaluation rows = 64 /", "d"));
  EXPECT_TRUE(same.readable);
  EXPECT_EQ(text_of(same.others), "");
  EXPECT_EQ(text_of(changes_of(old, parse("&batch per_rank = 4 /", "d")).others),
            "evaluation.rows = 160, not 64");
}

TEST(DeckChanges, NamesOfEarlierVersionsAreRead) {
  std::string old = stored(
      "&data train = 'a' valid = 'b' / &model experts = 4 experts_per_token = 2 expert_hidden = 8 "
      "renormalize_experts = .false. /");
  const std::string now = "renormalize_experts";
  old.replace(old.find(now), now.size(), "renormalise_experts");
  EXPECT_THROW(parse(old, "d"), UserError);
  EXPECT_FALSE(parse_stored(old, "deck.in").model.renormalize_experts);
  const DeckChanges changes = changes_of(old, parse_stored(old, "d"));
  EXPECT_TRUE(changes.readable);
  EXPECT_EQ(text_of(changes.model), "");
  EXPECT_EQ(text_of(changes.others), "");

  // The resolved deck of a run directory, given to a program; any other deck gets a message.
  const test::Scratch scratch;
  scratch.write("deck.in", old);
  scratch.write("other.in", old);
  EXPECT_FALSE(read((scratch / "deck.in").string()).model.renormalize_experts);
  EXPECT_THROW(read((scratch / "other.in").string()), UserError);
}

TEST(DeckChanges, OnlyTheNameOfItsGroupIsAnother) {
  const std::string text = "&batch\n  batches = 3\n/\n&evaluation\n  every = 1\n/\n";
  EXPECT_EQ(in_current_names(text), text);
  EXPECT_EQ(in_current_names("&model\n  renormalise_experts = .false.\n/"),
            "&model\n  renormalize_experts = .false.\n/");
  EXPECT_EQ(in_current_names(""), "");
}

}  // namespace
}  // namespace tern::deck
