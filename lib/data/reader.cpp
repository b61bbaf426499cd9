#include "data/reader.hpp"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "base/error.hpp"
#include "base/timer.hpp"

namespace tern::data {

/// A ring of `depth` slots. Threads take micro-batches in order, at most `depth` ahead of the
/// consumer, so that the slot of a micro-batch is free when it is taken.
struct Reader::Impl {
  struct Slot {
    bool ready = false;
    Batch batch;
    std::exception_ptr error;
  };

  const Source& source;
  const ReaderOptions options;
  const std::size_t rank, ranks, rows;

  std::mutex mutex;
  std::condition_variable filled, freed;
  std::vector<Slot> slots;
  std::uint64_t taken, consumed;  // next micro-batch to make, next to return
  bool stopping = false;
  std::vector<std::thread> threads;

  Impl(const Source& source_, const ReaderOptions& options_, std::size_t rank_, std::size_t ranks_,
       std::uint64_t first)
      : source(source_),
        options(options_),
        rank(rank_),
        ranks(ranks_),
        rows(source_.rows()),
        slots(options_.depth),
        taken(first),
        consumed(first) {
    if (rows == 0)
      user_error(
          "the data do not fill one sequence of {} tokens and its last target: use a shorter "
          "context or more data",
          options.length);
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

  std::size_t row_of(std::uint64_t number) const {
    return options.shuffle ? shuffled_row(number, rows, options.seed) : number % rows;
  }
  bool left_out(std::uint64_t number) const { return options.limit > 0 && number >= options.limit; }

  Counts count(std::uint64_t first, std::uint64_t last) const {
    Counts sum;
    for (std::uint64_t number = first; number < last; ++number)
      if (!left_out(number)) sum += source.counts(row_of(number));
    return sum;
  }

  Batch make(std::uint64_t micro_batch) const {
    const std::size_t B = options.sequences, T = options.length;
    Batch batch;
    batch.sequences = B;
    batch.tokens_per_sequence = T;
    batch.samples.resize(B);
    source.start(batch);
    const std::uint64_t first = (micro_batch * ranks + rank) * B;
    for (std::size_t b = 0; b < B; ++b) {
      batch.samples[b] = first + b;
      if (!left_out(first + b)) source.append(row_of(first + b), b, batch);
    }
    const std::uint64_t together = options.accumulation * ranks * B;
    const std::uint64_t begin = first / together * together;
    batch.step_number = first / together;
    batch.before = count(begin, first);
    batch.own = count(first, first + B);
    batch.step = count(first + B, begin + together);
    batch.step += batch.before;
    batch.step += batch.own;
    return batch;
  }

  void prefetch() {
    std::unique_lock lock(mutex);
    while (true) {
      freed.wait(lock, [&] { return stopping || taken < consumed + slots.size(); });
      if (stopping) return;
      const std::uint64_t micro_batch = taken++;
      lock.unlock();
      Slot made;
      made.ready = true;
      try {
        made.batch = make(micro_batch);
      } catch (...) {
        made.error = std::current_exception();
      }
      lock.lock();
      slots[micro_batch % slots.size()] = std::move(made);
      filled.notify_all();
    }
  }

  Batch next() {
    const Timer timer;
    std::unique_lock lock(mutex);
    Slot& slot = slots[consumed % slots.size()];
    filled.wait(lock, [&] { return slot.ready; });
    if (slot.error) std::rethrow_exception(slot.error);  // not cleared: later calls fail as well
    Batch batch = std::move(slot.batch);
    slot = {};
    ++consumed;
    lock.unlock();
    freed.notify_all();
    batch.wait_seconds = timer.seconds();
    return batch;
  }
};

Reader::Reader(const Source& source, const ReaderOptions& options, std::size_t rank,
               std::size_t ranks, std::uint64_t first_micro_batch) {
  TERN_REQUIRE(options.sequences > 0 && options.length > 0 && options.accumulation > 0);
  TERN_REQUIRE(options.threads > 0 && options.depth > 0);
  TERN_REQUIRE(rank < ranks, "rank {} of {}", rank, ranks);
  impl_ = std::make_unique<Impl>(source, options, rank, ranks, first_micro_batch);
}

Reader::~Reader() = default;

Batch Reader::next() { return impl_->next(); }

}  // namespace tern::data
