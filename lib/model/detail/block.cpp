#include "model/detail/block.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "model/detail/state.hpp"

namespace tern::model {
namespace {

std::size_t size_of(std::int64_t value) { return static_cast<std::size_t>(value); }

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

}  // namespace

Dimensions::Dimensions(const deck::Model& m, const Share& share)
    : D(size_of(m.hidden)),
      H(size_of(m.heads) / share.tensors),
      K(size_of(m.kv_heads) * sharers(m, share.tensors) / share.tensors),
      E(size_of(m.head_dim)),
      F(size_of(m.experts > 0 ? m.expert_hidden : m.ffn_hidden) / share.tensors),
      V(size_of(m.vocabulary)),
      W(V / share.tensors),
      X(size_of(m.experts)),
      k(m.experts > 0 ? size_of(m.experts_per_token) : 1),
      qkv((H + 2 * K) * E),
      up(m.activation == "swiglu" ? 2 * F : F) {}

namespace detail {

template <class T>
Blocks<T>::Blocks(const deck::Model& model, const Share& share, bool training)
    : size(model, share),
      norm(norm_of(model)),
      activation(activation_of(model)),
      eps(model.norm_eps),
      scale(1 / std::sqrt(static_cast<double>(model.head_dim))),
      rope_base(model.rope_base),
      rope(model.position == "rope"),
      qk_norm(model.qk_norm),
      links(share, training),
      experts(model, share) {}

template <class T>
std::size_t Blocks<T>::fp8_elements(bool training) const {
  const std::size_t N = rows(), maps[][2] = {{size.D, size.qkv},
                                             {size.H * size.E, size.D},
                                             {size.D, size.up},
                                             {size.F, size.D}};
  std::size_t most = 0;
  for (const auto& [inputs, outputs] : maps) {
    most = std::max(most, ops::Fp8Workspace<T>::forward(N, inputs, outputs));
    if (training) most = std::max(most, ops::Fp8Workspace<T>::backward(N, inputs, outputs));
  }
  return most;
}

// ---- the linear maps, in the precision of their products ----

template <class T>
void Blocks<T>::multiply(const ops::Context& context, const Linear<T>& map, Matrix<const T> x,
                         Matrix<T> y, ops::Write write) const {
  if (fp8.operands.extent(0) > 0)
    return ops::fp8_linear_forward<T>(context, fp8, x, map.weight, map.bias, y, write);
  ops::linear_forward<T>(context, x, map.weight, map.bias, y, write);
}

/// The gradients of weight and bias are added to; dx may be x.
template <class T>
void Blocks<T>::multiply_backward(const ops::Context& context, const Linear<T>& map,
                                  Matrix<const T> dy, Matrix<const T> x, Matrix<T> dx) const {
  if (fp8.operands.extent(0) > 0)
    return ops::fp8_linear_backward<T>(context, {.work = fp8,
                                                 .dy = dy,
                                                 .x = x,
                                                 .w = map.weight,
                                                 .dx = dx,
                                                 .dw = map.dweight,
                                                 .dbias = map.dbias});
  ops::linear_backward_weight<T>(context, dy, x, map.dweight, map.dbias);
  ops::linear_backward_input<T>(context, dy, map.weight, dx);
}

// ---- forward ----

template <class T>
void Blocks<T>::qkv_forward(const ops::Context& context, const Layer<T>& layer,
                            LayerState<T>& s) const {
  qkv_product(context, layer, s);
  if (!qk_norm) return;
  ops::head_norm_forward<T>(context, part(s.qkv, 0, size.H), layer.norm_q.gain, eps, s.q_saved,
                            s.rstd_q);
  ops::head_norm_forward<T>(context, part(s.qkv, size.H, size.K), layer.norm_k.gain, eps, s.k_saved,
                            s.rstd_k);
}

template <class T>
void Blocks<T>::qkv_product(const ops::Context& context, const Layer<T>& layer,
                            LayerState<T>& s) const {
  ops::norm_forward<T>(context, {.kind = norm,
                                 .x = s.input,
                                 .gain = layer.norm_attention.gain,
                                 .bias = layer.norm_attention.bias,
                                 .eps = eps,
                                 .y = s.normed_attention,
                                 .mean = s.mean1,
                                 .rstd = s.rstd1});
  multiply(context, layer.qkv, s.normed_attention, s.qkv, ops::Write::overwrite);
}

template <class T>
void Blocks<T>::rotate(const ops::Context& context, Matrix<T> qkv, std::size_t sequences,
                       std::size_t length, const ops::Positions& at,
                       ops::Direction direction) const {
  if (!rope) return;
  ops::rotary<T>(context, heads_of(qkv, 0, sequences, length, size.H + size.K, size.E), rotary, at,
                 direction);
}

template <class T>
void Blocks<T>::attend(const ops::Context& context, LayerState<T>& s,
                       const ops::Pattern& pattern) const {
  const std::size_t H = size.H, K = size.K;
  rotate(context, s.qkv, batch, tokens, {0, positions}, ops::Direction::forward);
  ops::attention_forward<T>(context, {.pattern = pattern,
                                      .scale = scale,
                                      .q = part(s.qkv, 0, H),
                                      .k = part(s.qkv, H, K),
                                      .v = part(s.qkv, H + K, K),
                                      .out = part(s.attention, 0, H),
                                      .lse = s.lse});
}

/// to = from + dropout(linear(x)), linear's part of each tensor rank added up; from and to may be
/// the same view.
template <class T>
void Blocks<T>::add_branch(const ops::Context& context, const Linear<T>& linear, Matrix<const T> x,
                           Matrix<T> from, Matrix<T> to, const ops::DropoutKey& dropout) const {
  if (from.data() != to.data()) Kokkos::deep_copy(context.space, to, from);
  if (dropout.probability == 0 && links.share().tensors == 1) {
    multiply(context, linear, x, to, ops::Write::add);
    return;
  }
  const Matrix<T> result = narrow_rows(branch, x.extent(0));
  multiply(context, linear, x, result, ops::Write::overwrite);
  add_result(context, result, to, dropout);
}

/// to += dropout(result), result's part of each tensor rank added up.
template <class T>
void Blocks<T>::add_result(const ops::Context& context, Matrix<T> result, Matrix<T> to,
                           const ops::DropoutKey& dropout) const {
  links.sum(context, result);
  if (dropout.probability > 0) ops::dropout<T>(context, dropout, result);
  ops::add<T>(context, result, to);
}

template <class T>
void Blocks<T>::attention_output(const ops::Context& context, const Layer<T>& layer,
                                 LayerState<T>& s, const ops::DropoutKey& dropout) const {
  add_branch(context, layer.output, s.attention, s.input, s.middle, dropout);
}

template <class T>
void Blocks<T>::ffn_hidden(const ops::Context& context, const Layer<T>& layer,
                           LayerState<T>& s) const {
  ops::norm_forward<T>(context, {.kind = norm,
                                 .x = s.middle,
                                 .gain = layer.norm_ffn.gain,
                                 .bias = layer.norm_ffn.bias,
                                 .eps = eps,
                                 .y = s.normed_ffn,
                                 .mean = s.mean2,
                                 .rstd = s.rstd2});
  if (experts.any()) return experts.hidden(context, layer, s);
  multiply(context, layer.up, s.normed_ffn, s.up, ops::Write::overwrite);
  ops::activation_forward<T>(context, activation, s.up, s.activated);
}

template <class T>
void Blocks<T>::ffn_output(const ops::Context& context, const Layer<T>& layer, LayerState<T>& s,
                           Matrix<T> output, const ops::DropoutKey& dropout) const {
  if (!experts.any())
    return add_branch(context, layer.down, s.activated, s.middle, output, dropout);
  if (dropout.probability == 0 && links.share().tensors == 1)
    return experts.output(context, layer, s, s.middle, output);
  const Matrix<T> result = narrow_rows(branch, output.extent(0));
  experts.output(context, layer, s, {}, result);
  if (s.middle.data() != output.data()) Kokkos::deep_copy(context.space, output, s.middle);
  add_result(context, result, output, dropout);
}

// ---- backward: each gradient takes the place of an activation that has served ----

/// The gradient of a branch's output: the stream's, dropped as the branch was.
template <class T>
Matrix<T> Blocks<T>::branch_gradient(const ops::Context& context,
                                     const ops::DropoutKey& dropout) const {
  if (dropout.probability == 0) return dstream;
  Kokkos::deep_copy(context.space, branch, dstream);
  ops::dropout<T>(context, dropout, branch);
  return branch;
}

template <class T>
void Blocks<T>::ffn_backward(const ops::Context& context, const Layer<T>& layer, LayerState<T>& s,
                             const ops::DropoutKey& dropout) const {
  const Matrix<T> doutput = branch_gradient(context, dropout), dnormed = s.normed_ffn;
  if (experts.any()) {
    experts.backward(context, layer, links, doutput, s);
  } else {
    const Matrix<T> dactivated = s.activated, dup = s.up;
    multiply_backward(context, layer.down, doutput, s.activated, dactivated);
    ops::activation_backward<T>(context, activation, s.up, dactivated, dup);
    multiply_backward(context, layer.up, dup, s.normed_ffn, dnormed);
    links.sum(context, dnormed);
  }
  ops::norm_backward<T>(context, {.kind = norm,
                                  .dy = dnormed,
                                  .x = s.middle,
                                  .gain = layer.norm_ffn.gain,
                                  .mean = s.mean2,
                                  .rstd = s.rstd2,
                                  .dx = dstream,
                                  .write = ops::Write::add,
                                  .dgain = layer.norm_ffn.dgain,
                                  .dbias = layer.norm_ffn.dbias,
                                  .partial = partial});
}

template <class T>
void Blocks<T>::attention_backward(const ops::Context& context, const Layer<T>& layer,
                                   LayerState<T>& s, const ops::Pattern& pattern,
                                   const ops::DropoutKey& dropout) const {
  const std::size_t H = size.H, K = size.K;
  multiply_backward(context, layer.output, branch_gradient(context, dropout), s.attention,
                    dattention);
  ops::attention_backward<T>(context, {.pattern = pattern,
                                       .scale = scale,
                                       .q = part(s.qkv, 0, H),
                                       .k = part(s.qkv, H, K),
                                       .v = part(s.qkv, H + K, K),
                                       .out = part(s.attention, 0, H),
                                       .dout = part(dattention, 0, H),
                                       .lse = s.lse,
                                       .delta = delta,
                                       .dq = part(dqkv, 0, H),
                                       .dk = part(dqkv, H, K),
                                       .dv = part(dqkv, H + K, K)});
  rotate(context, dqkv, batch, tokens, {0, positions}, ops::Direction::backward);
  if (qk_norm) {
    ops::head_norm_backward<T>(context, part(dqkv, 0, H), s.q_saved, layer.norm_q.gain, s.rstd_q,
                               layer.norm_q.dgain, partial);
    ops::head_norm_backward<T>(context, part(dqkv, H, K), s.k_saved, layer.norm_k.gain, s.rstd_k,
                               layer.norm_k.dgain, partial);
  }
  const Matrix<T> dnormed = s.normed_attention;
  multiply_backward(context, layer.qkv, dqkv, s.normed_attention, dnormed);
  links.sum(context, dnormed);
  ops::norm_backward<T>(context, {.kind = norm,
                                  .dy = dnormed,
                                  .x = s.input,
                                  .gain = layer.norm_attention.gain,
                                  .mean = s.mean1,
                                  .rstd = s.rstd1,
                                  .dx = dstream,
                                  .write = ops::Write::add,
                                  .dgain = layer.norm_attention.dgain,
                                  .dbias = layer.norm_attention.dbias,
                                  .partial = partial});
}

template struct Blocks<float>;
template struct Blocks<double>;
template struct Blocks<bf16>;

}  // namespace detail
}  // namespace tern::model
