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
bool native_column_sums(const Context& context, Matrix<const T> x, Vector<float> result) {
  if (x.size() == 0) return true;
  const std::size_t rows = x.extent(0), columns = x.extent(1);
  const unsigned wide = blocks_for(columns, column_threads);
  const unsigned slices =
      std::max(1u, std::min<unsigned>(8 * multiprocessors() / wide, blocks_for(rows, 16)));
  float* partial = context.library->scratch(slices * columns);
  slice_sums<<<dim3(wide, slices), column_threads, 0, stream_of(context)>>>(x.data(), rows, columns,
                                                                            partial);
  add_partial_sums<<<wide, column_threads, 0, stream_of(context)>>>(partial, slices, columns,
                                                                    result.data());
  check_launch("column_sums");
  return true;
}

template <class T>
bool native_linear_forward(const Context& context, Matrix<const T> x, Matrix<const T> w,
                           Vector<const T> bias, Matrix<T> y, Matrix<const T> added) {
  if (y.size() == 0) return true;
  const bool adds = added.size() > 0, in_place = !adds || added.data() == y.data();
  if (bias.size() == 0 && in_place &&
      skinny_gemm(*context.library)
          .multiply<T>(stream_of(context),
                       {.x = x, .w = w, .y = y, .added = adds, .early = context.constant_weights}))
    return true;
  return products(*context.library)
      .multiply(work_of(context), operand<T>(x), operand<T>(w, true), y.data(),
                adds ? added.data() : nullptr, {.bias = bias.size() ? bias.data() : nullptr});
}

template <class T>
bool native_linear_activation_forward(const Context& context, Activation activation,
                                      Matrix<const T> x, Matrix<const T> w, Vector<const T> bias,
                                      Matrix<T> up, Matrix<T> y) {
  if (!gelu_is_epilogue(context, activation, up)) return false;
  return products(*context.library)
      .multiply(work_of(context), operand<T>(x), operand<T>(w, true), y.data(), nullptr,
                {.bias = bias.size() ? bias.data() : nullptr,
                 .gelu = Epilogue::Gelu::forward,
                 .input = up.data()});
}

template <class T>
bool native_linear_activation_backward(const Context& context, Activation activation,
                                       Matrix<const T> dy, Matrix<const T> w, Matrix<const T> up,
                                       Matrix<T>, Matrix<T> dup) {
  // Some of cuBLASLt's algorithms write results before they have read all slopes.
  if (dup.data() == up.data() || !gelu_is_epilogue(context, activation, up)) return false;
  return products(*context.library)
      .multiply(work_of(context), operand<T>(dy), operand<T>(w), dup.data(), nullptr,
                {.gelu = Epilogue::Gelu::backward, .input = const_cast<T*>(up.data())});
}

template <class T>
bool native_linear_backward_input(const Context& context, Matrix<const T> dy, Matrix<const T> w,
                                  Matrix<T> dx, Write write) {
  if (dx.size() == 0) return true;
  return products(*context.library)
      .multiply(work_of(context), operand<T>(dy), operand<T>(w), dx.data(),
                write == Write::add ? dx.data() : nullptr);
}

template <class T>
bool native_linear_backward_weight(const Context& context, Matrix<const T> dy, Matrix<const T> x,
                                   Matrix<float> dw, Vector<float> dbias, Write write) {
  if (dy.extent(0) == 0 || dw.size() == 0) return true;
  if (!products(*context.library)
           .multiply(work_of(context), operand<T>(dy, true), operand<T>(x), dw.data(),
                     write == Write::add ? 1.0f : 0.0f))
    return false;
  if (dbias.size()) column_sums<T>(context, dy, dbias);
  return true;
}

template <class T>
bool native_batched_product(const Context& context, double alpha, Factor<T> a, Factor<T> b,
                            double beta, Tensor3<const T> c, Tensor3<T> d) {
  const MatrixProduct::Batch batch{d.extent(0), static_cast<float>(alpha), static_cast<float>(beta),
                                   c.data()};
  return products(*context.library)
      .multiply(work_of(context), batch, operand<T>(a), operand<T>(b), d.data());
}

#define INSTANTIATE(T)                                                                          \
  template decltype(native_column_sums<T>) native_column_sums<T>;                               \
  template decltype(native_linear_forward<T>) native_linear_forward<T>;                         \
  template decltype(native_linear_activation_forward<T>) native_linear_activation_forward<T>;   \
  template decltype(native_linear_activation_backward<T>) native_linear_activation_backward<T>; \
  template decltype(native_linear_backward_input<T>) native_linear_backward_input<T>;           \
  template decltype(native_linear_backward_weight<T>) native_linear_backward_weight<T>;         \
  template decltype(native_batched_product<T>) native_batched_product<T>;
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::ops
