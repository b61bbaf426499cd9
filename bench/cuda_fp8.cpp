// Times the linear maps of a block on one GPU with products in bf16 and in 8 bits, including the
// rounding of operands, for models of several widths; and the 8-bit products only. A product marked
// `fast` accumulates within the tensor cores.
//
//   cuda_fp8 [rows]
#include <cstdio>
#include <cstdlib>
#include <string>

#include "measure.hpp"
#include "ops/linear/cuda/detail/products.hpp"
#include "ops/ops.hpp"

namespace {

using namespace tern;
using namespace tern::bench;
using Sums = ops::cuda::Fp8Product::Sums;

struct Map {
  const char* name;
  std::size_t I, O;
};
/// Hidden sizes, each with the width of a SwiGLU's halves.
constexpr std::size_t models[][2] = {{768, 2048}, {1024, 2752}, {2048, 5504}};
constexpr std::size_t widest = 2048, widest_ffn = 5504;

/// All views of the largest map; requested twice, measuring and allocating.
struct Views {
  const ops::Context& context;
  std::size_t N;
  Vector<bf16> x, w, y, dy;
  Vector<float> dw;
  Vector<std::uint8_t> qx, qw, qdy;  // straight, then transposed
  ops::Fp8Scale of_x, of_w, of_dy;
  ops::Fp8Workspace<bf16> work;  // empty: products of the GPU need none

  Views(Buffers b, std::size_t rows)
      : context(b.context),
        N(rows),
        x(b.vector<bf16>(N * widest_ffn)),
        w(b.vector<bf16>(widest * 2 * widest_ffn, 0.03f)),
        y(b.vector<bf16>(N * 2 * widest_ffn)),
        dy(b.vector<bf16>(N * 2 * widest_ffn, 1e-5f)),
        dw(b.vector<float>(widest * 2 * widest_ffn, 0)),
        qx(codes(b, 2 * N * widest_ffn)),
        qw(codes(b, 4 * widest * widest_ffn)),
        qdy(codes(b, 4 * N * widest_ffn)),
        of_x(b.arena, "scale", Term::workspace),
        of_w(b.arena, "scale", Term::workspace),
        of_dy(b.arena, "scale", Term::workspace) {}

  static Vector<std::uint8_t> codes(Buffers b, std::size_t n) {
    return b.arena.vector<std::uint8_t>("codes", Term::data, n);
  }
  /// Rounds `values`, whose scale is new.
  static ops::Fp8Matrix rounded(const ops::Context& context, const Matrix<bf16>& values,
                                ops::Fp8Format format, const Vector<std::uint8_t>& codes,
                                const ops::Fp8Scale& scale) {
    const std::size_t rows = values.extent(0), columns = values.extent(1);
    const ops::Fp8Matrix to{format, as_matrix(codes.data(), rows, columns),
                            as_matrix(codes.data() + rows * columns, columns, rows), scale};
    ops::run(context,
             ops::Fp8Round<bf16>{.values = values, .to = to, .scaling = ops::Scaling::current});
    return to;
  }
};

struct Times {
  double bf16_forward = 0, bf16_backward = 0, fp8_forward = 0, fp8_backward = 0;
};

Times time_map(const Views& v, const Map& map) {
  const auto [name, I, O] = map;
  const Matrix<bf16> x(v.x.data(), v.N, I), w(v.w.data(), O, I), y(v.y.data(), v.N, O);
  const Matrix<bf16> dx(v.y.data(), v.N, I), dy(v.dy.data(), v.N, O);
  const Matrix<float> dw(v.dw.data(), O, I);
  const auto timed = [&](const auto& run) { return time_of(v.context, run); };
  Times t;
  t.bf16_forward =
      timed([=, &v] { ops::run(v.context, ops::LinearForward<bf16>{.x = x, .w = w, .y = y}); });
  t.bf16_backward = timed([=, &v] {
    ops::run(v.context, ops::LinearBackwardWeight<bf16>{.dy = dy, .x = x, .dw = dw});
    ops::run(v.context, ops::LinearBackwardInput<bf16>{.dy = dy, .w = w, .dx = dx});
  });
  // Inputs are rounded both ways in forward, weights once per step: not timed.
  using enum ops::Fp8Format;
  const auto qw = Views::rounded(v.context, w, e4m3, v.qw, v.of_w);
  const auto round_x = [=, &v] { return Views::rounded(v.context, x, e4m3, v.qx, v.of_x); };
  const auto qx = round_x();
  t.fp8_forward = timed([=, &v] {
    ops::run(v.context, ops::Fp8LinearForward<bf16>{
                            .workspace = v.work.values(), .x = round_x(), .w = qw, .y = y});
  });
  t.fp8_backward = timed([=, &v] {
    const auto qdy = Views::rounded(v.context, dy, e5m2, v.qdy, v.of_dy);
    ops::run(v.context, ops::Fp8LinearBackwardWeight<bf16>{
                            .workspace = v.work.values(), .dy = qdy, .x = qx, .dw = dw});
    ops::run(v.context, ops::Fp8LinearBackwardInput<bf16>{
                            .workspace = v.work.values(), .dy = qdy, .w = qw, .dx = dx});
  });
  return t;
}

/// TFLOP/s of one 8-bit product a (m, k) b (n, k)^T on numbers of the last map.
template <class C>
double product_rate(const Views& v, std::size_t m, std::size_t n, std::size_t k, bool gradient,
                    Sums sums, C* to) {
  auto& library = *v.context.library;
  const ops::cuda::Fp8Operand a{v.qdy.data(), m, k, gradient ? CUDA_R_8F_E5M2 : CUDA_R_8F_E4M3,
                                v.of_dy.undo.data()};
  const ops::cuda::Fp8Operand b{v.qx.data(), n, k, CUDA_R_8F_E4M3, v.of_x.undo.data()};
  const ops::cuda::Fp8Product::Work work{static_cast<cudaStream_t>(v.context.handle()),
                                         library.workspace(), std::size_t{64} << 20};
  const auto multiply = [&] {
    if constexpr (std::is_same_v<C, float>)
      ops::cuda::fp8_products(library).multiply(work, a, b, sums, to, 1);
    else
      ops::cuda::fp8_products(library).multiply(work, a, b, sums, to, nullptr);
  };
  const double seconds = time_of(v.context, multiply, 9);
  return 2e-12 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) / seconds;
}

