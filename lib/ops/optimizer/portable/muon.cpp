#include <algorithm>

#include "base/error.hpp"
#include "ops/core/portable/part_sums.hpp"
#include "ops/optimizer/optimizer.hpp"

namespace tern::ops {
using namespace portable;
namespace {

using detail::Team;

template <class X>
std::size_t stride(const Tensor3<X>& t) {
  return t.extent(1) * t.extent(2);
}
/// body.of(which)(i) for the elements of a batch of matrices, independent of each other. A team
/// takes a piece of one matrix.
template <class F>
struct Pieces {
  F body;
  std::size_t elements;
  int pieces;  // per matrix
  static constexpr std::size_t size = 2048;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const auto one = body.of(team.league_rank() / pieces);
    const std::size_t begin = team.league_rank() % pieces * size;
    const int count = static_cast<int>(elements - begin < size ? elements - begin : size);
    if constexpr (detail::on_host) {
      TERN_SIMD
      for (int i = 0; i < count; ++i) one(begin + i);
    } else {
      Kokkos::parallel_for(Kokkos::TeamVectorRange(team, count),
                           [&](const int i) { one(begin + i); });
    }
  }
};

template <class F>
void for_each_of_batch(const Context& context, const char* label, std::size_t matrices,
                       std::size_t elements, const F& body) {
  if (matrices * elements == 0) return;
  using Loop = Pieces<F>;
  const int pieces = static_cast<int>((elements + Loop::size - 1) / Loop::size);
  Kokkos::TeamPolicy<Device> policy(context.space, static_cast<int>(matrices) * pieces,
                                    detail::on_host ? 1 : 8, detail::on_host ? 1 : 32);
  Kokkos::parallel_for(label, policy, Loop{body, elements, pieces});
}

/// Sums over matrices, each in parts whose number does not depend on the batch.
template <class A>
struct Squares {
  const A* span;
  const std::size_t* at;
  std::size_t elements, parts;
  Vector<double> sums;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::size_t length = (elements + parts - 1) / parts;
    const std::size_t begin = Kokkos::min(elements, team.league_rank() % parts * length);
    const A* from = span + at[team.league_rank() / parts];
    const double sum = detail::sum_of<A>(team, begin, Kokkos::min(elements, begin + length),
                                         [=](const std::size_t i) { return from[i] * from[i]; });
    Kokkos::single(Kokkos::PerTeam(team), [&] { sums(team.league_rank()) = sum; });
  }
};

template <class T>
struct NormalizeKernel {
  using A = Accumulate<T>;
  const A *span, *squares;
  const std::size_t* at;
  A eps;
  T* to;
  std::size_t elements;

  struct One {
    const A* from;
    A norm;
    T* to;
    KOKKOS_FUNCTION void operator()(const std::size_t i) const { to[i] = T(from[i] / norm); }
  };
  KOKKOS_FUNCTION One of(const std::size_t which) const {
    const A norm = Kokkos::sqrt(squares[which]);
    return {span + at[which], norm > eps ? norm : eps, to + which * elements};
  }
};

template <class T, class S>
struct Descend {
  using A = Accumulate<T>;
  A keep, step;
  const S* direction;
  const std::size_t* at;
  std::size_t elements;
  const A* scale;
  A* master;
  T* copy;  // null: none

  struct One {
    bool skips;
    A keep, step;
    const S* direction;
    A* master;
    T* copy;
    KOKKOS_FUNCTION void operator()(const std::size_t i) const {
      if (skips) return;
      const A w = keep * master[i] - step * A(direction[i]);
      master[i] = w;
      if (copy) copy[i] = T(w);
    }
  };
  KOKKOS_FUNCTION One of(const std::size_t which) const {
    const std::size_t place = at[which];
    const bool skips = !(scale[0] > 0);  // 0 or NaN
    return {skips,          keep,
            step,           direction + which * elements,
            master + place, copy ? copy + place : nullptr};
  }
};

}  // namespace

template <class A>
void Nesterov<A>::portable(const Context& context, const Nesterov& call) {
  const A mu = static_cast<A>(call.momentum), fresh = static_cast<A>(1 - call.momentum);
  A *g = call.gradient.data(), *b = call.buffer.data();
  const A* scale = call.gradient_scale.data();
  detail::for_each(
      context, "tern::nesterov", call.gradient.size(), KOKKOS_LAMBDA(const std::size_t i) {
        if (scale[0] > 0) {
          const A clipped = scale[0] * g[i];
          b[i] += fresh * (clipped - b[i]);
          g[i] = clipped + mu * (b[i] - clipped);
        }
      });
}

template <class A>
void SumsOfSquares<A>::portable(const Context& context, const SumsOfSquares& call) {
  const Vector<double> sums = context.partial_sums;
  TERN_REQUIRE(sums.size() > 0, "sums need a context of make_context()");
  constexpr std::size_t part = 16384;  // elements, approximately
  const std::size_t parts = std::clamp<std::size_t>(call.elements / part, 1, sums.size());
  const std::size_t most = sums.size() / parts;
  for (std::size_t first = 0; first < call.at.size(); first += most) {
    const std::size_t count = std::min(most, call.at.size() - first);
    Kokkos::TeamPolicy<Device> policy(context.space, static_cast<int>(count * parts),
                                      detail::on_host ? 1 : 8, detail::on_host ? 1 : 32);
    Kokkos::parallel_for(
        "tern::squares", policy,
        Squares<A>{call.span.data(), call.at.data() + first, call.elements, parts, sums});
    A* to = call.squares.data() + first;
    Kokkos::parallel_for(
        "tern::squares", Kokkos::RangePolicy<Device>(context.space, 0, static_cast<int>(count)),
        KOKKOS_LAMBDA(const int i) {
          double sum = 0;
          for (std::size_t p = 0; p < parts; ++p) sum += sums(i * parts + p);
          to[i] = static_cast<A>(sum);
        });
  }
}

template <class T>
void Normalize<T>::portable(const Context& context, const Normalize& call) {
  for_each_of_batch(
      context, "tern::normalize", call.at.size(), stride(call.to),
      NormalizeKernel<T>{call.span.data(), call.squares.data(), call.at.data(),
                         static_cast<Accumulate<T>>(call.eps), call.to.data(), stride(call.to)});
}

template <class T, class S>
void Descent<T, S>::portable(const Context& context, const Descent& call) {
  using A = Accumulate<T>;
  const bool copies = call.copy.size() > 0 && static_cast<const void*>(call.copy.data()) !=
                                                  static_cast<void*>(call.master.data());
  for_each_of_batch(
      context, "tern::descend", call.at.size(), stride(call.direction),
      Descend<T, S>{static_cast<A>(call.keep), static_cast<A>(call.step), call.direction.data(),
                    call.at.data(), stride(call.direction), call.gradient_scale.data(),
                    call.master.data(), copies ? call.copy.data() : nullptr});
}

TERN_INSTANTIATE_PORTABLE(Normalize)
template struct Descent<float, float>;
template struct Descent<double, double>;
template struct Descent<bf16, bf16>;
template struct Descent<fp16, fp16>;
template struct Descent<bf16, float>;
template struct Descent<fp16, float>;
TERN_INSTANTIATE_SUMS(Nesterov)
TERN_INSTANTIATE_SUMS(SumsOfSquares)

}  // namespace tern::ops
