#include "weights/weight_stream.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "base/timer.hpp"

namespace tern::weights {
namespace {

#if defined(KOKKOS_HAS_SHARED_HOST_PINNED_SPACE)
using Staging = Kokkos::SharedHostPinnedSpace;
#else
using Staging = Kokkos::HostSpace;
#endif

struct Piece {
  const model::Parameter* parameter;
  transformers::Part part;  // of the whole parameter
  std::size_t local;        // in the array
  std::size_t count() const { return part.rows * part.columns; }
};

/// Splits into pieces of at most `limit` elements: whole rows of the rank's part, or parts of one.
void cut(const Holding& held, std::size_t limit, std::vector<Piece>& pieces) {
  const model::Parameter& p = *held.parameter;
  const std::size_t columns = p.shape.back();
  const std::size_t row = p.shape.size() > 1 ? p.first[0] : 0;
  for (std::size_t done = 0; done < held.count;) {
    const std::size_t at = held.first + done, left = std::min(held.count - done, limit);
    const std::size_t r = at / columns, c = at % columns;
    const bool whole = c == 0 && left >= columns;
    const std::size_t rows = whole ? left / columns : 1;
    const std::size_t wide = std::min(left, columns - c);
    pieces.push_back({&p, {row + r, rows, p.first.back() + c, wide}, held.local + done});
    done += rows * wide;
  }
}

/// Logs the progress of a long transfer every 10%, at most every two seconds.
class Progress {
 public:
  Progress(double total, Log& log) : total_(total), log_(log) {}
  void show(double done) {
    const double now = timer_.seconds(), share = done / total_;
    if (now - last_ < 2 || share < next_ || share >= 1) return;
    log_.line("weights: {:3.0f}% of {:.1f} GB, {:.2f} GB/s", 100 * share, total_ / 1e9,
              done / 1e9 / now);
    last_ = now;
    next_ = share + 0.1;
  }
  double seconds() const { return timer_.seconds(); }

 private:
  double total_;
  Log& log_;
  Timer timer_;
  double last_ = 0, next_ = 0;
};

/// Reader threads and their queue to the thread that copies to the device.
template <class V>
class ReaderThreads {
 public:
  ReaderThreads(const std::vector<Piece>& pieces, const Vector<V>& array, const ReadPart<V>& read,
                const StreamOptions& options)
      : pieces_(pieces), array_(array), read_(read), staged_(options.staged) {
    const std::size_t threads = std::clamp<std::size_t>(options.threads, 1, pieces.size());
    if (staged_) {
      buffers_ = Buffers(Kokkos::view_alloc(Kokkos::WithoutInitializing, "weights to load"),
                         2 * threads, options.piece_bytes / sizeof(V));
      for (std::size_t b = 0; b < 2 * threads; ++b) free_.push_back(b);
    }
    for (std::size_t t = 0; t < threads; ++t) threads_.emplace_back([this] { work(); });
  }

  ~ReaderThreads() {
    stop();
    for (std::thread& thread : threads_) thread.join();
  }

  struct Filled {
    const Piece* piece;
    std::size_t buffer;
  };

  /// The next piece read; empty after a second without one. Rethrows a thread's exception.
  std::optional<Filled> next() {
    std::unique_lock lock(mutex_);
    filled_changed_.wait_for(lock, std::chrono::seconds(1),
                             [&] { return !filled_.empty() || error_; });
    if (error_) std::rethrow_exception(error_);
    if (filled_.empty()) return std::nullopt;
    const Filled first = filled_.front();
    filled_.pop_front();
    return first;
  }

  /// Copies a staged piece to the device and releases its buffer.
  void deliver(const ops::Context& context, const Filled& filled) {
    if (!staged_) return;
    const Vector<V> to(array_.data() + filled.piece->local, filled.piece->count());
    const Kokkos::View<V*, Kokkos::LayoutRight, Staging, Unmanaged> from(
        &buffers_(filled.buffer, 0), filled.piece->count());
    Kokkos::deep_copy(context.space, to, from);
    context.fence("weights to the device");
    const std::lock_guard lock(mutex_);
    free_.push_back(filled.buffer);
    free_changed_.notify_one();
  }

 private:
  void work() {
    try {
      for (std::size_t i; !stopped_ && (i = next_piece_++) < pieces_.size();) {
        const Piece& piece = pieces_[i];
        const std::size_t buffer = take_buffer();
        if (stopped_) return;
        V* to = staged_ ? &buffers_(buffer, 0) : array_.data() + piece.local;
        read_(*piece.parameter, piece.part, to);
        const std::lock_guard lock(mutex_);
        filled_.push_back({&piece, buffer});
        filled_changed_.notify_one();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      filled_changed_.notify_one();
    }
  }

  std::size_t take_buffer() {
    if (!staged_) return 0;
    std::unique_lock lock(mutex_);
    free_changed_.wait(lock, [&] { return !free_.empty() || stopped_; });
    if (free_.empty()) return 0;
    const std::size_t buffer = free_.back();
    free_.pop_back();
    return buffer;
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    free_changed_.notify_all();
  }

  using Buffers = Kokkos::View<V**, Kokkos::LayoutRight, Staging>;
  const std::vector<Piece>& pieces_;
  Vector<V> array_;
  const ReadPart<V>& read_;
  const bool staged_;
  Buffers buffers_;
  std::atomic<std::size_t> next_piece_{0};
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::condition_variable filled_changed_, free_changed_;
  std::deque<Filled> filled_;
  std::vector<std::size_t> free_;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

}  // namespace

template <class V>
Transfer stream_in(const ops::Context& context, const std::vector<Holding>& held,
                   const Vector<V>& array, const ReadPart<V>& read, Log& log,
                   const StreamOptions& options) {
  std::vector<Piece> pieces;
  std::size_t total = 0, done = 0;
  for (const Holding& h : held) {
    cut(h, std::max<std::size_t>(1, options.piece_bytes / sizeof(V)), pieces);
    total += h.count;
  }
  const auto bytes = [](std::size_t elements) { return static_cast<double>(elements * sizeof(V)); };
  if (pieces.empty()) return {};
  Progress progress(bytes(total), log);
  context.fence("before weights are written");
  ReaderThreads<V> readers(pieces, array, read, options);
  while (done < total) {
    if (const auto filled = readers.next()) {
      readers.deliver(context, *filled);
      done += filled->piece->count();
    }
    progress.show(bytes(done));
  }
  return {bytes(total), progress.seconds()};
}

template Transfer stream_in(const ops::Context&, const std::vector<Holding>&, const Vector<float>&,
                            const ReadPart<float>&, Log&, const StreamOptions&);
template Transfer stream_in(const ops::Context&, const std::vector<Holding>&, const Vector<bf16>&,
                            const ReadPart<bf16>&, Log&, const StreamOptions&);
template Transfer stream_in(const ops::Context&, const std::vector<Holding>&, const Vector<fp16>&,
                            const ReadPart<fp16>&, Log&, const StreamOptions&);

}  // namespace tern::weights