void print_products(const Views& v, const Map& map) {
  const auto [name, I, O] = map;
  std::printf("%6s (%5zu -> %5zu) products only, TFLOP/s, fast and promoted:", name, I, O);
  for (const Sums s : {Sums::fast, Sums::promoted})
    std::printf(" y %5.0f dx %5.0f dw %5.0f ", product_rate(v, v.N, O, I, false, s, v.y.data()),
                product_rate(v, v.N, I, O, true, s, v.y.data()),
                product_rate(v, O, I, v.N, true, s, v.dw.data()));
  std::printf("\n");
}

void print_map(const char* name, double flops, const Times& t) {
  const auto side = [&](double bf16_time, double fp8_time, double work) {
    std::printf(" | %7.3f %5.0f  %7.3f %5.0f %6.2f", bf16_time * 1e3, work / bf16_time * 1e-12,
                fp8_time * 1e3, work / fp8_time * 1e-12, bf16_time / fp8_time);
  };
  std::printf("%-22s", name);
  side(t.bf16_forward, t.fp8_forward, flops);
  side(t.bf16_backward, t.fp8_backward, 2 * flops);
  side(t.bf16_forward + t.bf16_backward, t.fp8_forward + t.fp8_backward, 3 * flops);
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  const std::size_t rows = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 32768;
  const auto make = [](Arena& arena) { return ops::make_context(arena, true, "auto"); };
  Arena measuring;
  const ops::Context nothing = make(measuring);
  Views(Buffers{measuring, nothing}, rows);
  Arena arena(measuring.bytes());
  const ops::Context context = make(arena);
  const Views views(Buffers{arena, context}, rows);
  std::printf(
      "%zu rows; bf16 ms and TFLOP/s, fp8 ms and TFLOP/s, their ratio\n%-22s | %-34s | "
      "%-34s | both\n",
      rows, "map", "forward", "backward");
  for (const auto& [hidden, ffn] : models) {
    Times block;
    double flops = 0;
    const Map maps[] = {{"qkv", hidden, 3 * hidden},
                        {"out", hidden, hidden},
                        {"up", hidden, 2 * ffn},
                        {"down", ffn, hidden}};
    for (const Map& map : maps) {
      const double own = 2.0 * rows * map.I * map.O;
      const Times t = time_map(views, map);
      print_map(
          (std::string(map.name) + " " + std::to_string(map.I) + " -> " + std::to_string(map.O))
              .c_str(),
          own, t);
      block.bf16_forward += t.bf16_forward, block.bf16_backward += t.bf16_backward;
      block.fp8_forward += t.fp8_forward, block.fp8_backward += t.fp8_backward;
      flops += own;
    }
    print_map(("a block of " + std::to_string(hidden)).c_str(), flops, block);
    for (const Map& map : maps) print_products(views, map);
  }
}
