// Times the operations of one training step of the 350M GPT on one GPU, each compared with its
// floor: the bytes it must move at the copy bandwidth, or its floating-point operations at the
// matrix rate; both are arguments.
//
//   cuda_ops [accelerated|portable] [first|fastest] [64|128]
//
// `fastest`: the products' algorithms are searched, as in training with &precision products =
// 'fastest'. The number is the size of a head.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "measure.hpp"
#include "ops/attention/cuda/implementations.hpp"
#include "ops/core/cuda/library.hpp"

namespace {

using namespace tern;
using namespace tern::bench;

constexpr double copy_rate = 4.27e12, matrix_rate = 650e12;  // bytes/s, operations/s
constexpr std::size_t B = 32, T = 1024, N = B * T, D = 1024, F = 2752, V = 50304;
constexpr std::size_t L = 24, chunk = 4096;
constexpr std::size_t parameters = V * D + L * (4 * D * D + 3 * D * F);
constexpr int accumulation = 16;  // micro-batches per optimizer step

/// One line of the table; `count` times per step.
struct Line {
  std::string name;
  double count, bytes, flops;
  std::function<void()> run;
};

struct Product {
  std::string name;
  double count;
  std::size_t I, O;
};
const Product products[] = {
    {"qkv", L, D, 3 * D}, {"out", L, D, D}, {"up", L, D, 2 * F}, {"down", L, F, D}};

/// All views of a step; requested twice, measuring and allocating.
struct Step {
  const ops::Context& context;
  const std::size_t E, H = D / E;  // size and number of heads
  Matrix<bf16> x, y, z, wide, wide2, narrow, qkv, dqkv, logits, w;
  Matrix<float> dw, lse, delta, angles;
  Vector<bf16> gain, copy;
  Vector<float> rstd, dgain, partial, master, gradient, m, v, losses, weights, one;
  Matrix<std::int32_t> numbers;  // tokens, order, targets
  ops::SpanTable blocks{B, T};
  Matrix<std::int32_t> spans, hulls;

  Step(Buffers b, std::size_t head_size)
      : context(b.context),
        E(head_size),
        x(b.random<bf16>(N, D)),
        y(b.random<bf16>(N, D)),
        z(b.random<bf16>(N, D)),
        wide(b.random<bf16>(N, 2 * F)),
        wide2(b.random<bf16>(N, 2 * F)),
        narrow(b.random<bf16>(N, F)),
        qkv(b.random<bf16>(N, 3 * D)),
        dqkv(b.random<bf16>(N, 3 * D)),
        logits(b.random<bf16>(chunk, V)),
        w(b.random<bf16>(V, D, 0.03f)),
        dw(b.random<float>(V, D)),
        lse(b.random<float>(B * H, T)),
        delta(b.random<float>(B * H, T)),
        angles(b.random<float>(T, E)),
        gain(b.vector<bf16>(D)),
        copy(b.vector<bf16>(parameters)),
        rstd(b.vector<float>(N)),
        dgain(b.vector<float>(D)),
        partial(b.vector<float>(ops::norm_partials(D))),
        master(b.vector<float>(parameters)),
        gradient(b.vector<float>(parameters)),
        m(b.vector<float>(parameters)),
        v(b.vector<float>(parameters, 0)),
        losses(b.vector<float>(N)),
        weights(b.vector<float>(N)),
        one(b.vector<float>(1)),
        numbers(b.arena.matrix<std::int32_t>("bench", Term::data, 3, N)),
        spans(b.arena.matrix<std::int32_t>("bench", Term::data, N, 4)),
        hulls(b.arena.matrix<std::int32_t>("bench", Term::data, blocks.hulls().size(), 8)) {}

