#include "ops/loss/vocabulary.hpp"

#include "base/error.hpp"
#include "ops/core/portable/loops.hpp"
#include "ops/core/portable/math.hpp"
#include "ops/loss/portable/detail/strips.hpp"

namespace tern::ops {
using namespace portable;
namespace {

using detail::Team;

enum Figure { largest_at, sum_at, target_at, best_at };

template <class T>
struct RowFigures {
  using A = Accumulate<T>;
  Matrix<const T> logits;
  Vector<const std::int32_t> targets;
  Matrix<A> figures;
  int first, here;  // here: columns that are tokens, not padding

  KOKKOS_FUNCTION void operator()(const Team& team, const int row) const {
    const T* values = &logits(row, 0);
    const int target = targets(row) - first;
    const A largest = detail::row_max<A>(team, here, [&](int i) { return A(values[i]); });
    const A sum =
        detail::row_sum<A>(team, here, [&](int i) { return exponential(A(values[i]) - largest); });
    const A best = -detail::row_max<A>(
        team, here, [&](int i) { return A(values[i]) == largest ? A(-i) : A(-here); });
    figures(row, largest_at) = largest;
    figures(row, sum_at) = here > 0 ? sum : A(0);
    figures(row, target_at) =
        target >= 0 && target < here ? A(values[target]) : Kokkos::Experimental::quiet_NaN_v<A>;
    figures(row, best_at) = here > 0 ? A(first) + best : A(0);
  }
};

template <class A>
struct CombineRow {
  Tensor3<const A> figures;
  A z_loss;
  Vector<const std::int32_t> targets;
  Vector<A> losses, lse;
  Vector<std::int32_t> best;

  KOKKOS_FUNCTION void operator()(const std::size_t row) const {
    A largest = -Kokkos::Experimental::infinity_v<A>, token = 0;
    A correct = Kokkos::Experimental::quiet_NaN_v<A>;
    for (std::size_t r = 0; r < figures.extent(0); ++r) {
      if (figures(r, row, largest_at) > largest) {
        largest = figures(r, row, largest_at);
        token = figures(r, row, best_at);
      }
      const A own = figures(r, row, target_at);
      if (own == own) correct = own;  // a target logit that is NaN stays NaN, as it should
    }
    A sum = 0;
    for (std::size_t r = 0; r < figures.extent(0); ++r)
      sum += figures(r, row, sum_at) * exponential(figures(r, row, largest_at) - largest);
    lse(row) = largest + Kokkos::log(sum);
    losses(row) = targets(row) < 0 ? A(0) : lse(row) - correct + z_loss * lse(row) * lse(row);
    if (best.extent(0) > 0) best(row) = static_cast<std::int32_t>(token);
  }
};

template <class T>
struct LogitGradients {
  using A = Accumulate<T>;
  Matrix<T> logits;
  Vector<const std::int32_t> targets;
  Vector<const A> weights, lse;
  A z_loss, per_cap;  // per_cap: 1 / cap, or 0
  A gradient_scale;
  int first, here;

