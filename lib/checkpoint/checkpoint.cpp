#include "checkpoint/checkpoint.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/timer.hpp"
#include "checkpoint/detail/best.hpp"
#include "checkpoint/detail/evaluation.hpp"
#include "checkpoint/detail/folder.hpp"
#include "checkpoint/detail/save.hpp"

namespace tern::checkpoint {

using namespace detail;

namespace {

/// Remedy named in the warning about a checkpoint of `elements` that was not written.
std::string remedy(const std::exception& error, std::size_t elements) {
  const auto* file = dynamic_cast<const FileError*>(&error);
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  const int code = file ? file->code : system ? system->code().value() : ENOSPC;
  if (code == ENOENT || code == ENOTDIR || code == ESTALE)
    return "the run's directory may have been moved or removed; put it back";
  if (code == EACCES || code == EPERM || code == EROFS)
    return "check the permissions of the run's directory";
  return fmt::format("{:.3g} GiB are needed; free space there or lower &checkpoint keep",
                     static_cast<double>(elements) * sizeof(float) / (1 << 30));
}

}  // namespace

struct Store::Impl {
  Impl(std::filesystem::path directory_, int rank_, int ranks_, int keep_, Log& log_,
       double patience, bool keep_best_);

  /// What is to be written about the checkpoint of a step.
  struct Note {
    std::map<std::string, double> numbers;  // for evaluation.json; without any: none
    bool best;                              // for best.txt
  };

  void start();
  bool run() noexcept;
  void settle(bool visible) noexcept;
  bool there(std::int64_t step) const noexcept;
  bool write_notes() noexcept;

  std::filesystem::path directory;
  int rank, ranks, keep;
  bool keep_best;
  Log& log;
  std::unique_ptr<Saver> saver;
  Snapshot snapshot;
  std::thread writer;
  bool good = true;
  std::atomic<double> seconds = 0;

