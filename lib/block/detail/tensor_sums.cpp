#include "block/detail/tensor_sums.hpp"

#include <algorithm>

namespace tern::model::detail {

template <class T>
void TensorSums<T>::exchange_through(Matrix<T> memory) {
  exchange_ = links_.tensor().part_exchange(memory.data(), memory.extent(1) * sizeof(T));
  slots_ = memory;
}

template <class T>
std::size_t TensorSums<T>::slot_rows(std::size_t rows, std::size_t unit) {
  const std::size_t units = rows / unit;
  return std::max(rows / 2 + 2 * tile, (units - units / 2) * unit);
}

template <class T>
std::vector<Piece> TensorSums<T>::pieces(std::size_t rows, std::size_t unit) const {
  const std::size_t first = exchange_ ? rows / 2 / unit * unit : 0;
  if (first == 0) return {{{0, rows}, 0}};
  return {{{0, first}, 0}, {{first, rows - first}, 1}};
}

template <class T>
void TensorSums<T>::send(const ops::Context& context, Matrix<T> part, std::size_t slot) const {
  exchange_->send(slot, {{1 - links_.tensor().rank(), part.data(), part.size() * sizeof(T)}},
                  context);
}

template <class T>
std::pair<Matrix<const T>, Matrix<const T>> TensorSums<T>::terms(const ops::Context& context,
                                                                 Matrix<T> part,
                                                                 std::size_t slot) const {
  exchange_->await(slot, context);
  const Matrix<const T> own = part;
  const Matrix<const T> other(slots_.data() + slot * slots_.extent(1), part.extent(0),
                              part.extent(1));
  return links_.share().tensor == 0 ? std::pair(own, other) : std::pair(other, own);
}

template <class T>
void TensorSums<T>::release(const ops::Context& context, std::size_t slot) const {
  exchange_->release(slot, context);
}

template class TensorSums<float>;
template class TensorSums<double>;
template class TensorSums<bf16>;
template class TensorSums<fp16>;

}  // namespace tern::model::detail
