#include "deck/detail/table.hpp"

namespace tern::deck::detail {

void describe(Group& group, Objective& o) {
  group.add("kind", o.kind, "what is predicted")
      .one_of({"causal", "block_diffusion", "refinement", "supervised"});
  group.add("z_loss", o.z_loss, "weight of the squared log of the softmax's denominator; 0: off")
      .at_least(0);
}

void describe(Group& group, Data& d) {
  group.add("train", d.train, "token shards to train on; wildcards allowed");
  group.add("valid", d.valid, "token shards to evaluate on; wildcards allowed");
  group.add("tokenizer", d.tokenizer,
            "'gpt2', 'bytes', a folder made by prepare, or a tokenizer.json");
  group.add("threads", d.threads, "threads that read and prefetch batches")
      .at_least(1)
      .at_most(1024);
}

void describe(Group& group, Batch& b) {
  group.add("per_rank", b.per_rank, "of one micro-step on a rank; 0: the most that memory allows")
      .unit("sequences")
      .at_least(0)
      .at_most(1 << 24);
  group.add("global", b.global, "of one optimizer step over all ranks; 0: per_rank x ranks")
      .unit("sequences")
      .at_least(0)
      .at_most(1 << 30);
  group.add("preset", b.preset, "a named batch plan; 'none': per_rank and global as given");
}

void describe(Group& group, Optimizer& o) {
  group.add("kind", o.kind, "the update").one_of({"adamw", "muon"});
  group.add("lr", o.lr, "highest learning rate").above(0);
  group.add("betas", o.betas, "decay of the first and second moments").at_least(0).below(1);
  group.add("eps", o.eps, "added to the root of the second moment").above(0).below(1);
  group.add("weight_decay", o.weight_decay, "decoupled, on matrices only").at_least(0);
  group.add("grad_clip", o.grad_clip, "largest global norm of the gradient; 0: off").at_least(0);
  group
      .add("schedule", o.schedule, "of the learning rate after the warmup; wsd: stable, then decay")
      .one_of({"cosine", "linear", "wsd", "constant"});
  group.add("warmup_steps", o.warmup_steps, "linear rise from 0 to lr").unit("steps").at_least(0);
  group.add("min_lr", o.min_lr, "learning rate at the end of the schedule").at_least(0);
  group.add("decay_fraction", o.decay_fraction, "wsd: share of max_steps over which the rate falls")
      .at_least(0)
      .at_most(1);
}

void describe(Group& group, Precision& p) {
  group.add("compute", p.compute, "type of activations and products; masters are always float32")
      .one_of({"fp32", "bf16", "fp16", "fp8"});
  group
      .add("recompute", p.recompute,
           "block: keep block inputs only, run each block again in backward")
      .one_of({"none", "block"});
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
}

}  // namespace tern::deck::detail
