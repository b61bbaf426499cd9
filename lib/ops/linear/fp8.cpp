#include "ops/linear/fp8.hpp"

#include <algorithm>

#include "base/error.hpp"
#if defined(TERN_NATIVE_OPERATIONS)
#include "ops/linear/cuda/detail/fp8_product.hpp"
#endif

namespace tern::ops {
namespace {

using Bytes = Vector<std::uint8_t>;

Matrix<std::uint8_t> part(const Bytes& bytes, std::size_t at, std::size_t rows,
                          std::size_t columns) {
  TERN_REQUIRE(at + rows * columns <= bytes.size(), "{} + {} x {} bytes of {}", at, rows, columns,
               bytes.size());
  return as_matrix(bytes.data() ? bytes.data() + at : nullptr, rows, columns);
}

}  // namespace

template <class T>
void Fp8Workspace<T>::Sizes::raise(std::size_t N, std::size_t I, std::size_t O, bool training) {
  values = std::max(values, N * I + O * I);
  input = std::max(input, N * I);
  weights = std::max(weights, O * I);
  if (!training) return;
  values = std::max(values, N * O + std::max(N, O) * I);
  gradient = std::max(gradient, 2 * N * O);
}

template <class T>
Fp8Workspace<T>::Fp8Workspace(Arena& arena, const Sizes& sizes)
    : values_(arena.vector<T>("fp8 results", Term::workspace, sizes.values)),
      gradient_(arena.vector<std::uint8_t>("fp8 gradient", Term::workspace, sizes.gradient)),
      input_(arena.vector<std::uint8_t>("fp8 input", Term::workspace, sizes.input)),
      weights_(arena.vector<std::uint8_t>("fp8 weights", Term::workspace, sizes.weights)),
      of_weights_(arena, "fp8 weights' scale", Term::workspace) {}

template <class T>
MapOperand<T> Fp8Workspace<T>::kept(Matrix<T> kept, const Fp8Scale& scale) const {
  const std::size_t N = kept.extent(0), I = kept.extent(1);
  TERN_REQUIRE(N * I <= values_.size(), "{} x {} elements of {}", N, I, values_.size());
  const Bytes bytes(reinterpret_cast<std::uint8_t*>(kept.data()), N * I * sizeof(T));
  return {as_matrix(values_.data(), N, I),
          {Fp8Format::e4m3, part(bytes, 0, N, I), part(bytes, N * I, I, N), scale}};
}

template <class T>
MapOperand<T> Fp8Workspace<T>::input(Matrix<T> values, const Fp8Scale& scale,
                                     bool transposed) const {
  const std::size_t N = values.extent(0), I = values.extent(1);
  if (transposed) return {values, {Fp8Format::e4m3, {}, part(input_, 0, I, N), scale}};
  return {values, {Fp8Format::e4m3, part(input_, 0, N, I), {}, scale}};
}

template <class T>
MapOperand<T> Fp8Workspace<T>::gradient(Matrix<T> values, const Fp8Scale& scale,
                                        bool values_too) const {
  const std::size_t N = values.extent(0), O = values.extent(1);
  return {
      values,
      {Fp8Format::e5m2, part(gradient_, 0, N, O), part(gradient_, N * O, O, N), scale, values_too}};
}

template <class T>
Fp8Matrix Fp8Workspace<T>::rounded_input(const Context& context, Matrix<const T> x,
                                         const Fp8Scale& scale) const {
  const std::size_t N = x.extent(0), I = x.extent(1);
  const Fp8Matrix rounded{Fp8Format::e4m3, {}, part(input_, 0, I, N), scale};
  run(context, Fp8Round<T>{.values = x, .to = rounded, .scaling = Scaling::current});
  return rounded;
}

template <class T>
Fp8Matrix Fp8Workspace<T>::weights(const Context& context, Matrix<const T> w,
                                   bool transposed) const {
  const std::size_t O = w.extent(0), I = w.extent(1);
  Fp8Matrix rounded{Fp8Format::e4m3, {}, {}, of_weights_};
  (transposed ? rounded.transposed : rounded.straight) =
      transposed ? part(weights_, 0, I, O) : part(weights_, 0, O, I);
  run(context, Fp8Round<T>{.values = w, .to = rounded, .scaling = Scaling::current});
  return rounded;
}

bool fp8_available([[maybe_unused]] const Context& context) {
#if defined(TERN_NATIVE_OPERATIONS)
  if (context.library) return cuda::Fp8Product::served_by_device();
#endif
  return true;
}

template class Fp8Workspace<float>;
template class Fp8Workspace<double>;
template class Fp8Workspace<bf16>;
template class Fp8Workspace<fp16>;

}  // namespace tern::ops
