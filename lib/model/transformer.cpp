#include "model/transformer.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "model/detail/state.hpp"
#include "model/residence.hpp"

namespace tern::model {
namespace {

constexpr std::size_t nothing_held = static_cast<std::size_t>(-1);

/// Cuts matrices one after another out of a piece of memory; with none, counts.
template <class T>
struct Carver {
  T* data = nullptr;
  std::size_t used = 0;
  Matrix<T> matrix(std::size_t rows, std::size_t columns) {
    constexpr std::size_t step = Arena::alignment;  // elements, so bytes too
    Matrix<T> result(data ? data + used : nullptr, rows, columns);
    used += (rows * columns + step - 1) / step * step;
    return result;
  }
};

}  // namespace

std::size_t head_chunk_rows(std::size_t rows, std::size_t vocabulary, std::size_t element_bytes,
                            bool host) {
  constexpr std::size_t host_rows = 256, device_bytes = 128u << 20;
  const std::size_t most =
      host ? host_rows : std::max<std::size_t>(1, device_bytes / (vocabulary * element_bytes));
  const std::size_t chunks = (rows + most - 1) / most;
  return chunks == 0 ? 1 : (rows + chunks - 1) / chunks;
}

template <class T>
Transformer<T>::Transformer(const deck::Model& model, const ParameterTree& tree,
                            const Parameters<T>& parameters, const TransformerOptions& options,
                            Arena& arena)
    : options_(options),
      blocks_(model),
      dropout_(model.dropout > 0 && options.training),
      residence_(parameters.residence),
      held_(nothing_held) {
  blocks_.batch = options.batch;
  blocks_.tokens = options.tokens;
  TERN_REQUIRE(!options.training || parameters.gradient.extent(0) > 0,
               "training without gradients");
  const detail::Binder<T> binder(tree, parameters);
  embedding_ = binder.linear({"model/embed_tokens"});
  if (model.position == "learned") positions_ = binder.linear({"model/embed_positions"});
  if (model.levels > 0) levels_ = binder.linear({"model/embed_levels"});
  head_ = model.tie_embeddings ? embedding_ : binder.linear({"lm_head"});
  for (std::size_t l = 0; l < static_cast<std::size_t>(model.layers); ++l)
    layers_.push_back(binder.layer(model, l));
  final_norm_ = binder.gain("model/norm");
  if (blocks_.rope) {
    const std::size_t positions = options.positions > 0 ? options.positions : options.tokens;
    blocks_.rotary = arena.matrix<A>("rotary table", Term::activations, positions, blocks_.size.E);
  }
  allocate_states(arena);
  allocate_workspace(arena);
}

template <class T>
void Transformer<T>::allocate_states(Arena& arena) {
  const detail::StateOptions options{blocks_.batch, blocks_.tokens,
                                     blocks_.norm == ops::Norm::layernorm, blocks_.qk_norm,
                                     options_.training};
  if (!options_.training) return allocate_evaluation(arena, options);
  const auto stream = [&](const std::string& name) {
    return arena.matrix<T>(name, Term::activations, blocks_.rows(), blocks_.size.D);
  };
  if (options_.recompute)
    shared_ = detail::request_state<T>(arena, "layers", blocks_.size, options);
  for (std::size_t pass = 0; pass < options_.passes; ++pass) {
    const std::string of_pass = options_.passes > 1 ? fmt::format("pass {}/", pass) : "";
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      const std::string label = fmt::format("{}layer {}", of_pass, l);
      inputs_.push_back(stream(label + "/input"));
      if (options_.recompute) continue;
      states_.push_back(detail::request_state<T>(arena, label, blocks_.size, options));
      states_.back().input = inputs_.back();
    }
    const auto vector = [&](const char* name) {
      return arena.vector<A>(of_pass + name, Term::activations, blocks_.rows());
    };
    Final final{
        stream(of_pass + "final norm/input"), stream(of_pass + "final norm/output"), {}, {}};
    final.rstd = vector("final norm/rstd");
    if (options.layernorm) final.mean = vector("final norm/mean");
    finals_.push_back(final);
  }
}

/// All passes and layers share one state. The states of several passes, which outlive a pass, have
/// places of their own.
template <class T>
void Transformer<T>::allocate_evaluation(Arena& arena, const detail::StateOptions& options) {
  const auto stream = [&](const char* name) {
    return arena.matrix<T>(name, Term::activations, blocks_.rows(), blocks_.size.D);
  };
  shared_ = detail::request_state<T>(arena, "layers", blocks_.size, options);
  shared_.input = shared_.middle = stream("residual stream");
  whole_ = shared_;
  if (options_.passes > 1) {
    latent_ = stream("latent");
    answer_ = stream("answer");
  }
  share_finals();
}

