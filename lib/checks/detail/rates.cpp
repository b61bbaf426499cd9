#include "checks/detail/rates.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/random.hpp"
#include "base/timer.hpp"
#include "ops/ops.hpp"

namespace tern::checks::detail {

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

namespace {

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

HostCopies host_copy_rates([[maybe_unused]] const ops::Context& context) {
  HostCopies rates;
  if constexpr (!on_host) {
    constexpr std::size_t bytes = std::size_t{1} << 28;
    Arena arena(bytes);
    const auto here = arena.vector<char>("device", Term::data, bytes);
    const Kokkos::View<char*, Kokkos::LayoutRight, Kokkos::SharedHostPinnedSpace> there("host",
                                                                                        bytes);
    rates.to_device =
        bytes / median_seconds(context, [&] { Kokkos::deep_copy(context.space, here, there); });
    rates.to_host =
        bytes / median_seconds(context, [&] { Kokkos::deep_copy(context.space, there, here); });
  }
  return rates;
}

template <class T>
double matrix_rate(const ops::Context& context) {
  constexpr bool half = is_half<T>;  // portable on the host, and slow
  constexpr std::size_t n = on_host ? (half ? 256 : 768) : half ? 8192 : 4096;
  Arena arena(3 * aligned(n * n * sizeof(T)));
  const auto x = arena.matrix<T>("x", Term::data, n, n), w = arena.matrix<T>("w", Term::data, n, n),
             y = arena.matrix<T>("y", Term::data, n, n);
  fill(context, x), fill(context, w);
  const double seconds = median_seconds(
      context, [&] { ops::run(context, ops::LinearForward<T>{.x = x, .w = w, .y = y}); });
  return 2.0 * n * n * n / seconds;
}

double product_rate(const ops::Context& context, std::size_t rows) {
  constexpr std::size_t width = on_host ? 768 : 4096;
  Arena arena(2 * aligned(rows * width * sizeof(Fast)) + aligned(width * width * sizeof(Fast)));
  const auto x = arena.matrix<Fast>("x", Term::data, rows, width),
             w = arena.matrix<Fast>("w", Term::data, width, width),
             y = arena.matrix<Fast>("y", Term::data, rows, width);
  fill(context, x), fill(context, w);
  const double seconds = median_seconds(
      context, [&] { ops::run(context, ops::LinearForward<Fast>{.x = x, .w = w, .y = y}); });
  return 2.0 * static_cast<double>(rows * width * width) / seconds;
}

std::size_t rows_to_fill(const ops::Context& context) {
  constexpr std::size_t least = on_host ? 64 : 512, most = on_host ? 2048 : 32768;
  std::vector<std::pair<std::size_t, double>> rates;
  double best = 0;
  for (std::size_t rows = least; rows <= most; rows *= 2) {
    rates.emplace_back(rows, product_rate(context, rows));
    best = std::max(best, rates.back().second);
  }
  for (const auto& [rows, rate] : rates)
    if (rate >= 0.9 * best) return rows;
  return most;
}

double fp8_rate(const ops::Context& context) {
  constexpr std::size_t n = 8192;
  const auto build = [&](Arena& arena) {
    const auto operand = [&](const char* name) {
      ops::Fp8Matrix m;
      m.straight = arena.matrix<std::uint8_t>(name, Term::data, n, n);
      m.scale = ops::Fp8Scale(arena, "scale", Term::data);
      return m;
    };
    const ops::Fp8Matrix x = operand("x"), w = operand("w");
    const auto values = arena.matrix<bf16>("values", Term::data, n, n);
    if (arena.measuring()) return 0.0;
    fill(context, values);
    for (const ops::Fp8Matrix& m : {x, w})
      ops::run(context,
               ops::Fp8Round<bf16>{.values = values, .to = m, .scaling = ops::Scaling::current});
    const double seconds = median_seconds(context, [&] {
      ops::run(context, ops::Fp8LinearForward<bf16>{.workspace = {}, .x = x, .w = w, .y = values});
    });
    return 2.0 * n * n * n / seconds;
  };
  Arena measuring;
  build(measuring);
  Arena arena(measuring.bytes());
  return build(arena);
}

AttentionRates attention_rates(const ops::Context& context, std::size_t E) {
  using A = Accumulate<Fast>;
  constexpr std::size_t B = on_host ? 1 : 8, T = on_host ? 512 : 2048;
  const std::size_t H = on_host ? 4 : 1024 / E, N = B * T, width = H * E;
  Arena arena(aligned(8 * N * width * sizeof(Fast)) + 2 * aligned(B * H * T * sizeof(A)));
  const auto all = arena.matrix<Fast>("q, k, v, out and their gradients", Term::data, 8 * N, width);
  const auto lse = arena.matrix<A>("lse", Term::data, B * H, T),
             delta = arena.matrix<A>("delta", Term::data, B * H, T);
  fill(context, all);
  const auto heads = [&](std::size_t which) {
    return heads_of(as_matrix(all.data() + which * N * width, N, width), 0, B, T, H, E);
  };
  const ops::Pattern pattern{ops::Pattern::Kind::causal};
  const double scale = 1 / std::sqrt(static_cast<double>(E));
  AttentionRates rates{};
  const double product = ops::attention_product_flops<Fast>(pattern, heads(0));
  rates.forward = 2 * product / median_seconds(context, [&] {
                    ops::run(context, ops::AttentionForward<Fast>{.pattern = pattern,
                                                                  .scale = scale,
                                                                  .q = heads(0),
                                                                  .k = heads(1),
                                                                  .v = heads(2),
                                                                  .out = heads(3),
                                                                  .lse = lse});
                  });
  rates.backward = 5 * product / median_seconds(context, [&] {
                     ops::run(context, ops::AttentionBackward<Fast>{.pattern = pattern,
                                                                    .scale = scale,
                                                                    .q = heads(0),
                                                                    .k = heads(1),
                                                                    .v = heads(2),
                                                                    .out = heads(3),
                                                                    .dout = heads(4),
                                                                    .lse = lse,
                                                                    .delta = delta,
                                                                    .dq = heads(5),
                                                                    .dk = heads(6),
                                                                    .dv = heads(7)});
                   });
  return rates;
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

std::vector<double> pair_rates(const ops::Context& context, comm::Group& group) {
  constexpr std::size_t bytes = std::size_t{1} << (on_host ? 22 : 26);
  Arena arena(2 * bytes);
  const auto out = arena.vector<char>("sent", Term::data, bytes),
             in = arena.vector<char>("received", Term::data, bytes);
  std::vector<int> others;
  for (int rank = 0; rank < group.size(); ++rank)
    if (rank != group.rank()) others.push_back(rank);
  group.connect(others);
  std::vector<double> rates;
  for (int first = 0; first < group.size(); ++first)
    for (int second = first + 1; second < group.size(); ++second) {
      double seconds = 0;
      group.barrier();
      if (const int me = group.rank(); me == first || me == second) {
        const int peer = me == first ? second : first;
        seconds = median_seconds(context, [&] {
          group.exchange({out.data(), bytes, peer}, {in.data(), bytes, peer}, context);
        });
      }
      group.broadcast(&seconds, sizeof seconds, first);
      rates.push_back(bytes / seconds);
    }
  return rates;
}

template double matrix_rate<float>(const ops::Context&);
template double matrix_rate<double>(const ops::Context&);
template double matrix_rate<bf16>(const ops::Context&);
template double matrix_rate<fp16>(const ops::Context&);

}  // namespace tern::checks::detail
