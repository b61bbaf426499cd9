/// LM head and cross entropy in chunks of rows: products through cuBLASLt, and between them one
/// kernel that turns a chunk's logits into losses and, in place, gradients. Gradients in fp8 are
/// written by a second kernel, whose tiles it can transpose.
#include "ops/elementwise/cuda/rounding.hpp"
#include "ops/linear/linear.hpp"
#include "ops/loss/cuda/detail/logit_rows.hpp"
#include "ops/loss/loss.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

template <class T>
struct Rows {
  T* logits;  // (C, width)
  const std::int32_t* targets;
  const float* weights;  // null: losses only
  float* losses;
  int width, vocabulary;
  float z_loss, cap;  // cap 0: none
  float gradient_scale;
  // With gradients in fp8, else null:
  float* lse2;               // log-sum-exp in units of log 2
  std::uint32_t* magnitude;  // raised to a bound of the gradients
};

/// With the hardware's tanh, whose error of 2^-11 is no larger than the rounding of a logit.
__device__ float capped(float logit, float cap) {
  if (cap == 0) return logit;
  float share;
  asm("tanh.approx.f32 %0, %1;" : "=f"(share) : "f"(logit / cap));
  return cap * share;
}

/// Capped logits of a row in units of log 2; -infinity beyond the vocabulary.
template <class T>
__device__ Pack load_scaled(const T* row, int column, const Rows<T>& a) {
  Pack pack = Pack::load(row + column);
  for (int i = 0; i < pack_size; ++i)
    pack.value[i] =
        column + i < a.vocabulary ? capped(pack.value[i], a.cap) * log2_e : -CUDART_INF_F;
  return pack;
}

template <class T>
__device__ LogSumExp log_sum_exp(const T* row, const Rows<T>& a) {
  LogSumExp mine = LogSumExp::empty();
  for (int column = threadIdx.x * pack_size; column < a.vocabulary;
       column += row_threads * pack_size)
    mine.add(load_scaled(row, column, a));
  return block_sum(mine);
}

/// Of a row's logits, from load_scaled().
struct RowGradient {
  float lse2, weight, scale, per_cap;
  int target, vocabulary;

  template <class T>
  __device__ RowGradient(const Rows<T>& a, std::size_t row, float lse2_)
      : lse2(lse2_),
        weight(a.weights[row] * a.gradient_scale),
        scale(weight * (1 + 2 * a.z_loss * (lse2 / log2_e))),
        per_cap(a.cap > 0 ? 1 / (a.cap * log2_e) : 0.0f),
        target(a.targets[row]),
        vocabulary(a.vocabulary) {}

  /// No smaller than any number's magnitude; NaN with a weight that is.
  __device__ float bound() const {
    return fmaxf(fmaxf(fabsf(weight), fabsf(scale)), fabsf(scale - weight));
  }
  __device__ float operator()(float scaled, int column) const {
    float gradient = scale * exp2f(scaled - lse2);
    if (column == target) gradient -= weight;
    const float share = scaled * per_cap;
    return per_cap > 0 && column < vocabulary ? gradient * (1 - share * share) : gradient;
  }
};

// One block per row. The second read of the row hits the L2 cache.
template <class T>
__global__ void __launch_bounds__(row_threads) row_losses(Rows<T> a) {
  T* row = a.logits + std::size_t(blockIdx.x) * a.width;
  const int target = a.targets[blockIdx.x];
  if (target < 0) {
    if (threadIdx.x == 0) a.losses[blockIdx.x] = 0;
    if (a.weights && !a.lse2) fill_zero(row, a.width);
    return;
  }
  // A target beyond the vocabulary is a data error and must not look like a loss.
  const float correct = target < a.vocabulary ? capped(float(row[target]), a.cap) : CUDART_NAN_F;
  const LogSumExp total = log_sum_exp(row, a);  // a barrier: `correct` is read before any write
  const float lse2 = total.largest + log2f(total.sum), lse = lse2 / log2_e;
  if (threadIdx.x == 0) a.losses[blockIdx.x] = lse - correct + a.z_loss * lse * lse;
  if (!a.weights) return;
  const RowGradient gradient(a, blockIdx.x, lse2);
  if (a.lse2) {
    if (threadIdx.x == 0) {
      a.lse2[blockIdx.x] = lse2;
      atomicMax(a.magnitude, float_bits(gradient.bound()));
    }
    return;
  }
  for (int column = threadIdx.x * pack_size; column < a.width; column += row_threads * pack_size) {
    Pack pack = load_scaled(row, column, a);
    for (int i = 0; i < pack_size; ++i) pack.value[i] = gradient(pack.value[i], column + i);
    pack.store(row + column);
  }
}

/// The gradients of a chunk of logits as a Source of rounding.hpp.
template <class T>
struct LogitGradients : SideBySide {
  static constexpr int planes = 1;
  Rows<T> rows;

