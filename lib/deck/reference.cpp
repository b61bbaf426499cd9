#include <fmt/format.h>

#include <string_view>

#include "deck/deck.hpp"
#include "deck/detail/assign.hpp"

namespace tern::deck {
namespace {

using namespace detail;

constexpr const char* opening = R"(# Deck reference

A deck is a file in Fortran namelist syntax. Python's f90nml reads it to the same values.

- A group opens with `&name` and closes with `/`. Each group appears at most once; omitted values keep their
  defaults.
- Values are set with `name = value`, one or several per line, with or without commas in between. Names of groups
  and values are not case-sensitive.
- Integers: `1000`; reals: `0.1`, `6e-4`, `1d-3`; logicals: `.true.`, `.false.` (also `T`, `F`, `true`, `false`);
  strings: in `'` or `"`, with quotes inside doubled: `'it''s'`.
- Lists are separated by commas or blanks: `betas = 0.9, 0.95`. `3*0.5` repeats a value; `betas(2) = 0.95` sets one
  element.
- `!` starts a comment, except in strings. Text is UTF-8.
- `--set group.name=value` overrides a value on the command line; strings need no quotes there.

All mistakes are reported at once, as `file:line:column: group.name: problem; remedy`.

This page is generated from the schema (`deck::reference()`).
)";

/// What a line of help cannot hold.
struct Note {
  std::string_view group, field, text;
};
constexpr Note notes[] = {
    {"model", "inner_steps",
     "with x the embedded tokens, y the answer, z the latent state and f the blocks with the final "
     "norm, each answer takes n passes z <- f(x + y + z), then one y <- f(y + z). Gradients flow "
     "through all of these passes."},
    {"model", "recursion",
     "with `'block'`, each block b in turn makes n passes z <- z + b(norm(x + y + z)), then one y "
     "<- y + b(norm(y + z)); the final norm of y comes last."},
    {"model", "initial_states",
     "what y and z start from before the first answer: learned vectors, shared by all tokens, or y "
     "= x and z = 0."},
    {"model", "skip_connections",
     "for i from 0 to floor((L - 1) / 2) - 1 of L layers, with scalars that start at 1. The "
     "innermost two of an even number of layers are neighbors and are not connected; "
     "modded-nanogpt connects them as well (architecture.md)."},
    {"model", "window",
     "evaluations always use this window, also while it still grows in training."},
    {"model", "window_start",
     "step s < window_steps (counting from 0) has a window of window_start + 64 floor((w - "
     "window_start) s / (64 window_steps)) tokens, where w is window, or context if window = 0; "
     "later steps have window."},
    {"model", "dropout",
     "applies to the sum of embeddings and to what each half of a block adds to the residual "
     "stream, not to attention probabilities. `load` does not change it: attention_dropout, "
     "embd_pdrop and resid_pdrop of a config.json belong to another training run."},
    {"objective", "clip_search",
     "of all intervals 0.5 to 0.9 wide, in steps of 0.05, the one with the least variance of the "
     "losses of the evaluated blocks."},
    {"objective", "supervision_steps",
     "S answers; answer s starts from the y and z of answer s - 1. With L_s the mean loss of "
     "answer s, the training loss is sum_s w_s L_s minus reward x the mean (or the sum: "
     "reward_over) over s >= 1 of (L_(s-1) - L_s) / L_(s-1), where w_s = weight_base^s / sum_k "
     "weight_base^k and L_(s-1) is a constant for gradients. Improvements are computed per "
     "sequence and averaged."},
    {"objective", "detach_from",
     "gradients flow through y and z between answers 0 to detach_from. Later answers take y and z "
     "as constants, and the backward pass of each follows its forward pass. With 0 no gradient "
     "flows from one answer to another. x gets gradients from all answers."},
    {"batch", "global_start",
     "step s < growth_steps (counting from 0) has global_start (1 + floor(s (global / global_start "
     "- 1) / growth_steps)) rows; later steps have global."},
    {"optimizer", "ema",
     "after update n (counting from 1), average <- d average + (1 - d) weights with d = min(ema, "
     "(1 + n) / (10 + n)), starting from the initial weights. A skipped step is not an update. "
     "Evaluations, samples, --prompt, --export and `load` use the average; a resumed run continues "
     "with both."},
    {"precision", "compute",
     "fp8: each GEMM operand is scaled by the largest power of two, at most 2^60, that keeps its "
     "largest magnitude within 448 (E4M3: inputs, weights) or 57344 (E5M2: gradients)."},
    {"evaluation", "rows",
     "does not depend on per_rank or the number of ranks, and neither does what evaluations "
     "decide: the best checkpoint, patience, the clip interval."},
    {"evaluation", "compare_with",
     "compared at the end of training, in the report, and with task = 'evaluate'. When a file is "
     "answered: directories whose evaluation.json become rows of the table of scores."},
};

/// Text escaped for a table cell.
std::string cell(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '|' ? "\\|" : std::string(1, c);
  return result;
}

std::string code(const std::string& text) {
  return text.empty() ? std::string() : fmt::format("`{}`", cell(text));
}

std::string allowed(const Field& field) {
  if (field.choices.empty()) return range_of(field);
  std::string list;
  for (const std::string& choice : field.choices)
    list += (list.empty() ? "`'" : ", `'") + choice + "'`";
  return list;
}

}  // namespace

std::string reference() {
  Deck defaults;
  std::string text = opening;
  for (const Group& group : describe(defaults).groups) {
    text += fmt::format("\n## &{}\n\n{}\n\n", group.name, group.help);
    text += "| name | type | default | allowed | unit | meaning |\n|---|---|---|---|---|---|\n";
    for (const Field& field : group.fields)
      text += fmt::format("| `{}` | {} | {} | {} | {} | {} |\n", field.name, type_of(field),
                          code(text_of(field)), allowed(field), field.units, cell(field.help));
    std::string more;
    for (const Note& note : notes)
      if (note.group == group.name) more += fmt::format("- `{}`: {}\n", note.field, note.text);
    if (!more.empty()) text += "\n" + more;
  }
  return text;
}

}  // namespace tern::deck