  std::mutex mutex;                     // guards the members below, best.txt and retention
  std::optional<std::int64_t> writing;  // step of the checkpoint not visible yet
  std::optional<std::int64_t> saved;    // step of the last save, good or not
  std::optional<std::int64_t> failed;   // that step, if it may be written again
  std::optional<std::int64_t> best;     // step of the best checkpoint by the attributes
  /// Not written yet, by step: of the last save, of checkpoints that are there.
  std::map<std::int64_t, Note> notes;
};

Store::Impl::Impl(std::filesystem::path directory_, int rank_, int ranks_, int keep_, Log& log_,
                  double patience, bool keep_best_)
    : directory(std::move(directory_)),
      rank(rank_),
      ranks(ranks_),
      keep(keep_),
      keep_best(keep_best_),
      log(log_) {
  TERN_REQUIRE(rank >= 0 && rank < ranks && keep >= 1, "rank {} of {}, keep {}", rank, ranks, keep);
  try {
    std::filesystem::create_directories(directory);
    if (rank == 0) recover(directory);
    saver = make_saver(directory, rank, ranks, patience);
  } catch (const std::runtime_error& error) {
    user_error(
        "checkpoints cannot be written to {}: {}; check &output directory and its permissions",
        directory.string(), error.what());
  }
}

/// Signals are blocked in the writer, so that the training thread receives them.
void Store::Impl::start() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  writer = std::thread([this] { good = run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool Store::Impl::run() noexcept {
  const Timer timer;
  bool visible = false;
  try {
    visible = saver->save(snapshot);
  } catch (const std::exception& error) {
    log.warning("the checkpoint of step {} was not written: {}; {}; earlier checkpoints are intact",
                snapshot.header.step, error.what(), remedy(error, snapshot.elements));
  }
  seconds = timer.seconds();
  if (rank == 0) settle(visible);
  return visible;
}

/// Deferred work at the end of a write: evaluations and retention.
void Store::Impl::settle(bool visible) noexcept {
  const std::lock_guard guard(mutex);
  writing.reset();
  failed = visible ? std::nullopt : saved;
  write_notes();
  if (!visible) return;
  try {
    retain(directory, snapshot.header.step, keep, keep_best ? best : std::nullopt);
  } catch (const std::exception& error) {
    log.warning("an old checkpoint was not removed: {}", error.what());
  }
}

/// Whether the checkpoint of the step is visible, and not about to be replaced. One that failed may
/// be visible, but not durable.
bool Store::Impl::there(std::int64_t step) const noexcept {
  std::error_code error;
  return writing != step && failed != step &&
         (std::filesystem::exists(directory / step_name(step), error) || error);
}

/// Writes the notes on checkpoints that are there; false if the disk refuses one, which is kept.
/// best.txt first: a kill between the two writes leaves a checkpoint that is evaluated again.
bool Store::Impl::write_notes() noexcept {
  try {
    std::optional<std::int64_t> newest;
    for (const auto& [step, note] : notes)
      if (note.best && there(step)) newest = step;
    if (newest) {
      write_best(directory, *newest);
      for (auto& [step, note] : notes)
        if (step <= *newest) note.best = false;
    }
    for (auto it = notes.begin(); it != notes.end();) {
      const auto& [step, note] = *it;
      const bool due = there(step);
      if (due && !note.numbers.empty())
        write_evaluation(directory / step_name(step), step, note.numbers);
      it = due ? notes.erase(it) : std::next(it);
    }
    return true;
  } catch (const std::exception& error) {
    log.warning("an evaluation is not stored with its checkpoint yet: {}", error.what());
    return false;
  }
}

Store::Store(std::filesystem::path directory, int rank, int ranks, int keep, Log& log,
             double patience, bool keep_best)
    : impl_(std::make_unique<Impl>(std::move(directory), rank, ranks, keep, log, patience,
                                   keep_best)) {}

Store::~Store() { wait(); }

void Store::save(const Header& header, const std::vector<Tensor>& tensors,
                 const std::vector<Piece>& pieces, const CopyPieces& copy) {
  wait();
  copy(impl_->snapshot.take(header, tensors, pieces, impl_->rank, impl_->ranks));
  {
    const std::lock_guard guard(impl_->mutex);
    // Of checkpoints that failed, and an evaluation of this step before it was saved again.
    std::erase_if(impl_->notes, [&](const auto& note) {
      return note.first == header.step || !impl_->there(note.first);
    });
    impl_->writing = impl_->saved = header.step;
    if (const auto best = header.numbers.find("best_step");
        best != header.numbers.end() && best->second > 0)
      impl_->best = static_cast<std::int64_t>(best->second);
  }
  impl_->start();
}

void Store::retry() {
  wait();
  {
    const std::lock_guard guard(impl_->mutex);
    TERN_REQUIRE(impl_->saved, "nothing was saved");
    impl_->writing = impl_->saved;
  }
  impl_->start();
}

void Store::evaluated(std::int64_t step, const std::map<std::string, double>& numbers, bool best) {
  if (impl_->rank != 0) return;
  const std::lock_guard guard(impl_->mutex);
  if (best) impl_->best = step;
  if (impl_->saved != step && !impl_->there(step)) return;
  impl_->notes[step] = {numbers, best};
  impl_->write_notes();
}

void Store::check_best(std::int64_t best, std::int64_t unevaluated) {
  if (impl_->rank != 0) return;
  const std::lock_guard guard(impl_->mutex);
  if (best > 0) impl_->best = best;
  std::optional<std::int64_t> named;
  try {
    named = best_step(impl_->directory);
  } catch (const FileError&) {  // rewritten
  }
  const bool marked = named && impl_->there(*named);
  if (named == best || (marked && named == unevaluated)) return;
  if (best > 0 && impl_->there(best)) {
    impl_->log.warning(
        "{}/best.txt {}; by the attributes of the checkpoints the best is that of step {}; "
        "best.txt is rewritten",
        impl_->directory.string(),
        named ? fmt::format("names step {}", *named) : "is missing or damaged", best);
    impl_->notes[best].best = true;
    impl_->write_notes();
  } else if (!marked && best > 0) {
    impl_->log.warning(
        "{}/best.txt names no checkpoint, and the best by the attributes, that of step {}, does "
        "not exist; until a better one is found, 'best' means the newest",
        impl_->directory.string(), best);
  }
}

bool Store::record() {
  wait();
  const std::lock_guard guard(impl_->mutex);
  return impl_->write_notes();
}

double Store::seconds() const { return impl_->seconds; }

std::int64_t count(const std::filesystem::path& directory) {
  return static_cast<std::int64_t>(candidates(directory).size());
}

bool Store::wait() {
  if (impl_->writer.joinable()) impl_->writer.join();
  return impl_->good;
}

}  // namespace tern::checkpoint
