#include "weights/host_copy.hpp"

#include <algorithm>

namespace tern::weights {

void HostCopy::copy(const ops::Context& context, const Vector<float>& array,
                    std::vector<Run> runs) {
  if (runs.empty()) return;
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.first < b.first; });
  const std::size_t first = runs.front().first, end = runs.back().end();
  const std::size_t chunk = staged_ ? chunk_ : end - first;
  if (staged_ && !buffers_[0].data())
    for (Buffer& buffer : buffers_)
      buffer = Buffer(Kokkos::view_alloc(Kokkos::WithoutInitializing, "checkpoint staging"), chunk);

  const auto start = [&](std::size_t begin) {
    const auto range = Kokkos::make_pair(begin, std::min(begin + chunk, end));
    const Buffer& buffer = buffers_[(begin - first) / chunk % 2];
    Kokkos::deep_copy(
        context.space,
        Kokkos::subview(buffer, Kokkos::make_pair(std::size_t{0}, range.second - range.first)),
        Kokkos::subview(array, range));
  };
  if (staged_) start(first);
  auto run = runs.begin();
  for (std::size_t begin = first; begin < end; begin += chunk) {
    context.fence("checkpoint");
    const std::size_t next = std::min(begin + chunk, end);
    if (staged_ && next < end) start(next);
    const float* values =
        staged_ ? buffers_[(begin - first) / chunk % 2].data() : array.data() + begin;
    for (; run != runs.end() && run->first < next; ++run) {
      const Range now = common(*run, {begin, next - begin});
      std::copy_n(values + (now.first - begin), now.count, run->to + (now.first - run->first));
      if (run->end() > next) break;  // the rest is in the next chunk
    }
  }
}

}  // namespace tern::weights
