#include "checks/detail/rates.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include "base/random.hpp"
#include "base/timer.hpp"
#include "ops/ops.hpp"

namespace tern::checks::detail {
namespace {

constexpr bool on_host = std::is_same_v<DeviceMemory, Kokkos::HostSpace>;

double median_seconds(const ops::Context& context, const std::function<void()>& run) {
  std::array<double, 5> seconds;
  run();  // warm-up: starts libraries, makes plans
  for (double& s : seconds) {
    context.fence("rate");
    const Timer timer;
    run();
    context.fence("rate");
    s = timer.seconds();
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

/// Random numbers: some devices multiply zeros or a pattern faster (by 13% on an H200).
template <class T>
void fill(const ops::Context& context, const Matrix<T>& m) {
  T* to = m.data();
  Kokkos::parallel_for(
      "tern::fill",
      Kokkos::RangePolicy<Device>(context.space, 0, static_cast<std::int64_t>(m.size())),
      KOKKOS_LAMBDA(const std::int64_t i) {
        const Random4 draw = philox(1, Stream::test, 0, 0, static_cast<std::uint32_t>(i));
        to[i] = static_cast<T>(uniform(draw.word[0]) - 0.5f);
      });
}

}  // namespace

double copy_rate(const ops::Context& context) {
  constexpr std::size_t bytes = std::size_t{1} << (on_host ? 27 : 30);
  Arena arena(2 * bytes);
  const auto from = arena.vector<char>("from", Term::data, bytes),
             to = arena.vector<char>("to", Term::data, bytes);
  const double seconds =
      median_seconds(context, [&] { Kokkos::deep_copy(context.space, to, from); });
  return 2.0 * bytes / seconds;
}

template <class T>
double matrix_rate(const ops::Context& context) {
  constexpr std::size_t n = on_host ? 768 : std::is_same_v<T, bf16> ? 8192 : 4096;
  Arena arena(3 * aligned(n * n * sizeof(T)));
  const auto x = arena.matrix<T>("x", Term::data, n, n), w = arena.matrix<T>("w", Term::data, n, n),
             y = arena.matrix<T>("y", Term::data, n, n);
  fill(context, x), fill(context, w);
  const double seconds =
      median_seconds(context, [&] { ops::linear_forward<T>(context, x, w, {}, y); });
  return 2.0 * n * n * n / seconds;
}

double all_reduce_rate(const ops::Context& context, comm::Group& group) {
  constexpr std::size_t n = std::size_t{1} << (on_host ? 22 : 26);
  Arena arena(n * sizeof(float));
  const auto values = arena.vector<float>("values", Term::data, n);
  const double seconds = median_seconds(context, [&] {
    group.barrier();
    group.all_reduce(values.data(), n, context);
  });
  return n * sizeof(float) / seconds;
}

template double matrix_rate<float>(const ops::Context&);
template double matrix_rate<double>(const ops::Context&);
template double matrix_rate<bf16>(const ops::Context&);

}  // namespace tern::checks::detail
