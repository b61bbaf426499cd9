#include "checks/detail/families.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/linear/linear.hpp"
#include "ops/norm/norm.hpp"
#include "ops/ops.hpp"

namespace tern::checks {
using namespace ops;
namespace {

void check_map(Checker& checker, std::size_t N, std::size_t I, std::size_t O) {
  const std::string shape = fmt::format("N {} I {} O {}", N, I, O);
  const double scale = 1 / std::sqrt(static_cast<double>(I));
  checker.check("linear_forward", shape, [=]<class T>(Run<T>& r) {
    auto x = r.input(N, I), w = r.input(O, I, scale);
    linear_forward<T>(r.context, x, w, r.input(O), r.output(N, O));
  });
  for (const bool in_place : {false, true})
    checker.check(in_place ? "linear_forward, added in place" : "linear_forward, added", shape,
                  [=]<class T>(Run<T>& r) {
                    auto x = r.input(N, I), w = r.input(O, I, scale);
                    auto bias = r.input(O);
                    auto y = in_place ? r.inout(N, O) : r.output(N, O);
                    const Matrix<const T> added = in_place ? y : r.input(N, O);
                    linear_forward<T>(r.context, x, w, bias, y, added);
                  });
  checker.check("linear_forward, no bias", shape, [=]<class T>(Run<T>& r) {
    auto x = r.input(N, I), w = r.input(O, I, scale);
    linear_forward<T>(r.context, x, w, {}, r.output(N, O));
  });
  for (const Write write : {Write::overwrite, Write::add})
    checker.check(write == Write::add ? "linear_backward_input, added" : "linear_backward_input",
                  shape, [=]<class T>(Run<T>& r) {
                    auto dy = r.input(N, O), w = r.input(O, I, scale);
                    auto dx = write == Write::add ? r.inout(N, I) : r.output(N, I);
                    linear_backward_input<T>(r.context, dy, w, dx, write);
                  });
  for (const Write write : {Write::overwrite, Write::add})
    checker.check(
        write == Write::add ? "linear_backward_weight" : "linear_backward_weight, overwritten",
        shape, [=]<class T>(Run<T>& r) {
          using A = Accumulate<T>;
          auto dy = r.input(N, O), x = r.input(N, I);
          auto dw = write == Write::add ? r.template inout<A>(O, I) : r.template output<A>(O, I);
          linear_backward_weight<T>(r.context, dy, x, dw, r.template inout<A>(O), write);
        });
}

/// Entry of an MLP with its activation, and what its backward computes together.
void check_activated(Checker& checker, Activation activation, std::size_t N, std::size_t D,
                     std::size_t F) {
  const std::size_t up_width = gated(activation) ? 2 * F : F;
  const std::string shape = fmt::format("{} N {} D {} F {}", kind_of(activation).name, N, D, F);
  const double scale = 1 / std::sqrt(static_cast<double>(D));
  for (const bool with_bias : {false, true})
    checker.check(with_bias ? "linear_activation_forward, bias" : "linear_activation_forward",
                  shape, [=]<class T>(Run<T>& r) {
                    auto x = r.input(N, D), w = r.input(up_width, D, scale);
                    Vector<const T> bias;
                    if (with_bias) bias = r.input(up_width);
                    linear_activation_forward<T>(r.context, activation, x, w, bias,
                                                 r.output(N, up_width), r.output(N, F));
                  });
  enum class To { another, up, dactivated };
  const std::array names{"", ", onto up", ", onto dactivated"};
  for (const To to : {To::another, To::up, To::dactivated}) {
    if (to == To::dactivated && gated(activation)) continue;
    checker.check(
        fmt::format("linear_activation_backward{}", names[static_cast<std::size_t>(to)]).c_str(),
        shape, [=]<class T>(Run<T>& r) {
          auto dy = r.input(N, D), w = r.input(D, F, scale);
          auto up = to == To::up ? r.inout(N, up_width) : r.input(N, up_width);
          auto dactivated = to == To::dactivated
                                ? r.output(N, F)
                                : as_matrix(r.template workspace<T>(N * F).data(), N, F);
          const Matrix<T> dup = to == To::up           ? up
                                : to == To::dactivated ? dactivated
                                                       : r.output(N, up_width);
          linear_activation_backward<T>(r.context, activation, dy, w, up, dactivated, dup);
        });
  }
}

/// Rows (N, I) from an operation that may still run when the next one is launched.
template <class T>
Matrix<T> normed(Run<T>& r, const Context& context, std::size_t N, std::size_t I) {
  auto x = r.input(N, I), gain = r.input(1, I);
  auto y = r.output(N, I);
  norm_forward<T>(context, {.kind = Norm::rmsnorm,
                            .x = x,
                            .gain = Vector<const T>(gain.data(), I),
                            .eps = 1e-6,
                            .y = y,
                            .rstd = r.template workspace<Accumulate<T>>(N)});
  return y;
}

/// Skinny GEMM, as in decoding: constant weights may be read while x is still being written.
void check_skinny(Checker& checker, std::size_t N, std::size_t I, std::size_t O) {
  const std::string shape = fmt::format("N {} I {} O {}", N, I, O);
  const double scale = 1 / std::sqrt(static_cast<double>(I));
  for (const Write write : {Write::overwrite, Write::add})
    checker.check(write == Write::add ? "linear_forward, skinny, added" : "linear_forward, skinny",
                  shape, [=]<class T>(Run<T>& r) {
                    Context context = r.context;
                    context.constant_weights = true;
                    auto w = r.input(O, I, scale);
                    auto y = write == Write::add ? r.inout(N, O) : r.output(N, O);
                    linear_forward<T>(context, normed(r, context, N, I), w, {}, y,
                                      write == Write::add ? y : Matrix<T>());
                  });
}

template <class T>
Fp8Rows codes_of(Run<T>& r, const Matrix<T>& x) {
  const std::size_t N = x.extent(0), width = code_width(x.extent(1));
  Fp8Rows codes;
  codes.codes = as_matrix(r.template workspace<std::uint8_t>(N * width).data(), N, width);
  codes.undo = r.template output<float>(N);
  return codes;
}
/// Rounds w to fp8, and in place; constant from here on.
template <class T>
Fp8Rows rounded_weight(Run<T>& r, const Context& context, const Matrix<T>& w) {
  const Fp8Rows rounded = codes_of(r, w);
  fp8_round_rows<T>(context, w, rounded);
  context.fence("weights");
  return rounded;
}
/// x and its codes, from an operation that may still run when the next one is launched.
template <class T>
MapOperand<T> rounded_input(Run<T>& r, const Context& context, std::size_t N, std::size_t I) {
  const Matrix<T> x = r.inout(N, I);
  const MapOperand<T> result{x, {}, codes_of(r, x)};
  round_operand<T>(context, result, Scaling::current);
  return result;
}

/// Operands in fp8. The reference rounds the same numbers to the same ones.
enum class InFp8 { none, weights, both };
std::string in_fp8(const std::string& name, InFp8 which) {
  return name + (which == InFp8::both ? ", fp8" : which == InFp8::weights ? ", fp8 weights" : "");
}
template <class T>
MapOperand<T> input_of(Run<T>& r, const Context& context, InFp8 which, std::size_t N,
                       std::size_t I) {
  if (which == InFp8::both) return rounded_input(r, context, N, I);
  return {normed(r, context, N, I)};
}

/// The skinny GEMM with operands in fp8.
void check_fp8_weight(Checker& checker, InFp8 which, std::size_t N, std::size_t I, std::size_t O) {
  const std::string shape = fmt::format("N {} I {} O {}", N, I, O);
  const double scale = 1 / std::sqrt(static_cast<double>(I));
  for (const Write write : {Write::overwrite, Write::add})
    checker.check(
        in_fp8(write == Write::add ? "fp8_weight_forward, added" : "fp8_weight_forward", which)
            .c_str(),
        shape, [=]<class T>(Run<T>& r) {
          Context context = r.context;
          context.constant_weights = true;
          auto w = r.inout(O, I, scale);
          const Fp8Rows rounded = rounded_weight(r, context, w);
          auto y = write == Write::add ? r.inout(N, O) : r.output(N, O);
          const auto x = input_of(r, context, which, N, I);
          fp8_weight_forward<T>(context, x.values, w, rounded, {}, y,
                                write == Write::add ? y : Matrix<T>(), x.coded);
        });
}

/// Entry of an MLP in decoding: constant weights, in fp8 or not, may be read while x is still being
/// written.
void check_activation_inference(Checker& checker, Activation activation, InFp8 which, std::size_t N,
                                std::size_t I, std::size_t F) {
  const std::size_t O = gated(activation) ? 2 * F : F;
  const std::string shape = fmt::format("{} N {} I {} F {}", kind_of(activation).name, N, I, F);
  checker.check(
      in_fp8("linear_activation_inference", which).c_str(), shape, [=]<class T>(Run<T>& r) {
        Context context = r.context;
        context.constant_weights = true;
        auto w = r.inout(O, I, 1 / std::sqrt(static_cast<double>(I)));
        const Fp8Rows rounded = which == InFp8::none ? Fp8Rows() : rounded_weight(r, context, w);
        const Matrix<T> up = as_matrix(r.template workspace<T>(N * O).data(), N, O);
        const auto x = input_of(r, context, which, N, I);
        linear_activation_inference<T>(context, activation, x.values, w, rounded, {}, up,
                                       r.output(N, F), x.coded);
      });
}

void check_activation_inference(Checker& checker) {
  for (const auto& [activation, name, with_gate] : activation_kinds)
    for (const InFp8 which : {InFp8::none, InFp8::weights, InFp8::both}) {
      for (const std::size_t N : {1, 64, 65, 128, 129})
        check_activation_inference(checker, activation, which, N, 1288, 328);
      check_activation_inference(checker, activation, which, 7, 40, 2056);
      check_activation_inference(checker, activation, which, 100, 200, 20008);
      check_activation_inference(checker, activation, which, 37, 2560, 9728);
      check_activation_inference(checker, activation, which, 5, 33, 49);
    }
}

void check_rounding_of_rows(Checker& checker, std::size_t N, std::size_t I) {
  checker.check("fp8_round_rows", fmt::format("N {} I {}", N, I), [=]<class T>(Run<T>& r) {
    const Matrix<T> x = r.inout(N, I);
    fp8_round_rows<T>(r.context, x, codes_of(r, x));
  });
}

/// Products of M matrices, as in Muon: x x^T, a polynomial's and its application.
void check_batched(Checker& checker, std::size_t M, std::size_t R, std::size_t K) {
  const std::string shape = fmt::format("M {} R {} K {}", M, R, K);
  checker.check("batched_product", shape, [=]<class T>(Run<T>& r) {
    const auto three = [=](const Matrix<T>& m, std::size_t rows) {
      return Tensor3<T>(m.data(), M, rows, m.size() / (M * rows));
    };
    const double scale = 1 / std::sqrt(static_cast<double>(R));
    const auto x = three(r.input(M * R, K), R), g = three(r.input(M * R, R, scale), R);
    const auto y = three(r.input(M * K, R), K);
    batched_product<T>(r.context, 1, {x}, {x, true}, 0, {}, three(r.output(M * R, R), R));
    batched_product<T>(r.context, 1, {x, true}, {x}, 0, {}, three(r.output(M * K, K), K));
    batched_product<T>(r.context, 2, {g}, {g}, -4.75, g, three(r.output(M * R, R), R));
    batched_product<T>(r.context, 1, {g}, {x}, 3.5, x, three(r.output(M * R, K), R));
    batched_product<T>(r.context, 1, {y}, {g}, 3.5, y, three(r.output(M * K, R), K));
  });
}

void check_column_sums(Checker& checker, std::size_t N, std::size_t D) {
  checker.check("column_sums", fmt::format("N {} D {}", N, D), [=]<class T>(Run<T>& r) {
    auto x = r.input(N, D);
    column_sums<T>(r.context, x, r.template inout<Accumulate<T>>(D));
  });
}

}  // namespace

void check_linear(Checker& checker) {
  check_map(checker, 37, 24, 40);
  check_map(checker, 129, 65, 33);
  check_map(checker, 512, 1024, 688);
  for (const auto& [activation, name, with_gate] : activation_kinds) {
    check_activated(checker, activation, 35, 24, 40);
    check_activated(checker, activation, 1027, 72, 136);
  }
  check_activated(checker, Activation::gelu, 600, 72, 37);  // rows that cuBLASLt does not take
  check_activated(checker, Activation::gelu, 520, 2048, 64);
  check_activated(checker, Activation::gelu, 2048, 768, 3072);
  for (const std::size_t N : {1, 16, 64, 65, 128}) check_skinny(checker, N, 1288, 328);
  check_skinny(checker, 7, 40, 2056);
  check_skinny(checker, 64, 72, 17000);  // more columns than one block per multiprocessor takes
  check_skinny(checker, 100, 200, 20008);
  check_skinny(checker, 3, 72, 30000);
  for (const InFp8 which : {InFp8::weights, InFp8::both}) {
    for (const std::size_t N : {1, 16, 64, 65, 128, 129})
      check_fp8_weight(checker, which, N, 1288, 328);
    check_fp8_weight(checker, which, 7, 40, 2056);
    check_fp8_weight(checker, which, 5, 33, 49);
    check_fp8_weight(checker, which, 64, 9728, 328);  // more steps than stages
    check_fp8_weight(checker, which, 64, 72, 17000);
    check_fp8_weight(checker, which, 100, 72, 33000);  // in two launches
  }
  for (const std::size_t I : {8, 33, 40, 1288, 2056, 9728, 17000})
    check_rounding_of_rows(checker, 37, I);
  check_activation_inference(checker);
  check_column_sums(checker, 1000, 5000);
  check_column_sums(checker, 131, 37);
  check_batched(checker, 1, 64, 256);
  check_batched(checker, 5, 128, 72);
  check_batched(checker, 3, 17, 35);
}

}  // namespace tern::checks
