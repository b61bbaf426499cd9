#include "campaign/training/checkpoints.hpp"

#include "comm/waits.hpp"
#include "deck/choices.hpp"

namespace tern::campaign {
namespace {

constexpr const char* unwritten = "unwritten_metrics";  // attribute
constexpr double files_patience = 600;  // seconds that ranks wait for each other's shards

}  // namespace

std::string unwritten_metrics(const checkpoint::Header& header) {
  const auto lines = header.texts.find(unwritten);
  return lines == header.texts.end() ? std::string() : lines->second;
}

template <class T>
Checkpoints<T>::Checkpoints(workload::Workload<T>& workload, const deck::Deck& deck,
                            const std::filesystem::path& folder, const comm::Mesh& mesh,
                            profile::Phases& phases, Log& log)
    : workload_(workload),
      deck_(deck),
      world_(mesh.world()),
      phases_(phases),
      log_(log),
      snapshot_(workload.tree, workload.parameters, workload.optimizer->owned(),
                workload.optimizer->states(),
                mesh.data().rank() == 0 || deck::shard_of(deck.parallel) != deck::Shard::none),
      store_(folder, mesh.world().rank(), mesh.world().size(),
             static_cast<int>(deck.checkpoint.keep), log, files_patience,
             deck.checkpoint.keep_best) {}

template <class T>
void Checkpoints<T>::load(const checkpoint::Reader& reader, const TrainState& state) {
  snapshot_.load(workload_.context, reader);
  saved_step_ = state.step;
  const bool evaluated = state.evaluated_step == state.step;
  if (evaluated) evaluation_ = reader.header().numbers;
  if (deck_.checkpoint.keep_best) store_.check_best(state.best_step, evaluated ? -1 : state.step);
}

template <class T>
void Checkpoints<T>::retry_best(const TrainState& state) {
  if (!deck_.checkpoint.keep_best || saved_step_ <= 0 || saved_step_ != state.best_step) return;
  if (!world_.any(!wait())) return;
  store_.retry();
  if (world_.any(!wait())) lost_best_ = saved_step_;
}

template <class T>
void Checkpoints<T>::save(const TrainState& state, report::Metrics* metrics) {
  checkpoint::Header header = to_header(state, deck::print(deck_, false));
  if (metrics) {
    metrics->sync();
    if (!metrics->unwritten().empty()) header.texts[unwritten] = metrics->unwritten();
  }
  header.numbers.merge(workload_.objective->state());
  snapshot_.save(workload_.context, store_, header);
  const comm::LongWait files;  // the previous checkpoint may still be written to a slow disk
  world_.barrier();
  saved_step_ = state.step;
}

template <class T>
void Checkpoints<T>::evaluated(const TrainState& state,
                               const std::map<std::string, double>& numbers, bool best) {
  evaluation_ = numbers;
  store_.evaluated(state.step, numbers, best && deck_.checkpoint.keep_best);
}

template <class T>
bool Checkpoints<T>::wait() {
  const auto timed = phases_.scope(profile::Phase::checkpoint);
  const comm::LongWait files;
  const bool whole = store_.wait();
  world_.barrier();
  return whole;
}

template <class T>
bool Checkpoints<T>::complete() {
  if (!world_.any(!wait())) return true;
  store_.retry();
  return !world_.any(!wait());
}

template <class T>
bool Checkpoints<T>::complete_records(report::Metrics* metrics) {
  const auto timed = phases_.scope(profile::Phase::checkpoint);
  const bool lines = !metrics || metrics->sync();
  const bool evaluations = store_.record();
  return !world_.any(!lines || !evaluations);
}

template <class T>
bool Checkpoints<T>::save_again(const TrainState& state, report::Metrics* metrics) {
  save(state, metrics);
  if (state.evaluated_step == state.step && !evaluation_.empty())
    evaluated(state, evaluation_, state.best_step == state.step);
  return !world_.any(!wait());
}

template <class T>
std::optional<std::int64_t> Checkpoints<T>::lost_best(const TrainState& state) const {
  return lost_best_ == state.best_step ? lost_best_ : std::nullopt;
}

template class Checkpoints<float>;
template class Checkpoints<bf16>;
template class Checkpoints<fp16>;

}  // namespace tern::campaign
