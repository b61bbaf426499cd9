/// Linear maps through cuBLASLt, skinny GEMM through our own kernel. What is added is cuBLASLt's C
/// with beta = 1, bias and GELU are epilogues; weight gradients accumulate in float in place.
#include "ops/linear/linear.hpp"
#include "ops/core/cuda/kernels.hpp"
#include "ops/linear/cuda/detail/products.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

constexpr int column_threads = 256;

MatrixProduct::Work work_of(const Context& context) {
  return {stream_of(context), context.library->workspace(), NativeLibrary::product_bytes};
}
template <class T>
constexpr cudaDataType data_type = std::is_same_v<T, fp16> ? CUDA_R_16F : CUDA_R_16BF;

template <class T>
Operand operand(const Matrix<const T>& m, bool transposed = false) {
  return {m.data(), m.extent(0), m.extent(1), data_type<T>, transposed};
}

template <class T>
Operand operand(const Factor<T>& f) {
  return {f.matrices.data(), f.matrices.extent(1), f.matrices.extent(2), data_type<T>,
          f.transposed};
}

/// Whether the product applies GELU to its sums: it saves a pass over them, if there are many.
template <class T>
bool gelu_is_epilogue(const Context& context, Activation activation, Matrix<T> up) {
  constexpr std::size_t least_rows = 512, alignment = 16;  // cuBLASLt's, of rows of `up`
  return activation == Activation::gelu && !context.batch_invariant && up.extent(0) >= least_rows &&
         up.extent(1) * sizeof(T) % alignment == 0 &&
         reinterpret_cast<std::uintptr_t>(up.data()) % alignment == 0;
}

/// partial (gridDim.y, columns): sums of the columns of x over each slice of rows.
template <class T>
__global__ void slice_sums(const T* x, std::size_t rows, std::size_t columns, float* partial) {
  const std::size_t column = blockIdx.x * column_threads + threadIdx.x;
  if (column >= columns) return;
  const std::size_t slice = divide_up<std::size_t>(rows, gridDim.y);
  const std::size_t begin = blockIdx.y * slice, end = min(begin + slice, rows);
  float sum = 0;
  for (std::size_t row = begin; row < end; ++row) sum += float(x[row * columns + column]);
  partial[blockIdx.y * columns + column] = sum;
}

__global__ void add_partial_sums(const float* partial, int slices, std::size_t columns,
                                 float* result) {
  const std::size_t column = blockIdx.x * column_threads + threadIdx.x;
  if (column >= columns) return;
  float sum = 0;
  for (int s = 0; s < slices; ++s) sum += partial[s * columns + column];
  result[column] += sum;
}

}  // namespace

template <class T>
bool ColumnSums<T>::native(const Context& context, const ColumnSums& call) {
  if (call.x.size() == 0) return true;
  const std::size_t rows = call.x.extent(0), columns = call.x.extent(1);
  const unsigned wide = blocks_for(columns, column_threads);
  const unsigned slices =
      std::max(1u, std::min<unsigned>(8 * multiprocessors() / wide, blocks_for(rows, 16)));
  float* partial = context.library->scratch(slices * columns);
  slice_sums<<<dim3(wide, slices), column_threads, 0, stream_of(context)>>>(call.x.data(), rows,
                                                                            columns, partial);
  add_partial_sums<<<wide, column_threads, 0, stream_of(context)>>>(partial, slices, columns,
                                                                    call.sums.data());
  check_launch("column_sums");
  return true;
}

template <class T>
bool LinearForward<T>::native(const Context& context, const LinearForward& call) {
  if (call.y.size() == 0) return true;
  const bool adds = call.added.size() > 0, in_place = !adds || call.added.data() == call.y.data();
  if (call.bias.size() == 0 && in_place &&
      skinny_gemm(*context.library)
          .multiply<T>(stream_of(context), {.x = call.x,
                                            .w = call.w,
                                            .y = call.y,
                                            .added = adds,
                                            .early = context.constant_weights}))
    return true;
  return products(*context.library)
      .multiply(work_of(context), operand<T>(call.x), operand<T>(call.w, true), call.y.data(),
                adds ? call.added.data() : nullptr,
                {.bias = call.bias.size() ? call.bias.data() : nullptr});
}

template <class T>
bool LinearActivationForward<T>::native(const Context& context,
                                        const LinearActivationForward& call) {
  if (!gelu_is_epilogue(context, call.activation, call.up)) return false;
  return products(*context.library)
      .multiply(work_of(context), operand<T>(call.x), operand<T>(call.w, true), call.y.data(),
                nullptr,
                {.bias = call.bias.size() ? call.bias.data() : nullptr,
                 .gelu = Epilogue::Gelu::forward,
                 .input = call.up.data()});
}

template <class T>
bool LinearActivationBackward<T>::native(const Context& context,
                                         const LinearActivationBackward& call) {
  // Some of cuBLASLt's algorithms write results before they have read all slopes.
  if (call.dup.data() == call.up.data() || !gelu_is_epilogue(context, call.activation, call.up))
    return false;
  return products(*context.library)
      .multiply(work_of(context), operand<T>(call.dy), operand<T>(call.w), call.dup.data(), nullptr,
                {.gelu = Epilogue::Gelu::backward, .input = const_cast<T*>(call.up.data())});
}

template <class T>
bool LinearBackwardInput<T>::native(const Context& context, const LinearBackwardInput& call) {
  if (call.dx.size() == 0) return true;
  return products(*context.library)
      .multiply(work_of(context), operand<T>(call.dy), operand<T>(call.w), call.dx.data(),
                call.write == Write::add ? call.dx.data() : nullptr);
}

template <class T>
bool LinearBackwardWeight<T>::native(const Context& context, const LinearBackwardWeight& call) {
  if (call.dw.size() == 0) return true;
  if (call.dy.extent(0) == 0) return call.write == Write::add;
  if (!products(*context.library)
           .multiply(work_of(context), operand<T>(call.dy, true), operand<T>(call.x),
                     call.dw.data(), call.write == Write::add ? 1.0f : 0.0f))
    return false;
  if (call.dbias.size()) run(context, ColumnSums<T>{.x = call.dy, .sums = call.dbias});
  return true;
}

template <class T>
bool BatchedProduct<T>::native(const Context& context, const BatchedProduct& call) {
  if (call.d.size() == 0) return true;
  const MatrixProduct::Batch batch{call.d.extent(0), static_cast<float>(call.alpha),
                                   static_cast<float>(call.beta), call.c.data()};
  return products(*context.library)
      .multiply(work_of(context), batch, operand<T>(call.a), operand<T>(call.b), call.d.data());
}

TERN_INSTANTIATE_NATIVE(ColumnSums)
TERN_INSTANTIATE_NATIVE(LinearForward)
TERN_INSTANTIATE_NATIVE(LinearActivationForward)
TERN_INSTANTIATE_NATIVE(LinearActivationBackward)
TERN_INSTANTIATE_NATIVE(LinearBackwardInput)
TERN_INSTANTIATE_NATIVE(LinearBackwardWeight)
TERN_INSTANTIATE_NATIVE(BatchedProduct)

}  // namespace tern::ops
