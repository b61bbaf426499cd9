#include <fmt/format.h>

#include <algorithm>

#include "deck/detail/assign.hpp"

namespace tern::deck::detail {
namespace {

/// Adds mistakes that involve several fields. One is left out if any of its fields is known to be
/// wrong already; its place is that of the first field that the user wrote.
class Contradictions {
 public:
  Contradictions(Table& table, Errors& errors) : table_(table), errors_(errors) {}

  /// `names` are the fields involved, "group.name", the one to be blamed first.
  void check(bool wrong, std::initializer_list<const char*> names, const std::string& text) {
    if (!wrong) return;
    const Field* blamed = nullptr;
    for (const std::string_view name : names) {
      const auto dot = name.find('.');
      const Field& field = table_.at(name.substr(0, dot), name.substr(dot + 1));
      if (field.invalid) return;
      if (!blamed && field.given) blamed = &field;
    }
    errors_.add(blamed ? blamed->place : Place{}, fmt::format("{}: {}", *names.begin(), text));
  }

 private:
  Table& table_;
  Errors& errors_;
};

/// Whether a is no multiple of b; not where b is 0, which stands for a default.
bool uneven(std::int64_t a, std::int64_t b) { return b > 0 && a % b != 0; }

void check_model(const Model& m, Contradictions& c) {
  c.check(m.head_dim == 0 && uneven(m.hidden, m.heads),
          {"model.heads", "model.hidden", "model.head_dim"},
          fmt::format("{} heads do not divide hidden = {}; change one, or give head_dim", m.heads,
                      m.hidden));
  c.check(uneven(m.heads, m.kv_heads), {"model.kv_heads", "model.heads"},
          fmt::format("{} kv_heads do not divide {} heads; write a divisor of heads, or 0",
                      m.kv_heads, m.heads));
  const bool divides = m.heads > 0 && m.hidden % m.heads == 0;
  const std::int64_t head_dim = m.head_dim > 0 ? m.head_dim : divides ? m.hidden / m.heads : 0;
  c.check(m.position == "rope" && head_dim % 2 != 0,
          {m.head_dim > 0 ? "model.head_dim" : "model.heads", "model.hidden", "model.position"},
          fmt::format("position = 'rope' rotates pairs, but a head has size {}; make it even",
                      head_dim));
}

void check_sizes(const Deck& d, Contradictions& c) {
  struct Least {
    const char* tokenizer;
    std::int64_t tokens;
  };
  for (const Least& least : {Least{"gpt2", 50257}, Least{"bytes", 257}})
    c.check(d.data.tokenizer == least.tokenizer && d.model.vocabulary < least.tokens,
            {"model.vocabulary", "data.tokenizer"},
            fmt::format("{} is less than the {} tokens of tokenizer '{}'; write at least that",
                        d.model.vocabulary, least.tokens, least.tokenizer));
  const Batch& b = d.batch;
  c.check(b.global > 0 && uneven(b.global, b.per_rank), {"batch.global", "batch.per_rank"},
          fmt::format("{} sequences are no multiple of per_rank = {}; write one, or 0", b.global,
                      b.per_rank));
  const std::int64_t unit = std::max<std::int64_t>(b.per_rank, 1) * d.parallel.data;
  c.check(
      !uneven(b.global, b.per_rank) && uneven(b.global, unit),
      {"batch.global", "parallel.data", "batch.per_rank"},
      fmt::format("{} sequences are no multiple of {}parallel.data = {}; write one, or 0", b.global,
                  b.per_rank > 0 ? fmt::format("per_rank = {} times ", b.per_rank) : std::string(),
                  d.parallel.data));
  c.check(
      d.precision.compute == "fp32" && d.model.attention == "cudnn",
      {"model.attention", "precision.compute"},
      "cuDNN's attention does not compute in fp32; write attention = 'auto', or compute = 'bf16'");
}

void check_schedule(const Deck& d, Contradictions& c) {
  const Optimizer& o = d.optimizer;
  const std::int64_t steps = d.campaign.max_steps;
  c.check(o.betas.size() != 2, {"optimizer.betas"},
          fmt::format("{} values; write two, as 0.9, 0.95", o.betas.size()));
  c.check(o.warmup_steps > steps, {"optimizer.warmup_steps", "campaign.max_steps"},
          fmt::format("{} is more than campaign.max_steps = {}; shorten the warmup", o.warmup_steps,
                      steps));
  c.check(o.min_lr > o.lr, {"optimizer.min_lr", "optimizer.lr"},
          fmt::format("{} is above lr = {}; lower it", text_of(o.min_lr), text_of(o.lr)));
  const double decay = o.decay_fraction * static_cast<double>(steps);
  c.check(o.schedule == "wsd" && o.warmup_steps <= steps &&
              static_cast<double>(o.warmup_steps) + decay > static_cast<double>(steps),
          {"optimizer.decay_fraction", "optimizer.warmup_steps", "campaign.max_steps",
           "optimizer.schedule"},
          fmt::format("warmup_steps = {} and a decay over {} of {} steps overlap; shorten one",
                      o.warmup_steps, text_of(o.decay_fraction), steps));
}

void check_run(const Deck& d, Contradictions& c) {
  const Evaluation& e = d.evaluation;
  c.check(e.every == 0 && e.patience > 0, {"evaluation.patience", "evaluation.every"},
          "early stopping needs evaluations, but every = 0; write every > 0, or patience = 0");
  c.check(e.every == 0 && e.target_loss > 0, {"evaluation.target_loss", "evaluation.every"},
          "a target needs evaluations, but every = 0; write every > 0, or target_loss = 0");
  c.check(d.campaign.task == "generate" && d.generation.samples == 0,
          {"generation.samples", "campaign.task"},
          "task = 'generate' with 0 samples would do nothing; write 1 or more");
  c.check(d.campaign.name.empty() && d.output.directory.empty(),
          {"campaign.name", "output.directory"},
          "empty, and output.directory too; give the run a name");
  c.check(d.campaign.name.find('/') != std::string::npos && d.output.directory.empty(),
          {"campaign.name", "output.directory"},
          "holds a '/', but names a directory under runs/; remove it, or give output.directory");
}

}  // namespace

void check_contradictions(const Deck& deck, Table& table, Errors& errors) {
  Contradictions c(table, errors);
  check_model(deck.model, c);
  check_sizes(deck, c);
  check_schedule(deck, c);
  check_run(deck, c);
}

void check_files(const Deck& deck, Table& table, Errors& errors) {
  Contradictions c(table, errors);
  const std::string& task = deck.campaign.task;
  c.check(task == "train" && deck.data.train.empty(), {"data.train", "campaign.task"},
          "task = 'train' needs token shards; write train = 'data/NAME/train_*.bin'");
  c.check(task != "generate" && deck.data.valid.empty(), {"data.valid", "campaign.task"},
          fmt::format("task = '{}' needs token shards to evaluate on; write valid = "
                      "'data/NAME/valid_*.bin'",
                      task));
}

}  // namespace tern::deck::detail
