/// The deck: one plain struct per group. Defaults are here and nowhere else; unit, range and one
/// line of help per field are in detail/groups_*.cpp, the source of --print-deck and error texts.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tern::deck {

struct Campaign {
  std::string name = "run";
  std::string task = "train";     // train | evaluate | generate
  std::int64_t max_steps = 1000;  // 0: max_hours applies
  std::int64_t epochs = 0;  // supervised: passes over the training samples; 0: max_steps applies
  double max_hours = 0;     // 0: no limit
  std::int64_t seed = 1337;

  bool operator==(const Campaign&) const = default;
};

struct Model {
  std::int64_t layers = 12, hidden = 768;
  std::int64_t heads = 12;      // 0: hidden / head_dim, or hidden / 64
  std::int64_t kv_heads = 0;    // 0: heads
  std::int64_t head_dim = 0;    // 0: hidden / heads
  std::int64_t ffn_hidden = 0;  // 0: 8/3 hidden rounded up to 64 for swiglu, else 4 hidden
  std::int64_t context = 1024, vocabulary = 50304;
  std::string activation = "swiglu";  // swiglu | gelu | relu2
  std::int64_t experts = 0;           // per MoE layer; 0: dense MLP
  std::int64_t experts_per_token = 0, expert_hidden = 0;
  bool renormalize_experts = true;
  double router_loss = 0;
  std::int64_t inner_steps = 0;            // latent passes of a recursive model; 0: blocks run once
  std::string recursion = "stack";         // stack | block: what a pass runs through
  std::string initial_states = "learned";  // learned | input: what y and z start from
  std::string norm = "rmsnorm";            // rmsnorm | layernorm
  double norm_eps = 1e-5;
  bool qk_norm = false;
  bool attention_bias = false, ffn_bias = false;
  std::string position = "rope";  // rope | learned | none
  double rope_base = 10000;
  bool tie_embeddings = true;
  bool skip_connections = false;      // block L - 1 - i also takes the output of block i
  bool input_shortcut = false;        // every block also takes the embedded tokens
  std::int64_t value_embeddings = 0;  // tables added to values, of the first and last layers
  std::int64_t window = 0;            // keys before and with a query that it attends to; 0: all
  std::int64_t window_start = 0, window_steps = 0;  // of the first step, which grows to window
  std::int64_t levels = 0;                          // rows of a learned level embedding; 0: none
  double logit_cap = 0;  // logits become cap tanh(logit / cap); 0: no cap
  double init_std = 0.02;
  double embed_std = 0, head_std = 0;  // initial embedding and untied head; 0: init_std
  bool init_scaled_residual =
      true;  // projections into the residual stream: init_std / sqrt(2 layers)
  bool init_zero_residual = false;  // those projections start at 0
  double dropout = 0;
  std::string attention = "auto";  // auto | portable | cudnn
  std::string load;                // a Transformers directory or a checkpoint to start from
  std::string load_rule = "same";  // same | matching: which tensors it must have

  bool operator==(const Model&) const = default;
};

struct Objective {
  std::string kind = "causal";  // rows of objective_kind.cpp
  double z_loss = 0;
  // block_diffusion
  std::int64_t block_length = 16;
  std::string hierarchy = "flat";      // flat | hdp
  std::string condition = "question";  // question | none: clean prefix of a flat sample
  std::int64_t plan_block = 0;         // 0: the whole plan at once
  std::int64_t execution_block = 16;
  double plan_weight = 1, execution_weight = 1;
  double clip_low = 1e-3, clip_high = 1;
  bool clip_search = true;
  // refinement
  std::int64_t supervision_steps = 4;
  std::int64_t detach_from = 0;      // step after which gradients no longer cross to the next
  std::string reward_over = "mean";  // mean | sum, of the improvements
  std::string preset = "none";       // none | aggressive | extreme: sets the values below
  double weight_base = 5, reward = 1;
  std::vector<double> refinement_range = {0.15, 0.25}, norm_range = {0.5, 1.5};
  double norm_limit = 20;

  bool operator==(const Objective&) const = default;
};

struct Data {
  std::vector<std::string> train, valid;  // shards, wildcards allowed
  std::string tokenizer = "gpt2";  // gpt2 | bytes | a folder made by prepare | a tokenizer.json
  std::int64_t threads = 2;
  // samples (JSON), end tokens included
  std::int64_t question_tokens = 128, plan_tokens = 128, execution_tokens = 256;
  std::string plan = "data";  // data | skeleton | none
  bool notes = true;
  bool packing = true;
  std::string too_long = "leave out";  // leave out | cut
  // chat messages (JSON lines)
  std::string chat_template = "plain";  // plain | chatml | qwen3
  bool thinking = false;

  bool operator==(const Data&) const = default;
};

struct Batch {
  std::int64_t per_rank = 8;  // sequences per micro-batch; 0: the largest the memory plan allows
  std::int64_t global = 0;    // of `unit` per optimizer step; 0: per_rank x data ranks
  std::int64_t global_start = 0, growth_steps = 0;  // of the first step, which grows to global
  std::string unit = "rows";                        // rows | samples: what global counts
  std::int64_t accumulation = 0;  // micro-batches per optimizer step; 0: what global needs
  std::string preset = "none";    // none | conservative | recommended | aggressive | extreme

  bool operator==(const Batch&) const = default;
};

