#include "deck/choices.hpp"
#include "deck/detail/table.hpp"
#include "deck/objective_kind.hpp"
#include "deck/rules.hpp"

namespace tern::deck::detail {

void describe(Group& group, Objective& o) {
  group.add("kind", o.kind, "what is predicted").one_of(objective_kinds);
  group.add("z_loss", o.z_loss, "weight of the squared log-sum-exp of the logits; 0: off")
      .at_least(0);
  group
      .add("block_length", o.block_length,
           "block_diffusion: of a block of a flat sample; 1: one by one")
      .unit("tokens")
      .at_least(1)
      .at_most(1 << 24);
  group
      .add("hierarchy", o.hierarchy,
           "block_diffusion: flat: one level; hdp: question, plan and execution, two levels")
      .one_of({"flat", "hdp"});
  group.add("condition", o.condition, "block_diffusion: what a flat sample is given clean")
      .one_of({"question", "none"});
  group.add("plan_block", o.plan_block, "hdp: of a block of the plan; 0: the whole plan at once")
      .unit("tokens")
      .at_least(0)
      .at_most(1 << 24);
  group.add("execution_block", o.execution_block, "hdp: of a block of the execution")
      .unit("tokens")
      .at_least(1)
      .at_most(1 << 24);
  group.add("plan_weight", o.plan_weight, "hdp: weight of the plans' mean loss").at_least(0);
  group.add("execution_weight", o.execution_weight, "hdp: weight of the executions' mean loss")
      .at_least(0);
  group.add("clip_low", o.clip_low, "block_diffusion: least fraction of masked tokens in training")
      .above(0)
      .at_most(1);
  group
      .add("clip_high", o.clip_high,
           "block_diffusion: largest fraction of masked tokens in training")
      .above(0)
      .at_most(1);
  group.add("clip_search", o.clip_search,
            "block_diffusion: evaluations choose clip_low and clip_high for least variance");
  group
      .add("supervision_steps", o.supervision_steps,
           "refinement: answers, each made from the previous one, and each scored")
      .at_least(2)
      .at_most(64);
  group
      .add("detach_from", o.detach_from,
           "refinement: answer, from 0, up to which gradients pass from each to the one before")
      .at_least(0)
      .at_most(64);
  group
      .add("reward_over", o.reward_over,
           "refinement: the reward is for the steps' mean improvement, or for its sum")
      .one_of({"mean", "sum"});
  group
      .add("preset", o.preset,
           "refinement: sets the next four: aggressive to their defaults, extreme as they say; "
           "none: as given")
      .one_of({"none", "aggressive", "extreme"});
  group
      .add("weight_base", o.weight_base,
           "refinement: the loss of step s weighs weight_base^s, over their sum; extreme: 10")
      .above(0);
  group
      .add("reward", o.reward,
           "refinement: weight of the relative improvement from answer to answer; extreme: 2")
      .at_least(0);
  group
      .add("refinement_range", o.refinement_range,
           "refinement: (first - last) / first step's loss expected; below, a run has failed; "
           "extreme: 0.5, 0.97")
      .at_most(1);
  group
      .add("norm_range", o.norm_range,
           "refinement: gradient norms that a verdict expects; extreme: 2, 15")
      .at_least(0);
  group.add("norm_limit", o.norm_limit, "refinement: gradient norm that a verdict warns of")
      .above(0);
}

void describe(Group& group, Data& d) {
  group.add("train", d.train, "token shards, or samples as JSON, to train on; wildcards allowed");
  group.add("valid", d.valid, "the same to evaluate on");
  group.add(
      "tokenizer", d.tokenizer,
      "'gpt2', 'bytes', a folder made by prepare, or a tokenizer.json; not given: model.load's, "
      "if it has one");
  group.add("threads", d.threads, "threads that read and prefetch batches")
      .at_least(1)
      .at_most(1024);
  group.add("question_tokens", d.question_tokens, "samples: longest question, end token included")
      .unit("tokens")
      .at_least(1)
      .at_most(1 << 24);
  group.add("plan_tokens", d.plan_tokens, "samples: longest plan, end token included")
      .unit("tokens")
      .at_least(1)
      .at_most(1 << 24);
  group
      .add("execution_tokens", d.execution_tokens, "samples: longest execution, end token included")
      .unit("tokens")
      .at_least(1)
      .at_most(1 << 24);
  group
      .add("plan", d.plan,
           "samples: from the data, by the skeleton rule where it has none; always so; or no plans")
      .one_of({"data", "skeleton", "none"});
  group.add("notes", d.notes, "samples: keep calculator notes <<48/2=24>> in executions");
  group.add("packing", d.packing, "samples: several in a row, each at its true length");
  group.add("too_long", d.too_long, "samples: what is done with those longer than that")
      .one_of({"leave out", "cut"});
  group
      .add("chat_template", d.chat_template,
           "messages: how a conversation is written; plain: a newline after each message, an end "
           "token after an answer")
      .one_of({"plain", "chatml", "qwen3"});
  group.add("thinking", d.thinking, "messages, qwen3: the assistant thinks before it answers");
}

void describe(Group& group, Batch& b) {
  group.add("per_rank", b.per_rank, "per rank and micro-batch; 0: the most that memory allows")
      .unit("sequences")
      .at_least(0)
      .at_most(1 << 24);
  group
      .add("global", b.global,
           "of one optimizer step over all ranks; 0: per_rank x ranks x accumulation")
      .unit("sequences or samples")
      .at_least(0)
      .at_most(largest_global);
  group
      .add("global_start", b.global_start,
           "rows of the first step, which grow to global by multiples of it; 0: no growth")
      .at_least(0)
      .at_most(largest_global);
  group.add("growth_steps", b.growth_steps, "steps over which they grow").unit("steps").at_least(0);
  group
      .add(
          "unit", b.unit,
          "what global counts: rows, or samples packed in them, of which whole rows hold global on "
          "average")
      .one_of({"rows", "samples"});
  group.add("accumulation", b.accumulation, "of one optimizer step; 0: what global needs")
      .unit("micro-batches")
      .at_least(0)
      .at_most(1 << 24);
  group
      .add("preset", b.preset,
           "per_rank / global: 64/256, 128/512, 192/768, 256/1024; none: as given")
      .one_of({"none", "conservative", "recommended", "aggressive", "extreme"});
}

void describe(Group& group, Optimizer& o) {
  group
      .add("kind", o.kind,
           "the update; muon: of the blocks' matrices, with adamw for embeddings, head and vectors")
      .one_of({"adamw", "muon"});
  group.add("lr", o.lr, "highest learning rate").above(0);
  group
      .add("lr_rule", o.lr_rule,
           "sqrt: 3e-4 sqrt(global / 128); table: 3e-4, 4e-4, 5e-4, 6e-4, 7e-4 at 128, 256, 512, "
           "768, "
           "1024; none: lr")
      .one_of({"none", "sqrt", "table"});
  group.add("betas", o.betas, "decay of the first and second moments").at_least(0).below(1);
  group.add("eps", o.eps, "added to the root of the second moment").above(0).below(1);
  group.add("weight_decay", o.weight_decay, "decoupled, on matrices only").at_least(0);
  group.add("grad_clip", o.grad_clip, "largest global norm of the gradient; 0: off").at_least(0);
  group
      .add("schedule", o.schedule, "of the learning rate after the warmup; wsd: stable, then decay")
      .one_of({"cosine", "linear", "wsd", "constant"});
  group.add("warmup_steps", o.warmup_steps, "linear rise from 0 to lr").unit("steps").at_least(0);
  group.add("min_lr", o.min_lr, "learning rate at the end of the schedule").at_least(0);
  group
      .add("decay_fraction", o.decay_fraction,
           "wsd: fraction of max_steps over which the rate falls")
      .at_least(0)
      .at_most(1);
  group
      .add("ema", o.ema,
           "decay of the average of the weights that is evaluated, sampled, exported and "
           "loaded; 0: none")
      .at_least(0)
      .below(1);
  group
      .add("matrix_lr", o.matrix_lr,
           "muon: highest rate of the blocks' matrices, scheduled in proportion to lr; 0: lr")
      .at_least(0);
  group.add("embed_lr", o.embed_lr, "muon: the same of embeddings; 0: lr").at_least(0);
  group.add("head_lr", o.head_lr, "muon: the same of an untied head and of vectors; 0: embed_lr")
      .at_least(0);
  group.add("momentum", o.momentum, "muon: decay of the momentum (Nesterov's)")
      .at_least(0)
      .below(1);
  group
      .add("muon_scale", o.muon_scale,
           "muon: of a step; original: sqrt(max(1, rows / columns)); match_rms_adamw: "
           "0.2 sqrt(max(rows, columns))")
      .one_of({"original", "match_rms_adamw"});
}

void describe(Group& group, Precision& p) {
  group
      .add("compute", p.compute,
           "masters are float32; tf32, fp8: operands of products, what is stored being fp32, bf16")
      .one_of({"fp32", "tf32", "bf16", "fp16", "fp8"});
  group
      .add("recompute", p.recompute,
           "block: keep block inputs only, run each block again in backward")
      .one_of(recomputations);
  group
      .add("products", p.products,
           "algorithms of products on GPUs: timed once per shape (products.txt in ~/.cache/tern), "
           "or "
           "cuBLASLt's first")
      .one_of({"fastest", "first"});
  group
      .add("loss_scale", p.loss_scale,
           "fp16: first factor of the loss, a power of two; halved at a step whose gradient "
           "overflows")
      .at_least(1)
      .at_most(largest_loss_scale);
  group
      .add("loss_scale_steps", p.loss_scale_steps,
           "fp16: applied steps in a row after which the factor doubles; 0: it never does")
      .unit("steps")
      .at_least(0);
}

void describe(Group& group, Parallel& p) {
  group.add("data", p.data, "parts of the batch; 0: all ranks")
      .unit("ranks")
      .at_least(0)
      .at_most(1 << 20);
  group.add("tensor", p.tensor, "parts of each layer").unit("ranks").at_least(1).at_most(1 << 20);
  group.add("pipeline", p.pipeline, "parts of the stack of layers")
      .unit("ranks")
      .at_least(1)
      .at_most(1 << 20);
  group.add("shard", p.shard, "what data-parallel ranks divide among them")
      .one_of({"none", "optimizer", "full"});
  group
      .add("wait_minutes", p.wait_minutes,
           "how long a rank may wait for others before all end; 24 times as long during work on "
           "files; 0: "
           "no limit")
      .unit("minutes")
      .at_least(0);
}

}  // namespace tern::deck::detail
