#include "block/common.hpp"

namespace tern::model {

template <class T>
void Common<T>::map_backward_summed(const ops::Context& context, const Map<T>& map,
                                    const MapGradient<T>& dy, const MapInput<T>& x, Matrix<T> dx,
                                    const std::function<void()>& meanwhile) const {
  if (links.share().tensors == 1) {
    meanwhile();
    map->weight_gradient(context, dy, x);
    return map->input_gradient(context, dy, dx);
  }
  for (const auto& piece : sums.pieces(dx.extent(0))) {
    const Matrix<T> part = tern::rows_of(dx, piece.rows);
    map->input_gradient(context, linear::rows_of<T>(dy, piece.rows), part);
    sums.begin(context, {{}, part, part}, piece);
  }
  map->weight_gradient(context, dy, x);
  meanwhile();
}

template <class T>
MapGradient<T> branch_gradient(const ops::Context& context, const Common<T>& common,
                               const Map<T>& map, Matrix<T> dstream, bool known,
                               const ops::DropoutKey& dropout) {
  const bool drops = dropout.probability > 0, made = known && common.drops_ahead;
  const Matrix<T> branch = drops ? common.branch_rows({0, dstream.extent(0)}) : dstream;
  if (drops && !made) ops::dropout<T>(context, dropout, dstream, {}, branch);
  const MapGradient<T> result =
      map ? map->gradient(branch, common.dstream) : MapGradient<T>{branch};
  linear::round_gradient<T>(context, result, known && (!drops || made));
  return result;
}

template <class T>
void Residual<T>::add_map(const ops::Context& context, const Common<T>& common, const Map<T>& map,
                          const MapInput<T>& x) const {
  if (common.links.share().tensors == 1 || dropout.probability > 0)
    return add(context, common, [&](Matrix<const T> added, Matrix<T> result) {
      map->forward(context, x, result, added);
    });
  if (to.extent(0) == 0) return;
  for (const Piece& piece : common.sums.pieces(to.extent(0)))
    begin(context, common, map, linear::rows_of<T>(x, piece.rows), piece);
  common.sums.end(context);
}

template <class T>
void Residual<T>::begin(const ops::Context& context, const Common<T>& common, const Map<T>& map,
                        const MapInput<T>& x, const Piece& piece) const {
  const Matrix<T> part = common.branch_rows(piece.rows);
  map->forward(context, x, part);
  common.sums.begin(context, {tern::rows_of(from, piece.rows), part, tern::rows_of(to, piece.rows)},
                    piece);
}

#define INSTANTIATE(T)                                                                          \
  template struct Common<T>;                                                                    \
  template struct Residual<T>;                                                                  \
  template MapGradient<T> branch_gradient(const ops::Context&, const Common<T>&, const Map<T>&, \
                                          Matrix<T>, bool, const ops::DropoutKey&);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::model
