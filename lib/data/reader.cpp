#include "data/reader.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

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
  std::uint64_t micro_batch;  // next one to make,
  std::uint64_t taken = 0,
                consumed = 0;  // and its place in the ring; the place of the next to return
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
        micro_batch(first) {
    TERN_REQUIRE(!options.steps || options.steps->most() <= places(), "{} rows in {} places",
                 options.steps->most(), places());
    if (rows == 0)
      user_error(
          "the data is too short for one sequence of {} tokens and its last target; set a shorter "
          "&model context, or add data",
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

  /// Rows that a step has place for.
  std::uint64_t places() const { return options.accumulation * ranks * options.sequences; }

  /// Global row numbers [first, last) of a step.
  std::pair<std::uint64_t, std::uint64_t> rows_of(std::uint64_t step) const {
    if (options.steps) return {options.steps->first(step), options.steps->first(step + 1)};
    const std::uint64_t first = step * places(), last = first + places();
    return {first, options.limit > 0 ? std::min(last, options.limit) : last};
  }

  /// The next micro-batch in which some rank has rows.
  std::uint64_t following(std::uint64_t number) const {
    const std::uint64_t next = number + 1, step = next / options.accumulation;
    if (!options.steps || next % options.accumulation == 0) return next;
    const bool empty =
        next % options.accumulation * ranks * options.sequences >= options.steps->of(step);
    return empty ? (step + 1) * options.accumulation : next;
  }

  Counts count(std::uint64_t first, std::uint64_t last) const {
    Counts sum;
    for (std::uint64_t number = first; number < last; ++number)
      sum += source.counts(row_of(number));
    return sum;
  }

  Batch make(std::uint64_t number) const {
    const std::size_t B = options.sequences, T = options.length;
    Batch batch;
    batch.sequences = B;
    batch.tokens_per_sequence = T;
    batch.step_number = number / options.accumulation;
    source.start(batch);
    const auto [begin, end] = rows_of(batch.step_number);
    const std::uint64_t place = (number % options.accumulation * ranks + rank) * B;
    const std::uint64_t first = std::min(begin + place, end), last = std::min(first + B, end);
    for (std::uint64_t row = first; row < last; ++row) {
      source.append(row_of(row), row - first, batch);
      batch.samples.push_back(row);
    }
    batch.before = count(begin, first);
    batch.own = count(first, last);
    batch.step = count(last, end);
    batch.step += batch.before;
    batch.step += batch.own;
    return batch;
  }

  void prefetch() {
    std::unique_lock lock(mutex);
    while (true) {
      freed.wait(lock, [&] { return stopping || taken < consumed + slots.size(); });
      if (stopping) return;
      const std::uint64_t number = micro_batch, place = taken++;
      micro_batch = following(number);
      lock.unlock();
      Slot made;
      made.ready = true;
      try {
        made.batch = make(number);
      } catch (...) {
        made.error = std::current_exception();
      }
      lock.lock();
      slots[place % slots.size()] = std::move(made);
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
