// Times each portable operation at the laptop GPT's shapes in float: the shortest of many calls,
// with the corresponding rate of memory traffic or arithmetic. Usage: OMP_NUM_THREADS=2 bench_ops
// [filter]
#include <fmt/format.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <cstring>
#include <ctime>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "base/timer.hpp"
#include "ops/ops.hpp"

using namespace tern;

namespace {

constexpr std::size_t B = 8, T = 256, N = B * T, D = 256, F = 704, V = 1024, Q = 3 * D;
constexpr std::size_t parameters = 4 * (4 * D * D + 3 * D * F) + V * D;

const char* filter = "";

/// `work`: bytes or floating-point operations of one call.
void report(const char* name, double work, const char* unit, const std::function<void()>& call) {
  if (!std::strstr(name, filter)) return;
  call();
  Kokkos::fence();
  double least = 1e9, processor = 1e9;
  const Timer total;
  while (total.seconds() < 0.5) {
    const std::clock_t start = std::clock();
    const Timer timer;
    call();
    Kokkos::fence();
    least = std::min(least, timer.seconds());
    processor = std::min(processor, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  fmt::print("{:28} {:9.4f} ms {:8.1f} {:8} {:9.4f} ms of processors\n", name, least * 1e3,
             work / least * 1e-9, unit, processor * 1e3);
}

void fill(Vector<float> v, float scale = 0.01f) {
  Kokkos::parallel_for(
      "fill", Kokkos::RangePolicy<Device>(0, v.size()),
      KOKKOS_LAMBDA(const int i) { v(i) = scale * static_cast<float>((i * 7919) % 401 - 200); });
}

struct Data {
  Arena arena{std::size_t{512} << 20};
  ops::Context context = ops::make_context(arena, false, "portable");

  Matrix<float> matrix(std::size_t rows, std::size_t columns) {
    const auto m = arena.matrix<float>("bench", Term::activations, rows, columns);
    fill(Vector<float>(m.data(), m.size()));
    return m;
  }
  Vector<float> vector(std::size_t n) { return Vector<float>(matrix(1, n).data(), n); }
};

void linears(Data& d, const char* name, std::size_t inputs, std::size_t outputs) {
  const auto x = d.matrix(N, inputs), dx = d.matrix(N, inputs), y = d.matrix(N, outputs),
             w = d.matrix(outputs, inputs), dw = d.matrix(outputs, inputs);
  const auto bias = d.vector(outputs);
  const double flop = 2.0 * N * static_cast<double>(inputs * outputs);
  const std::string n = std::string("linear ") + name;
  report((n + " forward").c_str(), flop, "GFLOP/s",
         [&] { ops::linear_forward<float>(d.context, x, w, {}, y); });
  report((n + " forward+bias").c_str(), flop, "GFLOP/s",
         [&] { ops::linear_forward<float>(d.context, x, w, bias, y); });
  report((n + " forward add").c_str(), flop, "GFLOP/s",
         [&] { ops::linear_forward<float>(d.context, x, w, {}, y, y); });
  report((n + " input").c_str(), flop, "GFLOP/s",
         [&] { ops::linear_backward_input<float>(d.context, y, w, dx); });
  report((n + " weight").c_str(), flop, "GFLOP/s",
         [&] { ops::linear_backward_weight<float>(d.context, y, x, dw, {}); });
  report((n + " weight+bias").c_str(), flop, "GFLOP/s",
         [&] { ops::linear_backward_weight<float>(d.context, y, x, dw, bias); });
}

void norms(Data& d) {
  const auto x = d.matrix(N, D), y = d.matrix(N, D), dx = d.matrix(N, D);
  const auto gain = d.vector(D), bias = d.vector(D), mean = d.vector(N), rstd = d.vector(N),
             partial = d.vector(ops::norm_partials(D));
  constexpr double bytes = 4.0 * N * D;
  for (const auto norm : {ops::Norm::rmsnorm, ops::Norm::layernorm}) {
    const bool centered = norm == ops::Norm::layernorm;
    const std::string name = centered ? "layernorm" : "rmsnorm";
    const auto offset = centered ? bias : Vector<float>();
    report((name + " forward").c_str(), 2 * bytes, "GB/s", [&] {
      ops::norm_forward<float>(d.context, {.kind = norm,
                                           .x = x,
                                           .gain = gain,
                                           .bias = offset,
                                           .eps = 1e-5,
                                           .y = y,
                                           .mean = mean,
                                           .rstd = rstd});
    });
    report((name + " backward").c_str(), 4 * bytes, "GB/s", [&] {
      ops::norm_backward<float>(d.context, {.kind = norm,
                                            .dy = y,
                                            .x = x,
                                            .gain = gain,
                                            .mean = mean,
                                            .rstd = rstd,
                                            .dx = dx,
                                            .residual = dx,
                                            .dgain = gain,
                                            .dbias = offset,
                                            .partial = partial});
    });
  }
}

void elementwise(Data& d) {
  const auto wide = d.matrix(N, 2 * F), dwide = d.matrix(N, 2 * F), y = d.matrix(N, F),
             x = d.matrix(N, F), dx = d.matrix(N, F);
  constexpr double bytes = 4.0 * N * F;
  using ops::Activation;
  report("swiglu forward", 3 * bytes, "GB/s",
         [&] { ops::activation_forward<float>(d.context, Activation::swiglu, wide, y); });
  report("swiglu backward", 5 * bytes, "GB/s",
         [&] { ops::activation_backward<float>(d.context, Activation::swiglu, wide, y, dwide); });
  report("gelu forward", 2 * bytes, "GB/s",
         [&] { ops::activation_forward<float>(d.context, Activation::gelu, x, y); });
  report("gelu backward", 3 * bytes, "GB/s",
         [&] { ops::activation_backward<float>(d.context, Activation::gelu, x, y, dx); });
  report("relu2 forward", 2 * bytes, "GB/s",
         [&] { ops::activation_forward<float>(d.context, Activation::relu2, x, y); });
  report("add", 3 * bytes, "GB/s", [&] { ops::add<float>(d.context, x, y); });
  report("dropout", 2 * bytes, "GB/s", [&] {
    ops::dropout<float>(d.context, {0.1, 1, 1, 1, 0}, y, {}, y);
  });
}

void embedding(Data& d) {
  const auto table = d.matrix(V, D), x = d.matrix(N, D);
  const auto tokens = d.arena.vector<std::int32_t>("tokens", Term::data, N);
  const auto order = d.arena.vector<std::int32_t>("order", Term::data, N);
  std::vector<std::int32_t> host(N), sorted(N);
  for (std::size_t i = 0; i < N; ++i)  // few tokens often, many rarely
    host[i] = static_cast<std::int32_t>((i * i * 31 % 1009) * (i * 17 % 1013) / 1013);
  std::iota(sorted.begin(), sorted.end(), 0);
  std::stable_sort(sorted.begin(), sorted.end(), [&](int a, int b) { return host[a] < host[b]; });
  Kokkos::deep_copy(tokens, HostVector<std::int32_t>(host.data(), N));
  Kokkos::deep_copy(order, HostVector<std::int32_t>(sorted.data(), N));
  report("embedding forward", 8.0 * N * D, "GB/s",
         [&] { ops::embedding_forward<float>(d.context, tokens, table, {}, T, 0, x); });
  report("embedding backward", 4.0 * N * D, "GB/s",
         [&] { ops::embedding_backward<float>(d.context, tokens, order, x, T, table, {}); });
}

void losses(Data& d) {
  const auto x = d.matrix(N, D), dx = d.matrix(N, D), w = d.matrix(V, D), dw = d.matrix(V, D);
  const auto targets = d.arena.vector<std::int32_t>("targets", Term::data, N);
  const auto weights = d.vector(N), losses = d.vector(N);
  fill(Vector<float>(w.data(), w.size()),
       1e-4f);  // larger logits would mean denormal probabilities
  for (const std::size_t chunk : {N, N / 4}) {
    const auto logits = d.matrix(chunk, V);
    report(fmt::format("head loss, {} rows", chunk).c_str(), 2.0 * N * D * V, "GFLOP/s", [&] {
      ops::head_loss_forward<float>(
          d.context, {.x = x, .w = w, .targets = targets, .logits = logits, .losses = losses});
    });
    report(fmt::format("head backward, {} rows", chunk).c_str(), 6.0 * N * D * V, "GFLOP/s", [&] {
      ops::head_loss_backward<float>(d.context, {.x = x,
                                                 .w = w,
                                                 .targets = targets,
                                                 .weights = weights,
                                                 .logits = logits,
                                                 .losses = losses,
                                                 .dx = dx,
                                                 .dw = dw});
    });
  }
}

void optimizer(Data& d) {
  const auto master = d.vector(parameters), gradient = d.vector(parameters),
             m = d.vector(parameters), v = d.vector(parameters), scale = d.vector(1),
             result = d.vector(1);
  Kokkos::deep_copy(scale, 1.0f);
  Kokkos::deep_copy(v, 1.0f);
  constexpr double bytes = 4.0 * parameters;
  report("adamw", 7 * bytes, "GB/s", [&] {
    ops::adamw_update<float>(d.context, {.rule = {1e-9, 0.9, 0.95, 1e-8, 0.1, 10},
                                         .master = master,
                                         .gradient = gradient,
                                         .gradient_scale = scale,
                                         .m = m,
                                         .v = v,
                                         .copy = master});
  });
  report("sum of squares", bytes, "GB/s",
         [&] { ops::sum_of_squares<float>(d.context, gradient, result); });
  report("copy", 2 * bytes, "GB/s", [&] { ops::convert<float, float>(d.context, gradient, m); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) filter = argv[1];
  const Kokkos::ScopeGuard kokkos;
  Data data;
  linears(data, "qkv", D, Q);
  linears(data, "out", D, D);
  linears(data, "up", D, 2 * F);
  linears(data, "down", F, D);
  norms(data);
  elementwise(data);
  embedding(data);
  losses(data);
  optimizer(data);
}
