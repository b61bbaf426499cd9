#include "block/detail/overlapped_sums.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace tern::model::detail {

template <class T>
void OverlappedSums<T>::exchange_through(Matrix<T> memory) {
  exchange_ = links_.tensor().part_exchange(memory.data(), memory.extent(1) * sizeof(T));
  slots_ = memory;
}

template <class T>
std::size_t OverlappedSums<T>::slot_rows(std::size_t rows, std::size_t unit) {
  const std::size_t units = rows / unit;
  return std::max(rows / 2 + 2 * tile, (units - units / 2) * unit);
}

template <class T>
auto OverlappedSums<T>::pieces(std::size_t rows, std::size_t unit) const -> std::vector<Piece> {
  const std::size_t first = exchange_ ? rows / 2 / unit * unit : 0;
  if (first == 0) return {{{0, rows}, 0}};
  return {{{0, first}, 0}, {{first, rows - first}, 1}};
}

template <class T>
void OverlappedSums<T>::begin(const ops::Context& context, const Sum& sum,
                              const Piece& piece) const {
  TERN_REQUIRE(!open_[piece.slot].to.data(), "slot {} has an open sum", piece.slot);
  open_[piece.slot] = sum;
  if (exchange_)
    exchange_->send(piece.slot,
                    {{1 - links_.tensor().rank(), sum.part.data(), sum.part.size() * sizeof(T)}},
                    context);
  else
    links_.sum(context, sum.part);
}

template <class T>
ops::PendingSum<T> OverlappedSums<T>::arrived(const ops::Context& context, std::size_t slot) const {
  const auto [added, part, to, dropout] = std::exchange(open_[slot], {});
  if (!to.data()) return {};
  if (!exchange_) {
    if (added.extent(0) == 0 && to.data() == part.data()) return {};
    return {added, part, {}, to, dropout};
  }
  exchange_->await(slot, context);
  Matrix<const T> first = part;
  Matrix<const T> second(slots_.data() + slot * slots_.extent(1), part.extent(0), part.extent(1));
  if (links_.share().tensor == 1) std::swap(first, second);  // both ranks get the same sum
  return {added, first, second, to};
}

template <class T>
void OverlappedSums<T>::end(const ops::Context& context) const {
  for (std::size_t slot = 0; slot < slots; ++slot)
    end(context, slot, [&](const ops::PendingSum<T>& sum) {
      if (sum.wanted()) ops::make_sum<T>(context, sum);
    });
}

template class OverlappedSums<float>;
template class OverlappedSums<double>;
template class OverlappedSums<bf16>;
template class OverlappedSums<fp16>;

}  // namespace tern::model::detail
