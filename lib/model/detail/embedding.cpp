#include "model/detail/embedding.hpp"

#include "deck/choices.hpp"
#include "ops/ops.hpp"

namespace tern::model::detail {

Declaration declare_embedding(const deck::Model& m) {
  const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
  const std::size_t D = size(m.hidden);
  Declaration d(Stages::first);
  d.add(
      {"model/embed_tokens/weight", {size(m.vocabulary), D}, initial_embedding(m), Placement::rows},
      m.tie_embeddings ? Stages::ends : Stages::first);
  if (deck::position_of(m) == deck::Position::learned)
    d.add({"model/embed_positions/weight", {size(m.context), D}, {0, m.init_std}});
  if (m.levels > 0) d.add({"model/embed_levels/weight", {size(m.levels), D}, {0, m.init_std}});
  return d;
}

template <class T>
Embedding<T> Embedding<T>::bind(const deck::Model& m, const Binder<T>& binder,
                                const ModelShard& share) {
  Embedding e;
  if (!share.first()) return e;
  e.tokens = binder.linear({"model/embed_tokens"});
  if (deck::position_of(m) == deck::Position::learned)
    e.positions = binder.linear({"model/embed_positions"});
  if (m.levels > 0) e.levels = binder.linear({"model/embed_levels"});
  e.first = share.tensor * e.tokens.weight.extent(0);
  return e;
}

template <class T>
void Embedding<T>::forward(const ops::Context& context, const ModelParallel<T>& links,
                           Vector<const std::int32_t> numbers, std::size_t period, int at,
                           Vector<const std::int32_t> of_levels, Matrix<T> to) const {
  const ModelShard& share = links.share();
  if (share.tensors == 1) {
    ops::embedding_forward<T>(context, numbers, tokens.weight, positions.weight, period, at, to);
  } else {
    const bool adds_positions = share.tensor == 0;
    ops::embedding_part_forward<T>(
        context, {.tokens = numbers,
                  .first = first,
                  .table = tokens.weight,
                  .positions = adds_positions ? positions.weight : Matrix<const T>(),
                  .tokens_per_sequence = period,
                  .first_position = at,
                  .x = to});
    links.sum(context, to);
  }
  if (of_levels.extent(0) > 0) ops::embedding_add<T>(context, of_levels, levels.weight, to);
}

template <class T>
void Embedding<T>::backward(const ops::Context& context, const ModelParallel<T>& links,
                            const Rows& rows, std::size_t period, Matrix<const T> dstream) const {
  if (links.share().tensors == 1)
    ops::embedding_backward<T>(context, rows.tokens, rows.order, dstream, period, tokens.dweight,
                               positions.dweight);
  else
    ops::embedding_part_backward<T>(context, {.tokens = rows.tokens,
                                              .first = first,
                                              .order = rows.order,
                                              .dx = dstream,
                                              .tokens_per_sequence = period,
                                              .dtable = tokens.dweight,
                                              .dpositions = positions.dweight});
  if (rows.levels.extent(0) > 0)
    ops::embedding_backward<T>(context, rows.levels, rows.level_order, dstream, period,
                               levels.dweight, {});
}

template struct Embedding<float>;
template struct Embedding<double>;
template struct Embedding<bf16>;
template struct Embedding<fp16>;

}  // namespace tern::model::detail
