/// Shared by the programs that time operations on a GPU: events, random matrices.
#pragma once
#include <Kokkos_Core.hpp>

#include <algorithm>
#include <functional>
#include <vector>

#include "base/random.hpp"
#include "ops/ops.hpp"

namespace tern::bench {

/// Median seconds of `run`, from events on the stream.
inline double time_of(const ops::Context& context, const std::function<void()>& run,
                      int repeats = 15) {
  const auto stream = static_cast<cudaStream_t>(context.handle());
  cudaEvent_t begin, end;
  cudaEventCreate(&begin), cudaEventCreate(&end);
  for (int i = 0; i < 3; ++i) run();
  std::vector<float> times(repeats);
  for (float& ms : times) {
    cudaEventRecord(begin, stream);
    run();
    cudaEventRecord(end, stream);
    cudaEventSynchronize(end);
    cudaEventElapsedTime(&ms, begin, end);
  }
  cudaEventDestroy(begin), cudaEventDestroy(end);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2] * 1e-3;
}

template <class S>
void fill(const ops::Context& context, S* data, std::size_t n, std::uint32_t draw, float scale) {
  Kokkos::parallel_for(
      "fill", Kokkos::RangePolicy<Device>(context.space, 0, static_cast<std::int64_t>(n)),
      KOKKOS_LAMBDA(const std::int64_t i) {
        const Random4 r = philox(1, Stream::test, draw, 0, static_cast<std::uint32_t>(i));
        data[i] = S(scale * normal2(r.word[0], r.word[1]).first);
      });
}

struct Buffers {
  Arena& arena;
  const ops::Context& context;
  std::uint32_t draws = 0;

  template <class S>
  Matrix<S> random(std::size_t rows, std::size_t columns, float scale = 1) {
    const auto m = arena.matrix<S>("bench", Term::data, rows, columns);
    if (m.data()) fill(context, m.data(), m.size(), draws++, scale);
    return m;
  }
  template <class S>
  Vector<S> vector(std::size_t n, float scale = 1) {
    return Vector<S>(random<S>(1, n, scale).data(), n);
  }
};

}  // namespace tern::bench
