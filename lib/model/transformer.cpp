#include "model/transformer.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "model/detail/state.hpp"

namespace tern::model {
namespace {

constexpr std::size_t nothing_held = static_cast<std::size_t>(-1);

std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

ops::Norm norm_of(const deck::Model& model) {
  if (model.norm == "rmsnorm") return ops::Norm::rmsnorm;
  TERN_REQUIRE(model.norm == "layernorm", "norm '{}'", model.norm);
  return ops::Norm::layernorm;
}

ops::Activation activation_of(const deck::Model& model) {
  if (model.activation == "swiglu") return ops::Activation::swiglu;
  if (model.activation == "gelu") return ops::Activation::gelu;
  TERN_REQUIRE(model.activation == "relu2", "activation '{}'", model.activation);
  return ops::Activation::relu2;
}

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

Dimensions::Dimensions(const deck::Model& m)
    : D(size(m.hidden)),
      H(size(m.heads)),
      K(size(m.kv_heads)),
      E(size(m.head_dim)),
      F(size(m.ffn_hidden)),
      V(size(m.vocabulary)),
      qkv((H + 2 * K) * E),
      up(m.activation == "swiglu" ? 2 * F : F) {}

template <class T>
Transformer<T>::Transformer(const deck::Model& model, const ParameterTree& tree,
                            const Parameters<T>& parameters, const TransformerOptions& options,
                            Arena& arena)
    : size_(model),
      norm_(norm_of(model)),
      activation_(activation_of(model)),
      eps_(model.norm_eps),
      scale_(1 / std::sqrt(static_cast<double>(model.head_dim))),
      rope_base_(model.rope_base),
      rope_(model.position == "rope"),
      qk_norm_(model.qk_norm),
      dropout_(model.dropout > 0 && options.training),
      options_(options),
      batch_(options.batch),
      tokens_(options.tokens),
      rows_(batch_ * tokens_),
      held_(nothing_held) {
  TERN_REQUIRE(!options.training || parameters.gradient.extent(0) > 0,
               "training without gradients");
  const detail::Binder<T> binder(tree, parameters);
  embedding_ = binder.linear({"model/embed_tokens"});
  if (model.position == "learned") positions_ = binder.linear({"model/embed_positions"});
  head_ = model.tie_embeddings ? embedding_ : binder.linear({"lm_head"});
  for (std::size_t l = 0; l < size(model.layers); ++l) layers_.push_back(binder.layer(model, l));
  final_norm_ = binder.gain("model/norm");
  if (rope_) {
    const std::size_t positions = options.positions > 0 ? options.positions : options.tokens;
    rotary_ = arena.matrix<A>("rotary table", Term::activations, positions, size_.E);
  }
  allocate_states(arena);
  allocate_workspace(arena);
}

template <class T>
void Transformer<T>::allocate_states(Arena& arena) {
  const detail::StateOptions options{batch_, tokens_, norm_ == ops::Norm::layernorm, qk_norm_,
                                     options_.training};
  const auto stream = [&](const std::string& name) {
    return arena.matrix<T>(name, Term::activations, rows_, size_.D);
  };
  if (!options_.training) {
    shared_ = detail::request_state<T>(arena, "layers", size_, options);
    shared_.input = shared_.middle = last_ = stream("residual stream");
    whole_ = shared_;
    finished_ = shared_.normed_ffn;
    last_rstd_ = shared_.rstd2;
    last_mean_ = shared_.mean2;
    return;
  }
  if (options_.recompute) shared_ = detail::request_state<T>(arena, "layers", size_, options);
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const std::string label = fmt::format("layer {}", l);
    inputs_.push_back(stream(label + "/input"));
    if (options_.recompute) continue;
    states_.push_back(detail::request_state<T>(arena, label, size_, options));
    states_.back().input = inputs_.back();
  }
  last_ = stream("final norm/input");
  finished_ = stream("final norm/output");
  last_rstd_ = arena.vector<A>("final norm/rstd", Term::activations, rows_);
  if (options.layernorm) last_mean_ = arena.vector<A>("final norm/mean", Term::activations, rows_);
}

/// The head's chunk of logits and the blocks' gradients are never alive together: one piece of
/// memory.
template <class T>
void Transformer<T>::allocate_workspace(Arena& arena) {
  constexpr bool host = std::is_same_v<DeviceMemory, Kokkos::HostSpace>;
  const std::size_t chunk = options_.head_rows > 0
                                ? options_.head_rows
                                : head_chunk_rows(rows_, size_.V, sizeof(T), host);
  std::size_t elements = 0;
  T* memory = nullptr;
  for (const bool carve : {false, true}) {
    if (carve) memory = arena.vector<T>("logits | gradients", Term::workspace, elements).data();
    Carver<T> of_head{memory}, of_block{memory};
    logits_ = of_head.matrix(chunk, size_.V);
    if (options_.training) {
      dfinished_ = of_head.matrix(rows_, size_.D);
      dattention_ = of_block.matrix(rows_, size_.H * size_.E);
      dqkv_ = of_block.matrix(rows_, size_.qkv);
    }
    elements = std::max(of_head.used, of_block.used);
  }
  if (!options_.training) return;
  dstream_ = arena.matrix<T>("stream gradient", Term::workspace, rows_, size_.D);
  delta_ = arena.matrix<A>("attention delta", Term::workspace, batch_ * size_.H, tokens_);
  partial_ = arena.vector<A>("norm partial sums", Term::workspace,
                             ops::norm_partials(std::max(size_.D, size_.E)));
  if (dropout_) branch_ = arena.matrix<T>("dropout branch", Term::workspace, rows_, size_.D);
}

template <class T>
void Transformer<T>::prepare(const ops::Context& context) {
  if (rope_) ops::rotary_table<A>(context, rope_base_, rotary_);
}

template <class T>
LayerState<T>& Transformer<T>::state(std::size_t layer) {
  if (!states_.empty()) return states_[layer];
  if (!inputs_.empty()) shared_.input = inputs_[layer];
  return shared_;
}

template <class T>
Matrix<T> Transformer<T>::output_of(std::size_t layer) const {
  return layer + 1 < inputs_.size() ? inputs_[layer + 1] : last_;
}

/// The key of one place of dropout: 0 the embedding, 2 l + 1 and 2 l + 2 the branches of layer l.
template <class T>
ops::DropoutKey Transformer<T>::key(const ops::DropoutKey& base, std::size_t place) const {
  TERN_REQUIRE(base.probability == 0 || dropout_, "dropout {} in a model made without it",
               base.probability);
  ops::DropoutKey result = base;
  result.layer += static_cast<std::uint32_t>(place);
  return result;
}

// ---- forward
// -------------------------------------------------------------------------------------

template <class T>
void Transformer<T>::embed(const ops::Context& context, Vector<const std::int32_t> tokens,
                           const ops::DropoutKey& dropout) {
  TERN_REQUIRE(tokens.extent(0) == rows_, "{} tokens for {} rows", tokens.extent(0), rows_);
  embed_dropout_ = key(dropout, 0);
  embed_rows(context, 0, tokens, tokens_, 0);
  if (dropout.probability > 0) ops::dropout<T>(context, embed_dropout_, state(0).input);
}

template <class T>
void Transformer<T>::embed_rows(const ops::Context& context, std::size_t row,
                                Vector<const std::int32_t> tokens, std::size_t period, int first) {
  const Matrix<T> stream = state(0).input;
  ops::embedding_forward<T>(context, tokens, embedding_.weight, positions_.weight, period, first,
                            as_matrix(stream.data() + row * size_.D, tokens.extent(0), size_.D));
}

template <class T>
void Transformer<T>::qkv_forward(const ops::Context& context, const detail::Layer<T>& layer,
                                 LayerState<T>& s) {
  ops::norm_forward<T>(context, norm_, s.input, layer.norm_attention.gain,
                       layer.norm_attention.bias, eps_, s.normed_attention, s.mean1, s.rstd1);
  ops::linear_forward<T>(context, s.normed_attention, layer.qkv.weight, layer.qkv.bias, s.qkv);
  if (!qk_norm_) return;
  const auto [D, H, K, E, F, V, qkv, up] = size_;
  ops::head_norm_forward<T>(context, heads_of(s.qkv, 0, batch_, tokens_, H, E), layer.norm_q.gain,
                            eps_, s.q_saved, s.rstd_q);
  ops::head_norm_forward<T>(context, heads_of(s.qkv, H * E, batch_, tokens_, K, E),
                            layer.norm_k.gain, eps_, s.k_saved, s.rstd_k);
}

template <class T>
void Transformer<T>::rotate_rows(const ops::Context& context, std::size_t row, std::size_t batch,
                                 std::size_t tokens, int first) {
  if (!rope_) return;
  const Matrix<T> qkv = as_matrix(shared_.qkv.data() + row * size_.qkv, batch * tokens, size_.qkv);
  ops::rotary<T>(context, heads_of(qkv, 0, batch, tokens, size_.H + size_.K, size_.E), rotary_,
                 first, ops::Direction::forward);
}

template <class T>
void Transformer<T>::attend(const ops::Context& context, LayerState<T>& s,
                            const ops::Pattern& pattern) {
  const auto [D, H, K, E, F, V, qkv, up] = size_;
  if (rope_)
    ops::rotary<T>(context, heads_of(s.qkv, 0, batch_, tokens_, H + K, E), rotary_, 0,
                   ops::Direction::forward);
  ops::attention_forward<T>(context, pattern, scale_, heads_of(s.qkv, 0, batch_, tokens_, H, E),
                            heads_of(s.qkv, H * E, batch_, tokens_, K, E),
                            heads_of(s.qkv, (H + K) * E, batch_, tokens_, K, E),
                            heads_of(s.attention, 0, batch_, tokens_, H, E), s.lse);
}

/// to = from + dropout(linear(x)); from and to may be the same view.
template <class T>
void Transformer<T>::add_branch(const ops::Context& context, const detail::Linear<T>& linear,
                                Matrix<const T> x, Matrix<T> from, Matrix<T> to,
                                const ops::DropoutKey& dropout) {
  if (from.data() != to.data()) Kokkos::deep_copy(context.space, to, from);
  if (dropout.probability == 0) {
    ops::linear_forward<T>(context, x, linear.weight, linear.bias, to, ops::Write::add);
    return;
  }
  ops::linear_forward<T>(context, x, linear.weight, linear.bias, branch_);
  ops::dropout<T>(context, dropout, branch_);
  ops::add<T>(context, branch_, to);
}

template <class T>
void Transformer<T>::attention_output(const ops::Context& context, std::size_t layer,
                                      LayerState<T>& s, const ops::DropoutKey& dropout) {
  add_branch(context, layers_[layer].output, s.attention, s.input, s.middle,
             key(dropout, 2 * layer + 1));
}

template <class T>
void Transformer<T>::ffn_hidden(const ops::Context& context, const detail::Layer<T>& layer,
                                LayerState<T>& s) {
  ops::norm_forward<T>(context, norm_, s.middle, layer.norm_ffn.gain, layer.norm_ffn.bias, eps_,
                       s.normed_ffn, s.mean2, s.rstd2);
  ops::linear_forward<T>(context, s.normed_ffn, layer.up.weight, layer.up.bias, s.up);
  ops::activation_forward<T>(context, activation_, s.up, s.activated);
}

template <class T>
void Transformer<T>::ffn_output(const ops::Context& context, std::size_t layer, LayerState<T>& s,
                                const ops::DropoutKey& dropout) {
  add_branch(context, layers_[layer].down, s.activated, s.middle, output_of(layer),
             key(dropout, 2 * layer + 2));
}

template <class T>
void Transformer<T>::block(const ops::Context& context, std::size_t layer,
                           const ops::Pattern& pattern, const ops::DropoutKey& dropout) {
  LayerState<T>& s = state(layer);
  qkv_forward(context, layers_[layer], s);
  attend(context, s, pattern);
  end_block(context, layer, dropout);
}

template <class T>
Matrix<T> Transformer<T>::project_qkv(const ops::Context& context, std::size_t layer) {
  LayerState<T>& s = state(layer);
  qkv_forward(context, layers_[layer], s);
  return s.qkv;
}

template <class T>
void Transformer<T>::end_block(const ops::Context& context, std::size_t layer,
                               const ops::DropoutKey& dropout) {
  LayerState<T>& s = state(layer);
  attention_output(context, layer, s, dropout);
  ffn_hidden(context, layers_[layer], s);
  ffn_output(context, layer, s, dropout);
  held_ = layer;
}

template <class T>
Matrix<const T> Transformer<T>::finish(const ops::Context& context) {
  ops::norm_forward<T>(context, norm_, last_, final_norm_.gain, final_norm_.bias, eps_, finished_,
                       last_mean_, last_rstd_);
  return finished_;
}

template <class T>
Matrix<const T> Transformer<T>::forward(const ops::Context& context,
                                        Vector<const std::int32_t> tokens,
                                        const ops::Pattern& pattern,
                                        const ops::DropoutKey& dropout) {
  embed(context, tokens, dropout);
  for (std::size_t l = 0; l < layers(); ++l) block(context, l, pattern, dropout);
  return finish(context);
}

template <class T>
void Transformer<T>::loss(const ops::Context& context, const ops::HeadOptions& options,
                          Vector<const std::int32_t> targets, Vector<Accumulate<T>> losses) {
  ops::head_loss_forward<T>(context, options, finished_, head_.weight, targets, logits_, losses);
}

template <class T>
void Transformer<T>::logits(const ops::Context& context, std::size_t first_row,
                            Matrix<T> result) const {
  TERN_REQUIRE(first_row + result.extent(0) <= rows_, "rows {} to {} of {}", first_row,
               first_row + result.extent(0), rows_);
  const Matrix<const T> rows(finished_.data() + first_row * size_.D, result.extent(0), size_.D);
  ops::linear_forward<T>(context, rows, head_.weight, {}, result);
}

template <class T>
void Transformer<T>::reshape(std::size_t batch, std::size_t tokens) {
  TERN_REQUIRE(!options_.training, "only an evaluating transformer can be reshaped");
  TERN_REQUIRE(batch * tokens <= options_.batch * options_.tokens, "{} x {} rows, made for {} x {}",
               batch, tokens, options_.batch, options_.tokens);
  batch_ = batch;
  tokens_ = tokens;
  rows_ = batch * tokens;
  shared_ = detail::narrow(whole_, size_, batch, tokens);
  last_ = shared_.input;
  finished_ = shared_.normed_ffn;
  last_rstd_ = shared_.rstd2;
  last_mean_ = shared_.mean2;
}

// ---- backward
// ------------------------------------------------------------------------------------

template <class T>
void Transformer<T>::loss_backward(const ops::Context& context, const ops::HeadOptions& options,
                                   Vector<const std::int32_t> targets,
                                   Vector<const Accumulate<T>> weights,
                                   Vector<Accumulate<T>> losses) {
  TERN_REQUIRE(options_.training, "backward of a transformer made for evaluation");
  ops::head_loss_backward<T>(context, options, finished_, head_.weight, targets, weights, logits_,
                             losses, dfinished_, head_.dweight);
  ops::norm_backward<T>(context, norm_, dfinished_, last_, final_norm_.gain, last_mean_, last_rstd_,
                        dstream_, ops::Write::overwrite, final_norm_.dgain, final_norm_.dbias,
                        partial_);
}

template <class T>
void Transformer<T>::recompute(const ops::Context& context, std::size_t layer,
                               const ops::Pattern& pattern, const ops::DropoutKey& dropout) {
  LayerState<T>& s = state(layer);
  if (held_ != layer) {  // the last block's state is still there
    qkv_forward(context, layers_[layer], s);
    attend(context, s, pattern);
    attention_output(context, layer, s, dropout);
    ffn_hidden(context, layers_[layer], s);
  }
  held_ = nothing_held;
}

/// The gradient of a branch's output: the stream's, dropped as the branch was.
template <class T>
Matrix<T> Transformer<T>::branch_gradient(const ops::Context& context,
                                          const ops::DropoutKey& dropout) {
  if (dropout.probability == 0) return dstream_;
  Kokkos::deep_copy(context.space, branch_, dstream_);
  ops::dropout<T>(context, dropout, branch_);
  return branch_;
}

template <class T>
void Transformer<T>::block_backward(const ops::Context& context, std::size_t layer,
                                    const ops::Pattern& pattern, const ops::DropoutKey& dropout) {
  if (options_.recompute) recompute(context, layer, pattern, dropout);
  LayerState<T>& s = state(layer);
  ffn_backward(context, layers_[layer], s, branch_gradient(context, key(dropout, 2 * layer + 2)));
  attention_backward(context, layers_[layer], s, pattern,
                     branch_gradient(context, key(dropout, 2 * layer + 1)));
}

/// Each gradient takes the place of the activation it belongs to once that has served.
template <class T>
void Transformer<T>::ffn_backward(const ops::Context& context, const detail::Layer<T>& layer,
                                  LayerState<T>& s, Matrix<T> dy) {
  const detail::Linear<T>&down = layer.down, &up = layer.up;
  ops::linear_backward_weight<T>(context, dy, s.activated, down.dweight, down.dbias);
  const Matrix<T> dactivated = s.activated;
  ops::linear_backward_input<T>(context, dy, down.weight, dactivated);
  const Matrix<T> dup = s.up;
  ops::activation_backward<T>(context, activation_, s.up, dactivated, dup);
  ops::linear_backward_weight<T>(context, dup, s.normed_ffn, up.dweight, up.dbias);
  const Matrix<T> dnormed = s.normed_ffn;
  ops::linear_backward_input<T>(context, dup, up.weight, dnormed);
  ops::norm_backward<T>(context, norm_, dnormed, s.middle, layer.norm_ffn.gain, s.mean2, s.rstd2,
                        dstream_, ops::Write::add, layer.norm_ffn.dgain, layer.norm_ffn.dbias,
                        partial_);
}

template <class T>
void Transformer<T>::attention_backward(const ops::Context& context, const detail::Layer<T>& layer,
                                        LayerState<T>& s, const ops::Pattern& pattern,
                                        Matrix<T> dy) {
  const auto [D, H, K, E, F, V, qkv, up] = size_;
  const auto part = [&, batch = batch_, tokens = tokens_](const Matrix<T>& fused, std::size_t first,
                                                          std::size_t heads) {
    return heads_of(fused, first * size_.E, batch, tokens, heads, size_.E);
  };
  ops::linear_backward_weight<T>(context, dy, s.attention, layer.output.dweight,
                                 layer.output.dbias);
  ops::linear_backward_input<T>(context, dy, layer.output.weight, dattention_);
  ops::attention_backward<T>(context, pattern, scale_, part(s.qkv, 0, H), part(s.qkv, H, K),
                             part(s.qkv, H + K, K), part(s.attention, 0, H),
                             part(dattention_, 0, H), s.lse, delta_, part(dqkv_, 0, H),
                             part(dqkv_, H, K), part(dqkv_, H + K, K));
  if (rope_) ops::rotary<T>(context, part(dqkv_, 0, H + K), rotary_, 0, ops::Direction::backward);
  if (qk_norm_) {
    ops::head_norm_backward<T>(context, part(dqkv_, 0, H), s.q_saved, layer.norm_q.gain, s.rstd_q,
                               layer.norm_q.dgain, partial_);
    ops::head_norm_backward<T>(context, part(dqkv_, H, K), s.k_saved, layer.norm_k.gain, s.rstd_k,
                               layer.norm_k.dgain, partial_);
  }
  ops::linear_backward_weight<T>(context, dqkv_, s.normed_attention, layer.qkv.dweight,
                                 layer.qkv.dbias);
  const Matrix<T> dnormed = s.normed_attention;
  ops::linear_backward_input<T>(context, dqkv_, layer.qkv.weight, dnormed);
  ops::norm_backward<T>(context, norm_, dnormed, s.input, layer.norm_attention.gain, s.mean1,
                        s.rstd1, dstream_, ops::Write::add, layer.norm_attention.dgain,
                        layer.norm_attention.dbias, partial_);
}

template <class T>
void Transformer<T>::embed_backward(const ops::Context& context, Vector<const std::int32_t> tokens,
                                    Vector<const std::int32_t> order) {
  if (embed_dropout_.probability > 0) ops::dropout<T>(context, embed_dropout_, dstream_);
  ops::embedding_backward<T>(context, tokens, order, dstream_, tokens_, embedding_.dweight,
                             positions_.dweight);
}

template class Transformer<float>;
template class Transformer<double>;
template class Transformer<bf16>;

}  // namespace tern::model
