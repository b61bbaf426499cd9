#include "model/detail/links.hpp"

#include "base/error.hpp"
#include "memory/narrow.hpp"
#include "ops/elementwise.hpp"

namespace tern::model::detail {
template <class T>
const comm::Mesh& Links<T>::mesh() const {
  TERN_REQUIRE(share_.mesh, "a divided model without the ranks that hold the rest");
  return *share_.mesh;
}

template <class T>
template <class V>
void Links<T>::sum(const ops::Context& context, Matrix<V> values) const {
  if (share_.tensors == 1) return;
  mesh().tensor().all_reduce(values.data(), values.size(), context);
}

template <class T>
void Links<T>::exchange_into(Matrix<T> received) {
  auto between = mesh().tensor().part_exchange(received.data(), received.size() * sizeof(T));
  if (!between) return;
  exchange_ = std::make_shared<Exchange>();
  exchange_->between = std::move(between);
  exchange_->received = received;
}

template <class T>
auto Links<T>::pieces(std::size_t rows) const -> std::vector<Piece> {
  constexpr std::size_t tile = 128;
  const std::size_t first = exchange_ ? rows / 2 / tile * tile : 0;
  if (first == 0) return {all_rows(rows)};
  return {{{0, first}, 0, false}, {{first, rows - first}, 1, true}};
}

template <class T>
void Links<T>::begin_sum(const ops::Context& context, Matrix<T> part, const Piece& piece) const {
  if (!exchange_) return sum(context, rows_of(part, piece.rows));
  const ops::Context& side = exchange_->side.context();
  exchange_->given.set(context);
  exchange_->given.await(side);
  const std::size_t row = part.extent(1) * sizeof(T);
  exchange_->between->send(piece.number, part.data(), piece.rows.first * row,
                           piece.rows.count * row, side);
}

template <class T>
void Links<T>::end_sum(const ops::Context& context, Matrix<const T> added, Matrix<T> part,
                       Matrix<T> to, const Piece& piece) const {
  Matrix<const T> first = rows_of(part, piece.rows), second;
  if (exchange_) {
    exchange_->between->await(piece.number, context);
    const Matrix<T> received(exchange_->received.data(), part.extent(0), part.extent(1));
    second = rows_of(received, piece.rows);
    if (share_.tensor == 1) std::swap(first, second);  // both ranks get the same sum
  }
  if (exchange_ || added.extent(0) > 0 || to.data() != part.data())
    ops::sum<T>(context, rows_of(added, piece.rows), first, second, rows_of(to, piece.rows));
  if (exchange_ && piece.last) exchange_->between->end_round(context);
}

template <class T>
void Links<T>::gather(const ops::Context& context, void* values, std::size_t bytes_of_part) const {
  if (share_.tensors == 1) return;
  mesh().tensor().all_gather(values, bytes_of_part, context);
}

template <class T>
void Links<T>::to_next(const ops::Context& context, Matrix<T> values) const {
  if (!share_.last()) send(context, values, static_cast<int>(share_.stage) + 1);
}
template <class T>
void Links<T>::to_previous(const ops::Context& context, Matrix<T> values) const {
  if (!share_.first()) send(context, values, static_cast<int>(share_.stage) - 1);
}
template <class T>
void Links<T>::from_next(const ops::Context& context, Matrix<T> values) const {
  if (!share_.last()) receive(context, values, static_cast<int>(share_.stage) + 1);
}
template <class T>
void Links<T>::from_previous(const ops::Context& context, Matrix<T> values) const {
  if (!share_.first()) receive(context, values, static_cast<int>(share_.stage) - 1);
}

template <class T>
void Links<T>::send(const ops::Context& context, Matrix<T> values, int stage) const {
  settle(context);
  waiting_ = {values.data(), values.size() * sizeof(T), stage};
  if (!training_) settle(context);
}

template <class T>
void Links<T>::receive(const ops::Context& context, Matrix<T> values, int stage) const {
  if (waiting_.data == values.data()) settle(context);
  mesh().pipeline().exchange(waiting_, {values.data(), values.size() * sizeof(T), stage}, context);
  waiting_ = {};
}

template <class T>
void Links<T>::settle(const ops::Context& context) const {
  if (waiting_.rank == comm::Group::nobody) return;
  mesh().pipeline().exchange(waiting_, {}, context);
  waiting_ = {};
}

template <class T>
void Links<T>::from_last(const ops::Context& context, void* values, std::size_t bytes) const {
  if (share_.stages == 1) return;
  settle(context);
  mesh().pipeline().broadcast_device(values, bytes, static_cast<int>(share_.stages) - 1, context);
}

template class Links<float>;
template class Links<double>;
template class Links<bf16>;
template class Links<fp16>;
template void Links<float>::sum(const ops::Context&, Matrix<float>) const;
template void Links<double>::sum(const ops::Context&, Matrix<double>) const;
template void Links<bf16>::sum(const ops::Context&, Matrix<bf16>) const;
template void Links<fp16>::sum(const ops::Context&, Matrix<fp16>) const;
template void Links<bf16>::sum(const ops::Context&, Matrix<float>) const;
template void Links<fp16>::sum(const ops::Context&, Matrix<float>) const;

}  // namespace tern::model::detail
