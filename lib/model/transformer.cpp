#include "model/transformer.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "model/detail/state.hpp"
#include "model/residence.hpp"
#include "ops/ops.hpp"

namespace tern::model {
namespace {

constexpr std::size_t nothing_held = static_cast<std::size_t>(-1);

}  // namespace

template <class T>
Transformer<T>::Transformer(const deck::Model& model, const ParameterTree& tree,
                            const Parameters<T>& parameters, const TransformerOptions& options,
                            Arena& arena)
    : options_(options),
      blocks_(model, tree.share(), options.training),
      dropout_(model.dropout > 0 && options.training),
      residence_(parameters.residence),
      first_layer_(layers_of(model, tree.share()).first),
      held_(nothing_held),
      embed_dropout_(options.in_flight) {
  TERN_REQUIRE(options.passes == 1 || (options.in_flight == 1 && share().stages == 1),
               "{} passes over a pipeline of {} stages", options.passes, share().stages);
  blocks_.batch = options.batch;
  blocks_.tokens = options.tokens;
  TERN_REQUIRE(!options.training || parameters.gradient.extent(0) > 0,
               "training without gradients");
  const detail::Binder<T> binder(tree, parameters);
  const bool first = share().first(), last = share().last();
  if (first) embedding_ = binder.linear({"model/embed_tokens"});
  if (first && model.position == "learned") positions_ = binder.linear({"model/embed_positions"});
  if (first && model.levels > 0) levels_ = binder.linear({"model/embed_levels"});
  if (last) head_.map = binder.linear({model.tie_embeddings ? "model/embed_tokens" : "lm_head"});
  head_.first = share().tensor * blocks_.size.W;
  const Layers held = layers_of(model, share());
  for (std::size_t l = held.first; l < held.end; ++l) layers_.push_back(binder.layer(model, l));
  final_norm_ = binder.gain("model/norm");
  if (blocks_.rope) {
    const std::size_t positions = options.positions > 0 ? options.positions : options.tokens;
    blocks_.rotary = arena.matrix<A>("rotary table", Term::activations, positions, blocks_.size.E);
  }
  allocate_states(arena);
  allocate_workspace(arena);
}

template <class T>
void Transformer<T>::prepare(const ops::Context& context) {
  if (options_.fp8 && !ops::fp8_available(context))
    user_error(
        "&precision compute = 'fp8' needs a GPU of compute capability 8.9 or more (H100, L40), "
        "which "
        "'{}' is not: use 'bf16'",
        Device::name());
  if (blocks_.rope) ops::rotary_table<A>(context, blocks_.rope_base, blocks_.rotary);
}

template <class T>
LayerState<T>& Transformer<T>::state(std::size_t place) {
  if (!states_.empty()) return states_[at(place)];
  if (!inputs_.empty()) shared_.input = inputs_[at(place)];
  return shared_;
}

template <class T>
Matrix<T> Transformer<T>::output_of(std::size_t place) const {
  const std::size_t next = place + 1;
  if (inputs_.empty() || next % layers() == 0) return final_of(place / layers()).input;
  return inputs_[at(next)];
}

template <class T>
void Transformer<T>::select(std::size_t slot) {
  TERN_REQUIRE(slot < options_.in_flight, "micro-step {} of {} in flight", slot,
               options_.in_flight);
  slot_ = slot;
}

/// The key of one stream of dropout: 0 the embedding, 2 p + 1 and 2 p + 2 the branches of place p
/// of the whole model.
template <class T>
ops::DropoutKey Transformer<T>::key(const ops::DropoutKey& base, std::size_t place,
                                    std::size_t branch) const {
  ops::DropoutKey result = embedding_key(base);
  result.layer += static_cast<std::uint32_t>(2 * (first_layer_ + place) + branch);
  return result;
}

template <class T>
ops::DropoutKey Transformer<T>::embedding_key(const ops::DropoutKey& base) const {
  TERN_REQUIRE(base.probability == 0 || dropout_, "dropout {} in a model made without it",
               base.probability);
  return base;
}

/// Where layers are gathered before use, the place's is.
template <class T>
void Transformer<T>::need(const ops::Context& context, std::size_t place) const {
  if (residence_) residence_->need(context, place % layers());
}

// ---- forward ----

template <class T>
void Transformer<T>::embed(const ops::Context& context, const Rows& rows,
                           const ops::DropoutKey& dropout) {
  TERN_REQUIRE(rows.tokens.extent(0) == blocks_.rows(), "{} tokens for {} rows",
               rows.tokens.extent(0), blocks_.rows());
  TERN_REQUIRE(rows.positions.extent(0) == 0 || !positions_.weight.data(),
               "named positions and learned ones");
  embed_dropout_[slot_] = embedding_key(dropout);
  blocks_.experts.forget_balance();
  blocks_.positions = rows.positions;
  embed_rows(context, 0, rows.tokens, blocks_.tokens, 0, rows.levels);
  if (dropout.probability > 0 && share().first())
    ops::dropout<T>(context, embed_dropout_[slot_], state(0).input);
}

template <class T>
void Transformer<T>::embed_rows(const ops::Context& context, std::size_t row,
                                Vector<const std::int32_t> tokens, std::size_t period, int first,
                                Vector<const std::int32_t> levels) {
  if (!share().first()) return;
  settle(context);  // what has left the last block may stand where this goes
  const Matrix<T> to =
      as_matrix(state(0).input.data() + row * blocks_.size.D, tokens.extent(0), blocks_.size.D);
  if (share().tensors == 1) {
    ops::embedding_forward<T>(context, tokens, embedding_.weight, positions_.weight, period, first,
                              to);
  } else {
    const bool adds_positions = share().tensor == 0;
    ops::embedding_part_forward<T>(
        context, {.tokens = tokens,
                  .first = head_.first,
                  .table = embedding_.weight,
                  .positions = adds_positions ? positions_.weight : Matrix<const T>(),
                  .tokens_per_sequence = period,
                  .first_position = first,
                  .x = to});
    blocks_.links.sum(context, to);
  }
  if (levels.extent(0) > 0) ops::embedding_add<T>(context, levels, levels_.weight, to);
}

template <class T>
void Transformer<T>::rotate_rows(const ops::Context& context, std::size_t row, std::size_t batch,
                                 std::size_t tokens, const ops::Positions& at) {
  const std::size_t width = blocks_.size.qkv;
  blocks_.rotate(context, as_matrix(shared_.qkv.data() + row * width, batch * tokens, width), batch,
                 tokens, at, ops::Direction::forward);
}

template <class T>
void Transformer<T>::block(const ops::Context& context, std::size_t place,
                           const ops::Pattern& pattern, const ops::DropoutKey& dropout) {
  project_qkv(context, place);
  blocks_.attend(context, state(place), pattern);
  end_block(context, place, dropout);
}

template <class T>
Matrix<T> Transformer<T>::project_qkv(const ops::Context& context, std::size_t place,
                                      HeadNorm norm) {
  LayerState<T>& s = state(place);
  need(context, place);
  if (place == 0) blocks_.links.from_previous(context, s.input);
  if (norm == HeadNorm::now)
    blocks_.qkv_forward(context, parameters_of(place), s);
  else
    blocks_.qkv_product(context, parameters_of(place), s);
  return s.qkv;
}

template <class T>
ops::HeadStage<T> Transformer<T>::head_stage(std::size_t place) const {
  const detail::Layer<T>& layer = parameters_of(place);
  return {layer.norm_q.gain, layer.norm_k.gain, blocks_.eps, blocks_.rotary};
}

template <class T>
void Transformer<T>::end_block(const ops::Context& context, std::size_t place,
                               const ops::DropoutKey& dropout) {
  LayerState<T>& s = state(place);
  const detail::Layer<T>& parameters = parameters_of(place);
  blocks_.attention_output(context, parameters, s, key(dropout, place, 1));
  blocks_.ffn_hidden(context, parameters, s);
  blocks_.ffn_output(context, parameters, s, output_of(place), key(dropout, place, 2));
  blocks_.experts.tally(context, s, place);
  if (place + 1 == layers()) blocks_.links.to_next(context, output_of(place));
  held_ = at(place);
}

template <class T>
Matrix<const T> Transformer<T>::finish(const ops::Context& context, std::size_t pass) {
  const Final& final = final_of(pass);
  if (!share().last()) return final.output;
  ops::norm_forward<T>(context, {.kind = blocks_.norm,
                                 .x = final.input,
                                 .gain = final_norm_.gain,
                                 .bias = final_norm_.bias,
                                 .eps = blocks_.eps,
                                 .y = final.output,
                                 .mean = final.mean,
                                 .rstd = final.rstd});
  return final.output;
}

template <class T>
Matrix<const T> Transformer<T>::forward(const ops::Context& context, const Rows& rows,
                                        const ops::Pattern& pattern,
                                        const ops::DropoutKey& dropout) {
  embed(context, rows, dropout);
  for (std::size_t l = 0; l < layers(); ++l) block(context, l, pattern, dropout);
  return finish(context);
}

/// The finished rows that are scored: all of them, or a copy of some.
template <class T>
Matrix<const T> Transformer<T>::pick(const ops::Context& context, const Scored& scored) {
  const Matrix<T>& finished = final_of(passes() - 1).output;
  if (scored.rows.extent(0) == 0) return finished;
  TERN_REQUIRE(scored.rows.extent(0) <= picked_.extent(0), "{} rows to score, made for {}",
               scored.rows.extent(0), picked_.extent(0));
  const Matrix<T> picked = detail::narrow_rows(picked_, scored.rows.extent(0));
  ops::embedding_forward<T>(context, scored.rows, finished, {}, 1, 0, picked);  // a gather
  return picked;
}

template <class T>
void Transformer<T>::loss(const ops::Context& context, const ops::HeadOptions& options,
                          const Scored& scored, Vector<Accumulate<T>> losses,
                          Vector<std::int32_t> best) {
  // What the blocks gave leaves with or before the losses; with none to wait for, here.
  if (scored.targets.extent(0) == 0) return settle(context);
  const Matrix<const T> rows = share().last() ? pick(context, scored) : Matrix<const T>();
  head_.loss(context, blocks_.links, options, rows, scored.targets, losses, best);
}

template <class T>
void Transformer<T>::logits(const ops::Context& context, std::size_t first_row,
                            Matrix<T> result) const {
  TERN_REQUIRE(first_row + result.extent(0) <= blocks_.rows(), "rows {} to {} of {}", first_row,
               first_row + result.extent(0), blocks_.rows());
  const Matrix<const T> rows(final_of(passes() - 1).output.data() + first_row * blocks_.size.D,
                             result.extent(0), blocks_.size.D);
  logits_of(context, rows, result);
}

template <class T>
void Transformer<T>::logits_of(const ops::Context& context, Matrix<const T> rows,
                               Matrix<T> result) const {
  head_.logits_of(context, blocks_.links, rows, result);
}

template <class T>
void Transformer<T>::reshape(std::size_t batch, std::size_t tokens) {
  TERN_REQUIRE(!options_.training, "only an evaluating transformer can be reshaped");
  TERN_REQUIRE(batch * tokens <= options_.batch * options_.tokens, "{} x {} rows, made for {} x {}",
               batch, tokens, options_.batch, options_.tokens);
  blocks_.batch = batch;
  blocks_.tokens = tokens;
  shared_ = detail::narrow(whole_, blocks_.size, batch, tokens);
  share_finals();
}

// ---- backward ----

template <class T>
void Transformer<T>::loss_backward(const ops::Context& context, const ops::HeadOptions& options,
                                   const Scored& scored, Vector<const Accumulate<T>> weights,
                                   Vector<Accumulate<T>> losses) {
  TERN_REQUIRE(options_.training, "backward of a transformer made for evaluation");
  if (!share().last()) return blocks_.links.from_next(context, blocks_.dstream);
  const std::size_t M = scored.targets.extent(0), N = blocks_.rows();
  const Matrix<T> dx = M == N ? dfinished_ : detail::narrow_rows(dpicked_, M);
  if (M > 0)
    head_.loss_backward(context, blocks_.links, options, pick(context, scored), scored.targets,
                        weights, losses, dx);
  if (M < N) ops::scatter_rows<T>(context, scored.rows, dx, dfinished_);
  norm_backward(context, final_of(passes() - 1));
}

/// From dfinished_ to the stream's gradient.
template <class T>
void Transformer<T>::norm_backward(const ops::Context& context, const Final& pass) {
  ops::norm_backward<T>(context, {.kind = blocks_.norm,
                                  .dy = dfinished_,
                                  .x = pass.input,
                                  .gain = final_norm_.gain,
                                  .mean = pass.mean,
                                  .rstd = pass.rstd,
                                  .dx = blocks_.dstream,
                                  .write = ops::Write::overwrite,
                                  .dgain = final_norm_.dgain,
                                  .dbias = final_norm_.dbias,
                                  .partial = blocks_.partial});
}

template <class T>
void Transformer<T>::finish_backward(const ops::Context& context, std::size_t pass) {
  Kokkos::deep_copy(context.space, dfinished_, blocks_.dstream);
  norm_backward(context, final_of(pass));
}

template <class T>
void Transformer<T>::recompute(const ops::Context& context, std::size_t place,
                               const ops::Pattern& pattern, const ops::DropoutKey& dropout) {
  LayerState<T>& s = state(place);
  if (held_ != at(place)) {  // the last block's state is still there
    const detail::Layer<T>& parameters = parameters_of(place);
    blocks_.qkv_forward(context, parameters, s);
    blocks_.attend(context, s, pattern);
    blocks_.attention_output(context, parameters, s, key(dropout, place, 1));
    blocks_.ffn_hidden(context, parameters, s);
  }
  held_ = nothing_held;
}

template <class T>
void Transformer<T>::block_backward(const ops::Context& context, std::size_t place,
                                    const ops::Pattern& pattern, const ops::DropoutKey& dropout) {
  need(context, place);
  if (options_.recompute) recompute(context, place, pattern, dropout);
  if (residence_) residence_->begin_gradients(context, place % layers());
  LayerState<T>& s = state(place);
  const detail::Layer<T>& parameters = parameters_of(place);
  blocks_.ffn_backward(context, parameters, s, key(dropout, place, 2));
  blocks_.attention_backward(context, parameters, s, pattern, key(dropout, place, 1));
  if (residence_) residence_->end_gradients(context, place % layers());
  if (place == 0) blocks_.links.to_previous(context, blocks_.dstream);
}

template <class T>
void Transformer<T>::embed_backward(const ops::Context& context, const Rows& rows) {
  if (!share().first()) return;
  const ops::DropoutKey& dropout = embed_dropout_[slot_];
  if (dropout.probability > 0) ops::dropout<T>(context, dropout, blocks_.dstream);
  if (share().tensors == 1)
    ops::embedding_backward<T>(context, rows.tokens, rows.order, blocks_.dstream, blocks_.tokens,
                               embedding_.dweight, positions_.dweight);
  else
    ops::embedding_part_backward<T>(context, {.tokens = rows.tokens,
                                              .first = head_.first,
                                              .order = rows.order,
                                              .dx = blocks_.dstream,
                                              .tokens_per_sequence = blocks_.tokens,
                                              .dtable = embedding_.dweight,
                                              .dpositions = positions_.dweight});
  if (rows.levels.extent(0) > 0)
    ops::embedding_backward<T>(context, rows.levels, rows.level_order, blocks_.dstream,
                               blocks_.tokens, levels_.dweight, {});
}

template class Transformer<float>;
template class Transformer<double>;
template class Transformer<bf16>;

}  // namespace tern::model
