#include "deck/choices.hpp"
#include "deck/detail/table.hpp"

namespace tern::deck::detail {

void describe(Group& group, Campaign& c) {
  group.add("name", c.name, "name of the run and of its directory under runs/");
  group.add("task", c.task, "what to do").one_of(tasks);
  group.add("max_steps", c.max_steps, "length of the run and of the schedule; 0: set by max_hours")
      .unit("optimizer steps")
      .at_least(0)
      .at_most(1000000000);
  group
      .add("epochs", c.epochs,
           "passes over the training samples, from which max_steps follows (rounded up); 0: set by "
           "max_steps")
      .at_least(0)
      .at_most(1000000);
  group
      .add("max_hours", c.max_hours,
           "wall time after which the run saves and stops; with max_steps = 0 the schedule's "
           "length; 0: no limit")
      .unit("hours")
      .at_least(0);
  group.add("seed", c.seed, "random seed of initialization, data order, dropout and sampling")
      .at_least(0);
}

void describe(Group& group, Checkpoint& c) {
  group.add("every", c.every, "steps between checkpoints; 0: only at the end")
      .unit("steps")
      .at_least(0);
  group.add("keep", c.keep, "number of newest checkpoints to keep").at_least(1);
  group.add("keep_best", c.keep_best, "also keep the checkpoint with the lowest validation loss");
}

void describe(Group& group, Evaluation& e) {
  group.add("every", e.every, "steps between evaluations; 0: only at the end")
      .unit("steps")
      .at_least(0);
  group
      .add("rows", e.rows,
           "validation rows to score: always the first ones, or all if there are fewer")
      .at_least(1)
      .at_most(1e9);
  group.add("target_loss", e.target_loss, "validation loss at which the run stops; 0: none")
      .unit("nats")
      .at_least(0);
  group
      .add("problems", e.problems,
           "samples: problems of &data valid to solve at each evaluation, for exact match; 0: none")
      .at_least(0)
      .at_most(1e9);
  group
      .add("patience", e.patience,
           "evaluations without improvement before the run stops; 0: no early stopping")
      .at_least(0);
  group.add("reference", e.reference,
            "answers of another run to the same requests, to compare with; empty: none");
  group.add("compare_with", e.compare_with,
            "directories of other runs, whose last validation losses are compared with this run's");
  group.add("baseline", e.baseline,
            "refinement: run whose validation loss the last answer must beat for a good verdict");
}

void describe(Group& group, Generation& g) {
  group.add("prompt", g.prompt, "text to continue; in training, at each evaluation")
      .may_hold_lines();
  group.add("checkpoint", g.checkpoint,
            "weights to use, except in training: 'best' (the newest if none is marked as best), "
            "'newest', or a path");
  group.add("samples", g.samples, "continuations of the prompt; 0: none (no memory is reserved)")
      .at_least(0)
      .at_most(1 << 20);
  group
      .add("max_tokens", g.max_tokens,
           "length of a continuation; samples: set by plan_tokens and execution_tokens instead")
      .unit("tokens")
      .at_least(1)
      .at_most(1 << 24);
  group.add("temperature", g.temperature, "sampling temperature; 0: greedy").at_least(0);
  group.add("top_p", g.top_p, "nucleus sampling: probability mass of the candidates")
      .above(0)
      .at_most(1);
  group.add("top_k", g.top_k, "number of most probable candidates; 0: all")
      .at_least(0)
      .at_most(1 << 24);
  group
      .add(
          "sampler", g.sampler,
          "block_diffusion: first_hitting unmasks one token per step; ddpm a random number of them")
      .one_of(samplers);
  group
      .add("denoising_steps", g.denoising_steps,
           "block_diffusion, ddpm: steps per block; 0: one per token")
      .unit("steps")
      .at_least(0)
      .at_most(1 << 24);
  group.add("batch", g.batch, "input: requests answered at once; block_diffusion: problems")
      .unit("sequences")
      .at_least(1)
      .at_most(1 << 16);
  group.add("given_plan", g.given_plan,
            "hdp: solve problems with the plan given in the data; the model generates only the "
            "execution");
  group
      .add("refine", g.refine,
           "refinement: refinements after the first answer; -1: as trained, supervision_steps - 1")
      .at_least(-1)
      .at_most(1024);
  group.add("input", g.input,
            "file of requests: one text per line, or JSON lines with \"text\"; empty: continue the "
            "prompt");
  group.add(
      "prompt_template", g.prompt_template,
      "input: file in which {text} is replaced by the text of the request; empty: only the text");
  group.add("output", g.output,
            "input: file of answers, JSON lines of chat messages; empty: answers.jsonl in the run "
            "directory");
  group.add("pattern", g.pattern,
            "input: PCRE2 pattern that an answer must match; its first group, if any, is kept; "
            "empty: any");
  group.add("stop", g.stop,
            "input: texts that end an answer and are removed from it; if set, answers that reach "
            "max_tokens are rejected");
  group
      .add("memory_utilization", g.memory_utilization,
           "input: fraction of device memory for weights, workspace and cache together")
      .above(0)
      .at_most(1);
  group.add("max_model_len", g.max_model_len, "input: largest sum of prompt and answer")
      .unit("tokens")
      .at_least(2)
      .at_most(1 << 24);
  group
      .add("prefill_tokens", g.prefill_tokens,
           "input: largest prefill chunk: prompt tokens per pass")
      .unit("tokens")
      .at_least(1)
      .at_most(1 << 20);
  group.add("prefix_cache", g.prefix_cache,
            "input: compute common beginnings of prompts only once");
  group
      .add("quantization", g.quantization,
           "input: fp8 (E4M3) weights in linear layers except experts; fp8_dynamic: fp8 "
           "activations as well")
      .one_of(quantizations);
  group
      .add("cache_quantization", g.cache_quantization,
           "input: fp8 (E4M3) keys and values, with a scale per token and head")
      .one_of(cache_quantizations);
}

void describe(Group& group, Output& o) {
  group.add("directory", o.directory,
            "directory of log, metrics, report and checkpoints; empty: runs/NAME");
  group.add("log_every", o.log_every, "steps between lines of the log").unit("steps").at_least(1);
  group
      .add("skip_limit", o.skip_limit,
           "consecutive steps skipped for a non-finite loss or gradient before the run stops")
      .unit("steps")
      .at_least(1);
  group.add("profile", o.profile, "step whose operations are timed, into profile/; 0: none")
      .unit("step")
      .at_least(0);
}

void describe(Group& group, Cost& c) {
  group
      .add("dollars_per_gpu_hour", c.dollars_per_gpu_hour,
           "price of a device; 0: no cost is reported")
      .unit("US dollars")
      .at_least(0);
  group
      .add("peak_tflops", c.peak_tflops,
           "peak rate of one device, for MFU; 0: taken from the data sheet, if known")
      .unit("TFLOP/s")
      .at_least(0);
}

}  // namespace tern::deck::detail