  __device__ void load(std::size_t row, std::size_t column, float (&to)[planes][chunk]) const {
    const bool ignored = rows.targets[row] < 0;
    const RowGradient gradient(rows, row, ignored ? 0.0f : rows.lse2[row]);
#pragma unroll
    for (int half = 0; half < chunk; half += pack_size) {
      const int first = static_cast<int>(column) + half;
      const Pack pack = load_scaled(rows.logits + row * rows.width, first, rows);
      for (int i = 0; i < pack_size; ++i)
        to[0][half + i] = ignored ? 0.0f : gradient(pack.value[i], first + i);
    }
  }
};

template <class T>
Matrix<T> rows_of(const Matrix<T>& m, std::size_t first, std::size_t n) {
  return Matrix<T>(m.data() + first * m.extent(1), n, m.extent(1));
}

/// after(first, logits, rows) for all chunks, after each one's losses (and, with weights and unless
/// they are to be in fp8, gradients) are computed.
template <class T, class After>
void for_each_chunk(const Context& context, const HeadOptions& options, Matrix<const T> x,
                    Matrix<const T> w, Vector<const std::int32_t> targets, const float* weights,
                    Matrix<T> logits, Vector<float> losses, const HeadFp8<T>& fp8,
                    const After& after) {
  const std::size_t rows = x.extent(0), size = logits.extent(0), width = w.extent(0);
  const std::size_t vocabulary = options.vocabulary > 0 ? options.vocabulary : width;
  for (std::size_t first = 0; first < rows; first += size) {
    const std::size_t n = std::min(size, rows - first);
    const Matrix<T> part = rows_of(logits, 0, n);
    run(context, LinearForward<T>{.x = rows_of(x, first, n), .w = w, .y = part});
    const bool in_fp8 = fp8.takes(n, w);
    if (in_fp8)
      cudaMemsetAsync(fp8.gradient.magnitude.data(), 0, sizeof(std::uint32_t), stream_of(context));
    const Rows<T> a{part.data(),
                    targets.data() + first,
                    weights ? weights + first : nullptr,
                    losses.data() + first,
                    static_cast<int>(width),
                    static_cast<int>(vocabulary),
                    static_cast<float>(options.z_loss),
                    static_cast<float>(options.cap),
                    static_cast<float>(options.gradient_scale),
                    in_fp8 ? fp8.lse.data() : nullptr,
                    in_fp8 ? fp8.gradient.magnitude.data() : nullptr};
    row_losses<<<static_cast<unsigned>(n), row_threads, 0, stream_of(context)>>>(a);
    check_launch("row_losses");
    after(first, part, a);
  }
}

template <class T>
bool packed(const Matrix<T>& logits) {
  return logits.extent(1) % pack_size == 0 && all_aligned(logits.data());
}

}  // namespace

template <class T>
bool HeadLossForward<T>::native(const Context& context, const HeadLossForward& call) {
  if (!packed(call.logits)) return false;
  for_each_chunk<T>(context, call.options, call.x, call.w, call.targets, nullptr, call.logits,
                    call.losses, {},
                    [&](std::size_t first, const Matrix<T>& chunk, const Rows<T>&) {
                      if (call.best.extent(0) > 0)
                        run(context, ArgmaxRows<T>{.logits = chunk,
                                                   .vocabulary = call.options.vocabulary,
                                                   .best = Vector<std::int32_t>(
                                                       call.best.data() + first, chunk.extent(0))});
                    });
  return true;
}

template <class T>
bool HeadLossBackward<T>::native(const Context& context, const HeadLossBackward& call) {
  if (!packed(call.logits) || (call.fp8.workspace && !rounds_to_fp8<T>)) return false;
  Fp8Matrix w;
  const auto products = [&](std::size_t first, const Matrix<T>& chunk, const Rows<T>& rows) {
    const std::size_t n = chunk.extent(0);
    const Matrix<const T> x = rows_of(call.x, first, n);
    const Matrix<T> dx = rows_of(call.dx, first, n);
    if constexpr (rounds_to_fp8<T>)
      if (rows.lse2) {
        const Fp8Workspace<T>& in = *call.fp8.workspace;
        const Fp8Matrix dlogits = in.gradient(chunk, call.fp8.gradient, false).rounded;
        launch_rounding("logit_gradients", stream_of(context), LogitGradients<T>{{}, rows}, n,
                        chunk.extent(1), dlogits, Scaling::known);
        if (!w.wanted()) w = in.weights(context, call.w, true);
        run(context,
            Fp8LinearBackwardInput<T>{.workspace = in.values(), .dy = dlogits, .w = w, .dx = dx});
        run(context, Fp8LinearBackwardWeight<T>{.workspace = in.values(),
                                                .dy = dlogits,
                                                .x = in.rounded_input(context, x, call.fp8.input),
                                                .dw = call.dw});
        return;
      }
    run(context, LinearBackwardInput<T>{.dy = chunk, .w = call.w, .dx = dx});
    run(context, LinearBackwardWeight<T>{.dy = chunk, .x = x, .dw = call.dw});
  };
  for_each_chunk<T>(context, call.options, call.x, call.w, call.targets, call.weights.data(),
                    call.logits, call.losses, call.fp8, products);
  return true;
}

TERN_INSTANTIATE_NATIVE(HeadLossForward)
TERN_INSTANTIATE_NATIVE(HeadLossBackward)

}  // namespace tern::ops
