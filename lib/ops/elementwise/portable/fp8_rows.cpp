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
void Fp8RoundRows<T>::check() const {
  const std::size_t N = x.extent(0), I = x.extent(1);
  const Matrix<std::uint8_t> codes = to.codes;
  const Vector<float> undo = to.undo;
  TERN_REQUIRE(undo.size() == N && codes.extent(0) == N && codes.extent(1) == code_width(I),
               "({}, {}) to ({}, {}) and {} scales", N, I, codes.extent(0), codes.extent(1),
               undo.size());
}

template <class T>
void Fp8RoundRows<T>::portable(const Context& context, const Fp8RoundRows& call) {
  const std::size_t N = call.x.extent(0), I = call.x.extent(1);
  const Matrix<std::uint8_t> codes = call.to.codes;
  const Vector<float> undo = call.to.undo;
  const int width = static_cast<int>(I), coded = static_cast<int>(codes.extent(1));
  detail::for_each_row(
      context, "tern::fp8_round_rows", N, KOKKOS_LAMBDA(const detail::Team& team, const int row) {
        T* values = &call.x(row, 0);
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

TERN_INSTANTIATE_PORTABLE(Fp8RoundRows)

}  // namespace tern::ops