  KOKKOS_FUNCTION void operator()(const Team& team, const int row) const {
    T* values = &logits(row, 0);
    const int width = static_cast<int>(logits.extent(1)), target = targets(row) - first;
    const A weight = targets(row) < 0 ? A(0) : weights(row) * gradient_scale;
    const A log_sum_exp = lse(row);
    const A scale = weight * (A(1) + A(2) * z_loss * log_sum_exp);
    const bool scored = targets(row) >= 0;
    detail::columns(team, width, [&](int i) {
      const A value = A(values[i]), share = value * per_cap;
      const A gradient = scale * exponential(value - log_sum_exp) - (i == target ? weight : A(0));
      values[i] = T(scored && i < here ? gradient * (A(1) - share * share) : A(0));
    });
  }
};

}  // namespace

template <class T>
void EmbeddingPartForward<T>::portable(const Context& context, const EmbeddingPartForward& call) {
  const Vector<const std::int32_t> tokens = call.tokens;
  const Matrix<const T> table = call.table, positions = call.positions;
  const std::size_t tokens_per_sequence = call.tokens_per_sequence;
  const int first_position = call.first_position;
  const Matrix<T> x = call.x;
  using A = Accumulate<T>;
  const int width = static_cast<int>(x.extent(1)), from = static_cast<int>(call.first),
            here = static_cast<int>(table.extent(0));
  const bool learned = positions.extent(0) > 0;
  detail::for_each_row(
      context, "tern::embedding_part_forward", x.extent(0),
      KOKKOS_LAMBDA(const Team& team, const int row) {
        const int token = tokens(row) - from;
        const T* in = token >= 0 && token < here ? &table(token, 0) : nullptr;
        const T* position =
            learned ? &positions(first_position + row % tokens_per_sequence, 0) : nullptr;
        T* out = &x(row, 0);
        detail::columns(team, width, [&](int i) {
          out[i] = T((in ? A(in[i]) : A(0)) + (position ? A(position[i]) : A(0)));
        });
      });
}

template <class T>
void EmbeddingPartBackward<T>::portable(const Context& context, const EmbeddingPartBackward& call) {
  detail::add_tokens<T>(context, call.tokens, call.first, call.order, call.dx, call.dtable);
  if (call.dpositions.extent(0) > 0)
    detail::add_positions<T>(context, call.dx, call.tokens_per_sequence, call.dpositions);
}

template <class T>
void RowParts<T>::check() const {
  TERN_REQUIRE(targets.size() == logits.extent(0) && figures.extent(0) == logits.extent(0) &&
                   figures.extent(1) == row_figures,
               "({}, {}) logits, {} targets, ({}, {}) figures", logits.extent(0), logits.extent(1),
               targets.size(), figures.extent(0), figures.extent(1));
}

template <class T>
void RowParts<T>::portable(const Context& context, const RowParts& call) {
  detail::for_each_row(
      context, "tern::row_parts", call.logits.extent(0),
      RowFigures<T>{call.logits, call.targets, call.figures, static_cast<int>(call.first),
                    columns_here(call.logits.extent(1), call.first, call.vocabulary)});
}

template <class A>
void CombineRows<A>::portable(const Context& context, const CombineRows& call) {
  detail::for_each(context, "tern::combine_rows", call.figures.extent(1),
                   CombineRow<A>{call.figures, static_cast<A>(call.z_loss), call.targets,
                                 call.losses, call.lse, call.best});
}

template <class T>
void RowGradients<T>::check() const {
  const std::size_t rows = logits.extent(0);
  TERN_REQUIRE(targets.size() == rows && weights.size() == rows && lse.size() == rows,
               "{} rows of logits, {} targets, {} weights, {} log sums", rows, targets.size(),
               weights.size(), lse.size());
}

template <class T>
void RowGradients<T>::portable(const Context& context, const RowGradients& call) {
  const std::size_t rows = call.logits.extent(0);
  using A = Accumulate<T>;
  detail::for_each_row(
      context, "tern::row_gradients", rows,
      LogitGradients<T>{call.logits, call.targets, call.weights, call.lse,
                        static_cast<A>(call.options.z_loss),
                        static_cast<A>(call.options.cap > 0 ? 1 / call.options.cap : 0),
                        static_cast<A>(call.options.gradient_scale), static_cast<int>(call.first),
                        columns_here(call.logits.extent(1), call.first, call.options.vocabulary)});
}

template <class T>
void JoinColumns<T>::portable(const Context& context, const JoinColumns& call) {
  const std::size_t rows = call.parts.extent(1);
  const int width = static_cast<int>(call.parts.extent(2));
  detail::for_each_row(
      context, "tern::join_columns", call.parts.extent(0) * rows,
      KOKKOS_LAMBDA(const Team& team, const int i) {
        const std::size_t part = i / rows, row = i % rows;
        const T* in = &call.parts(part, row, 0);
        T* out = &call.whole(row, part * width);
        detail::columns(team, width, [&](int c) { out[c] = in[c]; });
      });
}

TERN_INSTANTIATE_PORTABLE(EmbeddingPartForward)
TERN_INSTANTIATE_PORTABLE(EmbeddingPartBackward)
TERN_INSTANTIATE_PORTABLE(RowParts)
TERN_INSTANTIATE_PORTABLE(RowGradients)
TERN_INSTANTIATE_PORTABLE(JoinColumns)
TERN_INSTANTIATE_SUMS(CombineRows)

}  // namespace tern::ops
