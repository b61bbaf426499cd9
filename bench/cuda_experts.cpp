// Times the operations of one MoE layer of Qwen3-30B-A3B on one GPU: 128 experts of 768, 8 per
// token, hidden 2048. The experts are drawn nearly evenly, as a trained router uses them.
//
//   cuda_experts [tokens...]                   64, 512 and 8192 unless given
//
// TFLOP/s counts the products; GB/s the least traffic: the matrices of all experts that have a
// token, once, and each operand's rows. A gradient of weights is read and written in float.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "measure.hpp"
#include "ops/ops.hpp"

namespace {

using namespace tern;
using namespace tern::bench;
using Index = std::int32_t;

constexpr std::size_t X = 128, k = 8, D = 2048, F = 768;

/// All views of a layer of N tokens; requested twice, measuring and allocating.
struct Layer {
  const ops::Context& context;
  std::size_t N, R;
  Matrix<bf16> logits, x, out, up, dup, hidden, rows, w_up, w_down;
  Matrix<float> dw_up, dw_down, probabilities, weights, dweights;
  ops::Routing to;

  Layer(Buffers b, std::size_t tokens)
      : context(b.context),
        N(tokens),
        R(tokens * k),
        logits(b.random<bf16>(N, X)),
        x(b.random<bf16>(N, D)),
        out(b.random<bf16>(N, D)),
        up(b.random<bf16>(R, 2 * F)),
        dup(b.random<bf16>(R, 2 * F)),
        hidden(b.random<bf16>(R, F)),
        rows(b.random<bf16>(R, D)),
        w_up(b.random<bf16>(X * 2 * F, D, 0.02f)),
        w_down(b.random<bf16>(X * D, F, 0.02f)),
        dw_up(b.random<float>(X * 2 * F, D)),
        dw_down(b.random<float>(X * D, F)),
        probabilities(b.random<float>(N, X)),
        weights(b.random<float>(N, k)),
        dweights(b.random<float>(N, k)) {
    const auto indices = [&](std::size_t n) {
      return b.arena.vector<Index>("bench", Term::data, n);
    };
    to.experts = as_matrix(indices(R).data(), N, k);
    to.rows = as_matrix(indices(R).data(), N, k);
    to.offsets = indices(X + 1);
    to.pairs = indices(R);
    to.tokens = indices(R);
  }

