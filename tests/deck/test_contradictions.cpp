#include <gtest/gtest.h>

#include "deck/mistakes.hpp"

namespace tern::test {
namespace {

void one(const char* text, const char* mistake) {
  EXPECT_EQ(mistakes(text), Lines{mistake}) << text;
}
void none(const char* text) { EXPECT_EQ(mistakes(text), Lines{}) << text; }

TEST(DeckContradictions, Heads) {
  one("&model hidden = 100 heads = 3 /",
      "d:1:21: model.heads: 3 heads do not divide hidden = 100; change one, or give head_dim");
  one("&model hidden = 100 /",
      "d:1:8: model.heads: 12 heads do not divide hidden = 100; change one, or give head_dim");
  none("&model hidden = 100 heads = 3 head_dim = 32 /");
  one("&model heads = 12 kv_heads = 5 /",
      "d:1:19: model.kv_heads: 5 kv_heads do not divide 12 heads; write a divisor of heads, or 0");
  one("&model heads = 12 kv_heads = 24 /",
      "d:1:19: model.kv_heads: 24 kv_heads do not divide 12 heads; write a divisor of heads, or 0");
  none("&model heads = 12 kv_heads = 4 /");
}

TEST(DeckContradictions, RotaryHeadsAreEven) {
  one("&model head_dim = 33 /",
      "d:1:8: model.head_dim: position = 'rope' rotates pairs, but a head has size 33; make it "
      "even");
  one("&model hidden = 15 heads = 5 /",
      "d:1:20: model.heads: position = 'rope' rotates pairs, but a head has size 3; make it even");
  none("&model head_dim = 33 position = 'learned' /");
  none("&model hidden = 15 heads = 5 position = 'none' /");
}

TEST(DeckContradictions, Vocabulary) {
  one("&model vocabulary = 50256 /",
      "d:1:8: model.vocabulary: 50256 is less than the 50257 tokens of tokenizer 'gpt2'; write at "
      "least that");
  one("&data tokenizer = 'bytes' / &model vocabulary = 256 /",
      "d:1:36: model.vocabulary: 256 is less than the 257 tokens of tokenizer 'bytes'; write at "
      "least that");
  none("&data tokenizer = 'bytes' / &model vocabulary = 257 /");
  none("&data tokenizer = 'data/x' / &model vocabulary = 1024 /");
}

TEST(DeckContradictions, Batch) {
  one("&batch per_rank = 8 global = 12 /",
      "d:1:21: batch.global: 12 sequences are no multiple of per_rank = 8; write one, or 0");
  one("&batch per_rank = 8 global = 24 / &parallel data = 2 /",
      "d:1:21: batch.global: 24 sequences are no multiple of per_rank = 8 times parallel.data = 2; "
      "write one, or "
      "0");
  one("&batch per_rank = 0 global = 9 / &parallel data = 2 /",
      "d:1:21: batch.global: 9 sequences are no multiple of parallel.data = 2; write one, or 0");
  none("&batch per_rank = 8 global = 32 / &parallel data = 2 /");
  none("&batch per_rank = 0 global = 7 /");
  none("&batch per_rank = 7 /");
}

TEST(DeckContradictions, Attention) {
  one("&model attention = 'cudnn' /",
      "d:1:8: model.attention: cuDNN's attention does not compute in fp32; write attention = "
      "'auto', or compute "
      "= 'bf16'");
  none("&model attention = 'cudnn' / &precision compute = 'bf16' /");
}

TEST(DeckContradictions, Schedule) {
  one("&optimizer betas = 0.9 /", "d:1:12: optimizer.betas: 1 values; write two, as 0.9, 0.95");
  one("&optimizer betas = 0.9 0.9 0.9 /",
      "d:1:12: optimizer.betas: 3 values; write two, as 0.9, 0.95");
  one("&campaign max_steps = 10 /\n&optimizer warmup_steps = 11 /",
      "d:2:12: optimizer.warmup_steps: 11 is more than campaign.max_steps = 10; shorten the "
      "warmup");
  none("&campaign max_steps = 10 / &optimizer warmup_steps = 10 /");
  one("&optimizer lr = 1e-3 min_lr = 2e-3 /",
      "d:1:22: optimizer.min_lr: 0.002 is above lr = 0.001; lower it");
  none("&optimizer lr = 1e-3 min_lr = 1e-3 /");
  one("&campaign max_steps = 100 / &optimizer schedule = 'wsd' warmup_steps = 60 decay_fraction = "
      "0.5 /",
      "d:1:75: optimizer.decay_fraction: warmup_steps = 60 and a decay over 0.5 of 100 steps "
      "overlap; shorten "
      "one");
  none(
      "&campaign max_steps = 100 / &optimizer schedule = 'wsd' warmup_steps = 50 decay_fraction = "
      "0.5 /");
  none("&campaign max_steps = 100 / &optimizer warmup_steps = 60 decay_fraction = 0.5 /");
}

TEST(DeckContradictions, Evaluation) {
  one("&evaluation every = 0 patience = 3 /",
      "d:1:23: evaluation.patience: early stopping needs evaluations, but every = 0; write every > "
      "0, or "
      "patience = 0");
  one("&evaluation every = 0 target_loss = 3 /",
      "d:1:23: evaluation.target_loss: a target needs evaluations, but every = 0; write every > 0, "
      "or "
      "target_loss = 0");
  none("&evaluation every = 0 /");
}

TEST(DeckContradictions, Generation) {
  one("&campaign task = 'generate' / &generation samples = 0 /",
      "d:1:43: generation.samples: task = 'generate' with 0 samples would do nothing; write 1 or "
      "more");
  none("&generation samples = 0 /");
}

TEST(DeckContradictions, Directory) {
  one("&campaign name = '' /",
      "d:1:11: campaign.name: empty, and output.directory too; give the run a name");
  one("&campaign name = '../x' /",
      "d:1:11: campaign.name: holds a '/', but names a directory under runs/; remove it, or give "
      "output.directory");
  none("&campaign name = 'a/b' / &output directory = 'o' /");
  none("&campaign name = '' / &output directory = 'o' /");
}

TEST(DeckContradictions, NothingIsConcludedFromWrongValues) {
  one("&model hidden = 'x' heads = 7 /",
      "d:1:17: model.hidden: 'x' is not an integer; write digits only, as 1000");
  one("&model hidden = 0 heads = 7 /",
      "d:1:8: model.hidden: 0 is out of range; it must be 1 to 1048576");
  one("&model hidden = 'x\n heads = 7 /",
      "d:1:17: model.hidden: the string is not closed on its line; add the closing quote");
  one("&model hidden 7 heads = 7 /",
      "d:1:15: model.hidden: no '=' after the name; write name = value");
  one("&model heads = 0 kv_heads = 3 /",
      "d:1:8: model.heads: 0 is out of range; it must be 1 to 65536");
}

TEST(DeckRefusals, WhatIsNamedButNotBuiltYetIsRefusedPlainly) {
  const auto refused = [](const char* group, const char* name, const char* value, const char* what,
                          const char* instead) {
    EXPECT_EQ(mistakes(fmt::format("&{} {} = {} /", group, name, value)),
              Lines{fmt::format(
                  "d:1:{}: {}.{}: {} asks for {}, which this version does not build yet; use {}",
                  3 + std::string(group).size(), group, name, value, what, instead)});
  };
  refused("objective", "kind", "'block_diffusion'", "block diffusion", "'causal'");
  refused("objective", "kind", "'refinement'", "recursive refinement", "'causal'");
  refused("objective", "kind", "'supervised'", "supervised training", "'causal'");
  refused("batch", "preset", "'aggressive'", "batch presets", "'none'");
  refused("optimizer", "kind", "'muon'", "Muon", "'adamw'");
  refused("precision", "compute", "'fp16'", "fp16", "'bf16'");
  refused("precision", "compute", "'fp8'", "fp8", "'bf16'");
  refused("parallel", "tensor", "2", "tensor parallelism", "1");
  refused("parallel", "pipeline", "2", "pipeline parallelism", "1");
  refused("parallel", "shard", "'full'", "full sharding", "'optimizer'");
}

}  // namespace
}  // namespace tern::test
