#include <gtest/gtest.h>

#include "deck/loaded_model.hpp"
#include "deck/mistakes.hpp"

namespace tern::test {
namespace {

deck::Deck with(const Lines& overrides) {
  return deck::parse("&model layers = 3 /", "d", overrides);
}

TEST(DeckOverrides, ReplaceWhatTheDeckSays) {
  EXPECT_EQ(with({"model.layers=5"}).model.layers, 5);
  EXPECT_EQ(with({"Model.Layers = 5"}).model.layers, 5);
  EXPECT_EQ(with({"model.layers=5", "model.layers=6"}).model.layers, 6);
  EXPECT_EQ(with({"optimizer.lr=1d-3"}).optimizer.lr, 1e-3);
  EXPECT_TRUE(with({"model.qk_norm=T"}).model.qk_norm);
}

TEST(DeckOverrides, StringsNeedNoQuotes) {
  EXPECT_EQ(with({"campaign.task=evaluate"}).campaign.task, "evaluate");
  EXPECT_EQ(with({"campaign.name='a b'"}).campaign.name, "a b");
  EXPECT_EQ(with({"campaign.name=a=b, c!"}).campaign.name, "a=b, c!");
  EXPECT_EQ(with({"campaign.name=it's"}).campaign.name, "it's");
  EXPECT_EQ(with({"campaign.name=\"it's\""}).campaign.name, "it's");
  EXPECT_EQ(with({"model.load="}).model.load, "");
  EXPECT_EQ(with({"output.directory=/tmp/x"}).output.directory, "/tmp/x");
  EXPECT_EQ(with({"generation.prompt=two\nlines"}).generation.prompt, "two\nlines");
  EXPECT_EQ(with({"generation.prompt='two\nlines, it''s\n'"}).generation.prompt,
            "two\nlines, it's\n");
}

TEST(DeckOverrides, Lists) {
  EXPECT_EQ(with({"data.train=a/*.bin,b.bin c.bin"}).data.train,
            (Lines{"a/*.bin", "b.bin", "c.bin"}));
  EXPECT_EQ(with({"data.train='a b', \"c\""}).data.train, (Lines{"a b", "c"}));
  EXPECT_EQ(with({"data.train=a", "data.train="}).data.train, Lines{});
  EXPECT_EQ(with({"data.train=a,b", "data.train(2)=c"}).data.train, (Lines{"a", "c"}));
  EXPECT_EQ(with({"optimizer.betas=0.8, 0.9"}).optimizer.betas, (std::vector<double>{0.8, 0.9}));
  EXPECT_EQ(with({"optimizer.betas( 2 )=0.8"}).optimizer.betas, (std::vector<double>{0.9, 0.8}));
  EXPECT_EQ(with({"optimizer.betas=2*0.8"}).optimizer.betas, (std::vector<double>{0.8, 0.8}));
}

TEST(DeckOverrides, MendWhatTheDeckGetsWrong) {
  const std::string text = "&precision compute = 'fp64' / &model heads = 5 /";
  EXPECT_EQ(mistakes(text).size(), 2u);
  EXPECT_EQ(mistakes(text, {"precision.compute=bf16", "model.heads=6"}), Lines{});
}

TEST(DeckOverrides, MistakesNameTheOverride) {
  const auto one = [](const std::string& override, const std::string& mistake) {
    std::string shown = override;
    if (const auto end = shown.find('\n'); end != std::string::npos) shown.replace(end, 1, "\\n");
    if (const auto bad = shown.find('\x01'); bad != std::string::npos)
      shown.replace(bad, 1, "\\x01");
    EXPECT_EQ(mistakes("", {override}), Lines{"--set " + shown + ": " + mistake});
  };
  one("model.layers", "model.layers: not an override; use group.name=value");
  one("layers=3", "layers: not an override; use group.name=value");
  one("", ": not an override; use group.name=value");
  one("modle.layers=3", "modle: no such group; did you mean 'model'?");
  one("model.layer=3", "model.layer: no such name in &model; did you mean 'layers'?");
  one("model.layers=abc", "model.layers: 'abc' is not an integer; use e.g. 1000, 1_000 or 1e3");
  one("model.layers=", "model.layers: no value after '='; add one or remove the name");
  one("model.layers=0", "model.layers: 0 is out of range; it must be 1 to 10000");
  one("model.layers=3/", "model.layers: '/' after the value; quote strings that hold it");
  one("model.layers=3 heads=2",
      "model.layers: 'heads' after the value; quote strings that hold it");
  one("campaign.task='train",
      "campaign.task: the string is not closed on its line; add the closing quote");
  one("campaign.name=a\nb", "campaign.name: the string contains a line break; put it on one line");
  one("data.train=a\nb", "data.train: the string contains a line break; put it on one line");
  one("campaign.task=trian",
      "campaign.task: 'trian' is not one of 'train' | 'evaluate' | 'generate'; did you "
      "mean 'train'?");
  one("optimizer.betas=.1", "optimizer.betas: 1 values instead of two; set e.g. betas = 0.9, 0.95");
  one("optimizer.betas(x)=.1",
      "optimizer.betas(x): the index is not a positive integer; use name(2)=value");
  one("optimizer.betas(0)=.1",
      "optimizer.betas(0): the index is not a positive integer; use name(2)=value");
  one("data.train(1)=", "data.train(1): no value after '='; add one or remove the name");
  one("precision.compute=fp64",
      "precision.compute: 'fp64' is not one of 'fp32' | 'tf32' | 'bf16' | 'fp16' | 'fp8'; did you "
      "mean 'fp32'?");
  one("campaign.name=\x01", "contains control characters or bytes that are not UTF-8; remove them");
  one("campaign.name=\xff", "contains control characters or bytes that are not UTF-8; remove them");
}

TEST(DeckOverrides, ContradictionsBlameTheOneThatWasWritten) {
  EXPECT_EQ(mistakes("&optimizer min_lr = 1e-3 /", {"optimizer.lr=1e-4"}),
            Lines{"d:1:12: optimizer.min_lr: 0.001 is above lr = 1e-04; lower it"});
  EXPECT_EQ(mistakes("&optimizer /", {"campaign.max_steps=5", "optimizer.warmup_steps=6"}),
            Lines{"--set optimizer.warmup_steps=6: optimizer.warmup_steps: 6 is more than "
                  "campaign.max_steps = 5; "
                  "shorten the warmup"});
}

/// The deck's notes, one per line.
Lines notes(const std::string& text, const Lines& overrides) {
  Lines found;
  deck::parse(text, "d", overrides, {}, &found);
  return found;
}

TEST(DeckOverrides, APresetReplacesWhatTheDeckSaysOfItsValues) {
  const std::string trm =
      "&objective preset = 'none' weight_base = 12 reward = 0 refinement_range = 0.15, 0.3 "
      "norm_range = 0.5, 1.5 /";
  EXPECT_EQ(
      notes(trm, {"objective.preset=aggressive"}),
      Lines{"--set objective.preset=aggressive replaces the deck's weight_base = 12.0 with 5.0; "
            "reward = 0.0 with 1.0; refinement_range = 0.15, 0.3 with 0.15, 0.25"});
  const deck::Objective extreme = deck::parse(trm, "d", {"objective.preset=extreme"}).objective;
  EXPECT_EQ(extreme.weight_base, 10);
  EXPECT_EQ(extreme.refinement_range, (std::vector<double>{0.5, 0.97}));
  EXPECT_EQ(notes("&batch per_rank = 8 global = 16 / &optimizer lr = 1e-3 /",
                  {"batch.preset=aggressive", "optimizer.lr_rule=table"}),
            (Lines{"--set batch.preset=aggressive replaces the deck's per_rank = 8 with 192; "
                   "global = 16 with 768",
                   "--set optimizer.lr_rule=table replaces the deck's lr = 0.001 with 6e-04"}));
  // Nothing is said of values that stay, or that the deck leaves out.
  EXPECT_EQ(notes("&batch per_rank = 64 /", {"batch.preset=conservative"}), Lines{});
  EXPECT_EQ(notes(trm, {"objective.preset=none", "objective.reward=2"}), Lines{});
  EXPECT_EQ(deck::parse(trm, "d", {"objective.preset=none"}).objective.weight_base, 12);
}

TEST(DeckOverrides, APresetContradictsOtherOverridesAsInADeck) {
  EXPECT_EQ(mistakes("&objective weight_base = 12 /",
                     {"objective.preset=extreme", "objective.weight_base=7"}),
            Lines{"--set objective.weight_base=7: objective.weight_base: 7, but preset = 'extreme' "
                  "sets 10; remove one of the two, or set preset = 'none'"});
  EXPECT_EQ(mistakes("&objective weight_base = 12 preset = 'extreme' /").size(), 1u);
  EXPECT_EQ(mistakes("&objective preset = 'extreme' /", {"objective.weight_base=12"}).size(), 1u);
}

TEST(DeckOverrides, ComeAfterTheDeckInTheList) {
  EXPECT_EQ(
      mistakes("&model layers = 0 /", {"model.heads=x", "model.hiden=1"}),
      (Lines{"d:1:8: model.layers: 0 is out of range; it must be 1 to 10000",
             "--set model.heads=x: model.heads: 'x' is not an integer; use e.g. 1000, 1_000 or 1e3",
             "--set model.hiden=1: model.hiden: no such name in &model; did you mean 'hidden'?"}));
}

}  // namespace
}  // namespace tern::test
