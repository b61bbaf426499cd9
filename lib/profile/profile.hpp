/// Profile of one optimizer step: which operations ran, how long, at what rate.
///
/// On GPUs kernels, copies and sets are timed by CUPTI, the operation that launched each is known
/// (ops/recorder.hpp), and the host waits for the device at begin and end only. On the host the
/// calls themselves are timed.
#pragma once
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace tern::profile {

namespace detail {
class Tracer;
struct Recording;
}  // namespace detail

/// What the device can at most; 0: unknown.
struct Ceilings {
  double flops = 0, fp8_flops = 0;  // FLOP/s of products
  double bytes = 0;                 // bytes/s of memory
};

class Profile {
 public:
  using Fence = std::function<void()>;

  /// Records from here to finish(). One profile at a time.
  explicit Profile(Fence fence);
  ~Profile();
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  /// Why nothing is recorded; empty: it is.
  const std::string& trouble() const { return trouble_; }
  void finish();

  // After finish().

  /// One line per operation, by decreasing time; TFLOP/s and TB/s where the operation's work is
  /// known; ceiling: that work at the device's ceilings, over the time taken.
  ///
  ///     step 20: 143.2 ms, of which 1.9 ms without work on the device; 1234 kernels
  ///
  ///     operation                  calls  kernels        ms  fraction  TFLOP/s  TB/s  of ceiling
  ///     linear_backward_weight       120      120    38.410     26.8%    612.3  0.41         78%
  ///     ...
  std::string table(std::int64_t step, const Ceilings& ceilings) const;
  /// Trace event format, for chrome://tracing, ui.perfetto.dev and TensorBoard; a process per rank.
  std::string trace(int rank) const;

 private:
  Fence fence_;
  std::string trouble_;
  std::unique_ptr<detail::Tracer> tracer_;
  std::unique_ptr<detail::Recording> recording_;
};

}  // namespace tern::profile
