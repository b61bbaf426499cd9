#include "generate/detail/scheduler.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace tern::generate::detail {
namespace {

std::int32_t number(std::size_t value) { return static_cast<std::int32_t>(value); }

std::size_t parts(std::size_t whole, std::size_t part) { return (whole + part - 1) / part; }

}  // namespace

void Pass::clear() {
  for (auto* list : {&tokens, &positions, &table_of, &places, &tables, &drawn, &ids, &numbers})
    list->clear();
  first_splits = {0};
  segments.clear();
  splits.clear();
  tiles.clear();
  singles = 0;
}

Scheduler::Scheduler(const EngineOptions& options, std::size_t page_tokens, std::size_t vocabulary)
    : options_(options),
      vocabulary_(vocabulary),
      pool_(options.pages, page_tokens, options.prefix_cache),
      micro_batches_(options.micro_batches) {
  TERN_REQUIRE(options.batch > 0 && options.prefill_tokens > 0 && options.pages > 0 &&
                   options.micro_batches > 0,
               "batch {}, prefill_tokens {}, pages {}, micro_batches {}", options.batch,
               options.prefill_tokens, options.pages, options.micro_batches);
  const std::size_t n = options.micro_batches;
  for (std::size_t i = 0; i < n; ++i)
    micro_batches_[i].most = options.batch / n + (i < options.batch % n ? 1 : 0);
}

std::size_t Scheduler::running() const {
  std::size_t all = 0;
  for (const MicroBatch& one : micro_batches_) all += one.running.size();
  return all;
}

/// Tiles begin at multiples of tile_rows in a sequence: at most r / tile_rows + 2 for r rows.
Scheduler::Limits Scheduler::limits(const EngineOptions& options, std::size_t page_tokens) {
  const std::size_t requests = parts(options.batch, options.micro_batches);
  const std::size_t rows = requests + options.prefill_tokens;
  const std::size_t length = options.max_model_len;
  return {rows,
          requests,
          requests * parts(length, page_tokens),
          requests * parts(length, ops::PagedRows::split_keys),
          rows / ops::PagedRows::tile_rows + 2 * requests,
          requests};
}

std::size_t Scheduler::pages_for(std::size_t tokens) const {
  return parts(tokens, pool_.page_tokens());
}

// ---- requests ----

std::string Scheduler::refusal(const Request& request) const {
  const std::size_t prompt = request.prompt.size();
  if (prompt == 0) return "its prompt is empty; give at least one token";
  for (const std::int32_t token : request.prompt)
    if (token < 0 || static_cast<std::size_t>(token) >= vocabulary_)
      return fmt::format("its prompt has token {}, outside the model's vocabulary of {}", token,
                         vocabulary_);
  const std::size_t all = prompt + request.max_new;
  if (all > options_.max_model_len)
    return fmt::format(
        "its prompt of {} tokens and {} new ones exceed max_model_len = {}; shorten it, lower "
        "max_tokens or raise max_model_len",
        prompt, request.max_new, options_.max_model_len);
  if (pages_for(all) > pool_.pages())
    return fmt::format(
        "its prompt of {} tokens and {} new ones exceed the {} that the key-value cache holds; "
        "shorten it, lower max_tokens or raise memory_utilization",
        prompt, request.max_new, pool_.pages() * pool_.page_tokens());
  return {};
}

void Scheduler::submit(Request request) {
  ++stats_.submitted;
  if (std::string reason = refusal(request); !reason.empty()) {
    ++stats_.refused;
    answers_.push_back({request.id, {}, FinishReason::refused, std::move(reason)});
    return;
  }
  if (request.max_new == 0) {
    answers_.push_back({request.id, {}, FinishReason::length, {}});
    return;
  }
  auto sequence = std::make_unique<Sequence>();
  sequence->tokens = request.prompt;
  sequence->request = std::move(request);
  waiting_.push_back(std::move(sequence));
}

// ---- the rows of a pass ----

/// Makes room for `rows` more tokens of a running sequence, preempting later ones of its micro-batch
/// if needed; those of others are in flight. Returns false if it was itself preempted.
bool Scheduler::extend(std::size_t index, std::size_t rows) {
  const std::vector<Owned>& running = current().running;
  Sequence& sequence = *running[index];
  const std::size_t pages = pages_for(sequence.stored + rows);
  while (sequence.pages.size() < pages) {
    if (pool_.available() > 0) {
      sequence.pages.push_back(pool_.take());
      continue;
    }
    const bool last = index + 1 == running.size();
    preempt();
    if (last) return false;
  }
  return true;
}

