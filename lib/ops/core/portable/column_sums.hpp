/// Sums over the rows of a matrix, for bias and gain gradients.
#pragma once
#include "ops/core/portable/loops.hpp"

namespace tern::ops::portable::detail {

/// sums (C) += the sum over the rows of matrix (R, C), in Accumulate<T>, in an order that depends
/// only on R: 32 slices of consecutive rows, added in order.
template <class T>
struct ColumnSumsKernel {
  using A = Accumulate<T>;
  static constexpr int slices = 32, width = on_host ? 64 : 32;
  using Scratch =
      Kokkos::View<A[slices][width], Kokkos::LayoutRight, Device::scratch_memory_space, Unmanaged>;

  Matrix<const T> matrix;
  Vector<A> sums;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const Scratch partial(team.team_scratch(0));
    const int first = team.league_rank() * width;
    const int n = Kokkos::min(+width, static_cast<int>(matrix.extent(1)) - first);
    const std::size_t rows = matrix.extent(0), length = (rows + slices - 1) / slices;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, slices), [&](const int slice) {
      A* sum = &partial(slice, 0);
      const std::size_t begin = slice * length, end = Kokkos::min(rows, begin + length);
      columns(team, n, [&](const int c) { sum[c] = 0; });
      for (std::size_t row = begin; row < end; ++row) {
        const T* values = &matrix(row, first);
        columns(team, n, [&](const int c) { sum[c] += A(values[c]); });
      }
    });
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, n), [&](const int c) {
      A sum = 0;
      for (int slice = 0; slice < slices; ++slice) sum += partial(slice, c);
      sums(first + c) += sum;
    });
  }
};

template <class T>
void column_sums(const Context& context, Matrix<const T> matrix, Vector<Accumulate<T>> sums) {
  using Sums = ColumnSumsKernel<T>;
  const int leagues = static_cast<int>((matrix.extent(1) + Sums::width - 1) / Sums::width);
  if (leagues == 0 || matrix.extent(0) == 0) return;
  Kokkos::TeamPolicy<Device> policy(context.space, leagues, on_host ? 1 : Sums::slices,
                                    on_host ? 1 : 32);
  policy.set_scratch_size(0, Kokkos::PerTeam(Sums::Scratch::shmem_size()));
  Kokkos::parallel_for("tern::column_sums", policy, Sums{matrix, sums});
}

}  // namespace tern::ops::portable::detail
