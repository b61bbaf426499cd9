#include "checkpoint/checkpoint.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/error.hpp"
#include "checkpoint/detail/files.hpp"
#include "checkpoint/detail/folder.hpp"
#include "checkpoint/detail/save.hpp"

namespace tern::checkpoint {

using namespace detail;

struct Store::Impl {
  Impl(std::filesystem::path directory_, int rank_, int ranks_, int keep_, Log& log_,
       double patience);

  void start();
  bool run() noexcept;

  std::filesystem::path directory;
  int rank, ranks, keep;
  Log& log;
  std::unique_ptr<Saver> saver;
  std::mutex folder_mutex;  // best.txt and retention
  Snapshot snapshot;
  std::thread writer;
  bool good = true;
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

/// Signals stay with the thread that trains.
void Store::Impl::start() {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  writer = std::thread([this] { good = run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool Store::Impl::run() noexcept {
  const std::int64_t step = snapshot.header.step;
  try {
    if (!saver->save(snapshot)) return false;
  } catch (const std::exception& error) {
    log.warning(
        "the checkpoint of step {} was not written: {}; {:.3g} GiB are needed; free space there "
        "or lower &checkpoint keep; training goes on, earlier checkpoints are untouched",
        step, error.what(), static_cast<double>(snapshot.elements) * sizeof(float) / (1 << 30));
    return false;
  }
  if (rank != 0) return true;
  try {
    const std::lock_guard guard(folder_mutex);
    retain(directory, step, keep);
  } catch (const std::exception& error) {
    log.warning("an old checkpoint was not removed: {}", error.what());
  }
  return true;
}

Store::Store(std::filesystem::path directory, int rank, int ranks, int keep, Log& log,
             double patience)
    : impl_(std::make_unique<Impl>(std::move(directory), rank, ranks, keep, log, patience)) {}

Store::~Store() { wait(); }

void Store::save(const Header& header, const std::vector<Tensor>& tensors,
                 const std::vector<Piece>& pieces) {
  wait();
  impl_->snapshot.take(header, tensors, pieces, impl_->rank, impl_->ranks);
  impl_->start();
}

void Store::mark_best(std::int64_t step) {
  if (impl_->rank != 0) return;
  try {
    const std::lock_guard guard(impl_->folder_mutex);
    write_best(impl_->directory, step);
  } catch (const std::exception& error) {
    impl_->log.warning("step {} was not marked as the best: {}", step, error.what());
  }
}

bool Store::wait() {
  if (impl_->writer.joinable()) impl_->writer.join();
  return impl_->good;
}

}  // namespace tern::checkpoint
