#include "deck/detail/table.hpp"

namespace tern::deck::detail {

void describe(Group& group, Campaign& c) {
  group.add("name", c.name, "of the run, and of its directory under runs/");
  group.add("task", c.task, "what to do").one_of({"train", "evaluate", "generate"});
  group.add("max_steps", c.max_steps, "length of the run and of the schedule; 0: max_hours is")
      .unit("optimizer steps")
      .at_least(0)
      .at_most(1000000000);
  group
      .add("epochs", c.epochs,
           "passes over the training samples, from which max_steps follows, rounded up; 0: none")
      .at_least(0)
      .at_most(1000000);
  group
      .add("max_hours", c.max_hours,
           "wall time after which the run saves and stops, also the schedule's if max_steps = 0; "
           "0: no limit")
      .unit("hours")
      .at_least(0);
  group.add("seed", c.seed, "of initialization, data order, dropout and sampling").at_least(0);
}

void describe(Group& group, Checkpoint& c) {
  group.add("every", c.every, "between checkpoints; 0: only at the end").unit("steps").at_least(0);
  group.add("keep", c.keep, "newest checkpoints kept").at_least(1);
  group.add("keep_best", c.keep_best, "also keep the checkpoint with the lowest validation loss");
}

void describe(Group& group, Evaluation& e) {
  group.add("every", e.every, "between evaluations; 0: only at the end").unit("steps").at_least(0);
  group
      .add("rows", e.rows,
           "of the validation set that are scored: always its first ones, or "
           "all if it has fewer")
      .at_least(1)
      .at_most(1e9);
  group.add("target_loss", e.target_loss, "validation loss at which the run stops; 0: none")
      .unit("nats")
      .at_least(0);
  group
      .add("problems", e.problems,
           "samples: problems of &data valid solved at an evaluation, for exact match; 0: none")
      .at_least(0)
      .at_most(1e9);
  group.add("patience", e.patience, "evaluations without improvement before the run stops; 0: any")
      .at_least(0);
  group.add("reference", e.reference,
            "answers of another run to the same requests, to agree with; empty: none");
  group.add("beside", e.beside,
            "directories of other runs, whose last validation losses are stated next to this "
            "one's");
  group.add("baseline", e.baseline,
            "refinement: directory of a run whose validation loss a good verdict's last answer is "
            "below");
}

void describe(Group& group, Generation& g) {
  group.add("prompt", g.prompt, "text to continue; a training run does so at each evaluation")
      .may_hold_lines();
  group.add("checkpoint", g.checkpoint,
            "weights, except in training: 'best' of the run (where none is marked, the newest), "
            "'newest', or a path");
  group.add("samples", g.samples, "continuations of the prompt; 0: none, and no memory for them")
      .at_least(0)
      .at_most(1 << 20);
  group
      .add("max_tokens", g.max_tokens,
           "length of a continuation; samples: their plan and execution have lengths of their own")
      .unit("tokens")
      .at_least(1)
      .at_most(1 << 24);
  group.add("temperature", g.temperature, "divides the logits; 0: greedy").at_least(0);
  group.add("top_p", g.top_p, "least probability mass the candidates hold").above(0).at_most(1);
  group.add("top_k", g.top_k, "most candidates; 0: all").at_least(0).at_most(1 << 24);
  group
      .add("sampler", g.sampler,
           "block_diffusion: first_hitting unmasks one token per step, ddpm some of them")
      .one_of({"first_hitting", "ddpm"});
  group
      .add("denoising_steps", g.denoising_steps,
           "block_diffusion, ddpm: of a block; 0: as many as it has tokens")
      .unit("steps")
      .at_least(0)
      .at_most(1 << 24);
  group.add("batch", g.batch, "input: requests answered together; block_diffusion: problems")
      .unit("sequences")
      .at_least(1)
      .at_most(1 << 16);
  group.add(
      "given_plan", g.given_plan,
      "hdp: problems are solved under the plan in the data; the model writes only the execution");
  group
      .add("refine", g.refine,
           "refinement: how often the first answer is refined; -1: as trained, supervision_steps - "
           "1")
      .at_least(-1)
      .at_most(1024);
  group.add(
      "input", g.input,
      "file of requests to answer: one text per line, or JSON lines with \"text\"; empty: the "
      "prompt is continued");
  group.add("prompt_template", g.prompt_template,
            "input: file in which {text} stands for a request's text; empty: only the text");
  group.add("output", g.output,
            "input: file of the answers, JSON lines of chat messages; empty: answers.jsonl in the "
            "run's directory");
  group.add(
      "pattern", g.pattern,
      "input: PCRE2 that a good answer matches; its first group, if any, is kept; empty: any");
  group.add("stop", g.stop,
            "input: texts that end an answer, and are not part of it; where given, one that "
            "max_tokens ends is rejected");
  group
      .add("memory_utilization", g.memory_utilization,
           "input: fraction of the device's memory for weights, workspace and cache together")
      .above(0)
      .at_most(1);
  group.add("max_model_len", g.max_model_len, "input: longest prompt and answer together")
      .unit("tokens")
      .at_least(2)
      .at_most(1 << 24);
  group.add("prefill_tokens", g.prefill_tokens, "input: most prompt tokens per pass")
      .unit("tokens")
      .at_least(1)
      .at_most(1 << 20);
  group.add("prefix_cache", g.prefix_cache,
            "input: common beginnings of prompts are computed once");
  group
      .add("quantization", g.quantization,
           "input: E4M3 for weights of linear maps but experts'; fp8_dynamic: for inputs, too")
      .one_of({"none", "fp8", "fp8_dynamic"});
  group
      .add("cache_quantization", g.cache_quantization,
           "input: fp8: E4M3 for keys and values, with a scale per token and head")
      .one_of({"none", "fp8"});
}

void describe(Group& group, Output& o) {
  group.add("directory", o.directory, "of log, metrics, report and checkpoints; empty: runs/NAME");
  group.add("log_every", o.log_every, "between lines of the log").unit("steps").at_least(1);
  group
      .add(
          "skip_limit", o.skip_limit,
          "steps skipped in a row, for a loss or gradient that is not finite, before the run stops")
      .unit("steps")
      .at_least(1);
  group.add("profile", o.profile, "whose operations are timed, into profile/; 0: none")
      .unit("step")
      .at_least(0);
}

void describe(Group& group, Cost& c) {
  group
      .add("dollars_per_gpu_hour", c.dollars_per_gpu_hour,
           "price of a device; 0: no cost is stated")
      .unit("US dollars")
      .at_least(0);
  group.add("peak_tflops", c.peak_tflops, "of one device, for MFU; 0: looked up, or unknown")
      .unit("TFLOP/s")
      .at_least(0);
}

}  // namespace tern::deck::detail
