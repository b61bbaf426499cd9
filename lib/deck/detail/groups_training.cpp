#include "deck/choices.hpp"
#include "deck/detail/table.hpp"
#include "deck/objective_kind.hpp"
#include "deck/optimizer_kind.hpp"
#include "deck/rules.hpp"

namespace tern::deck::detail {

void describe(Group& group, Objective& o) {
  group.add("kind", o.kind, "training objective").one_of(objective_kinds);
  group.add("z_loss", o.z_loss, "weight of the squared log-sum-exp of the logits; 0: off")
      .at_least(0);
  group
      .add("block_length", o.block_length,
           "block_diffusion: block length in a flat sample; 1: one token at a time")
      .unit("tokens")
      .at_least(1)
      .at_most(1 << 24);
  group
      .add("hierarchy", o.hierarchy,
           "block_diffusion: flat: one level; hdp: two levels, with question, plan and execution")
      .one_of(hierarchies);
  group
      .add("condition", o.condition,
           "block_diffusion: what a flat sample is conditioned on, without noise")
      .one_of({"question", "none"});
  group
      .add("plan_block", o.plan_block,
           "hdp: block length in the plan; 0: the whole plan is one block")
      .unit("tokens")
      .at_least(0)
      .at_most(1 << 24);
  group.add("execution_block", o.execution_block, "hdp: block length in the execution")
      .unit("tokens")
      .at_least(1)
      .at_most(1 << 24);
  group.add("plan_weight", o.plan_weight, "hdp: weight of the mean loss of plans").at_least(0);
  group.add("execution_weight", o.execution_weight, "hdp: weight of the mean loss of executions")
      .at_least(0);
  group.add("clip_low", o.clip_low, "block_diffusion: lowest masking rate in training")
      .above(0)
      .at_most(1);
  group.add("clip_high", o.clip_high, "block_diffusion: highest masking rate in training")
      .above(0)
      .at_most(1);
  group.add("clip_search", o.clip_search,
            "block_diffusion: evaluations set clip_low and clip_high to minimize the variance of "
            "the loss");
  group
      .add("supervision_steps", o.supervision_steps,
           "refinement: number of answers; each starts from the previous one and is scored")
      .at_least(2)
      .at_most(64);
  group
      .add("detach_from", o.detach_from,
           "refinement: last answer (from 0) through which gradients flow back to the previous one")
      .at_least(0)
      .at_most(64);
  group
      .add("reward_over", o.reward_over,
           "refinement: the reward is for the mean, or for the sum, of the improvements")
      .one_of({"mean", "sum"});
  group
      .add("preset", o.preset,
           "refinement: sets the next four; aggressive: their defaults; extreme: those given with "
           "each")
      .one_of({"none", "aggressive", "extreme"});
  group
      .add("weight_base", o.weight_base,
           "refinement: the loss of answer s has weight weight_base^s, normalized; extreme: 10")
      .above(0);
  group
      .add("reward", o.reward,
           "refinement: weight of the relative improvement from answer to answer; extreme: 2")
      .at_least(0);
  group
      .add("refinement_range", o.refinement_range,
           "refinement: expected (first - last) / first loss; below this range the run has failed; "
           "extreme: 0.5, 0.97")
      .at_most(1);
  group
      .add("norm_range", o.norm_range,
           "refinement: gradient norms that the verdict expects; extreme: 2, 15")
      .at_least(0);
  group.add("norm_limit", o.norm_limit, "refinement: gradient norm above which the verdict warns")
      .above(0);
}

void describe(Group& group, Data& d) {
  group.add("train", d.train, "training data: token shards, or samples as JSON; wildcards allowed");
  group.add("valid", d.valid, "validation data, likewise");
  group.add("tokenizer", d.tokenizer,
            "'gpt2', 'bytes', a folder made by prepare, or a tokenizer.json; omitted: that of "
            "model.load, if it has one");
  group.add("threads", d.threads, "threads that read and prefetch batches")
      .at_least(1)
      .at_most(1024);
  group
      .add("question_tokens", d.question_tokens,
           "samples: longest question, including its end token")
      .unit("tokens")
      .at_least(1)
      .at_most(1 << 24);
  group.add("plan_tokens", d.plan_tokens, "samples: longest plan, including its end token")
      .unit("tokens")
      .at_least(1)
      .at_most(1 << 24);
  group
      .add("execution_tokens", d.execution_tokens,
           "samples: longest execution, including its end token")
      .unit("tokens")
      .at_least(1)
      .at_most(1 << 24);
  group
      .add("plan", d.plan,
           "samples: data: their own plans, skeleton rule where missing; skeleton: always that "
           "rule; none: no plans")
      .one_of(plan_rules);
  group.add("notes", d.notes, "samples: keep calculator notes such as <<48/2=24>> in executions");
  group.add("packing", d.packing, "samples: pack several per row, each at its true length");
  group.add("too_long", d.too_long, "samples: what to do with those that are too long")
      .one_of(long_samples);
  group
      .add("chat_template", d.chat_template,
           "messages: format of a conversation; plain: a newline after each message, an end token "
           "after each answer")
      .one_of({"plain", "chatml", "qwen3"});
  group.add("thinking", d.thinking,
            "messages, qwen3: train and generate with the assistant's thinking");
}

void describe(Group& group, Batch& b) {
  group.add("per_rank", b.per_rank, "micro-batch per rank; 0: the largest that fits in memory")
      .unit("sequences")
      .at_least(0)
      .at_most(1 << 24);
  group
      .add("global", b.global,
           "batch of one optimizer step over all ranks; 0: per_rank x ranks x accumulation")
      .unit("sequences or samples")
      .at_least(0)
      .at_most(largest_global);
  group
      .add("global_start", b.global_start,
           "batch of the first step, which grows to global in multiples of it; 0: no growth")
      .at_least(0)
      .at_most(largest_global);
  group.add("growth_steps", b.growth_steps, "steps over which the batch grows")
      .unit("steps")
      .at_least(0);
  group
      .add("unit", b.unit,
           "what global counts: rows, or samples packed in rows (as many whole rows as hold global "
           "samples on average)")
      .one_of({"rows", "samples"});
  group
      .add("accumulation", b.accumulation,
           "micro-batches per optimizer step; 0: follows from global")
      .unit("micro-batches")
      .at_least(0)
      .at_most(1 << 24);
  group
      .add("preset", b.preset,
           "sets per_rank / global: 64/256, 128/512, 192/768, 256/1024; none: as in the deck")
      .one_of({"none", "conservative", "recommended", "aggressive", "extreme"});
}

void describe(Group& group, Optimizer& o) {
  group
      .add("kind", o.kind,
           "optimizer; muon: for the matrices of blocks, with adamw for embeddings, head and "
           "vectors")
      .one_of(optimizer_kinds);
  group.add("lr", o.lr, "peak learning rate").above(0);
  group
      .add(
          "lr_rule", o.lr_rule,
          "sets lr; sqrt: 3e-4 sqrt(global / 128); table: 3e-4 to 7e-4 at 128, 256, 512, 768, 1024")
      .one_of({"none", "sqrt", "table"});
  group.add("betas", o.betas, "decay rates of the first and second moments").at_least(0).below(1);
  group.add("eps", o.eps, "added to the square root of the second moment").above(0).below(1);
  group.add("weight_decay", o.weight_decay, "decoupled weight decay, of matrices only").at_least(0);
  group.add("grad_clip", o.grad_clip, "gradient clipping: largest global norm; 0: off").at_least(0);
  group.add("schedule", o.schedule, "learning rate after the warmup; wsd: stable, then decay")
      .one_of({"cosine", "linear", "wsd", "constant"});
  group.add("warmup_steps", o.warmup_steps, "steps of linear warmup from 0 to lr")
      .unit("steps")
      .at_least(0);
  group.add("min_lr", o.min_lr, "learning rate at the end of the schedule").at_least(0);
  group
      .add("decay_fraction", o.decay_fraction,
           "wsd: fraction of max_steps over which the rate decays")
      .at_least(0)
      .at_most(1);
  group
      .add("ema", o.ema,
           "decay of the EMA of the weights, which is evaluated, sampled, exported and loaded; 0: "
           "none")
      .at_least(0)
      .below(1);
  group
      .add("matrix_lr", o.matrix_lr,
           "muon: peak rate of the matrices of blocks, scheduled in proportion to lr; 0: lr")
      .at_least(0);
  group.add("embed_lr", o.embed_lr, "muon: peak rate of embeddings; 0: lr").at_least(0);
  group.add("head_lr", o.head_lr, "muon: peak rate of an untied head and of vectors; 0: embed_lr")
      .at_least(0);
  group.add("momentum", o.momentum, "muon: decay of the (Nesterov) momentum").at_least(0).below(1);
  group
      .add("muon_scale", o.muon_scale,
           "muon: original: sqrt(max(1, rows / columns)); match_rms_adamw: 0.2 sqrt(max(rows, "
           "columns))")
      .one_of({"original", "match_rms_adamw"});
}

void describe(Group& group, Precision& p) {
  group
      .add("compute", p.compute,
           "format of weights and activations (master weights: fp32); tf32, fp8: of GEMM operands "
           "only")
      .one_of(computes);
  group
      .add("recompute", p.recompute,
           "activation recomputation; block: keep only the inputs of blocks, and run each block "
           "again in backward")
      .one_of(recomputations);
  group
      .add("products", p.products,
           "GEMM algorithms on GPUs; fastest: timed once per shape and cached; first: cuBLASLt's "
           "first choice")
      .one_of(product_choices);
  group
      .add("loss_scale", p.loss_scale,
           "fp16: initial loss scale, a power of two; halved whenever a gradient overflows")
      .at_least(1)
      .at_most(largest_loss_scale);
  group
      .add("loss_scale_steps", p.loss_scale_steps,
           "fp16: consecutive applied steps after which the loss scale doubles; 0: never")
      .unit("steps")
      .at_least(0);
}

void describe(Group& group, Parallel& p) {
  group.add("data", p.data, "data-parallel ranks; 0: all that tensor and pipeline leave")
      .unit("ranks")
      .at_least(0)
      .at_most(1 << 20);
  group.add("tensor", p.tensor, "tensor-parallel ranks, which divide each layer")
      .unit("ranks")
      .at_least(1)
      .at_most(1 << 20);
  group.add("pipeline", p.pipeline, "pipeline stages, which divide the stack of layers")
      .unit("ranks")
      .at_least(1)
      .at_most(1 << 20);
  group
      .add("shard", p.shard,
           "what data-parallel ranks divide: nothing, optimizer states (ZeRO-1), or all of the "
           "model (FSDP)")
      .one_of(shards);
  group
      .add("wait_minutes", p.wait_minutes,
           "how long a rank may wait for others before the job ends; 24 times as long during file "
           "operations; 0: no limit")
      .unit("minutes")
      .at_least(0);
}

}  // namespace tern::deck::detail
