#include "base/error.hpp"
#include "ops/core/portable/loops.hpp"
#include "ops/core/portable/math.hpp"
#include "ops/linear/linear.hpp"
#include "ops/loss/loss.hpp"

namespace tern::ops {
using namespace portable;
namespace {

using detail::Team;

/// Rows [first, first + n) of a matrix.
template <class T>
Matrix<T> rows_of(const Matrix<T>& m, std::size_t first, std::size_t n) {
  return Matrix<T>(m.data() + first * m.extent(1), n, m.extent(1));
}

/// Losses of one chunk of rows; with `weights`, logits become their gradients:
/// d loss / d logit_v = (p_v (1 + 2 z lse) - [v = target]) (1 - (logit_v / cap)^2), the last
/// factor, of capped logits, only with a cap.
template <class T>
struct RowLoss {
  using A = Accumulate<T>;

  Matrix<T> logits;                    // (C, V)
  Vector<const std::int32_t> targets;  // (N)
  Vector<const A> weights;             // (N), or empty: forward only
  Vector<A> losses;                    // (N)
  int first, vocabulary;               // first row of the chunk
  A z_loss, per_cap;                   // per_cap: 1 / cap, or 0
  A gradient_scale;

  KOKKOS_FUNCTION void operator()(const Team& team, const int row) const {
    const int n = first + row, target = targets(n), width = static_cast<int>(logits.extent(1));
    T* values = &logits(row, 0);
    if (target < 0) {
      losses(n) = 0;
      if (weights.extent(0) > 0) detail::columns(team, width, [&](int i) { values[i] = T(A(0)); });
      return;
    }
    // Read before any lane overwrites it. A target beyond the vocabulary is a data error and must
    // not look like a loss.
    const A correct =
        target < vocabulary ? A(values[target]) : Kokkos::Experimental::quiet_NaN_v<A>;
    const A largest = detail::row_max<A>(team, vocabulary, [&](int i) { return A(values[i]); });
    const A sum = detail::row_sum<A>(team, vocabulary,
                                     [&](int i) { return exponential(A(values[i]) - largest); });
    const A lse = largest + Kokkos::log(sum);
    losses(n) = lse - correct + z_loss * lse * lse;
    if (weights.extent(0) > 0)
      differentiate(team, values, target, largest, sum, lse, weights(n) * gradient_scale);
  }

