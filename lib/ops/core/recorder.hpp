/// Hook by which a profile (profile/profile.hpp) learns what runs.
#pragma once
#include <Kokkos_Core.hpp>

namespace tern::ops {

/// Of one call.
struct Work {
  double flops = 0;  // of its products; 0: none, or not known on the host
  double bytes = 0;  // of the operands that it reads and writes; 0 or NaN: not known
};

/// Told of operations by the thread that runs the campaign. Calls nest.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual void begin(const char* operation, const Work& work) = 0;
  virtual void end() = 0;
  /// The one that is told; null: none.
  static Recorder*& active() {
    static Recorder* recorder = nullptr;
    return recorder;
  }
};

/// Bytes of views.
template <class X, class... More>
double bytes_of(const X& view, const More&... more) {
  return static_cast<double>(view.size() * sizeof(typename X::value_type)) +
         (0.0 + ... + bytes_of(more));
}
/// Of a product whose result has `size` elements, each a sum over `summed`.
inline double product_flops(std::size_t size, std::size_t summed) {
  return 2 * static_cast<double>(size) * static_cast<double>(summed);
}

/// Scope of an operation, for the recorder and for Kokkos Tools. Free without either.
class Region {
 public:
  template <class WorkOf>
  Region(const char* label, const WorkOf& work_of)
      : recorder_(Recorder::active()), tool_(Kokkos::Tools::profileLibraryLoaded()) {
    if (tool_) Kokkos::Tools::pushRegion(label);
    if (recorder_) recorder_->begin(label, work_of());
  }
  ~Region() {
    if (recorder_) recorder_->end();
    if (tool_) Kokkos::Tools::popRegion();
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

 private:
  Recorder* recorder_;
  bool tool_;
};

}  // namespace tern::ops
