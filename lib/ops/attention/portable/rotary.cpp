/// Rotary position embedding (Su et al. 2021), halves rotated as in Transformers' Llama: the pair
/// (x_i, x_{i + E/2}) turns by the angle position * base^(-2 i / E).
#include <Kokkos_Core.hpp>

#include "base/error.hpp"
#include "ops/attention/rotary.hpp"

namespace tern::ops {

template <class T>
void rotary_table(const Context& context, double base, Matrix<T> table) {
  TERN_REQUIRE(table.extent(1) % 2 == 0, "head size {}", table.extent(1));
  const int half = static_cast<int>(table.extent(1) / 2);
  if (table.size() == 0) return;
  // Angles in double: at position 10^5 a float's angle would be off by 0.01.
  Kokkos::parallel_for(
      "tern::rotary_table",
      Kokkos::MDRangePolicy<Device, Kokkos::Rank<2>>(
          context.space, {0, 0}, {static_cast<std::int64_t>(table.extent(0)), half}),
      KOKKOS_LAMBDA(int position, int i) {
        const double angle = position * Kokkos::pow(base, -static_cast<double>(i) / half);
        table(position, i) = static_cast<T>(Kokkos::cos(angle));
        table(position, half + i) = static_cast<T>(Kokkos::sin(angle));
      });
}

template <class T>
void rotary(const Context& context, Heads<T> x, Matrix<const Accumulate<T>> table,
            const Positions& positions, Direction direction) {
  using A = Accumulate<T>;
  const int tokens = static_cast<int>(x.extent(1)), heads = static_cast<int>(x.extent(2));
  const int half = static_cast<int>(x.extent(3) / 2);
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
  if (native<&rotary<T>>(context, x, table, positions, direction)) return;
  const A sign = direction == Direction::forward ? A(1) : A(-1);
  using Policy = Kokkos::TeamPolicy<Device>;
  const int rows = static_cast<int>(x.extent(0)) * tokens;
  if (rows == 0 || heads == 0 || half == 0) return;
  const int team_size =
      Kokkos::SpaceAccessibility<Kokkos::HostSpace, DeviceMemory>::accessible ? 1 : 128;
  Kokkos::parallel_for(
      "tern::rotary", Policy(context.space, rows, team_size),
      KOKKOS_LAMBDA(const Policy::member_type& team) {
        const int b = team.league_rank() / tokens, t = team.league_rank() % tokens;
        const A* cosine = &table(counted ? first + t : named(team.league_rank()), 0);
        const A* sine = cosine + half;
        T* row = &x(b, t, 0, 0);
        const auto stride = static_cast<std::ptrdiff_t>(x.stride(2));
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
void rotary_backward_to_fp8(const Context& context, Matrix<T> dqkv, std::size_t tokens,
                            std::size_t heads, Matrix<const Accumulate<T>> table,
                            const Positions& positions, const Fp8Matrix& rounded) {
  const std::size_t E = table.extent(1), N = dqkv.extent(0);
  TERN_REQUIRE(N % tokens == 0 && heads * E <= dqkv.extent(1), "{} rows of {} tokens, {} of {}", N,
               tokens, heads * E, dqkv.extent(1));
  if (native<&rotary_backward_to_fp8<T>>(context, dqkv, tokens, heads, table, positions, rounded))
    return;
  rotary<T>(context, heads_of(dqkv, 0, N / tokens, tokens, heads, E), table, positions,
            Direction::backward);
  fp8_round<T>(context, dqkv, rounded, context.scaling);
}

template decltype(rotary<float>) rotary<float>;
template decltype(rotary<double>) rotary<double>;
template decltype(rotary<bf16>) rotary<bf16>;
template decltype(rotary<fp16>) rotary<fp16>;
template decltype(rotary_backward_to_fp8<float>) rotary_backward_to_fp8<float>;
template decltype(rotary_backward_to_fp8<double>) rotary_backward_to_fp8<double>;
template decltype(rotary_backward_to_fp8<bf16>) rotary_backward_to_fp8<bf16>;
template decltype(rotary_backward_to_fp8<fp16>) rotary_backward_to_fp8<fp16>;
template decltype(rotary_table<float>) rotary_table<float>;
template decltype(rotary_table<double>) rotary_table<double>;

}  // namespace tern::ops
