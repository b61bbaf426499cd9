#include <gtest/gtest.h>

#include "deck/deck.hpp"
#include "deck/mistakes.hpp"

namespace tern::test {

using deck::Deck;
using deck::parse;
using deck::print;

namespace {

TEST(DeckObjectives, BlockDiffusion) {
  const std::string samples =
      "&data train = 'a.jsonl' question_tokens = 10 plan_tokens = 20 execution_tokens = 30 / ";
  none(samples + "&objective kind = 'block_diffusion' hierarchy = 'hdp' / &model context = 60 /");
  one(samples + "&objective kind = 'block_diffusion' / &model context = 61 /",
      "d:1:132: model.context: 61 is not question_tokens + plan_tokens + execution_tokens = 60; "
      "set context = 60");
  one("&data train = 'a.jsonl' /",
      "d:1:7: data.train: kind = 'causal' reads token shards, not JSON; make shards with ./prepare "
      "text, or set kind = 'block_diffusion' ('supervised' for conversations)");
  one("&data train = 'a.bin' / &objective kind = 'block_diffusion' hierarchy = 'hdp' /",
      "d:1:61: objective.hierarchy: hdp needs samples with question, plan and execution; set train "
      "to .json or .jsonl files");
  one("&objective kind = 'block_diffusion' / &model position = 'learned' /",
      "d:1:46: model.position: block diffusion repeats positions, which 'learned' does not "
      "support; set position = 'rope'");
  one("&objective kind = 'block_diffusion' clip_low = 0.9 clip_high = 0.5 /",
      "d:1:37: objective.clip_low: 0.9 is above clip_high = 0.5; lower it");
  one("&objective kind = 'block_diffusion' / &model vocabulary = 50257 /",
      "d:1:46: model.vocabulary: 50257 leaves no token for the mask, which is the last of the "
      "vocabulary; set vocabulary = 50258 or more");
  EXPECT_EQ(
      parse(
          samples + "&objective kind = 'block_diffusion' hierarchy = 'hdp' / &model context = 60 /",
          "d")
          .model.levels,
      3);
}

TEST(DeckObjectives, RefinementPresets) {
  using Values = std::vector<double>;
  const auto resolved = [](const std::string& text) {
    const Deck deck = parse("&objective " + text + " /", "d");
    for (const bool help : {false, true}) EXPECT_EQ(parse(print(deck, help), "d"), deck) << text;
    return deck.objective;
  };
  const deck::Objective aggressive = resolved("preset = 'aggressive'");
  EXPECT_EQ(aggressive.weight_base, 5);
  EXPECT_EQ(aggressive.reward, 1);
  EXPECT_EQ(aggressive.refinement_range, (Values{0.15, 0.25}));
  EXPECT_EQ(aggressive.norm_range, (Values{0.5, 1.5}));
  const deck::Objective extreme = resolved("preset = 'extreme' supervision_steps = 6");
  EXPECT_EQ(extreme.supervision_steps, 6);
  EXPECT_EQ(extreme.weight_base, 10);
  EXPECT_EQ(extreme.reward, 2);
  EXPECT_EQ(extreme.refinement_range, (Values{0.5, 0.97}));
  EXPECT_EQ(extreme.norm_range, (Values{2, 15}));
  const deck::Objective given = resolved("weight_base = 3 norm_range(2) = 7 preset = 'none'");
  EXPECT_EQ(given.weight_base, 3);
  EXPECT_EQ(given.reward, 1);
  EXPECT_EQ(given.norm_range, (Values{0.5, 7}));
}

TEST(DeckObjectives, ValuesThatContradictARefinementPreset) {
  const auto check = [](const std::string& name, const std::string& given, const std::string& its) {
    const std::string deck = "&objective preset = 'extreme' " + name + " = ";
    none(deck + its + " /");
    one(deck + given + " /", fmt::format("d:1:31: objective.{}: {}, but preset = 'extreme' sets "
                                         "{}; remove one of the two, or set preset = 'none'",
                                         name, given, its));
  };
  check("weight_base", "9.5", "10");
  check("reward", "1", "2");
  check("refinement_range", "0.5, 0.75", "0.5, 0.97");
  check("norm_range", "0.5, 1.5", "2, 15");
}

TEST(DeckObjectives, Refinement) {
  for (const std::string range : {"0.5, 0.5", "0.5, 0.25", "0.1, 0.2, 0.3", "0.5"}) {
    EXPECT_EQ(
        mistakes("&objective refinement_range = " + range + " /"),
        Lines{
            "d:1:12: objective.refinement_range: not two increasing values; set e.g. 0.15, 0.25"});
    EXPECT_EQ(mistakes("&objective norm_range = " + range + " /"),
              Lines{"d:1:12: objective.norm_range: not two increasing values; set e.g. 0.5, 1.5"});
  }
  none("&objective refinement_range = -0.5, 1 norm_range = 0, 100 /");
  one("&generation refine = 0 /",
      "d:1:13: generation.refine: only kind = 'refinement' refines its answers; set refine = -1, "
      "or remove it");
  none("&generation refine = -1 /");
  none("&generation refine = 0 / &objective kind = 'refinement' / &model inner_steps = 1 /");
  one("&objective kind = 'refinement' /",
      "d:1:12: model.inner_steps: refinement needs a recursive model; set inner_steps = 1 or more "
      "(e.g. 2)");
  one("&objective kind = 'block_diffusion' / &model vocabulary = 50304 inner_steps = 2 /",
      "d:1:65: model.inner_steps: block diffusion does not support recursive models; set "
      "inner_steps = 0");
  none("&model inner_steps = 2 /");
  one("&model recursion = 'block' /",
      "d:1:8: model.recursion: only recursive models use it; set inner_steps = 1 or more, or "
      "remove it");
  one("&model initial_states = 'input' /",
      "d:1:8: model.initial_states: only recursive models use it; set inner_steps = 1 or more, or "
      "remove it");
  one("&objective detach_from = 2 /",
      "d:1:12: objective.detach_from: only kind = 'refinement' has steps to detach; set "
      "detach_from = 0, or remove it");
  one("&objective kind = 'block_diffusion' / &model vocabulary = 50304 logit_cap = 30 /",
      "d:1:65: model.logit_cap: block diffusion does not support capped logits; set logit_cap = 0");
  none("&model logit_cap = 30 /");
  none("&objective kind = 'refinement' / &model logit_cap = 30 inner_steps = 2 /");
}

}  // namespace
}  // namespace tern::test
