#include "block/stream.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "memory/narrow.hpp"

namespace tern::model {

template <class T>
void Stream<T>::add(const ops::Context& context, const Piece& piece, Matrix<const T> added,
                    Matrix<T> part, const ops::DropoutKey& dropout, bool exchange) {
  TERN_REQUIRE(std::none_of(pending_.begin(), pending_.end(),
                            [&](const Pending& p) { return p.piece.slot == piece.slot; }),
               "slot {} has a pending sum", piece.slot);
  TERN_REQUIRE(piece.rows.first + piece.rows.count <= rows_.extent(0), "rows {} to {} of {}",
               piece.rows.first, piece.rows.first + piece.rows.count, rows_.extent(0));
  const Matrix<T> to = rows_of(rows_, piece.rows);
  const bool exchanged = exchange && sums_->exchanges();
  if (exchanged)
    sums_->send(context, part, piece.slot);
  else
    sums_->sum(context, part);
  if (exchanged || added.extent(0) > 0 || to.data() != part.data())
    pending_.push_back({piece, added, part, to, dropout, exchanged});
}

template <class T>
ops::PendingSum<T> Stream<T>::sum_of(const ops::Context& context, const Pending& pending) const {
  const auto& [piece, added, part, to, dropout, exchanged] = pending;
  if (!exchanged) return {added, part, {}, to, dropout};
  const auto [first, second] = sums_->terms(context, part, piece.slot);
  return {added, first, second, to};
}

template <class T>
void Stream<T>::settle(const ops::Context& context) {
  for (const Pending& pending : pending_)
    make(context, pending, [&](const auto& sum) { ops::make_sum<T>(context, sum); });
  pending_.clear();
}

template class Stream<float>;
template class Stream<double>;
template class Stream<bf16>;
template class Stream<fp16>;

}  // namespace tern::model