  template <class T>
  static ops::Grouped<T> grouped(const Matrix<std::remove_const_t<T>>& all) {
    const std::size_t each = all.extent(0) / X;
    return {all.data(), X, each, all.extent(1), each * all.extent(1)};
  }
};

/// Experts with a token.
std::size_t used(const Layer& l) {
  std::vector<Index> offsets(X + 1);
  Kokkos::deep_copy(Kokkos::View<Index*, Kokkos::HostSpace, Unmanaged>(offsets.data(), X + 1),
                    l.to.offsets);
  std::size_t count = 0;
  for (std::size_t e = 0; e < X; ++e) count += offsets[e + 1] > offsets[e];
  return count;
}

struct Line {
  const char* name;
  double flops, bytes;
  std::function<void()> run;
};

std::vector<Line> lines(const Layer& l) {
  const ops::Context& c = l.context;
  const double R = static_cast<double>(l.R), N = static_cast<double>(l.N);
  const double matrices = static_cast<double>(used(l)), up = 2.0 * R * 2 * F * D, down = up / 2;
  const double of_up = matrices * 2 * F * D, of_down = of_up / 2;  // numbers
  const ops::Gathered<bf16> x{l.x, l.to.tokens}, out{l.out, l.to.tokens};
  const auto w_up = Layer::grouped<const bf16>(l.w_up),
             w_down = Layer::grouped<const bf16>(l.w_down);
  const auto dw_up = Layer::grouped<float>(l.dw_up), dw_down = Layer::grouped<float>(l.dw_down);
  const Vector<const Index> at = l.to.offsets;
  return {
      {"route", 0, N * (X * 6 + k * 8),
       [=] {
         ops::run(c, ops::Route<bf16>{.renormalize = true,
                                      .logits = l.logits,
                                      .probabilities = l.probabilities,
                                      .weights = l.weights,
                                      .experts = l.to.experts});
       }},
      {"sort_pairs", 0, R * 16, [=] { ops::run(c, ops::SortPairs{.routing = l.to}); }},
      {"up", up, 2 * (of_up + N * D + R * 2 * F),
       [=] {
         ops::run(c, ops::GroupedForward<bf16>{.offsets = at, .x = x, .w = w_up, .y = l.up});
       }},
      {"weighted_swiglu", 0, 2 * R * 3 * F,
       [=] {
         ops::run(c, ops::WeightedSwiglu<bf16>{
                         .x = l.up, .weights = l.weights, .pairs = l.to.pairs, .y = l.hidden});
       }},
      {"down", down, 2 * (of_down + R * (F + D)),
       [=] {
         ops::run(c, ops::GroupedForward<bf16>{
                         .offsets = at, .x = {l.hidden}, .w = w_down, .y = l.rows});
       }},
      {"combine", 0, 2 * (R + N) * D,
       [=] { ops::run(c, ops::Combine<bf16>{.values = l.rows, .rows = l.to.rows, .to = l.out}); }},
      {"down, input", down, 2 * (of_down + N * D + R * F),
       [=] {
         ops::run(c, ops::GroupedBackwardInput<bf16>{
                         .offsets = at, .dy = out, .w = w_down, .dx = l.hidden});
       }},
      {"down, weight", down, 8 * of_down + 2 * (N * D + R * F),
       [=] {
         ops::run(c, ops::GroupedBackwardWeight<bf16>{
                         .offsets = at, .dy = out, .x = {l.hidden}, .dw = dw_down});
       }},
      {"weighted_swiglu_backward", 0, 2 * R * 5 * F,
       [=] {
         ops::run(c, ops::WeightedSwigluBackward<bf16>{.x = l.up,
                                                       .weights = l.weights,
                                                       .pairs = l.to.pairs,
                                                       .dy = l.hidden,
                                                       .dx = l.dup,
                                                       .dweights = l.dweights});
       }},
      {"up, input", up, 2 * (of_up + R * (2 * F + D)),
       [=] {
         ops::run(c, ops::GroupedBackwardInput<bf16>{
                         .offsets = at, .dy = {l.dup}, .w = w_up, .dx = l.rows});
       }},
      {"up, weight", up, 8 * of_up + 2 * (R * 2 * F + N * D),
       [=] {
         ops::run(c, ops::GroupedBackwardWeight<bf16>{
                         .offsets = at, .dy = {l.dup}, .x = x, .dw = dw_up});
       }},
  };
}

void run(std::size_t tokens) {
  std::size_t bytes;
  {
    Arena measuring;
    const ops::Context context = ops::make_context(measuring, true, "auto");
    Layer(Buffers{measuring, context}, tokens);
    bytes = measuring.bytes();
  }
  Arena arena(bytes);
  const ops::Context context = ops::make_context(arena, true, "auto");
  const Layer layer(Buffers{arena, context}, tokens);
  ops::run(context, ops::Route<bf16>{.renormalize = true,
                                     .logits = layer.logits,
                                     .probabilities = layer.probabilities,
                                     .weights = layer.weights,
                                     .experts = layer.to.experts});
  ops::run(context, ops::SortPairs{.routing = layer.to});
  context.fence("routed");
  std::printf("%zu tokens, %zu pairs, %zu experts used\n", tokens, layer.R, used(layer));
  for (const Line& line : lines(layer)) {
    const double seconds = time_of(context, line.run);
    std::printf("  %-26s %9.1f us %8.1f TFLOP/s %8.0f GB/s\n", line.name, seconds * 1e6,
                line.flops / seconds * 1e-12, line.bytes / seconds * 1e-9);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos;
  std::vector<std::size_t> tokens;
  for (int i = 1; i < argc; ++i) tokens.push_back(std::strtoul(argv[i], nullptr, 10));
  if (tokens.empty()) tokens = {64, 512, 8192};
  for (const std::size_t n : tokens) run(n);
}