template <class T>
void Transformer<T>::share_finals() {
  const std::size_t N = blocks_.rows();
  finals_.assign(options_.passes,
                 {shared_.input, shared_.normed_ffn, shared_.mean2, shared_.rstd2});
  if (options_.passes == 1) return;
  for (Final& final : finals_) final.output = detail::narrow_rows(latent_, N);
  finals_.back().output = detail::narrow_rows(answer_, N);
}

/// The head's chunk of logits and the blocks' gradients are never alive together: one piece of
/// memory.
template <class T>
void Transformer<T>::allocate_workspace(Arena& arena) {
  constexpr bool host = std::is_same_v<DeviceMemory, Kokkos::HostSpace>;
  const std::size_t chunk =
      options_.head_rows > 0
          ? options_.head_rows
          : head_chunk_rows(options_.scored > 0 ? options_.scored : blocks_.rows(), blocks_.size.V,
                            sizeof(T), host);
  std::size_t elements = 0;
  T* memory = nullptr;
  for (const bool carve : {false, true}) {
    if (carve) memory = arena.vector<T>("logits | gradients", Term::workspace, elements).data();
    Carver<T> of_head{memory}, of_block{memory};
    logits_ = of_head.matrix(chunk, blocks_.size.V);
    if (options_.scored > 0) picked_ = of_head.matrix(options_.scored, blocks_.size.D);
    if (options_.training) {
      dfinished_ = of_head.matrix(blocks_.rows(), blocks_.size.D);
      if (options_.scored > 0) dpicked_ = of_head.matrix(options_.scored, blocks_.size.D);
      blocks_.dattention = of_block.matrix(blocks_.rows(), blocks_.size.H * blocks_.size.E);
      blocks_.dqkv = of_block.matrix(blocks_.rows(), blocks_.size.qkv);
    }
    elements = std::max(of_head.used, of_block.used);
  }
  if (options_.fp8) blocks_.fp8 = {arena, blocks_.fp8_elements(options_.training)};
  if (!options_.training) return;
  blocks_.dstream =
      arena.matrix<T>("stream gradient", Term::workspace, blocks_.rows(), blocks_.size.D);
  blocks_.delta = arena.matrix<A>("attention delta", Term::workspace,
                                  blocks_.batch * blocks_.size.H, blocks_.tokens);
  blocks_.partial = arena.vector<A>("norm partial sums", Term::workspace,
                                    ops::norm_partials(std::max(blocks_.size.D, blocks_.size.E)));
  if (dropout_)
    blocks_.branch =
        arena.matrix<T>("dropout branch", Term::workspace, blocks_.rows(), blocks_.size.D);
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
  if (!states_.empty()) return states_[place];
  if (!inputs_.empty()) shared_.input = inputs_[place];
  return shared_;
}

template <class T>
Matrix<T> Transformer<T>::output_of(std::size_t place) const {
  const std::size_t next = place + 1;
  if (inputs_.empty() || next % layers() == 0) return finals_[place / layers()].input;
  return inputs_[next];
}

/// The key of one stream of dropout: 0 the embedding, 2 p + 1 and 2 p + 2 the branches of place p.
template <class T>
ops::DropoutKey Transformer<T>::key(const ops::DropoutKey& base, std::size_t stream) const {
  TERN_REQUIRE(base.probability == 0 || dropout_, "dropout {} in a model made without it",
               base.probability);
  ops::DropoutKey result = base;
  result.layer += static_cast<std::uint32_t>(stream);
  return result;
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
  embed_dropout_ = key(dropout, 0);
  blocks_.positions = rows.positions;
  embed_rows(context, 0, rows.tokens, blocks_.tokens, 0, rows.levels);
  if (dropout.probability > 0) ops::dropout<T>(context, embed_dropout_, state(0).input);
}

template <class T>
void Transformer<T>::embed_rows(const ops::Context& context, std::size_t row,
                                Vector<const std::int32_t> tokens, std::size_t period, int first,
                                Vector<const std::int32_t> levels) {
  const Matrix<T> to =
      as_matrix(state(0).input.data() + row * blocks_.size.D, tokens.extent(0), blocks_.size.D);
  ops::embedding_forward<T>(context, tokens, embedding_.weight, positions_.weight, period, first,
                            to);
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
  LayerState<T>& s = state(place);
  need(context, place);
  blocks_.qkv_forward(context, parameters_of(place), s);
  blocks_.attend(context, s, pattern);
  end_block(context, place, dropout);
}

