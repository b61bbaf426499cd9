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
    return "was the run's directory moved or removed? Put it back";
  if (code == EACCES || code == EPERM || code == EROFS)
    return "check the permissions of the run's directory";
  return fmt::format("{:.3g} GiB are needed; free space there or lower &checkpoint keep",
                     static_cast<double>(elements) * sizeof(float) / (1 << 30));
}

}  // namespace

struct Store::Impl {
  Impl(std::filesystem::path directory_, int rank_, int ranks_, int keep_, Log& log_,
       double patience);

  /// Arguments of evaluated().
  struct Evaluated {
    std::int64_t step;
    std::map<std::string, double> numbers;
    bool best;
  };

  void start();
  bool run() noexcept;
  void settle(bool visible) noexcept;
  void note(const Evaluated& evaluated) noexcept;

  std::filesystem::path directory;
  int rank, ranks, keep;
  Log& log;
  std::unique_ptr<Saver> saver;
  Snapshot snapshot;
  std::thread writer;
  bool good = true;
  std::atomic<double> seconds = 0;

  std::mutex mutex;                     // guards the members below, best.txt and retention
  std::optional<std::int64_t> writing;  // step of the checkpoint not visible yet
  std::optional<Evaluated> pending;     // evaluation of that step
};

Store::Impl::Impl(std::filesystem::path directory_, int rank_, int ranks_, int keep_, Log& log_,
                  double patience)
    : directory(std::move(directory_)), rank(rank_), ranks(ranks_), keep(keep_), log(log_) {
  TERN_REQUIRE(rank >= 0 && rank < ranks && keep >= 1, "rank {} of {}, keep {}", rank, ranks, keep);
  try {
    std::filesystem::create_directories(directory);
    if (rank == 0) recover(directory);
    saver = make_saver(directory, rank, ranks, patience);
  } catch (const std::runtime_error& error) {
    user_error("checkpoints cannot be kept in {}: {}; check &output directory and its permissions",
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
    log.warning(
        "the checkpoint of step {} was not written: {}; {}; earlier checkpoints are untouched",
        snapshot.header.step, error.what(), remedy(error, snapshot.elements));
  }
  seconds = timer.seconds();
  if (rank == 0) settle(visible);
  return visible;
}

/// Deferred work at the end of a write: evaluation and retention.
void Store::Impl::settle(bool visible) noexcept {
  const std::lock_guard guard(mutex);
  writing.reset();
  if (visible && pending) note(*pending);
  pending.reset();
  if (!visible) return;
  try {
    retain(directory, snapshot.header.step, keep);
  } catch (const std::exception& error) {
    log.warning("an old checkpoint was not removed: {}", error.what());
  }
}

/// best.txt first: a kill between the two writes leaves a checkpoint that is evaluated again.
void Store::Impl::note(const Evaluated& e) noexcept {
  try {
    if (e.best) write_best(directory, e.step);
    write_evaluation(directory / step_name(e.step), e.step, e.numbers);
  } catch (const std::exception& error) {
    log.warning("the evaluation of step {} was not stored with its checkpoint: {}", e.step,
                error.what());
  }
}

Store::Store(std::filesystem::path directory, int rank, int ranks, int keep, Log& log,
             double patience)
    : impl_(std::make_unique<Impl>(std::move(directory), rank, ranks, keep, log, patience)) {}

Store::~Store() { wait(); }

void Store::save(const Header& header, const std::vector<Tensor>& tensors,
                 const std::vector<Piece>& pieces, const CopyPieces& copy) {
  wait();
  copy(impl_->snapshot.take(header, tensors, pieces, impl_->rank, impl_->ranks));
  {
    const std::lock_guard guard(impl_->mutex);
    impl_->writing = header.step;
  }
  impl_->start();
}

void Store::evaluated(std::int64_t step, const std::map<std::string, double>& numbers, bool best) {
  if (impl_->rank != 0) return;
  const std::lock_guard guard(impl_->mutex);
  Impl::Evaluated evaluated{step, numbers, best};
  if (impl_->writing == step)
    impl_->pending = std::move(evaluated);
  else if (std::filesystem::exists(impl_->directory / step_name(step)))
    impl_->note(evaluated);
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
