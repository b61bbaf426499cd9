#include "block/attention.hpp"

#include <cmath>

#include "deck/choices.hpp"

namespace tern::model {

void declare_attention(const deck::Model& m, const std::string& at, Declaration& d) {
  const auto size = [](std::int64_t value) { return static_cast<std::size_t>(value); };
  const std::size_t D = size(m.hidden), E = size(m.head_dim);
  const std::size_t q = size(m.heads) * E, kv = size(m.kv_heads) * E;
  d.linear({{at + "q_proj", q, Placement::rows},
            {at + "k_proj", kv, Placement::kv_rows},
            {at + "v_proj", kv, Placement::kv_rows}},
           D, {0, m.init_std}, m.attention_bias);
  d.linear({{at + "o_proj", D, Placement::columns}}, q, initial_residual(m), m.attention_bias);
  if (!m.qk_norm) return;
  d.add({at + "q_norm/weight", {E}, {1, 0}, Placement::whole_of_heads});
  d.add({at + "k_norm/weight", {E}, {1, 0}, Placement::whole_of_heads});
}

std::vector<Divided> divided_of_attention(const deck::Model& m) {
  return {{"heads", m.heads}, {"kv_heads", m.kv_heads, true}};
}

Mask part_of(const Mask& mask, Range sequences) {
  const std::size_t tokens = mask.sequences.tokens;
  return {{sequences.count, tokens},
          mask.pattern.from(static_cast<int>(sequences.first)),
          rows_of(mask.positions, tokens * sequences)};
}

template <class T>
Attention<T>::Attention(const deck::Model& model, const ModelShard& share,
                        const BlockShared<T>& shared)
    : shared_(shared),
      size_(model, share),
      eps_(model.norm_eps),
      scale_(1 / std::sqrt(static_cast<double>(model.head_dim))),
      rope_base_(model.rope_base),
      rope_(deck::position_of(model) == deck::Position::rope),
      qk_norm_(model.qk_norm) {}

template <class T>
typename Attention<T>::Parameters Attention<T>::bind(const Binder<T>& binder,
                                                     linear::Precision<T>& precision,
                                                     const std::string& at) {
  return {
      precision.bind(binder.linear({at + "q_proj", at + "k_proj", at + "v_proj"}), at + "qkv_proj"),
      precision.bind(binder.summed(at + "o_proj"), at + "o_proj"), binder.gain(at + "q_norm"),
      binder.gain(at + "k_norm")};
}

// ---- memory ----

template <class T>
typename Attention<T>::Saved Attention<T>::request(Arena& arena, const std::string& label,
                                                   const Sequences& sequences,
                                                   bool training) const {
  const std::size_t N = sequences.rows(), H = size_.H, K = size_.K, E = size_.E;
  const auto matrix = [&](const char* name, std::size_t columns) {
    return arena.matrix<T>(label + name, Term::activations, N, columns);
  };
  Saved s;
  s.qkv = matrix("/qkv", size_.qkv);
  if (qk_norm_ && training) {
    s.placed = matrix("/placed", (H + K) * E);
    s.rstd_q = arena.vector<A>(label + "/rstd_q", Term::activations, N * H);
    s.rstd_k = arena.vector<A>(label + "/rstd_k", Term::activations, N * K);
  }
  s.result = matrix("/attention", H * E);
  s.scale = shared_.precision.request_scale(arena, label + "/attention");
  s.dqkv_scale = shared_.precision.request_scale(arena, label + "/qkv gradient");
  s.lse = arena.matrix<A>(label + "/lse", Term::activations, sequences.batch * H, sequences.tokens);
  return s;
}

template <class T>
typename Attention<T>::Saved Attention<T>::part(const Saved& whole, Range sequences,
                                                std::size_t tokens) const {
  const Range rows = tokens * sequences;
  Saved s = whole;
  for (Matrix<T>* m : {&s.qkv, &s.placed, &s.result}) *m = rows_of(*m, rows);
  s.rstd_q = rows_of(s.rstd_q, size_.H * rows);
  s.rstd_k = rows_of(s.rstd_k, size_.K * rows);
  const Matrix<A> lse = as_matrix(whole.lse.data(), sequences.end() * size_.H, tokens);
  s.lse = rows_of(lse, size_.H * sequences);
  return s;
}

template <class T>
void Attention<T>::carve_workspace(Carver<T>& carver, const Sequences& sequences, bool later) {
  dresult_ = carver.matrix(sequences.rows(), size_.H * size_.E);
  if (!later) dqkv_ = carver.matrix(sequences.rows(), size_.qkv);
}

template <class T>
void Attention<T>::request_workspace(Arena& arena, const Sequences& sequences) {
  delta_ = arena.matrix<A>("attention delta", Term::workspace, sequences.batch * size_.H,
                           sequences.tokens);
}

template <class T>
void Attention<T>::request_table(Arena& arena, std::size_t positions) {
  if (rope_) rotary_ = arena.matrix<A>("rotary table", Term::activations, positions, size_.E);
}

template <class T>
void Attention<T>::prepare(const ops::Context& context) const {
  if (rope_) ops::rotary_table<A>(context, rope_base_, rotary_);
}

// ---- forward ----

template <class T>
MapInput<T> Attention<T>::forward(const ops::Context& context, const Parameters& p, const Saved& s,
                                  const MapInput<T>& x, const Attend& attend, Range sequences,
                                  const ScoredRows<T>& subset) const {
  p.qkv->forward(context, x, s.qkv);
  const MapInput<T> input = output_input(p, s, subset, linear::Use::forward);
  attend(p, s, input, sequences);
  gather_output(context, s, subset);
  linear::round_whole<T>(context, input);
  return input;
}

template <class T>
MapInput<T> Attention<T>::output_input(const Parameters& p, const Saved& s,
                                       const ScoredRows<T>& subset, linear::Use use) const {
  return p.output->input(subset.wanted() ? of_subset(subset) : s.result, s.scale, use);
}

template <class T>
void Attention<T>::gather_output(const ops::Context& context, const Saved& s,
                                 const ScoredRows<T>& subset) const {
  if (subset.wanted()) ops::gather_rows<T>(context, subset.rows, s.result, of_subset(subset));
}

template <class T>
void Attention<T>::attend(const ops::Context& context, const Parameters& p, const Saved& s,
                          const Mask& mask) const {
  const std::size_t H = size_.H, K = size_.K;
  const auto part_of = [&](const Matrix<T>& fused, std::size_t first, std::size_t heads) {
    return part(fused, first, heads, mask.sequences);
  };
  place_heads(context, p, s, mask.sequences, {0, mask.positions});
  ops::attention_forward<T>(context, {.pattern = mask.pattern,
                                      .scale = scale_,
                                      .q = part_of(placed(s), 0, H),
                                      .k = part_of(placed(s), H, K),
                                      .v = part_of(s.qkv, H + K, K),
                                      .out = part_of(s.result, 0, H),
                                      .lse = s.lse});
}

template <class T>
void Attention<T>::place_heads(const ops::Context& context, const Parameters& p, const Saved& s,
                               const Sequences& sequences, const ops::Positions& at) const {
  if (!qk_norm_) return rotate(context, s.qkv, sequences, at);
  const auto norm = [&](std::size_t first, std::size_t heads, const Gain<T>& gain, Vector<A> rstd) {
    ops::head_norm_forward<T>(context, {.x = part(s.qkv, first, heads, sequences),
                                        .gain = gain.gain,
                                        .eps = eps_,
                                        .table = rotary_,
                                        .positions = at,
                                        .y = part(placed(s), first, heads, sequences),
                                        .rstd = rstd});
  };
  norm(0, size_.H, p.norm_q, s.rstd_q);
  norm(size_.H, size_.K, p.norm_k, s.rstd_k);
}

template <class T>
void Attention<T>::rotate(const ops::Context& context, Matrix<T> qkv, const Sequences& sequences,
                          const ops::Positions& at) const {
  if (rope_)
    ops::rotary<T>(context, part(qkv, 0, size_.H + size_.K, sequences), rotary_, at,
                   ops::Direction::forward);
}

// ---- backward ----

template <class T>
Stream<T> Attention<T>::backward(const ops::Context& context, const Parameters& p, const Saved& s,
                                 const MapInput<T>& x, const Mask& mask,
                                 const BranchGradient<T>& dbranch, Matrix<T> dqkv, Matrix<T> dx,
                                 WeightGradients<T>& weights, const ScoredRows<T>& subset) const {
  const MapInput<T> result = output_input(p, s, subset, linear::Use::weight_gradient);
  gather_output(context, s, subset);
  linear::round_again<T>(context, result);
  weights.add(context, p.output, dbranch, result);
  if (dbranch.in_workspace() || subset.wanted()) weights.run(context);  // which serves again
  result_gradient(context, p, dbranch.dy, subset);
  const MapGradient<T> gradient = qkv_gradient(context, p, s, mask, dqkv);
  weights.add(context, p.qkv, gradient, x);
  return shared_.input_gradient(context, p.qkv, gradient, dx, weights);
}

template <class T>
void Attention<T>::result_gradient(const ops::Context& context, const Parameters& p,
                                   const MapGradient<T>& dbranch,
                                   const ScoredRows<T>& subset) const {
  if (!subset.wanted()) return p.output->input_gradient(context, dbranch, dresult_);
  const Matrix<T> some = of_subset(subset);
  p.output->input_gradient(context, dbranch, some);
  ops::scatter_rows<T>(context, subset.rows, narrow_rows(some, subset.rows.extent(0)), dresult_);
}

template <class T>
MapGradient<T> Attention<T>::qkv_gradient(const ops::Context& context, const Parameters& p,
                                          const Saved& s, const Mask& mask, Matrix<T> dqkv) const {
  const std::size_t H = size_.H, K = size_.K;
  const auto part_of = [&](const Matrix<T>& fused, std::size_t first, std::size_t heads) {
    return part(fused, first, heads, mask.sequences);
  };
  const MapGradient<T> gradient = p.qkv->gradient(dqkv, s.dqkv_scale);
  ops::HeadRotation<A> rotation;  // norms' backward does it itself
  if (rope_ && !qk_norm_) rotation = {rotary_, {0, mask.positions}};
  linear::attention_backward<T>(context,
                                {.pattern = mask.pattern,
                                 .scale = scale_,
                                 .q = part_of(placed(s), 0, H),
                                 .k = part_of(placed(s), H, K),
                                 .v = part_of(s.qkv, H + K, K),
                                 .out = part_of(s.result, 0, H),
                                 .dout = part_of(dresult_, 0, H),
                                 .lse = s.lse,
                                 .delta = delta_,
                                 .dq = part_of(dqkv, 0, H),
                                 .dk = part_of(dqkv, H, K),
                                 .dv = part_of(dqkv, H + K, K)},
                                rotation, H + K, gradient);
  if (qk_norm_) head_norms_backward(context, p, s, mask, dqkv);
  if (!rotation.wanted()) linear::round<T>(context, gradient);
  return gradient;
}

template <class T>
void Attention<T>::head_norms_backward(const ops::Context& context, const Parameters& p,
                                       const Saved& s, const Mask& mask, Matrix<T> dqkv) const {
  const auto norm = [&](std::size_t first, std::size_t heads, const Gain<T>& gain, Vector<A> rstd) {
    ops::head_norm_backward<T>(context, {.dx = part(dqkv, first, heads, mask.sequences),
                                         .x = part(s.qkv, first, heads, mask.sequences),
                                         .gain = gain.gain,
                                         .rstd = rstd,
                                         .table = rotary_,
                                         .positions = {0, mask.positions},
                                         .dgain = gain.dgain,
                                         .partial = shared_.partial});
  };
  norm(0, size_.H, p.norm_q, s.rstd_q);
  norm(size_.H, size_.K, p.norm_k, s.rstd_k);
}

template class Attention<float>;
template class Attention<double>;
template class Attention<bf16>;
template class Attention<fp16>;

}  // namespace tern::model
