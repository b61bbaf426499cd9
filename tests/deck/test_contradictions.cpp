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
      "d:1:21: model.heads: 3 heads do not divide hidden = 100; change one, or give head_dim");
  one("&model hidden = 100 /",
      "d:1:8: model.heads: 12 heads do not divide hidden = 100; change one, or give head_dim");
  none("&model hidden = 100 heads = 3 head_dim = 32 /");
  one("&model heads = 12 kv_heads = 5 /",
      "d:1:19: model.kv_heads: 5 kv_heads do not divide 12 heads; write a divisor of heads, or 0");
  one("&model heads = 12 kv_heads = 24 /",
      "d:1:19: model.kv_heads: 24 kv_heads do not divide 12 heads; write a divisor of heads, or 0");
  none("&model heads = 12 kv_heads = 4 /");
  none("&model hidden = 1536 heads = 0 kv_heads = 8 /");
  one("&model hidden = 1000 heads = 0 /",
      "d:1:22: model.heads: 0 makes heads of size 64, which do not divide hidden = 1000; change "
      "hidden, or give heads");
  one("&model hidden = 768 heads = 0 kv_heads = 5 /",
      "d:1:31: model.kv_heads: 5 kv_heads do not divide 12 heads; write a divisor of heads, or 0");
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
      "d:1:8: model.head_dim: position = 'rope' rotates pairs, but a head has size 33; make it "
      "even");
  one("&model hidden = 15 heads = 5 /",
      "d:1:20: model.heads: position = 'rope' rotates pairs, but a head has size 3; make it even");
  none("&model head_dim = 33 position = 'learned' /");
  none("&model hidden = 15 heads = 5 position = 'none' /");
}

TEST(DeckContradictions, ConnectionsOfBlocks) {
  none("&model skip_connections = .true. input_shortcut = .true. value_embeddings = 6 /");
  none("&model input_shortcut = .true. / &parallel tensor = 4 shard = 'optimizer' /");
  one("&model layers = 2 skip_connections = .true. /",
      "d:1:19: model.skip_connections: 2 layers have no two that are not neighbours to connect; "
      "write 3 or more, or .false.");
  one("&model value_embeddings = 7 /",
      "d:1:8: model.value_embeddings: 7 tables for the first layers and again the last ones of 12; "
      "write at most 6");
  one("&model value_embeddings = 1 kv_heads = 2 / &parallel tensor = 4 /",
      "d:1:8: model.value_embeddings: 4 ranks divide the columns of 2 key-value heads; write "
      "tensor = 2 or less, or value_embeddings = 0");
  for (const char* given :
       {"skip_connections = .true.", "input_shortcut = .true.", "value_embeddings = 1"}) {
    const std::string name(given, std::string(given).find(' '));
    one(fmt::format("&model {} inner_steps = 2 / &objective kind = 'refinement' /", given),
        fmt::format("d:1:8: model.{}: it is not built for recursive models; write inner_steps = 0, "
                    "or remove it",
                    name));
    one(fmt::format("&model {} / &parallel pipeline = 2 /", given),
        fmt::format("d:1:8: model.{}: stages of a pipeline do not see each other's blocks and "
                    "tokens; write pipeline = 1, or use parallel.tensor",
                    name));
  }
}

TEST(DeckContradictions, GrowingBatch) {
  none("&batch per_rank = 8 global = 64 global_start = 16 growth_steps = 100 /");
  none("&batch per_rank = 0 global = 64 global_start = 16 growth_steps = 100 /");
  one("&batch global = 64 global_start = 16 /",
      "d:1:20: batch.global_start: a growing batch needs both, where it starts and the steps it "
      "takes; write the other, or 0 for both");
  one("&batch global = 64 global_start = 24 growth_steps = 9 /",
      "d:1:20: batch.global_start: 24 does not divide global = 64, to which it grows by multiples; "
      "write a divisor");
  one("&batch global = 64 global_start = 4 growth_steps = 9 /",
      "d:1:20: batch.global_start: 4 rows are no multiple of per_rank x parallel.data = 8, whole "
      "micro-batches; write one");
  one("&batch global_start = 8 growth_steps = 9 /",
      "d:1:8: batch.global_start: it grows to batch.global, which is not given; give it, or a "
      "preset");
}