template <class T>
Matrix<T> Transformer<T>::project_qkv(const ops::Context& context, std::size_t place) {
  LayerState<T>& s = state(place);
  need(context, place);
  blocks_.qkv_forward(context, parameters_of(place), s);
  return s.qkv;
}

template <class T>
void Transformer<T>::end_block(const ops::Context& context, std::size_t place,
                               const ops::DropoutKey& dropout) {
  LayerState<T>& s = state(place);
  const detail::Layer<T>& parameters = parameters_of(place);
  blocks_.attention_output(context, parameters, s, key(dropout, 2 * place + 1));
  blocks_.ffn_hidden(context, parameters, s);
  blocks_.ffn_output(context, parameters, s, output_of(place), key(dropout, 2 * place + 2));
  held_ = place;
}

template <class T>
Matrix<const T> Transformer<T>::finish(const ops::Context& context, std::size_t pass) {
  const Final& final = finals_[pass];
  ops::norm_forward<T>(context, blocks_.norm, final.input, final_norm_.gain, final_norm_.bias,
                       blocks_.eps, final.output, final.mean, final.rstd);
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
  const Matrix<T>& finished = finals_.back().output;
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
  if (scored.targets.extent(0) == 0) return;
  ops::head_loss_forward<T>(context, options, pick(context, scored), head_.weight, scored.targets,
                            logits_, losses, best);
}

template <class T>
void Transformer<T>::logits(const ops::Context& context, std::size_t first_row,
                            Matrix<T> result) const {
  TERN_REQUIRE(first_row + result.extent(0) <= blocks_.rows(), "rows {} to {} of {}", first_row,
               first_row + result.extent(0), blocks_.rows());
  const Matrix<const T> rows(finals_.back().output.data() + first_row * blocks_.size.D,
                             result.extent(0), blocks_.size.D);
  logits_of(context, rows, result);
}

template <class T>
void Transformer<T>::logits_of(const ops::Context& context, Matrix<const T> rows,
                               Matrix<T> result) const {
  ops::linear_forward<T>(context, rows, head_.weight, {}, result);
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
  const std::size_t M = scored.targets.extent(0), N = blocks_.rows();
  const Matrix<T> dx = M == N ? dfinished_ : detail::narrow_rows(dpicked_, M);
  if (M > 0)
    ops::head_loss_backward<T>(context, options, pick(context, scored), head_.weight,
                               scored.targets, weights, logits_, losses, dx, head_.dweight);
  if (M < N) ops::scatter_rows<T>(context, scored.rows, dx, dfinished_);
  norm_backward(context, finals_.back());
}

/// From dfinished_ to the stream's gradient.
template <class T>
void Transformer<T>::norm_backward(const ops::Context& context, const Final& pass) {
  ops::norm_backward<T>(context, blocks_.norm, dfinished_, pass.input, final_norm_.gain, pass.mean,
                        pass.rstd, blocks_.dstream, ops::Write::overwrite, final_norm_.dgain,
                        final_norm_.dbias, blocks_.partial);
}

template <class T>
void Transformer<T>::finish_backward(const ops::Context& context, std::size_t pass) {
  Kokkos::deep_copy(context.space, dfinished_, blocks_.dstream);
  norm_backward(context, finals_[pass]);
}

template <class T>
void Transformer<T>::recompute(const ops::Context& context, std::size_t place,
                               const ops::Pattern& pattern, const ops::DropoutKey& dropout) {
  LayerState<T>& s = state(place);
  if (held_ != place) {  // the last block's state is still there
    const detail::Layer<T>& parameters = parameters_of(place);
    blocks_.qkv_forward(context, parameters, s);
    blocks_.attend(context, s, pattern);
    blocks_.attention_output(context, parameters, s, key(dropout, 2 * place + 1));
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
  blocks_.ffn_backward(context, parameters, s, key(dropout, 2 * place + 2));
  blocks_.attention_backward(context, parameters, s, pattern, key(dropout, 2 * place + 1));
  if (residence_) residence_->end_gradients(context, place % layers());
}

template <class T>
void Transformer<T>::embed_backward(const ops::Context& context, const Rows& rows) {
  if (embed_dropout_.probability > 0) ops::dropout<T>(context, embed_dropout_, blocks_.dstream);
  ops::embedding_backward<T>(context, rows.tokens, rows.order, blocks_.dstream, blocks_.tokens,
                             embedding_.dweight, positions_.dweight);
  if (rows.levels.extent(0) > 0)
    ops::embedding_backward<T>(context, rows.levels, rows.level_order, blocks_.dstream,
                               blocks_.tokens, levels_.dweight, {});
}

template class Transformer<float>;
template class Transformer<double>;
template class Transformer<bf16>;

}  // namespace tern::model
