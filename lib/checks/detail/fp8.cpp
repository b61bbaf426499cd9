#include <cmath>

#include "checks/detail/families.hpp"
#include "ops/ops.hpp"

namespace tern::checks {
using namespace ops;
namespace {

template <class T>
Fp8Matrix matrix(Run<T>& r, Fp8Format format, std::size_t N, std::size_t C) {
  const auto bytes = [&](std::size_t rows, std::size_t columns) {
    return as_matrix(r.template workspace<std::uint8_t>(N * C).data(), rows, columns);
  };
  Fp8Scale scale;
  scale.undo = r.template workspace<float>(4);
  scale.magnitude = r.template workspace<std::uint32_t>(1);
  scale.saturated = r.template workspace<std::uint32_t>(1);
  return {format, bytes(N, C), bytes(C, N), scale};
}

template <class T>
Fp8Matrix rounded(Run<T>& r, Fp8Format format, Matrix<const T> values) {
  const Fp8Matrix to = matrix(r, format, values.extent(0), values.extent(1));
  run(r.context, Fp8Round<T>{.values = values, .to = to, .scaling = Scaling::current});
  return to;
}

/// Results: the numbers of both layouts.
template <class T>
void read(Run<T>& r, const Fp8Matrix& m) {
  for (const bool transposed : {false, true})
    run(r.context, Fp8Numbers<T>{.of = m,
                                 .transposed = transposed,
                                 .to = r.output(m.straight.extent(0), m.straight.extent(1))});
}

/// An operation that ends in fp8, first with the values' own scale, then with that of before:
/// operation(context, result in T, rounded).
template <class T, class Operation>
void check_both(Run<T>& r, Fp8Format format, std::size_t N, std::size_t C,
                const Operation& operation) {
  const Fp8Matrix to = matrix(r, format, N, C);
  const Matrix<T> values(r.template workspace<T>(N * C).data(), N, C);
  Context context = r.context;
  for (const Scaling scaling : {Scaling::current, Scaling::largest, Scaling::earlier}) {
    context.scaling = scaling;
    operation(context, values, to);
    read(r, to);
  }
}

/// The reference multiplies the same fp8 numbers in double, so only the sums differ. Hopper's
/// tensor cores keep about 14 bits of a sum of fp8 products (DeepSeek-V3, section 3.3.2) at each
/// step; a single operand rounded differently is off by 2^-4.
constexpr double sums = 1.0 / (1 << 10);

/// Workspace of portable products.
template <class T>
Fp8Workspace<T> workspace(Run<T>& r, std::size_t N, std::size_t I, std::size_t O) {
  typename Fp8Workspace<T>::Sizes sizes;
  sizes.raise(N, I, O, true);
  return Fp8Workspace<T>(r.template workspace<T>(sizes.values));
}

void check_products(Checker& checker, std::size_t N, std::size_t I, std::size_t O) {
  const std::string shape = fmt::format("N {} I {} O {}", N, I, O);
  const double scale = 1 / std::sqrt(static_cast<double>(I));
  for (const bool adds : {false, true})
    checker.check(
        adds ? "fp8_linear_forward, added" : "fp8_linear_forward", shape,
        [=]<class T>(Run<T>& r) {
          const Fp8Matrix x = rounded<T>(r, Fp8Format::e4m3, r.input(N, I));
          const Fp8Matrix w = rounded<T>(r, Fp8Format::e4m3, r.input(O, I, scale));
          auto bias = r.input(O);
          const Matrix<const T> added = adds ? r.input(N, O) : Matrix<T>();
          run(r.context, Fp8LinearForward<T>{.workspace = workspace(r, N, I, O).values(),
                                             .x = x,
                                             .w = w,
                                             .bias = bias,
                                             .y = r.output(N, O),
                                             .added = added});
        },
        sums);
  for (const Write write : {Write::overwrite, Write::add})
    checker.check(
        write == Write::add ? "fp8_linear_backward_weight"
                            : "fp8_linear_backward_weight, overwritten",
        shape,
        [=]<class T>(Run<T>& r) {
          using A = Accumulate<T>;
          const Fp8Matrix dy = rounded<T>(r, Fp8Format::e5m2, r.input(N, O));
          const Fp8Matrix x = rounded<T>(r, Fp8Format::e4m3, r.input(N, I));
          auto dw = write == Write::add ? r.template inout<A>(O, I) : r.template output<A>(O, I);
          run(r.context, Fp8LinearBackwardWeight<T>{.workspace = workspace(r, N, I, O).values(),
                                                    .dy = dy,
                                                    .x = x,
                                                    .dw = dw,
                                                    .write = write});
        },
        sums);
  checker.check(
      "fp8_linear_backward_input", shape,
      [=]<class T>(Run<T>& r) {
        const Fp8Matrix dy = rounded<T>(r, Fp8Format::e5m2, r.input(N, O));
        const Fp8Matrix w = rounded<T>(r, Fp8Format::e4m3, r.input(O, I, scale));
        run(r.context, Fp8LinearBackwardInput<T>{.workspace = workspace(r, N, I, O).values(),
                                                 .dy = dy,
                                                 .w = w,
                                                 .dx = r.output(N, I)});
      },
      sums);
}

void check_rounding(Checker& checker, std::size_t N, std::size_t D) {
  const std::string shape = fmt::format("N {} D {}", N, D);
  for (const Fp8Format format : {Fp8Format::e4m3, Fp8Format::e5m2})
    checker.check_fp8(
        format == Fp8Format::e4m3 ? "fp8_round, e4m3" : "fp8_round, e5m2", shape,
        [=]<class T>(Run<T>& r) {
          auto x = r.input(N, D);
          check_both(r, format, N, D, [&](const Context& context, auto, const auto& to) {
            run(context, Fp8Round<T>{.values = x, .to = to, .scaling = context.scaling});
          });
        });
  for (const ActivationKind& one : activation_kinds) {
    const Activation kind = one.kind;
    const std::size_t width = gated(kind) ? 2 * D : D;
    checker.check_fp8("activation to fp8", shape + " " + one.name, [=]<class T>(Run<T>& r) {
      auto x = r.input(N, width, 2), dy = r.input(N, D);
      check_both(r, Fp8Format::e4m3, N, D, [&](const Context& context, auto y, const auto& to) {
        run(context, ActivationForward<T>{.kind = kind, .x = x, .y = y, .rounded = to});
      });
      check_both(
          r, Fp8Format::e5m2, N, width, [&](const Context& context, auto dx, const auto& to) {
            run(context,
                ActivationBackward<T>{.kind = kind, .x = x, .dy = dy, .dx = dx, .rounded = to});
          });
    });
  }
  for (const auto& which :
       {std::pair(Norm::rmsnorm, false), {Norm::layernorm, false}, {Norm::layernorm, true}}) {
    const Norm kind = which.first;
    const bool drops = which.second;
    checker.check_fp8(
        kind == Norm::rmsnorm ? "rmsnorm to fp8" : "layernorm to fp8",
        shape + (drops ? " with dropout" : ""), [=]<class T>(Run<T>& r) {
          using A = Accumulate<T>;
          PendingSum<T> made;
          if (drops)
            made = {r.input(N, D, 2), r.input(N, D), {}, r.output(N, D), {0.3, 11, 5, 2, 100}};
          const Matrix<const T> x = drops ? Matrix<const T>(made.to) : r.input(N, D, 2);
          auto gain = r.input(D), bias = r.input(D);
          auto rstd = r.template output<A>(N);
          Vector<A> mean;
          if (kind == Norm::layernorm) mean = r.template output<A>(N);
          check_both(r, Fp8Format::e4m3, N, D, [&](const Context& context, auto y, const auto& to) {
            run(context, NormForward<T>{.kind = kind,
                                        .x = x,
                                        .gain = gain,
                                        .bias = mean.size() ? bias : Vector<T>(),
                                        .eps = 1e-5,
                                        .y = y,
                                        .mean = mean,
                                        .rstd = rstd,
                                        .rounded = to,
                                        .made = made});
          });
        });
  }
}

void check_rotary(Checker& checker, std::size_t B, std::size_t tokens, std::size_t H,
                  std::size_t E) {
  const std::size_t N = B * tokens, width = (H + 1) * E;  // the last head is not rotated
  checker.check_fp8("rotary backward to fp8", fmt::format("B {} T {} H {} E {}", B, tokens, H, E),
                    [=]<class T>(Run<T>& r) {
                      using A = Accumulate<T>;
                      auto gradient = r.input(N, width);
                      Matrix<A> table(r.template workspace<A>(2 * tokens * E).data(), 2 * tokens,
                                      E);
                      run(r.context, RotaryTable<A>{.base = 10000, .table = table});
                      check_both(r, Fp8Format::e5m2, N, width,
                                 [&](const Context& context, auto dqkv, const auto& to) {
                                   Kokkos::deep_copy(context.space, dqkv, gradient);
                                   run(context, RotaryBackwardToFp8<T>{.dqkv = dqkv,
                                                                       .tokens = tokens,
                                                                       .heads = H,
                                                                       .table = table,
                                                                       .positions = {3, {}},
                                                                       .rounded = to});
                                 });
                    });
}

}  // namespace

void check_fp8(Checker& checker) {
  check_products(checker, 48, 16, 80);
  check_products(checker, 400, 144, 272);
  check_products(checker, 512, 1024, 688);
  check_rounding(checker, 48, 16);
  check_rounding(checker, 144, 272);
  check_rounding(checker, 400, 1024);
  check_rounding(checker, 272, 2752);
  check_rounding(checker, 32, 5120);
  check_rotary(checker, 3, 16, 2, 64);
  check_rotary(checker, 2, 136, 5, 128);
  check_rotary(checker, 4, 40, 3, 16);
}

}  // namespace tern::checks