  KOKKOS_FUNCTION void differentiate(const Team& team, T* values, int target, A largest, A sum,
                                     A lse, A weight) const {
    const A scale = weight * (A(1) + A(2) * z_loss * lse) / sum;
    detail::columns(team, vocabulary, [&](int i) {
      const A gradient = scale * exponential(A(values[i]) - largest);
      const A share = A(values[i]) * per_cap, slope = A(1) - share * share;
      values[i] = T((i == target ? gradient - weight : gradient) * slope);
    });
    const int padding = static_cast<int>(logits.extent(1)) - vocabulary;
    detail::columns(team, padding, [&](int i) { values[vocabulary + i] = T(A(0)); });
  }
};

template <class L>
void require_chunk(const HeadOptions& options, const L& logits, std::size_t columns) {
  TERN_REQUIRE(logits.extent(0) > 0 && logits.extent(1) == columns && options.vocabulary <= columns,
               "logits ({}, {}) for a vocabulary of {} of {}", logits.extent(0), logits.extent(1),
               options.vocabulary, columns);
}

/// chunk(first, rows, logits) for all chunks, after each one's logits and losses are computed.
template <class T, class Chunk>
void for_each_chunk(const Context& context, const HeadOptions& options, Matrix<const T> x,
                    Matrix<const T> w, Vector<const std::int32_t> targets,
                    Vector<const Accumulate<T>> weights, Matrix<T> logits,
                    Vector<Accumulate<T>> losses, const Chunk& chunk) {
  using A = Accumulate<T>;
  const std::size_t rows = x.extent(0), size = logits.extent(0), columns = w.extent(0);
  const std::size_t vocabulary = options.vocabulary > 0 ? options.vocabulary : columns;
  for (std::size_t first = 0; first < rows; first += size) {
    const std::size_t n = std::min(size, rows - first);
    const Matrix<T> part = rows_of(logits, 0, n);
    run(context, LinearForward<T>{.x = rows_of(x, first, n), .w = w, .y = part});
    run(context, CapLogits<T>{.cap = options.cap, .logits = part});
    detail::for_each_row(context, "tern::row_loss", n,
                         RowLoss<T>{part, targets, weights, losses, static_cast<int>(first),
                                    static_cast<int>(vocabulary), static_cast<A>(options.z_loss),
                                    static_cast<A>(options.cap > 0 ? 1 / options.cap : 0),
                                    static_cast<A>(options.gradient_scale)});
    chunk(first, n, part);
  }
}

}  // namespace

std::size_t head_chunk_rows(std::size_t rows, std::size_t vocabulary, std::size_t element_bytes,
                            bool host) {
  constexpr std::size_t host_rows = 256, device_rows = 4096, device_bytes = 1u << 30;
  constexpr std::size_t tile_rows = 256;
  std::size_t most = host_rows, unit = 1;
  if (!host) {
    most = std::clamp<std::size_t>(device_bytes / (vocabulary * element_bytes), 1, device_rows);
    if (most >= tile_rows) unit = tile_rows;
    most -= most % unit;
  }
  if (rows <= most) return std::max<std::size_t>(1, rows);
  const std::size_t chunks = (rows + most - 1) / most, equal = (rows + chunks - 1) / chunks;
  return (equal + unit - 1) / unit * unit;
}

template <class T>
void HeadLossForward<T>::check() const {
  require_chunk(options, logits, w.extent(0));
}

template <class T>
void HeadLossForward<T>::portable(const Context& context, const HeadLossForward& call) {
  const Context plain = context.portable();
  for_each_chunk<T>(
      plain, call.options, call.x, call.w, call.targets, {}, call.logits, call.losses,
      [&](std::size_t first, std::size_t n, const Matrix<T>& chunk) {
        if (call.best.extent(0) > 0)
          run(plain, ArgmaxRows<T>{.logits = chunk,
                                   .vocabulary = call.options.vocabulary,
                                   .best = Vector<std::int32_t>(call.best.data() + first, n)});
      });
}

template <class T>
void GatherRows<T>::check() const {
  const int width = static_cast<int>(to.extent(1)), count = static_cast<int>(rows.extent(0));
  TERN_REQUIRE(rows.extent(0) <= to.extent(0) && from.extent(1) == to.extent(1),
               "{} rows of {} to {} of {}", count, from.extent(1), to.extent(0), width);
}

template <class T>
void GatherRows<T>::portable(const Context& context, const GatherRows& call) {
  const int width = static_cast<int>(call.to.extent(1)),
            count = static_cast<int>(call.rows.extent(0));
  detail::for_each_row(
      context, "tern::gather_rows", call.to.extent(0),
      KOKKOS_LAMBDA(const detail::Team& team, const int row) {
        const T* in = row < count ? &call.from(call.rows(row), 0) : nullptr;
        T* out = &call.to(row, 0);
        detail::columns(team, width, [&](int i) { out[i] = in ? in[i] : T(0.0f); });
      });
}

template <class T>
void ScatterRows<T>::portable(const Context& context, const ScatterRows& call) {
  Kokkos::deep_copy(context.space, call.to, T(0.0f));
  const int width = static_cast<int>(call.to.extent(1));
  detail::for_each_row(
      context, "tern::scatter_rows", call.rows.extent(0),
      KOKKOS_LAMBDA(const detail::Team& team, const int row) {
        const T* in = &call.from(row, 0);
        T* out = &call.to(call.rows(row), 0);
        detail::columns(team, width, [&](int i) { out[i] = in[i]; });
      });
}

template <class T>
void ArgmaxRows<T>::portable(const Context& context, const ArgmaxRows& call) {
  using A = Accumulate<T>;
  const int width = static_cast<int>(call.vocabulary > 0 ? call.vocabulary : call.logits.extent(1));
  detail::for_each_row(
      context, "tern::argmax_rows", call.logits.extent(0),
      KOKKOS_LAMBDA(const detail::Team& team, const int row) {
        const T* values = &call.logits(row, 0);
        const A largest = detail::row_max<A>(team, width, [&](int i) { return A(values[i]); });
        // Ties: the lowest index is the largest -index.
        call.best(row) = static_cast<std::int32_t>(-detail::row_max<A>(
            team, width, [&](int i) { return A(values[i]) == largest ? A(-i) : A(-width); }));
      });
}

template <class T>
void CapLogits<T>::portable(const Context& context, const CapLogits& call) {
  using A = Accumulate<T>;
  if (call.cap <= 0) return;
  const A limit = static_cast<A>(call.cap), per_limit = static_cast<A>(1 / call.cap);
  T* values = call.logits.data();
  detail::for_each(
      context, "tern::cap_logits", call.logits.size(), KOKKOS_LAMBDA(const std::size_t i) {
        values[i] = T(limit * Kokkos::tanh(A(values[i]) * per_limit));
      });
}

template <class T>
HeadFp8<T>::HeadFp8(Arena& arena, const Fp8Workspace<T>& of, std::size_t C)
    : workspace(&of),
      input(arena, "head input/scale", Term::workspace),
      gradient(arena, "logit gradient/scale", Term::workspace),
      lse(arena.vector<Accumulate<T>>("log sums of rows", Term::workspace, C)) {}

template <class T>
void HeadLossBackward<T>::check() const {
  require_chunk(options, logits, w.extent(0));
}

template <class T>
void HeadLossBackward<T>::portable(const Context& context, const HeadLossBackward& call) {
  const Context plain = context.portable();
  Fp8Matrix w;
  const auto products = [&](std::size_t first, std::size_t n, const Matrix<T>& dlogits) {
    const Matrix<const T> x = rows_of(call.x, first, n);
    const Matrix<T> dx = rows_of(call.dx, first, n);
    if (call.fp8.takes(n, call.w)) {
      const Fp8Workspace<T>& in = *call.fp8.workspace;
      const auto rounded = in.gradient(dlogits, call.fp8.gradient, false);
      round_operand<T>(plain, rounded, Scaling::current);
      if (!w.wanted()) w = in.weights(plain, call.w, true);
      run(plain, Fp8LinearBackwardInput<T>{
                     .workspace = in.values(), .dy = rounded.rounded, .w = w, .dx = dx});
      run(plain, Fp8LinearBackwardWeight<T>{.workspace = in.values(),
                                            .dy = rounded.rounded,
                                            .x = in.rounded_input(plain, x, call.fp8.input),
                                            .dw = call.dw});
    } else {
      run(plain, LinearBackwardInput<T>{.dy = dlogits, .w = call.w, .dx = dx});
      run(plain, LinearBackwardWeight<T>{.dy = dlogits, .x = x, .dw = call.dw});
    }
  };
  for_each_chunk<T>(plain, call.options, call.x, call.w, call.targets, call.weights, call.logits,
                    call.losses, products);
}

template <class A>
void ImprovementWeights<A>::check() const {
  TERN_REQUIRE(losses.size() == weights.size() && targets.size() == losses.size() && tokens > 0 &&
                   losses.size() % tokens == 0,
               "{} losses, {} targets and {} weights in sequences of {}", losses.size(),
               targets.size(), weights.size(), tokens);
}

template <class A>
void ImprovementWeights<A>::portable(const Context& context, const ImprovementWeights& call) {
  const Vector<const A> losses = call.losses;
  const Vector<const std::int32_t> targets = call.targets;
  const Vector<A> weights = call.weights;
  const std::size_t tokens = call.tokens;
  const int length = static_cast<int>(tokens);
  const A u = static_cast<A>(call.unit), b = static_cast<A>(call.base),
          r = static_cast<A>(call.reward);
  detail::for_each_row(
      context, "tern::improvement_weights", losses.size() / tokens,
      KOKKOS_LAMBDA(const Team& team, const int sequence) {
        const std::size_t first = static_cast<std::size_t>(sequence) * tokens;
        const A* loss = losses.data() + first;
        const std::int32_t* target = targets.data() + first;
        A* weight = weights.data() + first;
        const A sum = detail::row_sum<A>(
            team, length, [=](const int i) { return target[i] < 0 ? A(0) : loss[i]; });
        const A count = detail::row_sum<A>(
            team, length, [=](const int i) { return target[i] < 0 ? A(0) : A(1); });
        const A each = u * (sum > 0 ? b + r * count / sum : b);
        detail::columns(team, length, [=](const int i) { weight[i] = each; });
      });
}

TERN_INSTANTIATE_PORTABLE(HeadFp8)
TERN_INSTANTIATE_PORTABLE(HeadLossForward)
TERN_INSTANTIATE_PORTABLE(HeadLossBackward)
TERN_INSTANTIATE_PORTABLE(GatherRows)
TERN_INSTANTIATE_PORTABLE(ScatterRows)
TERN_INSTANTIATE_PORTABLE(ArgmaxRows)
TERN_INSTANTIATE_PORTABLE(CapLogits)
TERN_INSTANTIATE_SUMS(ImprovementWeights)

}  // namespace tern::ops
