#include "checks/cases/linear.hpp"
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
  using Added = LinearCase::Added;
  const std::string shape = fmt::format("N {} I {} O {}", N, I, O);
  const auto check_forward = [&](const char* name, bool bias, Added added) {
    const LinearCase one{.N = N, .I = I, .O = O, .bias = bias, .added = added};
    checker.check(name, shape, [=]<class T>(Run<T>& r) { run(r.context, one.forward<T>(r)); });
  };
  check_forward("linear_forward", true, Added::nothing);
  check_forward("linear_forward, added", true, Added::another);
  check_forward("linear_forward, added in place", true, Added::in_place);
  check_forward("linear_forward, no bias", false, Added::nothing);
  for (const Write write : {Write::overwrite, Write::add}) {
    const LinearCase one{N, I, O, true, write};
    const bool adds = write == Write::add;
    checker.check(adds ? "linear_backward_input, added" : "linear_backward_input", shape,
                  [=]<class T>(Run<T>& r) { run(r.context, one.backward_input<T>(r)); });
    checker.check(adds ? "linear_backward_weight" : "linear_backward_weight, overwritten", shape,
                  [=]<class T>(Run<T>& r) { run(r.context, one.backward_weight<T>(r)); });
  }
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
                    run(r.context, LinearActivationForward<T>{.activation = activation,
                                                              .x = x,
                                                              .w = w,
                                                              .bias = bias,
                                                              .up = r.output(N, up_width),
                                                              .y = r.output(N, F)});
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
          run(r.context, LinearActivationBackward<T>{.activation = activation,
                                                     .dy = dy,
                                                     .w = w,
                                                     .up = up,
                                                     .dactivated = dactivated,
                                                     .dup = dup});
        });
  }
}

/// Rows (N, I) from an operation that may still run when the next one is launched.
template <class T>
Matrix<T> normed(Run<T>& r, const Context& context, std::size_t N, std::size_t I) {
  auto x = r.input(N, I), gain = r.input(1, I);
  auto y = r.output(N, I);
  run(context, NormForward<T>{.kind = Norm::rmsnorm,
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
                    run(context, LinearForward<T>{.x = normed(r, context, N, I),
                                                  .w = w,
                                                  .y = y,
                                                  .added = write == Write::add ? y : Matrix<T>()});
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
  run(context, Fp8RoundRows<T>{.x = w, .to = rounded});
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
          run(context, Fp8WeightForward<T>{.x = x.values,
                                           .w = w,
                                           .rounded = rounded,
                                           .y = y,
                                           .added = write == Write::add ? y : Matrix<T>(),
                                           .coded = x.coded});
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
        run(context, LinearActivationInference<T>{.activation = activation,
                                                  .x = x.values,
                                                  .w = w,
                                                  .weights = rounded,
                                                  .up = up,
                                                  .y = r.output(N, F),
                                                  .inputs = x.coded});
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
    run(r.context, Fp8RoundRows<T>{.x = x, .to = codes_of(r, x)});
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
    run(r.context, BatchedProduct<T>{.alpha = 1,
                                     .a = {x},
                                     .b = {x, true},
                                     .beta = 0,
                                     .c = {},
                                     .d = three(r.output(M * R, R), R)});
    run(r.context, BatchedProduct<T>{.alpha = 1,
                                     .a = {x, true},
                                     .b = {x},
                                     .beta = 0,
                                     .c = {},
                                     .d = three(r.output(M * K, K), K)});
    run(r.context, BatchedProduct<T>{.alpha = 2,
                                     .a = {g},
                                     .b = {g},
                                     .beta = -4.75,
                                     .c = g,
                                     .d = three(r.output(M * R, R), R)});
    run(r.context, BatchedProduct<T>{.alpha = 1,
                                     .a = {g},
                                     .b = {x},
                                     .beta = 3.5,
                                     .c = x,
                                     .d = three(r.output(M * R, K), R)});
    run(r.context, BatchedProduct<T>{.alpha = 1,
                                     .a = {y},
                                     .b = {g},
                                     .beta = 3.5,
                                     .c = y,
                                     .d = three(r.output(M * K, R), K)});
  });
}

void check_column_sums(Checker& checker, std::size_t N, std::size_t D) {
  checker.check("column_sums", fmt::format("N {} D {}", N, D), [=]<class T>(Run<T>& r) {
    auto x = r.input(N, D);
    run(r.context, ColumnSums<T>{.x = x, .sums = r.template inout<Accumulate<T>>(D)});
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
