#include "model/detail/head.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "block/norm.hpp"
#include "ops/ops.hpp"

namespace tern::model::detail {
namespace {

template <class V>
Vector<V> part_of(const Vector<V>& v, std::size_t first, std::size_t count) {
  return v.extent(0) == 0 ? v : Vector<V>(v.data() + first, count);
}

template <class V>
Matrix<V> rows_of(const Matrix<V>& m, std::size_t first, std::size_t count) {
  return Matrix<V>(m.data() + first * m.extent(1), count, m.extent(1));
}

}  // namespace

Declaration declare_head(const deck::Model& m) {
  Declaration d(Stages::last);
  const auto D = static_cast<std::size_t>(m.hidden), V = static_cast<std::size_t>(m.vocabulary);
  if (!m.tie_embeddings) d.add({"lm_head/weight", {V, D}, initial_head(m), Placement::rows});
  declare_norm(m, "model/norm", d);
  return d;
}

template <class T>
Linear<T> Head<T>::bind(const deck::Model& m, const Binder<T>& binder) {
  return binder.linear({m.tie_embeddings ? "model/embed_tokens" : "lm_head"});
}

template <class T>
void Head<T>::request_exchange(Arena& arena, std::size_t rows, std::size_t ranks,
                               std::size_t vocabulary, bool training) {
  figures = arena.tensor3<A>("figures of rows", Term::workspace, ranks, rows, ops::row_figures);
  lse = arena.vector<A>("log sums of rows", Term::workspace, rows);
  if (!training) gathered = arena.vector<T>("gathered logits", Term::workspace, rows * vocabulary);
}

template <class T>
template <class Body>
void Head<T>::for_each_chunk(const ops::Context& context, const ModelParallel<T>& links,
                             const ops::HeadOptions& options, Matrix<const T> x,
                             Vector<const std::int32_t> targets, Vector<A> losses,
                             Vector<std::int32_t> best, const Body& body) const {
  const std::size_t ranks = links.share().tensors, rank = links.share().tensor;
  for (std::size_t row = 0; row < x.extent(0); row += logits.extent(0)) {
    const std::size_t n = std::min(logits.extent(0), x.extent(0) - row);
    const Matrix<T> chunk = rows_of(logits, 0, n);
    ops::linear_forward<T>(context, rows_of(x, row, n), map.weight, {}, chunk);
    ops::cap_logits<T>(context, options.cap, chunk);
    const Tensor3<A> all(figures.data(), ranks, n, ops::row_figures);
    const Matrix<A> own(&figures.data()[rank * n * ops::row_figures], n, ops::row_figures);
    ops::row_parts<T>(context, chunk, first, options.vocabulary, part_of(targets, row, n), own);
    links.gather(context, all.data(), own.size() * sizeof(A));
    ops::combine_rows<A>(context, all, options.z_loss, part_of(targets, row, n),
                         part_of(losses, row, n), part_of(lse, 0, n), part_of(best, row, n));
    body(row, n, chunk);
  }
}

template <class T>
void Head<T>::loss(const ops::Context& context, const ModelParallel<T>& links,
                   const ops::HeadOptions& options, Matrix<const T> x,
                   Vector<const std::int32_t> targets, Vector<A> losses,
                   Vector<std::int32_t> best) const {
  if (links.share().last()) {
    if (divided(links))
      for_each_chunk(context, links, options, x, targets, losses, best,
                     [](std::size_t, std::size_t, const Matrix<T>&) {});
    else
      ops::head_loss_forward<T>(context, {.options = options,
                                          .x = x,
                                          .w = map.weight,
                                          .targets = targets,
                                          .logits = logits,
                                          .losses = losses,
                                          .best = best});
  }
  links.from_last(context, losses.data(), losses.size() * sizeof(A));
  if (best.extent(0) > 0) links.from_last(context, best.data(), best.size() * sizeof(std::int32_t));
}

template <class T>
void Head<T>::loss_backward(const ops::Context& context, const ModelParallel<T>& links,
                            const ops::HeadOptions& options, Matrix<const T> x,
                            Vector<const std::int32_t> targets, Vector<const A> weights,
                            Vector<A> losses, Matrix<T> dx) const {
  if (!divided(links))
    return ops::head_loss_backward<T>(context, {.options = options,
                                                .x = x,
                                                .w = map.weight,
                                                .targets = targets,
                                                .weights = weights,
                                                .logits = logits,
                                                .losses = losses,
                                                .dx = dx,
                                                .dw = map.dweight,
                                                .fp8 = fp8});
  for_each_chunk(context, links, options, x, targets, losses, {},
                 [&](std::size_t row, std::size_t n, const Matrix<T>& chunk) {
                   ops::row_gradients<T>(context, options, first, part_of(targets, row, n),
                                         part_of(weights, row, n), part_of(lse, 0, n), chunk);
                   ops::linear_backward_input<T>(context, chunk, map.weight, rows_of(dx, row, n));
                   ops::linear_backward_weight<T>(context, chunk, rows_of(x, row, n), map.dweight,
                                                  {});
                 });
  links.sum(context, dx);
}

template <class T>
void Head<T>::logits_of(const ops::Context& context, const ModelParallel<T>& links,
                        Matrix<const T> rows, Matrix<T> result) const {
  const ModelShard& share = links.share();
  if (share.last() && !divided(links))
    ops::linear_forward<T>(context, rows, map.weight, {}, result);
  if (share.last() && divided(links)) {
    TERN_REQUIRE(gathered.extent(0) > 0, "logits of a divided vocabulary while training");
    const std::size_t W = map.weight.extent(0), C = logits.extent(0), M = rows.extent(0);
    for (std::size_t row = 0; row < M; row += C) {
      const std::size_t n = std::min(C, M - row);
      const Tensor3<T> all(gathered.data(), share.tensors, n, W);
      const Matrix<T> own(gathered.data() + share.tensor * n * W, n, W);
      ops::linear_forward<T>(context, rows_of(rows, row, n), map.weight, {}, own);
      links.gather(context, all.data(), own.size() * sizeof(T));
      ops::join_columns<T>(context, all, rows_of(result, row, n));
    }
  }
}

template struct Head<float>;
template struct Head<double>;
template struct Head<bf16>;
template struct Head<fp16>;

}  // namespace tern::model::detail