  Vector<const std::int32_t> integers(std::size_t row) const {
    return Vector<const std::int32_t>(numbers.data() + row * N, N);
  }
  /// Tokens with the skew of natural text (rank ~ exp of a uniform number), sorted rows, targets.
  void prepare() {
    Kokkos::deep_copy(one, 1.0f);
    std::vector<std::int32_t> host(3 * N);
    for (std::size_t i = 0; i < N; ++i) {
      const Random4 r = philox(2, Stream::test, 0, 0, static_cast<std::uint32_t>(i));
      host[i] = static_cast<std::int32_t>(std::exp(uniform(r.word[0]) * 10.8f)) - 1;
      host[N + i] = static_cast<std::int32_t>(i);
      host[2 * N + i] = static_cast<std::int32_t>(r.word[1] % 50257);
    }
    std::stable_sort(&host[N], &host[N] + N, [&](int a, int b) { return host[a] < host[b]; });
    upload(host.data(), numbers);
    draw_blocks();
    ops::run(context, ops::RotaryTable<float>{.base = 10000, .table = angles});
  }
  /// Block diffusion over [noisy | clean] halves of each row, blocks of 16.
  void draw_blocks() {
    constexpr int half = T / 2, block = 16;
    for (std::size_t b = 0; b < B; ++b)
      for (int i = 0; i < half; ++i) {
        const int first = i / block * block;
        blocks.at(b, i) = {{half, half + first}, {first, first + block}};
        blocks.at(b, half + i) = {{half, half + first + block}, {}};
      }
    blocks.finish();
    upload(&blocks.spans()[0].context.first, spans);
    upload(&blocks.hulls()[0].widest.context.first, hulls);
  }
  static void upload(const std::int32_t* from, const Matrix<std::int32_t>& to) {
    Kokkos::deep_copy(
        Vector<std::int32_t>(to.data(), to.size()),
        Kokkos::View<const std::int32_t*, Kokkos::HostSpace, Unmanaged>(from, to.size()));
  }
  ops::Pattern block_diffusion() const {
    return blocks.pattern(reinterpret_cast<const ops::KeySpans*>(spans.data()),
                          reinterpret_cast<const ops::SpanHull*>(hulls.data()));
  }
  double block_diffusion_pairs() const {
    double pairs = 0;
    for (const ops::KeySpans& s : blocks.spans())
      pairs += s.context.last - s.context.first + s.own.last - s.own.first;
    return pairs / B;
  }
  Matrix<bf16> activations(std::size_t width) const {
    return width == D ? x : width == F ? narrow : width == 3 * D ? qkv : wide;
  }
  Matrix<bf16> results(std::size_t width) const {
    return width == D ? y : width == 3 * D ? dqkv : wide2;
  }
  Heads<bf16> heads(const Matrix<bf16>& fused, int part) const {
    return heads_of(fused, part * D, B, T, H, E);
  }
  double scale() const { return 1 / std::sqrt(static_cast<double>(E)); }
};

void add_products(std::vector<Line>& lines, const Step& s) {
  for (const Product& p : products) {
    const double flops = 2.0 * N * p.I * p.O, rows = N, io = 2 * rows * (p.I + p.O);
    const auto in = s.activations(p.I), out = s.results(p.O);
    const Matrix<bf16> w(s.w.data(), p.O, p.I);
    const Matrix<float> dw(s.dw.data(), p.O, p.I);
    const auto added = p.O == D ? out : Matrix<bf16>();
    lines.push_back(
        {"linear_forward " + p.name, p.count, io, flops, [=, &s] {
           ops::run(s.context, ops::LinearForward<bf16>{.x = in, .w = w, .y = out, .added = added});
         }});
    lines.push_back({"linear_backward_input " + p.name, p.count, io, flops, [=, &s] {
                       ops::run(s.context,
                                ops::LinearBackwardInput<bf16>{.dy = out, .w = w, .dx = in});
                     }});
    lines.push_back({"linear_backward_weight " + p.name, p.count, io, flops, [=, &s] {
                       ops::run(s.context,
                                ops::LinearBackwardWeight<bf16>{.dy = out, .x = in, .dw = dw});
                     }});
  }
}

void add_attention(std::vector<Line>& lines, const Step& s, const ops::Context& context,
                   const std::string& name, double count, const ops::Pattern& pattern,
                   double pairs) {
  const double flops = 4.0 * B * D * pairs, rows = N;
  lines.push_back({"attention_forward" + name, count, 2 * rows * 4 * D, flops, [=, &s, &context] {
                     ops::run(context, ops::AttentionForward<bf16>{.pattern = pattern,
                                                                   .scale = s.scale(),
                                                                   .q = s.heads(s.qkv, 0),
                                                                   .k = s.heads(s.qkv, 1),
                                                                   .v = s.heads(s.qkv, 2),
                                                                   .out = s.heads(s.y, 0),
                                                                   .lse = s.lse});
                   }});
  lines.push_back(
      {"attention_backward" + name, count, 2 * rows * 8 * D, 2.5 * flops, [=, &s, &context] {
         ops::run(context, ops::AttentionBackward<bf16>{.pattern = pattern,
                                                        .scale = s.scale(),
                                                        .q = s.heads(s.qkv, 0),
                                                        .k = s.heads(s.qkv, 1),
                                                        .v = s.heads(s.qkv, 2),
                                                        .out = s.heads(s.y, 0),
                                                        .dout = s.heads(s.x, 0),
                                                        .lse = s.lse,
                                                        .delta = s.delta,
                                                        .dq = s.heads(s.dqkv, 0),
                                                        .dk = s.heads(s.dqkv, 1),
                                                        .dv = s.heads(s.dqkv, 2)});
       }});
}

/// Causal attention by cuDNN alone, whose backward is timed with and without atomic sums.
void add_cudnn_attention(std::vector<Line>& lines, const Step& s, const ops::Context& context) {
  const ops::Pattern causal;
  add_attention(lines, s, context, ", cuDNN", 0, causal, causal.pairs(T));
  Line atomics = lines.back();
  atomics.name += ", atomic";
  atomics.run = [&context, run = atomics.run] {
    ops::cuda::implementations(context).cudnn()->allow_atomics(true);
    run();
    ops::cuda::implementations(context).cudnn()->allow_atomics(false);
  };
  lines.push_back(atomics);
}

void add_rest(std::vector<Line>& lines, const Step& s) {
  using namespace ops;
  const double rows = N, row = 2.0 * N * D, n = parameters;
  lines.push_back({"rmsnorm forward", 2 * L + 1, 2 * row, 0, [&s] {
                     run(s.context, NormForward<bf16>{.kind = Norm::rmsnorm,
                                                      .x = s.x,
                                                      .gain = s.gain,
                                                      .eps = 1e-5,
                                                      .y = s.y,
                                                      .rstd = s.rstd});
                   }});
  lines.push_back({"rmsnorm backward, added", 2 * L, 4 * row, 0, [&s] {
                     run(s.context, NormBackward<bf16>{.kind = Norm::rmsnorm,
                                                       .dy = s.x,
                                                       .x = s.y,
                                                       .gain = s.gain,
                                                       .rstd = s.rstd,
                                                       .dx = s.z,
                                                       .residual = s.z,
                                                       .dgain = s.dgain,
                                                       .partial = s.partial});
                   }});
  for (const auto direction : {Direction::forward, Direction::backward})
    lines.push_back({"rotary q, k", L, 4 * row, 0, [=, &s] {
                       for (const int part : {0, 1})
                         run(s.context, Rotary<bf16>{.x = s.heads(s.qkv, part),
                                                     .table = s.angles,
                                                     .positions = {0},
                                                     .direction = direction});
                     }});
  lines.push_back({"swiglu forward", L, 2 * rows * 3 * F, 0, [&s] {
                     run(s.context, ActivationForward<bf16>{
                                        .kind = Activation::swiglu, .x = s.wide, .y = s.narrow});
                   }});
  lines.push_back({"swiglu backward", L, 2 * rows * 5 * F, 0, [&s] {
                     run(s.context, ActivationBackward<bf16>{.kind = Activation::swiglu,
                                                             .x = s.wide,
                                                             .dy = s.narrow,
                                                             .dx = s.wide2});
                   }});
  lines.push_back({"embedding forward", 1, 2 * row, 0, [&s] {
                     run(s.context, EmbeddingForward<bf16>{.tokens = s.integers(0),
                                                           .table = s.w,
                                                           .positions = {},
                                                           .tokens_per_sequence = T,
                                                           .first = 0,
                                                           .x = s.x});
                   }});
  lines.push_back({"embedding backward", 1, row + 8.0 * 12000 * D, 0, [&s] {
                     run(s.context, EmbeddingBackward<bf16>{.tokens = s.integers(0),
                                                            .order = s.integers(1),
                                                            .dx = s.x,
                                                            .tokens_per_sequence = T,
                                                            .dtable = s.dw});
                   }});
  lines.push_back({"head and loss backward", 1, 8.0 * N * V, 6.0 * N * D * V, [&s] {
                     run(s.context, HeadLossBackward<bf16>{.options = {0, 50257},
                                                           .x = s.x,
                                                           .w = s.w,
                                                           .targets = s.integers(2),
                                                           .weights = s.weights,
                                                           .logits = s.logits,
                                                           .losses = s.losses,
                                                           .dx = s.y,
                                                           .dw = s.dw});
                   }});
  lines.push_back({"sum of squares", 1.0 / accumulation, 4 * n, 0, [&s] {
                     run(s.context, SumOfSquares<float>{.values = s.gradient, .result = s.dgain});
                   }});
  lines.push_back({"adamw", 1.0 / accumulation, 30 * n, 0, [&s] {
                     run(s.context, AdamWUpdate<bf16>{.rule = {1e-4, 0.9, 0.95, 1e-8, 0.1, 10},
                                                      .master = s.master,
                                                      .gradient = s.gradient,
                                                      .gradient_scale = s.one,
                                                      .m = s.m,
                                                      .v = s.v,
                                                      .copy = s.copy});
                   }});
  lines.push_back({"add", 0, 3 * row, 0, [&s] { run(s.context, Add<bf16>{.x = s.x, .y = s.y}); }});
  lines.push_back({"device copy", 0, 4 * n * 2, 0, [&s] {
                     cudaMemcpyAsync(s.m.data(), s.gradient.data(), 4 * parameters,
                                     cudaMemcpyDeviceToDevice,
                                     static_cast<cudaStream_t>(s.context.handle()));
                   }});
}

void print_table(const ops::Context& context, const std::vector<Line>& lines) {
  std::printf("%-34s %9s %9s %6s %9s %9s %8s\n", "operation", "us", "floor us", "ratio", "TFLOP/s",
              "TB/s", "ms/step");
  double total = 0, total_floor = 0;
  for (const Line& line : lines) {
    const double seconds = time_of(context, line.run);
    const double floor = std::max(line.bytes / copy_rate, line.flops / matrix_rate);
    total += line.count * seconds, total_floor += line.count * floor;
    std::printf("%-34s %9.1f %9.1f %6.2f %9.0f %9.2f %8.2f\n", line.name.c_str(), seconds * 1e6,
                floor * 1e6, seconds / floor, line.flops / seconds * 1e-12,
                line.bytes / seconds * 1e-12, line.count * seconds * 1e3);
    std::fflush(stdout);
  }
  std::printf("a micro-batch of %zu tokens: %.1f ms, floor %.1f ms: %.0f tokens/s, floor %.0f\n", N,
              total * 1e3, total_floor * 1e3, N / total, N / total_floor);
}

}  // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  const bool portable = argc > 1 && std::strcmp(argv[1], "portable") == 0;
  const bool fastest = argc > 2 && std::strcmp(argv[2], "fastest") == 0;
  const std::size_t head_size = argc > 3 ? std::stoul(argv[3]) : 64;
  const bool with_cudnn = !portable && ops::cudnn_built();
  const auto make = [&](Arena& arena) {
    return ops::make_context(arena, !portable, "auto",
                             fastest ? ops::Products::fastest : ops::Products::first);
  };
  const auto make_cudnn = [&](Arena& arena) {
    return with_cudnn ? ops::make_context(arena, true, "cudnn") : ops::Context();
  };
  Arena measuring;
  const ops::Context nothing = make(measuring);
  make_cudnn(measuring);
  Step(Buffers{measuring, nothing}, head_size);
  Arena arena(measuring.bytes());
  const ops::Context context = make(arena), cudnn = make_cudnn(arena);
  Step step(Buffers{arena, context}, head_size);
  step.prepare();
  std::vector<Line> lines;
  add_products(lines, step);
  if (!portable) {
    add_attention(lines, step, context, "", L, ops::Pattern{}, ops::Pattern{}.pairs(T));
    if (with_cudnn) add_cudnn_attention(lines, step, cudnn);
    add_attention(lines, step, context, ", block diffusion", 0, step.block_diffusion(),
                  step.block_diffusion_pairs());
  }
  add_rest(lines, step);
  print_table(context, lines);
}
