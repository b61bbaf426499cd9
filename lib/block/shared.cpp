#include "block/shared.hpp"

namespace tern::model {

bool overlaps(const deck::Model& model, std::size_t tensors, bool whole_operands, double dropout,
              bool subset) {
  return tensors > 1 && !whole_operands && model.experts == 0 && dropout == 0 && !subset;
}

// ---- forward

template <class T>
typename BlockShared<T>::Pieces BlockShared<T>::pieces(const Sequences& of, bool overlapped,
                                                       std::size_t feed_forward_rows) const {
  const std::vector<Piece> whole{{{0, of.rows()}}};
  if (!overlapped) return {whole, {{{0, feed_forward_rows}}}};
  if (of.batch == 1) return {whole, sums.pieces(of.tokens)};
  const std::vector<Piece> some = sums.pieces(of.rows(), of.tokens);
  return {some, some};
}

/// The product of all rows is cut in pieces as well, of which one travels while another is computed.
template <class T>
void BlockShared<T>::add_map(const ops::Context& context, Stream<T>& to, const Piece& piece,
                             Matrix<const T> added, const Map<T>& map, const MapInput<T>& x,
                             const ops::DropoutKey& dropout) const {
  if (!sums.of_several_ranks() || dropout.probability > 0)
    return add(context, to, added, dropout, [&](Matrix<const T> to_add, Matrix<T> result) {
      map->forward(context, x, result, to_add);
    });
  if (to.rows().extent(0) == 0) return;
  const bool all = piece.rows.count == to.rows().extent(0);
  for (const Piece& one : all ? sums.pieces(piece.rows.count) : std::vector{piece}) {
    const Range within{one.rows.first - piece.rows.first, one.rows.count};
    const Matrix<T> part = branch_rows(one.rows);
    map->forward(context, linear::rows_of<T>(x, within), part);
    to.add(context, one, tern::rows_of(added, one.rows), part, {}, true);
  }
}

// ---- backward

template <class T>
BranchGradient<T> BlockShared<T>::branch_gradient(const ops::Context& context, const Map<T>& map,
                                                  const StreamGradient<T>& stream,
                                                  const ops::DropoutKey& dropout) const {
  const bool drops = dropout.probability > 0, dropped = stream.by_norm && fuses_next_dropout;
  const Matrix<T> rows = drops ? branch_rows({0, stream.rows.extent(0)}) : stream.rows;
  if (drops && !dropped) ops::dropout<T>(context, dropout, stream.rows, {}, rows);
  const MapGradient<T> dy = map ? map->gradient(rows, dstream) : MapGradient<T>{rows};
  linear::round_gradient<T>(context, dy, stream.by_norm && (!drops || dropped));
  return {dy, stream.rows, dropout};
}

template <class T>
Stream<T> BlockShared<T>::input_gradient(const ops::Context& context, const Map<T>& map,
                                         const MapGradient<T>& dy, Matrix<T> dx,
                                         WeightGradients<T>& weights) const {
  Stream<T> result(sums, dx);
  for (const Piece& piece : sums.pieces(dx.extent(0))) {
    const Matrix<T> part = tern::rows_of(dx, piece.rows);
    map->input_gradient(context, linear::rows_of<T>(dy, piece.rows), part);
    result.add(context, piece, {}, part, {}, true);
  }
  weights.run(context);
  return result;
}

template <class T>
std::vector<Piece> BlockShared<T>::norm_pieces(std::size_t rows) const {
  return precision.whole_operands() ? std::vector<Piece>{{{0, rows}}} : sums.pieces(rows);
}

template struct BlockShared<float>;
template struct BlockShared<double>;
template struct BlockShared<bf16>;
template struct BlockShared<fp16>;

}  // namespace tern::model
