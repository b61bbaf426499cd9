#include "ops/elementwise/fp8_rows.hpp"

#include "base/error.hpp"
#include "memory/narrow.hpp"
#include "ops/elementwise/portable/row_scale.hpp"

namespace tern::ops {
using namespace portable;

Fp8Rows::Fp8Rows(Arena& arena, const std::string& label, Term term, std::size_t N, std::size_t I)
    : codes(arena.matrix<std::uint8_t>(label, term, N, code_width(I))),
      undo(arena.vector<float>(label + "/scales", term, N)) {}

Fp8Rows Fp8Rows::shaped(std::size_t N, std::size_t I) const {
  TERN_REQUIRE(N <= undo.size() && N * code_width(I) <= codes.size(),
               "{} x {} in {} rows, {} codes", N, I, undo.size(), codes.size());
  Fp8Rows result;
  result.codes = as_matrix(codes.data(), N, code_width(I));
  result.undo = narrow_rows(undo, N);
  return result;
}

Fp8Rows Fp8Rows::rows(Range range) const {
  Fp8Rows result;
  result.codes = rows_of(codes, range);
  result.undo = rows_of(undo, range);
  return result;
}

template <class T>
void fp8_round_rows(const Context& context, Matrix<T> x, const Fp8Rows& to) {
  const std::size_t N = x.extent(0), I = x.extent(1);
  const Matrix<std::uint8_t> codes = to.codes;
  const Vector<float> undo = to.undo;
  TERN_REQUIRE(undo.size() == N && codes.extent(0) == N && codes.extent(1) == code_width(I),
               "({}, {}) to ({}, {}) and {} scales", N, I, codes.extent(0), codes.extent(1),
               undo.size());
  if (native<&fp8_round_rows<T>>(context, x, to)) return;
  const int width = static_cast<int>(I), coded = static_cast<int>(codes.extent(1));
  detail::for_each_row(
      context, "tern::fp8_round_rows", N, KOKKOS_LAMBDA(const detail::Team& team, const int row) {
        T* values = &x(row, 0);
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

template decltype(fp8_round_rows<float>) fp8_round_rows<float>;
template decltype(fp8_round_rows<double>) fp8_round_rows<double>;
template decltype(fp8_round_rows<bf16>) fp8_round_rows<bf16>;
template decltype(fp8_round_rows<fp16>) fp8_round_rows<fp16>;

}  // namespace tern::ops