/// Whether the cache has a place for one more token without preemption.
bool Scheduler::has_page(const Sequence& sequence) const {
  return pages_for(sequence.stored + 1) <= sequence.pages.size() || pool_.available() > 0;
}

/// Preempts the request admitted last, which waits before all others. Its tokens stay; its pages may
/// be found again.
void Scheduler::preempt() {
  Owned sequence = std::move(current().running.back());
  current().running.pop_back();
  pool_.release(sequence->pages);
  sequence->pages.clear();
  sequence->stored = sequence->hashed_pages = 0;
  sequence->content = 0;
  sequence->prefilling = true;
  waiting_.push_front(std::move(sequence));
  ++stats_.preemptions;
}

/// Admits the next request if the cache has room for all of its tokens plus one page per running
/// request, its own included. At least the last token is computed, for its logits.
bool Scheduler::admit() {
  MicroBatch& batch = current();
  if (waiting_.empty() || batch.running.size() >= batch.most) return false;
  Sequence& sequence = *waiting_.front();
  const std::size_t P = pool_.page_tokens();
  PagePool::Found found = pool_.find(sequence.tokens, (sequence.tokens.size() - 1) / P);
  const std::size_t needed = pages_for(sequence.tokens.size()) - found.pages.size();
  const std::size_t others = running();
  const bool room = pool_.available() >= needed + (others == 0 ? 0 : others + 1);
  if (!room) {
    pool_.release(found.pages);
    TERN_REQUIRE(others > 0, "{} pages do not hold {} tokens", pool_.pages(),
                 sequence.tokens.size());
    return false;
  }
  sequence.stored = found.pages.size() * P;
  sequence.hashed_pages = found.pages.size();
  sequence.content = found.content;
  sequence.pages = std::move(found.pages);
  if (!sequence.admitted_before) stats_.prompt_tokens += sequence.tokens.size();
  sequence.admitted_before = true;
  stats_.reused_tokens += sequence.stored;
  batch.running.push_back(std::move(waiting_.front()));
  waiting_.pop_front();
  return true;
}

/// Schedules `rows` tokens of the sequence to be stored by this pass. Pages that they fill can be
/// found at once, even by requests of the same pass: each layer stores all rows before attention.
void Scheduler::schedule(Sequence& sequence, std::size_t rows) {
  const std::size_t P = pool_.page_tokens();
  scheduled_.push_back({&sequence, rows});
  sequence.stored += rows;
  if (sequence.prefilling) stats_.computed_tokens += rows;
  for (; (sequence.hashed_pages + 1) * P <= sequence.stored; ++sequence.hashed_pages)
    sequence.content = pool_.publish(sequence.pages[sequence.hashed_pages], sequence.content,
                                     sequence.tokens, sequence.hashed_pages * P);
}

/// Whether prompts fill this pass and no request waits for another one to end. Requests that decode
/// then leave it to the prompts: later they decode together, in fewer passes.
bool Scheduler::prompts_first() {
  const MicroBatch& batch = current();
  if (waiting_.size() > batch.most - batch.running.size()) return false;
  std::size_t open = 0;
  for (const Owned& one : batch.running)
    if (!one->decodes()) open += one->open();
  for (const Owned& one : waiting_) open += one->tokens.size();
  return open >= options_.prefill_tokens;
}

const Pass& Scheduler::plan() {
  ++plans_;
  const std::vector<Owned>& running = current().running;
  scheduled_.clear();
  const std::size_t preemptions_before = stats_.preemptions;
  std::size_t left = options_.prefill_tokens;
  bool admitted = false;
  const auto next = [&](std::size_t index) {
    const Sequence& sequence = *running[index];
    const bool decodes = sequence.decodes();
    const std::size_t rows = decodes ? 1 : std::min(sequence.open(), left);
    if (rows == 0 || !extend(index, rows)) return;
    if (!decodes) left -= rows;
    schedule(*running[index], rows);
  };
  const bool prompts = prompts_first();
  for (std::size_t index = 0; index < running.size(); ++index)
    if (!prompts || !running[index]->decodes()) next(index);
  while (left > 0 && stats_.preemptions == preemptions_before && admit()) {
    admitted = true;
    next(running.size() - 1);
  }
  // The cache had no room for more prompts. No request of this pass is preempted for these.
  for (std::size_t index = 0; prompts && left > 0 && index < running.size(); ++index)
    if (running[index]->decodes() && (scheduled_.empty() || has_page(*running[index]))) next(index);
  stats_.pages_in_use = pool_.pages() - pool_.available();
  stats_.peak_pages = std::max(stats_.peak_pages, stats_.pages_in_use);
  lay_out();
  // Only a request that was just admitted can have found pages that this pass fills.
  current().pass.settled = !admitted;
  return current().pass;
}

