#include <gtest/gtest.h>

#include "deck/deck.hpp"
#include "deck/mistakes.hpp"

namespace tern::test {

using deck::Deck;
using deck::parse;
using deck::print;

namespace {

TEST(DeckContradictions, Heads) {
  one("&model hidden = 100 heads = 3 /",
      "d:1:21: model.heads: 3 heads do not divide hidden = 100; change one of them, or set "
      "head_dim");
  one("&model hidden = 100 /",
      "d:1:8: model.heads: 12 heads do not divide hidden = 100; change one of them, or set "
      "head_dim");
  none("&model hidden = 100 heads = 3 head_dim = 32 /");
  one("&model heads = 12 kv_heads = 5 /",
      "d:1:19: model.kv_heads: 5 does not divide heads = 12; set kv_heads to a divisor of heads, "
      "or 0");
  one("&model heads = 12 kv_heads = 24 /",
      "d:1:19: model.kv_heads: 24 does not divide heads = 12; set kv_heads to a divisor of heads, "
      "or 0");
  none("&model heads = 12 kv_heads = 4 /");
  none("&model hidden = 1536 heads = 0 kv_heads = 8 /");
  one("&model hidden = 1000 heads = 0 /",
      "d:1:22: model.heads: 0 gives heads of size 64, which does not divide hidden = 1000; set "
      "heads, or change hidden");
  one("&model hidden = 768 heads = 0 kv_heads = 5 /",
      "d:1:31: model.kv_heads: 5 does not divide heads = 12; set kv_heads to a divisor of heads, "
      "or 0");
}

TEST(DeckContradictions, HeadsFollowTheWidth) {
  const auto model = [](const std::string& text) {
    return parse("&model " + text + " /", "d", {}).model;
  };
  EXPECT_EQ(model("hidden = 1536 heads = 0").heads, 24);
  EXPECT_EQ(model("hidden = 1536 heads = 0").head_dim, 64);
  EXPECT_EQ(model("hidden = 1536 heads = 0 head_dim = 128").heads, 12);
}

TEST(DeckContradictions, RotaryHeadsAreEven) {
  one("&model head_dim = 33 /",
      "d:1:8: model.head_dim: position = 'rope' needs an even head size, not 33; set head_dim to "
      "an even number (e.g. 64)");
  one("&model hidden = 15 heads = 5 /",
      "d:1:20: model.heads: position = 'rope' needs an even head size, not 3; set head_dim to an "
      "even number (e.g. 64)");
  none("&model head_dim = 33 position = 'learned' /");
  none("&model hidden = 15 heads = 5 position = 'none' /");
}

TEST(DeckContradictions, Experts) {
  const std::string of = "&model experts = 8 experts_per_token = 2 expert_hidden = 64 ";
  none(of + "router_loss = 0.01 renormalize_experts = .false. /");
  none("&model experts = 1 experts_per_token = 1 expert_hidden = 64 /");
  one("&model experts = 8 expert_hidden = 64 /",
      "d:1:8: model.experts_per_token: 0 is not between 1 and experts = 8; set experts_per_token = "
      "1 to 8");
  one("&model experts = 8 experts_per_token = 9 expert_hidden = 64 /",
      "d:1:20: model.experts_per_token: 9 is not between 1 and experts = 8; set experts_per_token "
      "= 1 to 8");
  one("&model experts = 8 experts_per_token = 2 /",
      "d:1:8: model.expert_hidden: experts need a width; set expert_hidden (e.g. expert_hidden = "
      "768)");
  one(of + "activation = 'gelu' /",
      "d:1:61: model.activation: experts support only 'swiglu', not 'gelu'; set activation = "
      "'swiglu' or experts = 0");
  one(of + "ffn_bias = .true. /",
      "d:1:61: model.ffn_bias: experts have no biases; set ffn_bias = .false. or experts = 0");
  one(of + "inner_steps = 2 /",
      "d:1:61: model.inner_steps: recursive MoE models are not supported; set inner_steps = 0 or "
      "experts = 0");
  none(of + "/ &precision compute = 'fp8' /");
  none(of + "/ &parallel tensor = 2 pipeline = 2 /");
  one(of + "router_loss = 0.01 / &parallel pipeline = 2 /",
      "d:1:61: model.router_loss: the load-balancing loss covers all layers, and a pipeline stage "
      "has only some; set router_loss = 0 or parallel.pipeline = 1");
  for (const char* name : {"experts_per_token", "expert_hidden", "router_loss"})
    one(fmt::format("&model {} = 1 /", name),
        fmt::format("d:1:8: model.{}: only MoE models use it; set experts (e.g. experts = 128), or "
                    "remove it",
                    name));
}

TEST(DeckContradictions, Vocabulary) {
  one("&model vocabulary = 50256 /",
      "d:1:8: model.vocabulary: 50256 is less than the 50257 tokens of tokenizer 'gpt2'; set "
      "vocabulary = 50257 or more");
  one("&data tokenizer = 'bytes' / &model vocabulary = 256 /",
      "d:1:36: model.vocabulary: 256 is less than the 257 tokens of tokenizer 'bytes'; set "
      "vocabulary = 257 or more");
  none("&data tokenizer = 'bytes' / &model vocabulary = 257 /");
  none("&data tokenizer = 'data/x' / &model vocabulary = 1024 /");
}

TEST(DeckContradictions, Batch) {
  one("&batch per_rank = 8 global = 12 /",
      "d:1:21: batch.global: 12 is not a multiple of per_rank = 8; set global = 8 or 16, or 0 "
      "(per_rank x "
      "ranks)");
  one("&batch per_rank = 8 global = 24 / &parallel data = 2 /",
      "d:1:21: batch.global: 24 is not a multiple of per_rank x parallel.data = 8 x 2; set global "
      "= 16 "
      "or 32, or 0 (per_rank x ranks)");
  one("&batch per_rank = 0 global = 9 / &parallel data = 2 /",
      "d:1:21: batch.global: 9 is not a multiple of parallel.data = 2; set global = 8 or 10, or 0 "
      "(per_rank x ranks)");
  one("&batch per_rank = 8 global = 3 /",
      "d:1:21: batch.global: 3 is not a multiple of per_rank = 8; set global = 8, or 0 (per_rank x "
      "ranks)");
  none("&batch per_rank = 8 global = 32 / &parallel data = 2 /");
  none("&batch per_rank = 0 global = 7 /");
  none("&batch per_rank = 7 /");
}

TEST(DeckContradictions, BatchOfSamples) {
  const std::string samples = "&batch unit = 'samples' ";
  const std::string data =
      "/ &data train = 'a.jsonl' valid = 'b.jsonl' / &objective kind = 'supervised' /";
  none(samples + "global = 33 per_rank = 8 " + data + " &parallel data = 2 /");
  none(samples + "global = 33 per_rank = 0 " + data);
  none("&batch unit = 'rows' per_rank = 8 global = 32 " + data);
  one(samples + "global = 32 / &data train = 'a.bin' valid = 'b.bin' /",
      "d:1:8: batch.unit: 'samples' counts problems or conversations (.json, .jsonl), which token "
      "shards do not have; set unit = 'rows'");
  one(samples + data,
      "d:1:8: batch.global: unit = 'samples' needs the number of samples per step; set global "
      "(e.g. global = 32)");
  one(samples + "global = 32 accumulation = 2 " + data,
      "d:1:37: batch.accumulation: with unit = 'samples' the accumulation follows from the data; "
      "set accumulation = 0 or unit = 'rows'");
  one(samples + "preset = 'recommended' " + data,
      "d:1:25: batch.preset: 'recommended' counts rows; set preset = 'none' and give global, or "
      "set unit = 'rows'");
  one("&batch unit = 'sample' global = 32 " + data,
      "d:1:8: batch.unit: 'sample' is not one of 'rows' | 'samples'; did you mean 'samples'?");
}

TEST(DeckContradictions, Accumulation) {
  one("&batch per_rank = 8 global = 32 accumulation = 3 / &parallel data = 2 /",
      "d:1:33: batch.accumulation: per_rank x parallel.data x accumulation = 8 x 2 x 3 = 48 is not "
      "global = 32; change one of them, or set accumulation = 0");
  none("&batch per_rank = 8 global = 32 accumulation = 2 / &parallel data = 2 /");
  none("&batch per_rank = 8 global = 32 accumulation = 3 /");  // ranks are not known
  one("&batch per_rank = 0 global = 32 accumulation = 3 / &parallel data = 2 /",
      "d:1:33: batch.accumulation: per_rank = 0 asks for the largest micro-batch, from which the "
      "accumulation follows; set accumulation = 0, or give per_rank");
  none("&batch per_rank = 8 accumulation = 3 / &parallel data = 2 /");
  none("&batch preset = 'recommended' accumulation = 2 / &parallel data = 2 /");
  one("&batch preset = 'recommended' accumulation = 3 / &parallel data = 2 /",
      "d:1:31: batch.accumulation: per_rank x parallel.data x accumulation = 128 x 2 x 3 = 768 is "
      "not global = 512; change one of them, or set accumulation = 0");
  one("&batch per_rank = 16777216 accumulation = 16777216 / &parallel data = 1048576 /",
      "d:1:8: batch.per_rank: per_rank x parallel.data x accumulation = 295147905179352825856 is "
      "more than 1073741824 sequences; lower one of them");
  none("&batch per_rank = 1024 accumulation = 1024 / &parallel data = 1024 /");
}

TEST(DeckContradictions, Attention) {
  one("&model attention = 'cudnn' /",
      "d:1:8: model.attention: cuDNN's attention does not support fp32; set attention = 'auto' or "
      "compute = 'bf16'");
  one("&precision compute = 'tf32' / &model attention = 'cudnn' /",
      "d:1:38: model.attention: cuDNN's attention does not support tf32; set attention = 'auto' or "
      "compute = 'bf16'");
  none("&model attention = 'cudnn' / &precision compute = 'bf16' /");
}

TEST(DeckContradictions, Schedule) {
  one("&optimizer betas = 0.9 /",
      "d:1:12: optimizer.betas: 1 values instead of two; set e.g. betas = 0.9, 0.95");
  one("&optimizer betas = 0.9 0.9 0.9 /",
      "d:1:12: optimizer.betas: 3 values instead of two; set e.g. betas = 0.9, 0.95");
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
      "overlap; shorten one of them");
  none(
      "&campaign max_steps = 100 / &optimizer schedule = 'wsd' warmup_steps = 50 decay_fraction = "
      "0.5 /");
  none("&campaign max_steps = 100 / &optimizer warmup_steps = 60 decay_fraction = 0.5 /");
}

TEST(DeckContradictions, WhatOnlyMuonReads) {
  for (const char* value : {"matrix_lr = 1e-3", "embed_lr = 1e-2", "head_lr = 1e-3",
                            "momentum = 0.9", "muon_scale = 'match_rms_adamw'"}) {
    const std::string given = value, name = given.substr(0, given.find(' '));
    EXPECT_EQ(mistakes("&optimizer " + given + " /"),
              Lines{"d:1:12: optimizer." + name +
                    ": only kind = 'muon' uses it, not 'adamw'; set kind = 'muon', or remove it"});
    EXPECT_EQ(mistakes("&optimizer kind = 'muon' " + given + " /"), Lines{});
  }
  one("&optimizer kind = 'muon' muon_scale = 'orignal' /",
      "d:1:26: optimizer.muon_scale: 'orignal' is not one of 'original' | 'match_rms_adamw'; did "
      "you mean 'original'?");
  none("&optimizer kind = 'muon' / &parallel shard = 'optimizer' /");
}

TEST(DeckContradictions, Evaluation) {
  one("&evaluation every = 0 patience = 3 /",
      "d:1:23: evaluation.patience: early stopping needs evaluations, but every = 0; set every > 0 "
      "(e.g. 500) or patience = 0");
  one("&evaluation every = 0 target_loss = 3 /",
      "d:1:23: evaluation.target_loss: a target needs evaluations, but every = 0; set every > 0 "
      "(e.g. 500) or target_loss = 0");
  none("&evaluation every = 0 /");
}

TEST(DeckContradictions, Generation) {
  one("&campaign task = 'generate' / &generation samples = 0 /",
      "d:1:43: generation.samples: task = 'generate' with samples = 0 does nothing; set samples = "
      "1 or more");
  none("&generation samples = 0 /");
  none("&campaign task = 'generate' / &generation prompt = 'x' samples = 0 /");  // makes one
  one("&model context = 1 /",
      "d:1:8: model.context: 1 leaves no room to continue a prompt; set context = 2 or more, or "
      "generation.samples = 0");
  none("&model context = 1 / &generation samples = 0 /");
}

TEST(DeckContradictions, NamesThatAreNoDirectories) {
  for (const std::string name : {".", ".."})
    one("&campaign name = '" + name + "' /",
        "d:1:11: campaign.name: '" + name +
            "' is not a directory of its own under runs/; set another name");
  none("&campaign name = '.' / &output directory = 'here' /");
  none("&campaign name = '...' /");
}

TEST(DeckContradictions, Requests) {
  none("&campaign task = 'generate' / &generation input = 'in.txt' samples = 0 stop = '##' /");
  none("&precision compute = 'bf16' / &generation input = 'in.txt' quantization = 'fp8' /");
  none("&campaign task = 'generate' / &generation input = 'in.txt' cache_quantization = 'fp8' /");
  one("&campaign task = 'generate' / &objective kind = 'refinement' /\n"
      "&model inner_steps = 1 / &generation input = 'in.txt' /",
      "d:2:38: generation.input: kind = 'refinement' cannot answer a file of requests; set kind = "
      "'supervised' or 'causal'");
  one("&campaign task = 'evaluate' / &generation input = 'in.txt' max_tokens = 64\n"
      "max_model_len = 64 /",
      "d:1:60: generation.max_tokens: 64 leaves no room for a prompt in max_model_len = 64; lower "
      "it");
  one("&campaign task = 'generate' / &generation pattern = 'a' /",
      "d:1:43: generation.pattern: only used with a file of requests; set generation.input, or "
      "remove it");
  one("&campaign task = 'generate' / &generation input = 'in.txt' quantization = 'fp8' /",
      "d:1:60: generation.quantization: 'fp8' needs weights stored in 16 bits, and compute = "
      "'fp32' stores 32; set compute = 'bf16' or quantization = 'none'");
  one("&data chat_template = 'chatml' thinking = .true. /",
      "d:1:32: data.thinking: chat_template = 'chatml' has no format for thinking; set "
      "chat_template = 'qwen3' or thinking = .false.");
  none("&data chat_template = 'qwen3' thinking = .true. /");
}

TEST(DeckContradictions, Directory) {
  one("&campaign name = '' /",
      "d:1:11: campaign.name: empty, and so is output.directory; set one of them");
  one("&campaign name = '../x' /",
      "d:1:11: campaign.name: contains a '/', but names a directory under runs/; remove it, or set "
      "output.directory");
  none("&campaign name = 'a/b' / &output directory = 'o' /");
  none("&campaign name = '' / &output directory = 'o' /");
}

TEST(DeckContradictions, NothingIsConcludedFromWrongValues) {
  one("&model hidden = 'x' heads = 7 /",
      "d:1:17: model.hidden: 'x' is not an integer; use e.g. 1000, 1_000 or 1e3");
  one("&model hidden = 0 heads = 7 /",
      "d:1:8: model.hidden: 0 is out of range; it must be 1 to 1048576");
  one("&model hidden = 'x\n heads = 7 /",
      "d:1:17: model.hidden: the string is not closed on its line; add the closing quote");
  one("&model hidden 7 heads = 7 /",
      "d:1:15: model.hidden: no '=' after the name; use name = value");
  one("&model heads = -1 kv_heads = 3 /",
      "d:1:8: model.heads: -1 is out of range; it must be 0 to 65536");
}

TEST(DeckContradictions, LossScaling) {
  const std::string fp16 = "&precision compute = 'fp16' ";
  none(fp16 + "loss_scale = 1024 loss_scale_steps = 0 /");
  one(fp16 + "loss_scale = 1000 /",
      "d:1:29: precision.loss_scale: 1000.0 is not a power of two and would round gradients; set "
      "loss_scale to a power of two (e.g. 65536)");
  one("&precision compute = 'bf16' loss_scale = 1024 /",
      "d:1:29: precision.loss_scale: only 'fp16' scales the loss, not 'bf16'; remove it, or set "
      "compute = 'fp16'");
  one("&precision loss_scale_steps = 100 /",
      "d:1:12: precision.loss_scale_steps: only 'fp16' scales the loss, not 'fp32'; remove it, or "
      "set compute = 'fp16'");
}

TEST(DeckContradictions, Supervised) {
  const std::string kind = "&objective kind = 'supervised' /";
  none(kind);
  none(kind + " &data train = 'a.jsonl' valid = 'b.jsonl' /");
  one(kind + "\n&data train = 'a.bin' /",
      "d:1:12: objective.kind: supervised training needs conversations; set train to .jsonl files "
      "of {\"messages\": [...]}");
  one(kind + "\n&model position = 'learned' /",
      "d:2:8: model.position: positions restart with each conversation, which 'learned' does not "
      "support; set position = 'rope'");
}

TEST(DeckContradictions, Epochs) {
  none("&campaign epochs = 2 /");
  none("&campaign epochs = 2 max_steps = 1000 /");  // a printed deck gives defaults too
  one("&campaign epochs = 2 max_steps = 50 /",
      "d:1:22: campaign.max_steps: 50 steps, but epochs = 2 sets the steps from the data; remove "
      "one of the two");
  one("&campaign epochs = 2 / &data train = 'a.bin' /",
      "d:1:11: campaign.epochs: epochs are counted over samples (.json, .jsonl), not token shards; "
      "set max_steps instead");
  none("&campaign epochs = 2 / &objective kind = 'supervised' / &data train = 'a.jsonl' /");
  // Their number of steps is not known yet.
  none("&campaign epochs = 2 / &optimizer warmup_steps = 2000 schedule = 'wsd' /");
}

TEST(DeckContradictions, WhatRanksCannotDivide) {
  one("&parallel tensor = 2 / &optimizer kind = 'muon' /",
      "d:1:11: parallel.tensor: 2 tensor ranks split each matrix, and Muon needs whole ones; set "
      "tensor = 1 or optimizer.kind = 'adamw'");
  none("&parallel tensor = 2 / &optimizer kind = 'muon' / &campaign task = 'generate' /");
  none("&parallel pipeline = 2 / &optimizer kind = 'muon' /");
  one("&parallel pipeline = 2 / &model inner_steps = 1 / &objective kind = 'refinement' /",
      "d:1:11: parallel.pipeline: a recursive model passes over all layers several times, which "
      "pipeline stages do not support; set pipeline = 1, or use parallel.tensor");
  none("&parallel tensor = 2 / &model inner_steps = 1 / &objective kind = 'refinement' /");
}

TEST(DeckContradictions, Presets) {
  none("&batch preset = 'recommended' /");
  none("&batch preset = 'recommended' per_rank = 128 global = 512 /");
  one("&batch preset = 'extreme' per_rank = 8 /",
      "d:1:27: batch.per_rank: 8, but preset = 'extreme' sets 256; remove one of the two, or set "
      "preset = 'none'");
  one("&batch preset = 'conservative' global = 512 /",
      "d:1:32: batch.global: 512, but preset = 'conservative' sets 256; remove one of the two, or "
      "set preset = 'none'");
  const Deck deck = parse("&batch preset = 'aggressive' / &optimizer lr_rule = 'sqrt' /", "d");
  EXPECT_EQ(deck.batch.per_rank, 192);
  EXPECT_EQ(deck.batch.global, 768);
  EXPECT_DOUBLE_EQ(deck.optimizer.lr, 3e-4 * std::sqrt(6.0));
  EXPECT_EQ(parse(print(deck, false), "d"), deck);
}

TEST(DeckContradictions, LearningRateRules) {
  for (const auto& [global, lr] : {std::pair{128, 3e-4}, std::pair{256, 4e-4}, std::pair{512, 5e-4},
                                   std::pair{768, 6e-4}, std::pair{1024, 7e-4}})
    EXPECT_EQ(parse(fmt::format("&batch global = {} / &optimizer lr_rule = 'table' /", global), "d")
                  .optimizer.lr,
              lr);
  one("&batch global = 64 / &optimizer lr_rule = 'table' /",
      "d:1:33: optimizer.lr_rule: 'table' covers global = 128, 256, 512, 768 and 1024, not 64; set "
      "one of these, or lr_rule = 'sqrt'");
  one("&optimizer lr_rule = 'sqrt' /",
      "d:1:12: optimizer.lr_rule: the learning rate depends on batch.global, which is not set; set "
      "global (e.g. global = 256) or a preset");
  one("&batch global = 512 / &optimizer lr = 1e-3 lr_rule = 'table' /",
      "d:1:34: optimizer.lr: 0.001, but lr_rule = 'table' gives 5e-04 at global = 512; remove one "
      "of the two");
}

TEST(DeckContradictions, LeastRateIsHeldAgainstTheRule) {
  one("&batch global = 512 / &optimizer lr_rule = 'table' min_lr = 6e-4 /",
      "d:1:52: optimizer.min_lr: 6e-04 is above lr = 5e-04; lower it");
  none("&batch global = 512 / &optimizer lr_rule = 'table' min_lr = 5e-4 /");
  none("&batch preset = 'extreme' / &optimizer lr_rule = 'table' min_lr = 6e-4 /");
  one("&optimizer lr_rule = 'sqrt' min_lr = 1 /",
      "d:1:12: optimizer.lr_rule: the learning rate depends on batch.global, which is not set; set "
      "global (e.g. global = 256) or a preset");
}

TEST(DeckContradictions, DropoutHasAsManyStreamsAsItNeeds) {
  one("&model dropout = 0.1 layers = 2048 /",
      "d:1:8: model.dropout: would be applied at 4097 places, and at most 4096 are supported; set "
      "dropout = 0, or reduce layers or inner_steps");
  none("&model dropout = 0.1 layers = 2047 /");
  none("&model layers = 2048 /");
  one("&objective kind = 'refinement' / &model dropout = 0.1 layers = 128 inner_steps = 3 /",
      "d:1:41: model.dropout: would be applied at 4097 places, and at most 4096 are supported; set "
      "dropout = 0, or reduce layers or inner_steps");
}

}  // namespace
}  // namespace tern::test
