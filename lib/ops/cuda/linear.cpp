/// Linear maps through cuBLASLt, skinny GEMM through our own kernel. What is added is cuBLASLt's C
/// with beta = 1, the bias an epilogue; weight gradients accumulate in float in place.
#include "ops/linear.hpp"
#include "ops/cuda/detail/kernels.hpp"
#include "ops/cuda/detail/matrix_product.hpp"
#include "ops/cuda/detail/skinny_gemm.hpp"
#include "ops/cuda/library.hpp"

namespace tern::ops {
using namespace cuda;
namespace {

using namespace detail;

constexpr std::size_t product_workspace = std::size_t{64} << 20;
constexpr int column_threads = 256;

MatrixProduct::Work work_of(const Context& context) {
  return {stream_of(context), context.library->workspace(), product_workspace};
}
Operand operand(const Matrix<const bf16>& m, bool transposed = false) {
  return {m.data(), m.extent(0), m.extent(1), transposed};
}

Operand operand(const Factor<bf16>& f) {
  return {f.matrices.data(), f.matrices.extent(1), f.matrices.extent(2), f.transposed};
}

/// partial (gridDim.y, columns): sums of the columns of x over each slice of rows.
__global__ void slice_sums(const bf16* x, std::size_t rows, std::size_t columns, float* partial) {
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

bool native_column_sums(const Context& context, Matrix<const bf16> x, Vector<float> result) {
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

bool native_linear_forward(const Context& context, Matrix<const bf16> x, Matrix<const bf16> w,
                           Vector<const bf16> bias, Matrix<bf16> y, Matrix<const bf16> added) {
  if (y.size() == 0) return true;
  const bool adds = added.size() > 0, in_place = !adds || added.data() == y.data();
  if (bias.size() == 0 && in_place &&
      context.library->skinny_gemm().multiply(stream_of(context), x, w, y, adds,
                                              context.constant_weights))
    return true;
  return context.library->products().multiply(work_of(context), operand(x), operand(w, true),
                                              y.data(), adds ? added.data() : nullptr,
                                              bias.size() ? bias.data() : nullptr);
}

bool native_linear_backward_input(const Context& context, Matrix<const bf16> dy,
                                  Matrix<const bf16> w, Matrix<bf16> dx, Write write) {
  if (dx.size() == 0) return true;
  return context.library->products().multiply(work_of(context), operand(dy), operand(w), dx.data(),
                                              write == Write::add ? dx.data() : nullptr);
}

bool native_linear_backward_weight(const Context& context, Matrix<const bf16> dy,
                                   Matrix<const bf16> x, Matrix<float> dw, Vector<float> dbias) {
  if (dy.extent(0) == 0 || dw.size() == 0) return true;
  if (!context.library->products().multiply(work_of(context), operand(dy, true), operand(x),
                                            dw.data(), 1.0f))
    return false;
  if (dbias.size()) column_sums<bf16>(context, dy, dbias);
  return true;
}

bool native_batched_product(const Context& context, double alpha, Factor<bf16> a, Factor<bf16> b,
                            double beta, Tensor3<const bf16> c, Tensor3<bf16> d) {
  const MatrixProduct::Batch batch{d.extent(0), static_cast<float>(alpha), static_cast<float>(beta),
                                   c.data()};
  return context.library->products().multiply(work_of(context), batch, operand(a), operand(b),
                                              d.data());
}

}  // namespace tern::ops
