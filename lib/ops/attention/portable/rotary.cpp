/// Rotary position embedding (Su et al. 2021), halves rotated as in Transformers' Llama: the pair
/// (x_i, x_{i + E/2}) turns by the angle position * base^(-2 i / E).
#include <Kokkos_Core.hpp>

#include "base/error.hpp"
#include "ops/attention/rotary.hpp"

namespace tern::ops {

template <class T>
void RotaryTable<T>::check() const {
  TERN_REQUIRE(table.extent(1) % 2 == 0, "head size {}", table.extent(1));
}

template <class T>
void RotaryTable<T>::portable(const Context& context, const RotaryTable& call) {
  const int half = static_cast<int>(call.table.extent(1) / 2);
  if (call.table.size() == 0) return;
  // Angles in double: at position 10^5 a float's angle would be off by 0.01.
  Kokkos::parallel_for(
      "tern::rotary_table",
      Kokkos::MDRangePolicy<Device, Kokkos::Rank<2>>(
          context.space, {0, 0}, {static_cast<std::int64_t>(call.table.extent(0)), half}),
      KOKKOS_LAMBDA(int position, int i) {
        const double angle = position * Kokkos::pow(call.base, -static_cast<double>(i) / half);
        call.table(position, i) = static_cast<T>(Kokkos::cos(angle));
        call.table(position, half + i) = static_cast<T>(Kokkos::sin(angle));
      });
}

template <class T>
void Rotary<T>::check() const {
  const int tokens = static_cast<int>(x.extent(1));
  TERN_REQUIRE(x.extent(3) == table.extent(1) && x.extent(3) % 2 == 0, "head size {}, table {}",
               x.extent(3), table.extent(1));
  const int first = positions.first;
  const Vector<const std::int32_t> named = positions.rows;
  const bool counted = named.extent(0) == 0;
  TERN_REQUIRE(
      !counted || (first >= 0 && static_cast<std::size_t>(first) + tokens <= table.extent(0)),
      "positions {} to {}, table has {}", first, first + tokens, table.extent(0));
  TERN_REQUIRE(counted || named.extent(0) == x.extent(0) * x.extent(1), "{} positions for {} rows",
               named.extent(0), x.extent(0) * x.extent(1));
}

template <class T>
void Rotary<T>::portable(const Context& context, const Rotary& call) {
  using A = Accumulate<T>;
  const int tokens = static_cast<int>(call.x.extent(1)), heads = static_cast<int>(call.x.extent(2));
  const int half = static_cast<int>(call.x.extent(3) / 2);
  const int first = call.positions.first;
  const Vector<const std::int32_t> named = call.positions.rows;
  const bool counted = named.extent(0) == 0;
  const A sign = call.direction == Direction::forward ? A(1) : A(-1);
  using Policy = Kokkos::TeamPolicy<Device>;
  const int rows = static_cast<int>(call.x.extent(0)) * tokens;
  if (rows == 0 || heads == 0 || half == 0) return;
  const int team_size =
      Kokkos::SpaceAccessibility<Kokkos::HostSpace, DeviceMemory>::accessible ? 1 : 128;
  Kokkos::parallel_for(
      "tern::rotary", Policy(context.space, rows, team_size),
      KOKKOS_LAMBDA(const Policy::member_type& team) {
        const int b = team.league_rank() / tokens, t = team.league_rank() % tokens;
        const A* cosine = &call.table(counted ? first + t : named(team.league_rank()), 0);
        const A* sine = cosine + half;
        T* row = &call.x(b, t, 0, 0);
        const auto stride = static_cast<std::ptrdiff_t>(call.x.stride(2));
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, heads), [&](int h) {
          T* low = row + h * stride;
          T* high = low + half;
          Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, half), [&](int i) {
            const A c = cosine[i], s = sign * sine[i];
            const A a = low[i], o = high[i];
            low[i] = static_cast<T>(a * c - o * s);
            high[i] = static_cast<T>(o * c + a * s);
          });
        });
      });
}

template <class T>
void RotaryBackwardToFp8<T>::check() const {
  const std::size_t E = table.extent(1), N = dqkv.extent(0);
  TERN_REQUIRE(N % tokens == 0 && heads * E <= dqkv.extent(1), "{} rows of {} tokens, {} of {}", N,
               tokens, heads * E, dqkv.extent(1));
}

template <class T>
void RotaryBackwardToFp8<T>::portable(const Context& context, const RotaryBackwardToFp8& call) {
  const std::size_t E = call.table.extent(1), N = call.dqkv.extent(0);
  run(context, Rotary<T>{.x = heads_of(call.dqkv, 0, N / call.tokens, call.tokens, call.heads, E),
                         .table = call.table,
                         .positions = call.positions,
                         .direction = Direction::backward});
  run(context, Fp8Round<T>{.values = call.dqkv, .to = call.rounded, .scaling = context.scaling});
}

TERN_INSTANTIATE_PORTABLE(Rotary)
TERN_INSTANTIATE_PORTABLE(RotaryBackwardToFp8)
TERN_INSTANTIATE_PORTABLE(RotaryTable)

}  // namespace tern::ops