TEST(DeckContradictions, Window) {
  none("&model window = 128 / &generation samples = 0 /");
  none("&model window_start = 128 window_steps = 50 /");
  none("&model window = 1024 window_start = 128 window_steps = 50 /");
  one("&model window = 128 /",
      "d:1:8: model.window: generation attends to all tokens, not to a window; write "
      "generation.samples = 0, or window = 0");
  one("&model window_start = 128 /",
      "d:1:8: model.window_start: a growing window needs both, where it starts and the steps it "
      "takes; write the other, or 0 for both");
  one("&model window_start = 2048 window_steps = 5 /",
      "d:1:8: model.window_start: 2048 tokens are more than the 1024 it grows to; lower it");
  one("&model window_start = 128 window_steps = 5 / &objective kind = 'supervised' /",
      "d:1:8: model.window_start: kind = 'supervised' has an attention mask of its own; write 0, "
      "or kind = 'causal'");
}

TEST(DeckContradictions, Experts) {
  const std::string of = "&model experts = 8 experts_per_token = 2 expert_hidden = 64 ";
  none(of + "router_loss = 0.01 renormalise_experts = .false. /");
  none("&model experts = 1 experts_per_token = 1 expert_hidden = 64 /");
  one("&model experts = 8 expert_hidden = 64 /",
      "d:1:8: model.experts_per_token: 0 of 8 experts per token; write 1 to 8");
  one("&model experts = 8 experts_per_token = 9 expert_hidden = 64 /",
      "d:1:20: model.experts_per_token: 9 of 8 experts per token; write 1 to 8");
  one("&model experts = 8 experts_per_token = 2 /",
      "d:1:8: model.expert_hidden: experts need a width; write it, as 768");
  one(of + "activation = 'gelu' /",
      "d:1:61: model.activation: experts are built for 'swiglu', not 'gelu'; write that, or "
      "experts "
      "= 0");
  one(of + "ffn_bias = .true. /",
      "d:1:61: model.ffn_bias: experts have no biases; write .false., or experts = 0");
  one(of + "inner_steps = 2 /",
      "d:1:61: model.inner_steps: a recursive MoE model is not built; write 0, or experts = "
      "0");
  none(of + "/ &precision compute = 'fp8' /");
  none(of + "/ &parallel tensor = 2 pipeline = 2 /");
  one(of + "router_loss = 0.01 / &parallel pipeline = 2 /",
      "d:1:61: model.router_loss: the balance of experts is that of all layers, which the stages "
      "of "
      "a pipeline do not see; write 0, or parallel.pipeline = 1");
  for (const char* name : {"experts_per_token", "expert_hidden", "router_loss"})
    one(fmt::format("&model {} = 1 /", name),
        fmt::format("d:1:8: model.{}: only an MoE model reads it; write experts = 128, say, "
                    "or remove it",
                    name));
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

TEST(DeckContradictions, BatchOfSamples) {
  const std::string samples = "&batch unit = 'samples' ";
  const std::string data =
      "/ &data train = 'a.jsonl' valid = 'b.jsonl' / &objective kind = 'supervised' /";
  none(samples + "global = 33 per_rank = 8 " + data + " &parallel data = 2 /");
  none(samples + "global = 33 per_rank = 0 " + data);
  none("&batch unit = 'rows' per_rank = 8 global = 32 " + data);
  one(samples + "global = 32 / &data train = 'a.bin' valid = 'b.bin' /",
      "d:1:8: batch.unit: 'samples' counts problems or conversations (.json, .jsonl) packed in "
      "rows, and token shards have none; write 'rows'");
  one(samples + data,
      "d:1:8: batch.global: unit = 'samples' needs the number of samples per step; write it, as "
      "32");
  one(samples + "global = 32 accumulation = 2 " + data,
      "d:1:37: batch.accumulation: with unit = 'samples' it follows from the data; write 0, or "
      "unit = 'rows'");
  one(samples + "preset = 'recommended' " + data,
      "d:1:25: batch.preset: 'recommended' counts rows; write preset = 'none' and give global, or "
      "unit = 'rows'");
  one("&batch unit = 'sample' global = 32 " + data,
      "d:1:8: batch.unit: 'sample' is not one of 'rows' | 'samples'; did you mean 'samples'?");
}

TEST(DeckContradictions, Accumulation) {
  one("&batch per_rank = 8 global = 32 accumulation = 3 / &parallel data = 2 /",
      "d:1:33: batch.accumulation: per_rank x parallel.data x accumulation = 8 x 2 x 3 = 48 is not "
      "global = 32; change one, or write accumulation = 0");
  none("&batch per_rank = 8 global = 32 accumulation = 2 / &parallel data = 2 /");
  none("&batch per_rank = 8 global = 32 accumulation = 3 /");  // ranks are not known
  one("&batch per_rank = 0 global = 32 accumulation = 3 / &parallel data = 2 /",
      "d:1:33: batch.accumulation: per_rank = 0 asks for the largest micro-batch, from which it "
      "follows; write 0, or give per_rank");
  none("&batch per_rank = 8 accumulation = 3 / &parallel data = 2 /");
  none("&batch preset = 'recommended' accumulation = 2 / &parallel data = 2 /");
  one("&batch preset = 'recommended' accumulation = 3 / &parallel data = 2 /",
      "d:1:31: batch.accumulation: per_rank x parallel.data x accumulation = 128 x 2 x 3 = 768 is "
      "not global = 512; change one, or write accumulation = 0");
  one("&batch per_rank = 16777216 accumulation = 16777216 / &parallel data = 1048576 /",
      "d:1:8: batch.per_rank: per_rank x parallel.data x accumulation = 295147905179352825856 is "
      "more than 1073741824 sequences; lower one of them");
  none("&batch per_rank = 1024 accumulation = 1024 / &parallel data = 1024 /");
}

TEST(DeckContradictions, Attention) {
  one("&model attention = 'cudnn' /",
      "d:1:8: model.attention: cuDNN's attention does not compute in fp32; write attention = "
      "'auto', or compute "
      "= 'bf16'");
  one("&precision compute = 'tf32' / &model attention = 'cudnn' /",
      "d:1:38: model.attention: cuDNN's attention does not compute in tf32; write attention = "
      "'auto', or compute = 'bf16'");
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

TEST(DeckContradictions, WhatOnlyMuonReads) {
  for (const char* value : {"matrix_lr = 1e-3", "embed_lr = 1e-2", "head_lr = 1e-3",
                            "momentum = 0.9", "muon_scale = 'match_rms_adamw'"}) {
    const std::string given = value, name = given.substr(0, given.find(' '));
    EXPECT_EQ(mistakes("&optimizer " + given + " /"),
              Lines{"d:1:12: optimizer." + name +
                    ": only kind = 'muon' reads it, not 'adamw'; write that, or remove it"});
    EXPECT_EQ(mistakes("&optimizer kind = 'muon' " + given + " /"), Lines{});
  }
  one("&optimizer kind = 'muon' muon_scale = 'orignal' /",
      "d:1:26: optimizer.muon_scale: 'orignal' is not one of 'original' | 'match_rms_adamw'; did "
      "you mean 'original'?");
  none("&optimizer kind = 'muon' / &parallel shard = 'optimizer' /");
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
  none("&campaign task = 'generate' / &generation prompt = 'x' samples = 0 /");  // makes one
  one("&model context = 1 /",
      "d:1:8: model.context: 1 leaves no room to continue a prompt; write 2 or more, or "
      "generation.samples = 0");
  none("&model context = 1 / &generation samples = 0 /");
}

TEST(DeckContradictions, NamesThatAreNoDirectories) {
  for (const std::string name : {".", ".."})
    one("&campaign name = '" + name + "' /",
        "d:1:11: campaign.name: '" + name +
            "' names no directory of its own under runs/; give the run a name");
  none("&campaign name = '.' / &output directory = 'here' /");
  none("&campaign name = '...' /");
}

TEST(DeckContradictions, Requests) {
  none("&campaign task = 'generate' / &generation input = 'in.txt' samples = 0 stop = '##' /");
  none("&precision compute = 'bf16' / &generation input = 'in.txt' quantization = 'fp8' /");
  none("&campaign task = 'generate' / &generation input = 'in.txt' cache_quantization = 'fp8' /");
  one("&campaign task = 'generate' / &objective kind = 'refinement' /\n"
      "&model inner_steps = 1 / &generation input = 'in.txt' /",
      "d:2:38: generation.input: kind = 'refinement' answers no files; write 'supervised' or "
      "'causal'");
  one("&campaign task = 'evaluate' / &generation input = 'in.txt' max_tokens = 64\n"
      "max_model_len = 64 /",
      "d:1:60: generation.max_tokens: 64 leaves no room for a prompt in max_model_len = 64; lower "
      "it");
  one("&campaign task = 'generate' / &generation pattern = 'a' /",
      "d:1:43: generation.pattern: only requests of a file read it; give generation.input, or "
      "remove it");
  one("&campaign task = 'generate' / &generation input = 'in.txt' quantization = 'fp8' /",
      "d:1:60: generation.quantization: 'fp8' saves time next to numbers of 16 bits, and compute = "
      "'fp32' stores 32; write compute = 'bf16', or quantization = 'none'");
  one("&data chat_template = 'chatml' thinking = .true. /",
      "d:1:32: data.thinking: chat_template = 'chatml' has no place for thoughts; write 'qwen3', "
      "or .false.");
  none("&data chat_template = 'qwen3' thinking = .true. /");
}

TEST(DeckContradictions, Directory) {
  one("&campaign name = '' /",
      "d:1:11: campaign.name: empty, and so is output.directory; give the run a name");
  one("&campaign name = '../x' /",
      "d:1:11: campaign.name: holds a '/', but names a directory under runs/; remove it, or give "
      "output.directory");
  none("&campaign name = 'a/b' / &output directory = 'o' /");
  none("&campaign name = '' / &output directory = 'o' /");
}

TEST(DeckContradictions, NothingIsConcludedFromWrongValues) {
  one("&model hidden = 'x' heads = 7 /",
      "d:1:17: model.hidden: 'x' is not an integer; write a whole number, as 1000, 1_000 or 1e3");
  one("&model hidden = 0 heads = 7 /",
      "d:1:8: model.hidden: 0 is out of range; it must be 1 to 1048576");
  one("&model hidden = 'x\n heads = 7 /",
      "d:1:17: model.hidden: the string is not closed on its line; add the closing quote");
  one("&model hidden 7 heads = 7 /",
      "d:1:15: model.hidden: no '=' after the name; write name = value");
  one("&model heads = -1 kv_heads = 3 /",
      "d:1:8: model.heads: -1 is out of range; it must be 0 to 65536");
}

TEST(DeckContradictions, LossScaling) {
  const std::string fp16 = "&precision compute = 'fp16' ";
  none(fp16 + "loss_scale = 1024 loss_scale_steps = 0 /");
  one(fp16 + "loss_scale = 1000 /",
      "d:1:29: precision.loss_scale: 1000.0 is not a power of two, and would round gradients; "
      "write one, as 65536");
  one("&precision compute = 'bf16' loss_scale = 1024 /",
      "d:1:29: precision.loss_scale: only 'fp16' scales the loss, not 'bf16'; remove it, or write "
      "compute = 'fp16'");
  one("&precision loss_scale_steps = 100 /",
      "d:1:12: precision.loss_scale_steps: only 'fp16' scales the loss, not 'fp32'; remove it, or "
      "write compute = 'fp16'");
}

TEST(DeckContradictions, Supervised) {
  const std::string kind = "&objective kind = 'supervised' /";
  none(kind);
  none(kind + " &data train = 'a.jsonl' valid = 'b.jsonl' /");
  one(kind + "\n&data train = 'a.bin' /",
      "d:1:12: objective.kind: supervised training needs conversations; write a .jsonl file of "
      "{\"messages\": [...]}");
  one(kind + "\n&model position = 'learned' /",
      "d:2:8: model.position: positions restart with each conversation, for which 'learned' is "
      "not built; write 'rope'");
}

TEST(DeckContradictions, Epochs) {
  none("&campaign epochs = 2 /");
  none("&campaign epochs = 2 max_steps = 1000 /");  // a printed deck gives defaults too
  one("&campaign epochs = 2 max_steps = 50 /",
      "d:1:22: campaign.max_steps: 50 steps, but epochs = 2 makes the steps follow from the data; "
      "remove one of the two");
  one("&campaign epochs = 2 / &data train = 'a.bin' /",
      "d:1:11: campaign.epochs: epochs are counted over samples (.json, .jsonl), not token shards; "
      "write max_steps");
  none("&campaign epochs = 2 / &objective kind = 'supervised' / &data train = 'a.jsonl' /");
  // Their number of steps is not known yet.
  none("&campaign epochs = 2 / &optimizer warmup_steps = 2000 schedule = 'wsd' /");
}

TEST(DeckContradictions, WhatRanksCannotDivide) {
  one("&parallel tensor = 2 / &optimizer kind = 'muon' /",
      "d:1:11: parallel.tensor: 2 ranks have parts of each matrix, and Muon needs whole ones; "
      "write "
      "1, or optimizer.kind = 'adamw'");
  none("&parallel tensor = 2 / &optimizer kind = 'muon' / &campaign task = 'generate' /");
  none("&parallel pipeline = 2 / &optimizer kind = 'muon' /");
  one("&parallel pipeline = 2 / &model inner_steps = 1 / &objective kind = 'refinement' /",
      "d:1:11: parallel.pipeline: a recursive model passes over all of its layers several times; "
      "write 1, or use parallel.tensor");
  none("&parallel tensor = 2 / &model inner_steps = 1 / &objective kind = 'refinement' /");
}

TEST(DeckContradictions, Presets) {
  none("&batch preset = 'recommended' /");
  none("&batch preset = 'recommended' per_rank = 128 global = 512 /");
  one("&batch preset = 'extreme' per_rank = 8 /",
      "d:1:27: batch.per_rank: 8, but preset = 'extreme' means 256; remove one of the two, or "
      "write "
      "preset = 'none'");
  one("&batch preset = 'conservative' global = 512 /",
      "d:1:32: batch.global: 512, but preset = 'conservative' means 256; remove one of the two, or "
      "write preset = 'none'");
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
      "d:1:33: optimizer.lr_rule: 'table' knows global = 128, 256, 512, 768 and 1024, not 64; "
      "write "
      "one of them, or 'sqrt'");
  one("&optimizer lr_rule = 'sqrt' /",
      "d:1:12: optimizer.lr_rule: the rate follows from batch.global, which is not given; give it, "
      "or a preset");
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
      "d:1:12: optimizer.lr_rule: the rate follows from batch.global, which is not given; give it, "
      "or a preset");
}

TEST(DeckContradictions, DropoutHasAsManyStreamsAsItNeeds) {
  one("&model dropout = 0.1 layers = 2048 /",
      "d:1:8: model.dropout: 4097 places to drop at, and there are random numbers for 4096; write "
      "0, or make the model less deep");
  none("&model dropout = 0.1 layers = 2047 /");
  none("&model layers = 2048 /");
  one("&objective kind = 'refinement' / &model dropout = 0.1 layers = 128 inner_steps = 3 /",
      "d:1:41: model.dropout: 4097 places to drop at, and there are random numbers for 4096; write "
      "0, or make the model less deep");
}

}  // namespace
}  // namespace tern::test
