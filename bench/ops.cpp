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
#include "checks/cases/activation.hpp"
#include "checks/cases/linear.hpp"
#include "checks/cases/norm.hpp"
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

  // Memory of cases (checks/cases), whose operands all hold some numbers.
  template <class S = float>
  Matrix<S> input(const char*, std::size_t rows, std::size_t columns, double = 1) {
    return matrix(rows, columns);
  }
  template <class S = float>
  Vector<S> input(const char*, std::size_t n) {
    return vector(n);
  }
  template <class S = float, class... Shape>
  auto output(const char* name, Shape... shape) {
    return input<S>(name, shape...);
  }
  template <class S = float, class... Shape>
  auto inout(const char* name, Shape... shape) {
    return input<S>(name, shape...);
  }
  template <class S>
  Vector<S> workspace(std::size_t n) {
    return vector(n);
  }
};

void linears(Data& d, const char* name, std::size_t inputs, std::size_t outputs) {
  const auto time = [&](const char* what, const auto& call) {
    report(fmt::format("linear {} {}", name, what).c_str(), call.flops(), "GFLOP/s",
           [&] { ops::run(d.context, call); });
  };
  using checks::LinearCase;
  const LinearCase plain{N, inputs, outputs, false, ops::Write::add};
  const LinearCase with_bias{N, inputs, outputs, true, ops::Write::add};
  const LinearCase adding{.N = N, .I = inputs, .O = outputs, .added = LinearCase::Added::in_place};
  time("forward", plain.forward<float>(d));
  time("forward+bias", with_bias.forward<float>(d));
  time("forward add", adding.forward<float>(d));
  time("input", adding.backward_input<float>(d));
  time("weight", plain.backward_weight<float>(d));
  time("weight+bias", with_bias.backward_weight<float>(d));
}

void norms(Data& d) {
  for (const auto norm : {ops::Norm::rmsnorm, ops::Norm::layernorm}) {
    const checks::NormCase one{norm, N, D, checks::NormCase::Place::residual};
    const std::string name = one.centered() ? "layernorm" : "rmsnorm";
    const auto calls = one.calls<float>(d);
    report((name + " forward").c_str(), calls.forward.bytes(), "GB/s",
           [&] { ops::run(d.context, calls.forward); });
    report((name + " backward").c_str(), calls.backward.bytes(), "GB/s",
           [&] { ops::run(d.context, calls.backward); });
  }
}

void elementwise(Data& d) {
  const auto x = d.matrix(N, F), y = d.matrix(N, F);
  constexpr double bytes = 4.0 * N * F;
  for (const ActivationKind& one : activation_kinds) {
    const auto calls = checks::ActivationCase{one.kind, N, F}.calls<float>(d);
    const std::string name = one.name;
    report((name + " forward").c_str(), calls.forward.bytes(), "GB/s",
           [&] { ops::run(d.context, calls.forward); });
    report((name + " backward").c_str(), calls.backward.bytes(), "GB/s",
           [&] { ops::run(d.context, calls.backward); });
  }
  report("add", 3 * bytes, "GB/s", [&] { ops::run(d.context, ops::Add<float>{.x = x, .y = y}); });
  report("dropout", 2 * bytes, "GB/s", [&] {
    ops::run(d.context, ops::Dropout<float>{.key = {0.1, 1, 1, 1, 0}, .x = y, .y = y});
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
  report("embedding forward", 8.0 * N * D, "GB/s", [&] {
    ops::run(d.context, ops::EmbeddingForward<float>{.tokens = tokens,
                                                     .table = table,
                                                     .positions = {},
                                                     .tokens_per_sequence = T,
                                                     .first = 0,
                                                     .x = x});
  });
  report("embedding backward", 4.0 * N * D, "GB/s", [&] {
    ops::run(
        d.context,
        ops::EmbeddingBackward<float>{
            .tokens = tokens, .order = order, .dx = x, .tokens_per_sequence = T, .dtable = table});
  });
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
      ops::run(d.context,
               ops::HeadLossForward<float>{
                   .x = x, .w = w, .targets = targets, .logits = logits, .losses = losses});
    });
    report(fmt::format("head backward, {} rows", chunk).c_str(), 6.0 * N * D * V, "GFLOP/s", [&] {
      ops::run(d.context, ops::HeadLossBackward<float>{.x = x,
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
    ops::run(d.context, ops::AdamWUpdate<float>{.rule = {1e-9, 0.9, 0.95, 1e-8, 0.1, 10},
                                                .master = master,
                                                .gradient = gradient,
                                                .gradient_scale = scale,
                                                .m = m,
                                                .v = v,
                                                .copy = master});
  });
  report("sum of squares", bytes, "GB/s", [&] {
    ops::run(d.context, ops::SumOfSquares<float>{.values = gradient, .result = result});
  });
  report("copy", 2 * bytes, "GB/s",
         [&] { ops::run(d.context, ops::Convert<float, float>{.from = gradient, .to = m}); });
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
