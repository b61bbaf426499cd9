#include "data/reader.hpp"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "base/error.hpp"
#include "base/timer.hpp"

namespace tern::data {

/// A ring of `depth` slots. Threads take micro-steps in order, at most `depth` ahead of the
/// consumer, so that a slot is free when its micro-step is taken.
struct Reader::Impl {
  struct Slot {
    bool ready = false;
    Batch batch;
    std::exception_ptr error;
  };

  const Shards& shards;
  const ReaderOptions options;
  const std::size_t rank, ranks, windows;

  std::mutex mutex;
  std::condition_variable filled, freed;
  std::vector<Slot> slots;
  std::uint64_t taken, consumed;  // micro-steps: the next to be made, the next to be handed out
  bool stopping = false;
  std::vector<std::thread> threads;

  Impl(const Shards& shards_, const ReaderOptions& options_, std::size_t rank_, std::size_t ranks_,
       std::uint64_t first)
      : shards(shards_),
        options(options_),
        rank(rank_),
        ranks(ranks_),
        windows(shards_.windows(options_.length)),
        slots(options_.depth),
        taken(first),
        consumed(first) {
    if (windows == 0) {
      user_error(
          "no shard holds {} tokens, one sequence and its last target: the data has {} "
          "tokens; use a shorter context or more data",
          options.length + 1, shards.tokens());
    }
    for (std::size_t t = 0; t < options.threads; ++t) threads.emplace_back([this] { prefetch(); });
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    freed.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  Batch make(std::uint64_t micro_step) const {
    const std::size_t B = options.sequences, T = options.length;
    Batch batch;
    batch.sequences = B;
    batch.tokens_per_sequence = T;
    batch.inputs.resize(B * T);
    batch.targets.resize(B * T);
    batch.samples.resize(B);
    std::vector<std::int32_t> window(T + 1);
    for (std::size_t b = 0; b < B; ++b) {
      const std::uint64_t sample = (micro_step * ranks + rank) * B + b;
      batch.samples[b] = sample;
      const std::size_t w =
          options.shuffle ? shuffled_window(sample, windows, options.seed) : sample % windows;
      shards.read(w, T, window.data());
      std::copy(window.begin(), window.end() - 1, batch.inputs.data() + b * T);
      std::copy(window.begin() + 1, window.end(), batch.targets.data() + b * T);
    }
    return batch;
  }

  void prefetch() {
    std::unique_lock lock(mutex);
    while (true) {
      freed.wait(lock, [&] { return stopping || taken < consumed + slots.size(); });
      if (stopping) return;
      const std::uint64_t micro_step = taken++;
      lock.unlock();
      Slot made;
      made.ready = true;
      try {
        made.batch = make(micro_step);
      } catch (...) {
        made.error = std::current_exception();
      }
      lock.lock();
      slots[micro_step % slots.size()] = std::move(made);
      filled.notify_all();
    }
  }

  Batch next() {
    const Timer timer;
    std::unique_lock lock(mutex);
    Slot& slot = slots[consumed % slots.size()];
    filled.wait(lock, [&] { return slot.ready; });
    if (slot.error) std::rethrow_exception(slot.error);  // stays: every later call fails alike
    Batch batch = std::move(slot.batch);
    slot = {};
    ++consumed;
    lock.unlock();
    freed.notify_all();
    batch.wait_seconds = timer.seconds();
    return batch;
  }
};

Reader::Reader(const Shards& shards, const ReaderOptions& options, std::size_t rank,
               std::size_t ranks, std::uint64_t first_micro_step) {
  TERN_REQUIRE(options.sequences > 0 && options.length > 0);
  TERN_REQUIRE(options.threads > 0 && options.depth > 0);
  TERN_REQUIRE(rank < ranks, "rank {} of {}", rank, ranks);
  impl_ = std::make_unique<Impl>(shards, options, rank, ranks, first_micro_step);
}

Reader::~Reader() = default;

Batch Reader::next() { return impl_->next(); }

}  // namespace tern::data
