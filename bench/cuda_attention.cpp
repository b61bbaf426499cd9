// Times causal attention of whole sequences at the shapes that models train, on one GPU: backward by Tern's kernels and by cuDNN,
// with and without atomic sums, and forward by cuDNN. 32,768 tokens per call.
//
//   cuda_attention
//
// TFLOP/s count the arithmetic that causality leaves, without what backward computes twice.
#include <cmath>
#include <cstdio>

#include "base/error.hpp"
#include "measure.hpp"
#include "ops/attention/cuda/implementations.hpp"
#include "ops/core/cuda/library.hpp"

namespace {

using namespace tern;
using namespace tern::bench;

struct Shape {
  std::size_t heads, kv_heads, size, tokens;
};
constexpr std::size_t rows = 32768, widest = 4096;
constexpr Shape shapes[] = {
    {16, 16, 64, 1024},  {16, 16, 64, 4096},  {32, 8, 64, 4096},   {8, 8, 128, 1024},
    {16, 16, 128, 2048}, {16, 16, 128, 8192}, {16, 8, 128, 4096},  {24, 8, 128, 4096},
    {32, 8, 128, 4096},  {32, 8, 128, 8192},  {32, 8, 128, 32768},
};

struct Tensors {
  Matrix<bf16> qkv, dqkv, out, dout;
  Matrix<float> lse, delta;

  explicit Tensors(Buffers b)
      : qkv(b.random<bf16>(rows, 3 * widest)),
        dqkv(b.random<bf16>(rows, 3 * widest)),
        out(b.random<bf16>(rows, widest)),
        dout(b.random<bf16>(rows, widest)),
        lse(b.random<float>(rows, widest / 64)),
        delta(b.random<float>(rows, widest / 64)) {}
};

/// Calls of one shape.
struct Attention {
  const Tensors& t;
  Shape shape;
  std::size_t batch = rows / shape.tokens, width = (shape.heads + 2 * shape.kv_heads) * shape.size;

  template <class T>
  Heads<T> heads(const Matrix<T>& all, std::size_t columns, std::size_t first,
                 std::size_t count) const {
    return heads_of(Matrix<T>(all.data(), rows, columns), first * shape.size, batch, shape.tokens,
                    count, shape.size);
  }
  double scale() const { return 1 / std::sqrt(static_cast<double>(shape.size)); }
  Matrix<float> statistic(const Matrix<float>& all) const {
    return Matrix<float>(all.data(), batch * shape.heads, shape.tokens);
  }
  void forward(const ops::Context& context) const {
    const auto [H, K, E, T] = shape;
    ops::run(context, ops::AttentionForward<bf16>{.pattern = {},
                                                  .scale = scale(),
                                                  .q = heads(t.qkv, width, 0, H),
                                                  .k = heads(t.qkv, width, H, K),
                                                  .v = heads(t.qkv, width, H + K, K),
                                                  .out = heads(t.out, H * E, 0, H),
                                                  .lse = statistic(t.lse)});
  }
  void backward(const ops::Context& context) const {
    const auto [H, K, E, T] = shape;
    ops::run(context, ops::AttentionBackward<bf16>{.pattern = {},
                                                   .scale = scale(),
                                                   .q = heads(t.qkv, width, 0, H),
                                                   .k = heads(t.qkv, width, H, K),
                                                   .v = heads(t.qkv, width, H + K, K),
                                                   .out = heads(t.out, H * E, 0, H),
                                                   .dout = heads(t.dout, H * E, 0, H),
                                                   .lse = statistic(t.lse),
                                                   .delta = statistic(t.delta),
                                                   .dq = heads(t.dqkv, width, 0, H),
                                                   .dk = heads(t.dqkv, width, H, K),
                                                   .dv = heads(t.dqkv, width, H + K, K)});
  }
  double flops() const {
    return 4.0 * batch * shape.heads * shape.size * ops::Pattern{}.pairs(shape.tokens);
  }
};

/// The time of `run`, or that cuDNN refuses the shape: its deterministic sums need a workspace that grows with the context.
template <class Run>
void print_time(const ops::Context& context, double flops, const Run& run) {
  try {
    const double seconds = time_of(context, run);
    std::printf("  %9.0f us %5.0f", seconds * 1e6, flops / seconds * 1e-12);
  } catch (const UserError&) {
    std::printf("%19s", "refused");
  }
}

}  // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  const auto make = [](Arena& arena, const char* attention) {
    return ops::make_context(arena, true, attention);
  };
  Arena measuring;
  const ops::Context nothing = make(measuring, "auto");
  make(measuring, "cudnn");
  Tensors(Buffers{measuring, nothing});
  Arena arena(measuring.bytes());
  const ops::Context own = make(arena, "auto"), cudnn = make(arena, "cudnn");
  const Tensors tensors(Buffers{arena, own});
  std::printf("%-24s%19s%19s%19s%19s  (TFLOP/s)\n", "heads, size, context", "backward, Tern",
              "cuDNN", "cuDNN, atomic", "forward, cuDNN");
  for (const Shape& shape : shapes) {
    const Attention attention{tensors, shape};
    const double flops = attention.flops();
    std::printf("%2zu / %2zu x %3zu, %6zu     ", shape.heads, shape.kv_heads, shape.size,
                shape.tokens);
    attention.forward(cudnn);  // outputs and log-sum-exps that belong together
    print_time(own, 2.5 * flops, [&] { attention.backward(own); });
    for (const bool atomic : {false, true}) {
      ops::cuda::implementations(cudnn).cudnn()->allow_atomics(atomic);
      print_time(cudnn, 2.5 * flops, [&] { attention.backward(cudnn); });
    }
    ops::cuda::implementations(cudnn).cudnn()->allow_atomics(false);
    print_time(cudnn, flops, [&] { attention.forward(cudnn); });
    std::printf("\n");
    std::fflush(stdout);
  }
}
