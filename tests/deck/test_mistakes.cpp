/// Every mistake the reader knows, with its place and text.
#include <gtest/gtest.h>

#include "deck/corpus.hpp"
#include "deck/mistakes.hpp"

namespace tern::test {
namespace {

TEST(DeckMistakes, PathsWithoutQuotesAreNamedOnce) {
  one("&data train = data/foo_*.bin valid = 'b' /",
      "d:1:15: data.train: a path without quotes; quote it: 'data/foo_*.bin'");
  one("&data train = 'a', /data/b.bin /",
      "d:1:20: data.train: a path without quotes; quote it: '/data/b.bin'");
  one("&output directory = ../runs/x\n log_every = 5 /",
      "d:1:21: output.directory: a path without quotes; quote it: '../runs/x'");
  none("&model layers = 2/");
  none("&model layers = 2/&output log_every = 5 /");
}

TEST(DeckMistakes, Names) {
  EXPECT_EQ(mistakes("&modle layers = 2 /"),
            Lines{"d:1:1: modle: no such group; did you mean 'model'?"});
  EXPECT_EQ(
      mistakes("&zzzzzzzz x = 1 /"),
      Lines{"d:1:1: zzzzzzzz: no such group; valid are campaign, model, objective, data, batch, "
            "optimizer, precision, parallel, checkpoint, evaluation, generation, output, cost"});
  EXPECT_EQ(mistakes("&model\n  layrs = 2 /"),
            Lines{"d:2:3: model.layrs: no such name in &model; did you mean 'layers'?"});
  EXPECT_EQ(
      mistakes("&optimizer\n\n learning_rate_multiplier = 2 /"),
      Lines{"d:3:2: optimizer.learning_rate_multiplier: no such name in &optimizer; valid are "
            "kind, lr, lr_rule, betas, eps, weight_decay, grad_clip, schedule, warmup_steps, "
            "min_lr, decay_fraction, ema, matrix_lr, embed_lr, head_lr, momentum, muon_scale"});
  EXPECT_EQ(
      mistakes("&evaluation batches = 20 /"),
      Lines{"d:1:13: evaluation.batches: no such name in &evaluation; validation is now counted "
            "in rows, whatever per_rank is; set rows = batches x per_rank"});
  EXPECT_EQ(mistakes("&model renormalise_experts = .true. /"),
            Lines{"d:1:8: model.renormalise_experts: no such name in &model; did you mean "
                  "'renormalize_experts'?"});
  EXPECT_EQ(mistakes("&model lr = 2 /"),
            Lines{"d:1:8: model.lr: no such name in &model; it belongs to &optimizer"});
}

TEST(DeckMistakes, Repetition) {
  EXPECT_EQ(mistakes("&model /\n&Model /"),
            Lines{"d:2:1: model: the group was already given on line 1; merge the two"});
  EXPECT_EQ(mistakes("&model layers=2\nLAYERS=2 /"),
            Lines{"d:2:1: model.layers: already given on line 1; remove one of the two"});
  EXPECT_EQ(mistakes("&optimizer betas(1)=.1\n betas(1)=.1 /"),
            Lines{"d:2:2: optimizer.betas: already given on line 1; remove one of the two"});
  EXPECT_EQ(mistakes("&optimizer betas(1)=.1\n betas=.1,.2 /"),
            Lines{"d:2:2: optimizer.betas: already given on line 1; remove one of the two"});
}

TEST(DeckMistakes, Types) {
  const auto one = [](const char* text, const char* mistake) {
    EXPECT_EQ(mistakes(text), Lines{mistake}) << text;
  };
  one("&model layers = 2.0 /",
      "d:1:17: model.layers: '2.0' is not an integer; use e.g. 1000, 1_000 or 1e3");
  one("&model layers = '2' /",
      "d:1:17: model.layers: '2' is not an integer; use e.g. 1000, 1_000 or 1e3");
  for (const std::string word : {"1.5e0", "1e-3", "1e17", "1e", "1_00", "_1", "1_", "1__000",
                                 "1_000_", "1000_000", "1_000_00", "-_100", "1_e3"})
    EXPECT_EQ(mistakes("&campaign max_steps = " + word + " /"),
              Lines{"d:1:23: campaign.max_steps: '" + word +
                    "' is not an integer; use e.g. 1000, 1_000 or 1e3"});
  one("&model layers = 99999999999999999999 /",
      "d:1:17: model.layers: '99999999999999999999' does not fit in 64 bits; use a smaller number");
  for (const std::string word :
       {"abc", "nan", "inf", "1e", "e5", "+-1", "-+1", "1.2.3", "0x10", "1+5", ".", "1d"})
    EXPECT_EQ(
        mistakes("&optimizer lr = " + word + " /"),
        Lines{"d:1:17: optimizer.lr: '" + word + "' is not a number; use e.g. 0.1, 6e-4 or 1d-3"});
  one("&optimizer lr = 1e999 /",
      "d:1:17: optimizer.lr: '1e999' does not fit in a double; use a magnitude between 1e-300 and "
      "1e300");
  one("&model qk_norm = 1 /", "d:1:18: model.qk_norm: '1' is not a logical; use .true. or .false.");
  one("&model qk_norm = 'T' /",
      "d:1:18: model.qk_norm: 'T' is not a logical; use .true. or .false.");
  one("&campaign task = train /",
      "d:1:18: campaign.task: train is not a string; put it in quotes: 'train'");
  one("&data train = 'a' 5 /", "d:1:19: data.train: 5 is not a string; put it in quotes: '5'");
  one("&optimizer betas = 0.9 'x' /",
      "d:1:24: optimizer.betas: 'x' is not a number; use e.g. 0.1, 6e-4 or 1d-3");
}

TEST(DeckMistakes, LongValuesAreShortenedInMessages) {
  EXPECT_EQ(mistakes("&model layers = '" + std::string(100, 'x') + "' /"),
            Lines{"d:1:17: model.layers: '" + std::string(60, 'x') +
                  "...' is not an integer; use e.g. 1000, 1_000 or 1e3"});
}

TEST(DeckMistakes, WhatCannotBeSeenIsNamed) {
  const auto one = [](const std::string& text, const char* mistake) {
    EXPECT_EQ(mistakes(text), Lines{mistake}) << text;
  };
  one("\ufeff&model layers = 2 /",
      "d:1:1: a byte-order mark (U+FEFF) is outside of a group; save the deck as UTF-8 without "
      "it");
  one("&model layers = 2\u00a0 hidden = 64 heads = 4 /",
      "d:1:18: model.layers: a no-break space (U+00A0) is not allowed here; type a plain blank in "
      "its place");
  one("&model layers\u00a0= 2 /",
      "d:1:14: model.layers: a no-break space (U+00A0) after the name; type a plain blank in its "
      "place");
  one("&model \u200b layers = 2 /",
      "d:1:8: model: a zero-width character (U+200B) where a name is expected; type a plain "
      "blank in its place");
  EXPECT_EQ(mistakes("&generation prompt = 'a\u00a0b\ufeff' / ! \u00a0"), Lines{});
}

TEST(DeckMistakes, Counts) {
  EXPECT_EQ(mistakes("&model layers = 2, 3 /"),
            Lines{"d:1:20: model.layers: takes one value, not 2; remove the others, or add the "
                  "missing '=' after the next name"});
  EXPECT_EQ(mistakes("&model layers(1) = 2 /"),
            Lines{"d:1:8: model.layers: not a list; remove the index"});
  EXPECT_EQ(mistakes("&optimizer betas(4) = .2 /"),
            Lines{"d:1:12: optimizer.betas: element 4 of a list of 2; set element 3 first"});
  EXPECT_EQ(mistakes("&optimizer betas(1) = .2, .3 /"),
            Lines{"d:1:27: optimizer.betas: an element takes one value; remove the index to set "
                  "the whole list"});
}

TEST(DeckMistakes, Ranges) {
  const auto one = [](const char* text, const char* mistake) {
    EXPECT_EQ(mistakes(text), Lines{mistake}) << text;
  };
  one("&model layers = 0 /", "d:1:8: model.layers: 0 is out of range; it must be 1 to 10000");
  one("&model layers = 10001 /",
      "d:1:8: model.layers: 10001 is out of range; it must be 1 to 10000");
  one("&campaign seed = -1 /", "d:1:11: campaign.seed: -1 is out of range; it must be at least 0");
  one("&optimizer lr = 0 /", "d:1:12: optimizer.lr: 0.0 is out of range; it must be above 0");
  one("&model dropout = 1 /",
      "d:1:8: model.dropout: 1.0 is out of range; it must be at least 0 and below 1");
  one("&optimizer betas = 0.9, 1 /",
      "d:1:12: optimizer.betas: 1.0 is out of range; it must be at least 0 and below 1");
  one("&optimizer schedule = 'cosinus' /",
      "d:1:12: optimizer.schedule: 'cosinus' is not one of 'cosine' | 'linear' | 'wsd' | "
      "'constant'; did you "
      "mean 'cosine'?");
  one("&model norm = 'RMSNorm' /",
      "d:1:8: model.norm: 'RMSNorm' is not one of 'rmsnorm' | 'layernorm'; did you mean "
      "'rmsnorm'?");
  one("&objective supervision_steps = 1 /",
      "d:1:12: objective.supervision_steps: 1 is out of range; it must be 2 to 64");
  one("&objective weight_base = 0 /",
      "d:1:12: objective.weight_base: 0.0 is out of range; it must be above 0");
  one("&objective refinement_range = 0.5, 1.5 /",
      "d:1:12: objective.refinement_range: 1.5 is out of range; it must be at most 1");
  one("&objective preset = 'agressive' /",
      "d:1:12: objective.preset: 'agressive' is not one of 'none' | 'aggressive' | 'extreme'; did "
      "you mean 'aggressive'?");
  one("&generation refine = -2 /",
      "d:1:13: generation.refine: -2 is out of range; it must be -1 to 1024");
  one("&data train = 'a', '' /", "d:1:7: data.train: an empty string in the list; remove it");
}

TEST(DeckMistakes, Syntax) {
  const auto one = [](const char* text, const char* mistake) {
    EXPECT_EQ(mistakes(text), Lines{mistake}) << text;
  };
  one("&model layers = 2",
      "d:1:1: model: the group is not closed before the end of the deck; end it with '/'");
  one("&model layers = 2\n&data /",
      "d:1:1: model: the group is not closed before '&data'; end it with '/'");
  one("layers = 2",
      "d:1:1: 'layers' is outside of a group; open one with '&name' and close it with '/'");
  one("&model / 'x' y\n z &data /",
      "d:1:10: a string is outside of a group; open one with '&name' and close it with '/'");
  one("& model /", "d:1:1: &: not a group name; a letter must follow the '&'");
  one("&model layers 2 /", "d:1:15: model.layers: no '=' after the name; use name = value");
  one("&model = 2 /", "d:1:8: model: '=' where a name is expected; use name = value");
  one("&model a%b = 2 /", "d:1:8: model.a%b: not a name; use name = value, with strings in quotes");
  one("&model layers = /", "d:1:17: model.layers: no value after '='; add one or remove the name");
  one("&model layers = heads = 2 /",
      "d:1:17: model.layers: no value after '='; add one or remove the name");
  one("&optimizer betas = , 0.1 /",
      "d:1:20: optimizer.betas: a comma without a value before it; remove it or add the value");
  one("&optimizer betas = 0.1,,0.2 /",
      "d:1:24: optimizer.betas: a comma without a value before it; remove it or add the value");
  one("&model layers = 2; heads = 2 /",
      "d:1:18: model.layers: ';' is not allowed here; put strings in quotes");
  one("&model layers = 2 = 3 /",
      "d:1:19: model.layers: '=' is not allowed here; put strings in quotes");
  one("&model layers = é /",
      "d:1:17: model.layers: 'é' is not allowed here; put strings in quotes");
  one("&data train = 'a''b'c /",
      "d:1:21: data.train: no blank before 'c'; separate values with blanks or commas");
  one("&data train = 'a'\"b\" /",
      "d:1:18: data.train: no blank before a string; separate values with blanks or commas");
  one("&data train = 'a'valid = 'b' /",
      "d:1:18: data.train: no blank before 'valid'; separate values with blanks or commas");
}

TEST(DeckMistakes, Indices) {
  for (const std::string index : {"0", "-1", "x", "99999999999", "1.5", "'1'"})
    EXPECT_EQ(
        mistakes("&optimizer betas(" + index + ") = 0.1 /"),
        Lines{"d:1:18: optimizer.betas: the index is not a positive integer; use name(2) = value"})
        << index;
  for (const std::string index : {"1:2", "1,2", "1"})
    EXPECT_EQ(
        mistakes("&optimizer betas(" + index + " = 0.1 /"),
        Lines{fmt::format("d:1:{}: optimizer.betas: no ')' after the index; use name(2) = value",
                          index == "1" ? 20 : 19)})
        << index;
}

TEST(DeckMistakes, Repeats) {
  const auto one = [](const char* text, const char* mistake) {
    EXPECT_EQ(mistakes(text), Lines{mistake}) << text;
  };
  one("&optimizer betas = 2* 0.5 /",
      "d:1:23: optimizer.betas: no value after the repeat count; use e.g. 3*0.5, without blanks");
  one("&optimizer betas = 2*/",
      "d:1:22: optimizer.betas: no value after the repeat count; use e.g. 3*0.5, without blanks");
  one("&optimizer betas = 0*0.5 /",
      "d:1:20: optimizer.betas: the repeat count 0 is not within 1 to 10000");
  one("&optimizer betas = 99999999999999999999999*0.5 /",
      "d:1:20: optimizer.betas: the repeat count 99999999999999999999999 is not within 1 to 10000");
  one("&optimizer betas = 9999*0.5 2*0.5 /", "d:1:31: optimizer.betas: more than 10000 values");
  one("&optimizer betas = 3*0.5 /",
      "d:1:12: optimizer.betas: 3 values instead of two; set e.g. betas = 0.9, 0.95");
}

TEST(DeckMistakes, StringsCloseOnTheirLine) {
  EXPECT_EQ(
      mistakes("&campaign\n  task = 'train\n  seed = -1\n  name = 'x' /"),
      (Lines{"d:2:10: campaign.task: the string is not closed on its line; add the closing quote",
             "d:3:3: campaign.seed: -1 is out of range; it must be at least 0"}));
  EXPECT_EQ(
      mistakes("&campaign name = 'x\n  seed = -1 /"),
      (Lines{"d:1:18: campaign.name: the string is not closed on its line; add the closing quote",
             "d:2:3: campaign.seed: -1 is out of range; it must be at least 0"}));
  EXPECT_EQ(
      mistakes("&generation prompt = 'x\n top_k = -1 /"),
      (Lines{
          "d:1:22: generation.prompt: the string is not closed on its line; add the closing quote",
          "d:2:2: generation.top_k: -1 is out of range; it must be 0 to 16777216"}));
}

TEST(DeckMistakes, Bytes) {
  EXPECT_EQ(mistakes(std::string("&model\n \0\0 /", 12)),
            Lines{"d:2:2: byte 0x00 is a control character; remove it (decks are UTF-8 text)"});
  EXPECT_EQ(mistakes("! a\rb"),
            Lines{"d:1:4: byte 0x0d is a control character; remove it (decks are UTF-8 text)"});
  for (const std::string bad :
       {"\xff", "\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\x80"})
    EXPECT_EQ(mistakes("! ä" + bad),
              Lines{fmt::format(
                  "d:1:4: byte 0x{:02x} is not valid UTF-8; remove it (decks are UTF-8 text)",
                  static_cast<unsigned char>(bad[0]))});
  EXPECT_EQ(mistakes(std::string((1 << 20) + 1, ' ')),
            Lines{"d: more than 1048576 bytes, which is too long for a deck; check that this is "
                  "the right file"});
}

TEST(DeckMistakes, ColumnsCountCharacters) {
  EXPECT_EQ(mistakes("&campaign name = 'äöü' seed = -1 /"),
            Lines{"d:1:24: campaign.seed: -1 is out of range; it must be at least 0"});
}

TEST(DeckMistakes, AllAtOnceInTheOrderOfTheDeck) {
  const char* text = R"(stuff here
&campain x=1 /
&model layer = 3 hidden = 'a' heads = 7 kv_heads=2
 activation = 'silu' context = 0
 norm = 'rms
 position = rope
&batch per_rank = 3 global = 4 4 preset='fast' /
&optimizer lr=1e-4 min_lr = 1d-3 warmup_steps = 99999 /
&precision compute = 'fp64'
)";
  const Lines expected = {
      "d:1:1: 'stuff' is outside of a group; open one with '&name' and close it with '/'",
      "d:2:1: campain: no such group; did you mean 'campaign'?",
      "d:3:1: model: the group is not closed before '&batch'; end it with '/'",
      "d:3:8: model.layer: no such name in &model; did you mean 'layers'?",
      "d:3:27: model.hidden: 'a' is not an integer; use e.g. 1000, 1_000 or 1e3",
      "d:3:41: model.kv_heads: 2 does not divide heads = 7; set kv_heads to a divisor of heads, or "
      "0",
      "d:4:2: model.activation: 'silu' is not one of 'swiglu' | 'gelu' | 'relu2'; did you mean "
      "'swiglu'?",
      "d:4:22: model.context: 0 is out of range; it must be 1 to 16777216",
      "d:5:9: model.norm: the string is not closed on its line; add the closing quote",
      "d:6:13: model.position: rope is not a string; put it in quotes: 'rope'",
      "d:7:32: batch.global: takes one value, not 2; remove the others, or add the missing '=' "
      "after the next name",
      "d:7:34: batch.preset: 'fast' is not one of 'none' | 'conservative' | 'recommended' | "
      "'aggressive' | 'extreme'; valid are none, conservative, recommended, aggressive, extreme",
      "d:8:20: optimizer.min_lr: 0.001 is above lr = 1e-04; lower it",
      "d:8:34: optimizer.warmup_steps: 99999 is more than campaign.max_steps = 1000; shorten the "
      "warmup",
      "d:9:1: precision: the group is not closed before the end of the deck; end it with '/'",
      "d:9:12: precision.compute: 'fp64' is not one of 'fp32' | 'tf32' | 'bf16' | 'fp16' | 'fp8'; "
      "did you mean 'fp32'?"};
  EXPECT_EQ(mistakes(text), expected);
}

}  // namespace
}  // namespace tern::test
