#include "ops/fp8_weight.hpp"

#include "base/error.hpp"
#include "ops/portable/detail/row_scale.hpp"

namespace tern::ops {
using namespace portable;

template <class T>
void fp8_round_weight(const Context& context, Matrix<T> w, const Fp8Weight& to) {
  const std::size_t O = w.extent(0), I = w.extent(1);
  const Matrix<std::uint8_t> codes = to.codes;
  const Vector<float> undo = to.undo;
  TERN_REQUIRE(undo.size() == O && codes.extent(0) == O &&
                   codes.extent(1) / code_group == (I + code_group - 1) / code_group,
               "({}, {}) to ({}, {}) and {} scales", O, I, codes.extent(0), codes.extent(1),
               undo.size());
  const int width = static_cast<int>(I), coded = static_cast<int>(codes.extent(1));
  detail::for_each_row(
      context, "tern::fp8_round_weight", O, KOKKOS_LAMBDA(const detail::Team& team, const int row) {
        T* values = &w(row, 0);
        std::uint8_t* out = &codes(row, 0);
        const float scale = detail::row_scale(team, width, values), back = undo_scale(scale);
        undo(row) = back;
        detail::columns(team, coded, [&](const int i) {
          const float value = i < width ? static_cast<float>(values[i]) : 0.0f;
          const std::uint8_t code = encode<E4M3>(round_to<E4M3>(value * scale));
          out[code_place(static_cast<std::size_t>(i))] = code;
          if (i < width) values[i] = T(decode<E4M3>(code) * back);
        });
      });
}

template <class T>
void fp8_weight_forward(const Context& context, Matrix<const T> x, Matrix<const T> w,
                        const Fp8Weight& rounded, Vector<const T> bias, Matrix<T> y,
                        Matrix<const T> added) {
  TERN_REQUIRE(x.extent(1) == w.extent(1) && y.extent(0) == x.extent(0) &&
                   y.extent(1) == w.extent(0) && rounded.undo.size() == w.extent(0),
               "({}, {}) x ({}, {})^T -> ({}, {}), {} scales", x.extent(0), x.extent(1),
               w.extent(0), w.extent(1), y.extent(0), y.extent(1), rounded.undo.size());
  if (native<&fp8_weight_forward<T>>(context, x, w, rounded, bias, y, added)) return;
  linear_forward<T>(context, x, w, bias, y, added);
}

#define INSTANTIATE(T)                                        \
  template decltype(fp8_round_weight<T>) fp8_round_weight<T>; \
  template decltype(fp8_weight_forward<T>) fp8_weight_forward<T>;
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::ops