struct Optimizer {
  std::string kind = "adamw";  // adamw | muon
  double lr = 3e-4;
  std::string lr_rule = "none";  // none | sqrt | table: from the global batch
  std::vector<double> betas = {0.9, 0.95};
  double eps = 1e-8, weight_decay = 0.1, grad_clip = 1.0;  // grad_clip 0: off
  std::string schedule = "cosine";                         // cosine | linear | wsd | constant
  std::int64_t warmup_steps = 0;
  double min_lr = 0;
  double decay_fraction = 0.2;  // wsd: fraction of max_steps over which the rate decays
  double ema = 0;               // decay of the EMA of the weights, which is evaluated; 0: none
  // muon
  double matrix_lr = 0, embed_lr = 0;   // peak rates; 0: lr
  double head_lr = 0;                   // the same; 0: embed_lr
  double momentum = 0.95;               // Nesterov
  std::string muon_scale = "original";  // original | match_rms_adamw

  bool operator==(const Optimizer&) const = default;
};

struct Precision {
  std::string compute = "fp32";          // fp32 | tf32 | bf16 | fp16 | fp8
  std::string recompute = "none";        // none | block
  std::string products = "fastest";      // fastest | first
  double loss_scale = 65536;             // fp16: initial factor of the loss
  std::int64_t loss_scale_steps = 2000;  // fp16: applied steps in a row before it doubles; 0: never

  bool operator==(const Precision&) const = default;
};

struct Parallel {
  std::int64_t data = 0, tensor = 1, pipeline = 1;  // 0: all ranks
  std::string shard = "none";                       // none | optimizer | full
  double wait_minutes = 10;                         // limit of a wait for other ranks; 0: none

  bool operator==(const Parallel&) const = default;
};

struct Checkpoint {
  std::int64_t every = 1000, keep = 2;  // every 0: only at the end
  bool keep_best = true;

  bool operator==(const Checkpoint&) const = default;
};

struct Evaluation {
  std::int64_t every = 500, rows = 160;   // every 0: only at the end
  double target_loss = 0;                 // 0: none
  std::int64_t problems = 0;              // solved per evaluation, for exact match; 0: none
  std::int64_t patience = 0;              // evaluations without improvement; 0: no early stopping
  std::string reference;                  // reference answers; empty: none
  std::vector<std::string> compare_with;  // runs to compare the validation loss with
  std::string baseline;                   // one whose validation loss a verdict expects beaten

  bool operator==(const Evaluation&) const = default;
};

struct Generation {
  std::string prompt;
  std::string checkpoint = "best";             // best | newest (in the run directory) | a path
  std::int64_t samples = 1, max_tokens = 128;  // samples 0: none
  double temperature = 0.8, top_p = 1.0;       // temperature 0: greedy
  std::int64_t top_k = 0;                      // 0: all
  // block_diffusion
  std::string sampler = "first_hitting";  // ddpm | first_hitting
  std::int64_t denoising_steps = 0;       // ddpm: per block; 0: one per token
  std::int64_t batch = 32;                // sequences sampled together
  bool given_plan = false;                // hdp: problems are given with the data's plan
  std::int64_t refine = -1;  // refinement: steps after the first answer; -1: as trained
  // a file of requests
  std::string input;            // lines, or JSON lines; empty: the prompt above
  std::string prompt_template;  // file with {text}; empty: the text only
  std::string output;           // empty: answers.jsonl in the run directory
  std::string pattern;          // that answers match (PCRE2); empty: any
  std::vector<std::string> stop;
  double memory_utilization = 0.9;
  std::int64_t max_model_len = 32768;
  std::int64_t prefill_tokens = 2048;
  bool prefix_cache = true;
  std::string quantization = "none";        // of linear maps: none | fp8 | fp8_dynamic
  std::string cache_quantization = "none";  // of keys and values: none | fp8

  bool operator==(const Generation&) const = default;
};

struct Output {
  std::string directory;  // empty: runs/NAME
  std::int64_t log_every = 10;
  std::int64_t skip_limit = 10;  // consecutive steps skipped for a non-finite loss or gradient
  std::int64_t profile = 0;      // step whose operations are timed; 0: none

  bool operator==(const Output&) const = default;
};

struct Cost {
  double dollars_per_gpu_hour = 0;  // 0: no cost is stated
  double peak_tflops = 0;           // per device, for MFU; 0: looked up, or unknown

  bool operator==(const Cost&) const = default;
};

struct Deck {
  Campaign campaign;
  Model model;
  Objective objective;
  Data data;
  Batch batch;
  Optimizer optimizer;
  Precision precision;
  Parallel parallel;
  Checkpoint checkpoint;
  Evaluation evaluation;
  Generation generation;
  Output output;
  Cost cost;

  bool operator==(const Deck&) const = default;
};

/// Reads and checks a deck. `overrides` are "group.name=value", applied last. All mistakes (unknown
/// names with the nearest valid one, wrong types, values out of range, contradictions) go into one
/// UserError, each with file, line and column. Derived values (kv_heads, head_dim, ffn_hidden,
/// directory, and global if it does not depend on the number of ranks) are resolved.
Deck read(const std::string& path, const std::vector<std::string>& overrides = {});

/// The same from a string; does not check that the task's files are named. `name` replaces the file
/// name in messages.
Deck parse(const std::string& text, const std::string& name,
           const std::vector<std::string>& overrides = {});

/// Checks ranges and contradictions of a deck changed after it was read. Throws UserError with all
/// mistakes; `name` replaces the file name.
void check(Deck deck, const std::string& name);

/// The whole deck as a namelist; with `help`, each value has its meaning, unit and range after `!`.
/// parse(print(d)) == d.
std::string print(const Deck& deck, bool help);

/// Markdown reference of all groups and names: docs/deck.md.
std::string reference();

}  // namespace tern::deck
