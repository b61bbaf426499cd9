// Times the head and its loss, forward and backward, on one GPU for vocabularies and widths that models have, by rows per chunk
// of logits: products in bf16, then gradients in fp8. 16,384 rows per call; the fastest algorithms of the products.
//
//   cuda_head
//
// TFLOP/s count three products of N x D x V. "now": the rows that ops::head_chunk_rows chooses.
#include <algorithm>
#include <cstdio>

#include "measure.hpp"
#include "ops/core/cuda/library.hpp"

namespace {

using namespace tern;
using namespace tern::bench;

struct Shape {
  std::size_t width, vocabulary;
};
constexpr std::size_t rows = 16384, most_chunk = 8192, most_width = 4096, most_vocabulary = 151936;
constexpr Shape shapes[] = {
    {1024, 50304}, {2048, 50304}, {1024, 151936}, {2048, 128256}, {4096, 128256}};

struct Tensors {
  Matrix<bf16> x, dx, w, logits;
  Matrix<float> dw, losses, weights;
  Matrix<std::int32_t> targets;
  ops::Fp8Workspace<bf16> work;

  explicit Tensors(Buffers b)
      : x(b.random<bf16>(rows, most_width)),
        dx(b.random<bf16>(rows, most_width)),
        w(b.random<bf16>(most_vocabulary, most_width, 0.03f)),
        logits(b.random<bf16>(most_chunk, most_vocabulary)),
        dw(b.random<float>(most_vocabulary, most_width)),
        losses(b.random<float>(1, rows)),
        weights(b.random<float>(1, rows)),
        targets(b.arena.matrix<std::int32_t>("bench", Term::data, 1, rows)) {
    ops::Fp8Workspace<bf16>::Sizes sizes;
    for (const Shape& s : shapes) sizes.raise(most_chunk, s.width, s.vocabulary, true);
    work = ops::Fp8Workspace<bf16>(b.arena, sizes);
    if (targets.data()) Kokkos::deep_copy(targets, 17);
  }
};

/// Seconds of one call in chunks of `chunk` rows.
double seconds_of(const ops::Context& context, const Tensors& t, const Shape& shape,
                  std::size_t chunk, Arena* fp8_scales) {
  const auto [D, V] = shape;
  ops::HeadLossBackward<bf16> call{.x = Matrix<const bf16>(t.x.data(), rows, D),
                                   .w = Matrix<const bf16>(t.w.data(), V, D),
                                   .targets = Vector<const std::int32_t>(t.targets.data(), rows),
                                   .weights = Vector<const float>(t.weights.data(), rows),
                                   .logits = Matrix<bf16>(t.logits.data(), chunk, V),
                                   .losses = Vector<float>(t.losses.data(), rows),
                                   .dx = Matrix<bf16>(t.dx.data(), rows, D),
                                   .dw = Matrix<float>(t.dw.data(), V, D)};
  if (fp8_scales) call.fp8 = ops::HeadFp8<bf16>(*fp8_scales, t.work, chunk);
  return time_of(
      context, [&] { ops::run(context, call); }, 7);
}

}  // namespace

int main(int argc, char** argv) {
  Kokkos::ScopeGuard kokkos(argc, argv);
  const auto make = [](Arena& arena) {
    return ops::make_context(arena, true, "auto", ops::Products::fastest);
  };
  Arena measuring;
  const ops::Context nothing = make(measuring);
  Tensors(Buffers{measuring, nothing});
  Arena arena(measuring.bytes());
  const ops::Context context = make(arena);
  const Tensors tensors(Buffers{arena, context});
  std::printf(
      "width, vocabulary      chunk: rows, MiB       bf16: ms, TFLOP/s       fp8: ms, TFLOP/s\n");
  for (const Shape& shape : shapes) {
    const std::size_t now = ops::head_chunk_rows(rows, shape.vocabulary, sizeof(bf16), false);
    for (const std::size_t chunk : {now, 1024ul, 2048ul, 4096ul, 8192ul}) {
      Arena scales(1 << 20);
      const double flops = 6.0 * rows * static_cast<double>(shape.width * shape.vocabulary);
      const double plain = seconds_of(context, tensors, shape, chunk, nullptr);
      const double fp8 = seconds_of(context, tensors, shape, chunk, &scales);
      std::printf("%5zu %7zu   %12zu %8zu   %12.2f %8.0f   %14.2f %8.0f%s\n", shape.width,
                  shape.vocabulary, chunk, chunk * shape.vocabulary * 2 >> 20, plain * 1e3,
                  flops / plain * 1e-12, fp8 * 1e3, flops / fp8 * 1e-12,
                  chunk == now ? "  now" : "");
      std::fflush(stdout);
    }
  }
}