bool Scheduler::in_flight() const {
  return std::any_of(micro_batches_.begin(), micro_batches_.end(),
                     [](const MicroBatch& one) { return one.pass.rows() > 0; });
}

/// Single-row segments come first.
void Scheduler::lay_out() {
  current().pass.clear();
  current().drawing.clear();
  for (const bool single : {true, false})
    for (const auto& [sequence, rows] : scheduled_)
      if ((rows == 1) == single) add_segment(*sequence, rows);
  if (!scheduled_.empty()) ++stats_.passes;
}

void Scheduler::add_segment(Sequence& sequence, std::size_t rows) {
  Pass& pass = current().pass;
  const std::size_t P = pool_.page_tokens(), end = sequence.stored, first = end - rows;
  const auto segment = number(pass.segments.size()), table = number(pass.tables.size());
  pass.segments.push_back({number(pass.rows()), number(rows), number(first), table});
  pass.tables.insert(pass.tables.end(), sequence.pages.begin(),
                     sequence.pages.begin() + static_cast<std::ptrdiff_t>(pages_for(end)));
  for (std::size_t p = first; p < end; ++p) {
    pass.tokens.push_back(sequence.tokens[p]);
    pass.positions.push_back(number(p));
    pass.table_of.push_back(table);
    pass.places.push_back(sequence.pages[p / P] * number(P) + number(p % P));
  }
  constexpr std::size_t keys = ops::PagedRows::split_keys, tile = ops::PagedRows::tile_rows;
  if (rows == 1) {
    ++pass.singles;
    for (std::size_t s = 0; s < end; s += keys)
      pass.splits.push_back({number(pass.rows() - 1), number(first), number(s), table});
    pass.first_splits.push_back(number(pass.splits.size()));
  } else {
    for (std::size_t t = first / tile; t < parts(end, tile); ++t)
      pass.tiles.push_back({segment, number(t)});
  }
  if (end < sequence.tokens.size()) return;
  pass.drawn.push_back(number(pass.rows() - 1));
  pass.ids.push_back(static_cast<std::int32_t>(static_cast<std::uint32_t>(sequence.request.id)));
  pass.ids.push_back(static_cast<std::int32_t>(sequence.request.id >> 32));
  pass.numbers.push_back(number(sequence.drawn()));
  current().drawing.push_back(&sequence);
}

// ---- results of a pass ----

/// Whether the request ends with this token.
bool Scheduler::ends(Sequence& sequence, std::int32_t token, Answer& answer) const {
  const auto& stops = options_.stop_tokens;
  const auto give = [&](FinishReason reason) {
    answer.finish_reason = reason;
    answer.tokens.assign(
        sequence.tokens.begin() + static_cast<std::ptrdiff_t>(sequence.request.prompt.size()),
        sequence.tokens.end());
    return true;
  };
  answer.id = sequence.request.id;
  if (token < 0) {
    answer.reason =
        "the model's logits are not finite; its weights may come from a run that diverged; set an "
        "earlier checkpoint";
    return give(FinishReason::not_finite);
  }
  if (std::find(stops.begin(), stops.end(), token) != stops.end()) return give(FinishReason::stop);
  sequence.tokens.push_back(token);
  if (options_.stopped) {
    give(FinishReason::stop);
    if (options_.stopped(answer.tokens)) return true;
  }
  return sequence.drawn() == sequence.request.max_new && give(FinishReason::length);
}

std::vector<Answer> Scheduler::finish(const std::int32_t* drawn) {
  std::vector<Answer> answers = std::move(answers_);
  answers_.clear();
  MicroBatch& oldest = micro_batches_[turn(micro_batches_.size() - 1)];
  for (std::size_t i = 0; i < oldest.drawing.size(); ++i) {
    Sequence& sequence = *oldest.drawing[i];
    sequence.prefilling = false;
    ++stats_.new_tokens;
    Answer answer{};
    if (!ends(sequence, drawn[i], answer)) continue;
    answers.push_back(std::move(answer));
    pool_.release(sequence.pages);
    oldest.running.erase(std::find_if(oldest.running.begin(), oldest.running.end(),
                                      [&](const Owned& one) { return one.get() == &sequence; }));
  }
  oldest.drawing.clear();
  stats_.answered += answers.size();
  return answers;
}

Stats Scheduler::stats() const {
  Stats stats = stats_;
  stats.waiting = waiting_.size();
  stats.running = running();
  stats.pages = pool_.pages();
  stats.pages_in_use = pool_.pages() - pool_.available();
  return stats;
}

}  // namespace tern::generate::detail
