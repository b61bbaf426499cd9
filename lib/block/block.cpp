#include "block/block.hpp"

#include <fmt/format.h>

namespace tern::model {

std::string block_name(std::int64_t layer) { return fmt::format("model/layers/{}/", layer); }

void declare_block(const deck::Model& m, const std::string& at, Declaration& d) {
  declare_norm(m, at + "input_layernorm", d);
  declare_attention(m, at + "self_attn/", d);
  declare_norm(m, at + "post_attention_layernorm", d);
  if (m.experts > 0)
    declare_experts(m, at + "mlp/", d);
  else
    declare_mlp(m, at + "mlp/", d);
}

std::vector<Divided> divided_of_block(const deck::Model& m) {
  std::vector<Divided> all = divided_of_attention(m);
  for (const Divided& one : m.experts > 0 ? divided_of_experts(m) : divided_of_mlp(m))
    all.push_back(one);
  return all;
}

template <class T>
Block<T>::Block(const deck::Model& model, const Share& share, const Common<T>& common)
    : attention(model, share, common),
      experts(model, share, common),
      common_(common),
      has_experts_(model.experts > 0),
      D_(static_cast<std::size_t>(model.hidden)),
      norm_(model, common),
      mlp_(model, share, common) {}

template <class T>
typename Block<T>::Parameters Block<T>::bind(const Binder<T>& binder,
                                             linear::Precision<T>& precision,
                                             const std::string& at) const {
  Parameters p;
  p.norm_attention = binder.gain(at + "input_layernorm");
  p.attention = attention.bind(binder, precision, at + "self_attn/");
  p.norm_feed_forward = binder.gain(at + "post_attention_layernorm");
  if (has_experts_)
    p.experts = experts.bind(binder, at + "mlp/");
  else
    p.mlp = mlp_.bind(binder, precision, at + "mlp/");
  return p;
}

// ---- memory ----

template <class T>
typename Block<T>::Saved Block<T>::request(Arena& arena, const std::string& label,
                                           const Sequences& sequences, bool training) const {
  const std::size_t N = sequences.rows(), D = D_;
  const auto stream = [&](const char* name) {
    return arena.matrix<T>(label + name, Term::activations, N, D);
  };
  Saved s;
  s.normed_attention = stream("/normed_attention");
  s.norm_attention = norm_.request(arena, label + "/norm_attention", N);
  s.scale_attention = common_.precision.request_scale(arena, label + "/normed_attention");
  s.scale_feed_forward = common_.precision.request_scale(arena, label + "/normed_ffn");
  s.attention = attention.request(arena, label, sequences, training);
  if (training) s.middle = stream("/middle");
  s.normed_feed_forward = training ? stream("/normed_ffn") : s.normed_attention;
  s.norm_feed_forward = training ? norm_.request(arena, label + "/norm_ffn", N) : s.norm_attention;
  if (has_experts_)
    s.experts = experts.request(arena, label, N);
  else
    s.mlp = mlp_.request(arena, label, N);
  return s;
}

template <class T>
typename Block<T>::Saved Block<T>::narrow(const Saved& whole, const Sequences& sequences) const {
  const std::size_t N = sequences.rows();
  Saved s = whole;
  for (Matrix<T>* m : {&s.input, &s.normed_attention, &s.middle, &s.normed_feed_forward})
    *m = narrow_rows(*m, N);
  s.norm_attention = norm_.part(whole.norm_attention, {0, N});
  s.norm_feed_forward = norm_.part(whole.norm_feed_forward, {0, N});
  s.attention = attention.part(whole.attention, {0, sequences.batch}, sequences.tokens);
  if (has_experts_)
    s.experts = experts.narrow(whole.experts, N);
  else
    s.mlp = mlp_.part(whole.mlp, {0, N});
  return s;
}

template <class T>
typename Block<T>::Saved Block<T>::with_rows(const Saved& whole, const Subset<T>& subset) const {
  if (!subset.wanted()) return whole;
  const Range rows{0, subset.padded()};
  Saved s = whole;
  for (Matrix<T>* m : {&s.middle, &s.normed_feed_forward}) *m = tern::rows_of(*m, rows);
  s.norm_feed_forward = norm_.part(whole.norm_feed_forward, rows);
  s.mlp = mlp_.part(whole.mlp, rows);
  return s;
}

template <class T>
void Block<T>::request_workspace(Arena& arena, const Sequences& sequences, std::size_t places,
                                 bool training) {
  if (has_experts_) experts.request_workspace(arena, sequences.rows(), places, training);
  if (training) attention.request_workspace(arena, sequences);
}

template <class T>
void Block<T>::request_workspace_of_halves(Arena& arena, const Sequences& sequences) {
  const auto matrix = [&](const char* name, std::size_t columns) {
    return arena.matrix<T>(name, Term::workspace, sequences.rows(), columns);
  };
  dactivated_ = matrix("activation gradient", mlp_.width());
  dnormed_ = matrix("norm gradient", D_);
}

// ---- forward and backward ----

template <class T>
typename Block<T>::Inputs Block<T>::normed(const Parameters& p, const Saved& s) const {
  return {p.attention.qkv->saved_input(s.normed_attention, s.scale_attention),
          has_experts_ ? MapInput<T>{s.normed_feed_forward}
                       : p.mlp.up->saved_input(s.normed_feed_forward, s.scale_feed_forward)};
}

template <class T>
std::vector<Map<T>> Block<T>::maps_of(const Parameters& p) {
  std::vector<Map<T>> all{p.attention.qkv, p.attention.output};
  if (p.mlp.up) all.insert(all.end(), {p.mlp.up, p.mlp.down});
  return all;
}

template <class T>
void Block<T>::forward(const ops::Context& context, const Parameters& p, const Saved& saved,
                       const Attend& attend, const BlockDropout& dropout, Matrix<T> output,
                       const Sequences& sequences, const Subset<T>& subset) const {
  const Saved s = with_rows(saved, subset);
  const Residual<T> first{subset.wanted() ? s.middle : s.input, s.middle, dropout.attention};
  const Residual<T> second{s.middle, output, dropout.feed_forward};
  const bool whole =
      common_.precision.whole_operands() || has_experts_ || dropout.attention.probability > 0;
  if (common_.links.share().tensors > 1 && !whole && !subset.wanted() && output.extent(0) > 0)
    return forward_in_pieces(context, p, s, attend, first, second, sequences);
  if (common_.links.share().tensors > 1) common_.sums.end(context);
  const auto [x, middle] = normed(p, s);
  norm_forward(context, p.norm_attention, s.norm_attention, s.input, x);
  const MapInput<T> attended =
      attention.forward(context, p.attention, s.attention, x, attend, {0, sequences.batch}, subset);
  if (subset.wanted()) ops::gather_rows<T>(context, subset.rows, s.input, s.middle);
  first.add_map(context, common_, p.attention.output, attended);
  norm_forward(context, p.norm_feed_forward, s.norm_feed_forward, s.middle, middle);
  if (has_experts_) return experts.forward(context, p.experts, s.experts, middle.values, second);
  second.add_map(context, common_, p.mlp.down, mlp_.forward(context, p.mlp, s.mlp, middle));
}

template <class T>
MapInput<T> Block<T>::attended(const ops::Context& context, const Parameters& p, const Saved& s,
                               const Attend& attend, Range sequences, std::size_t tokens,
                               std::size_t slot) const {
  const Range rows = tokens * sequences;
  const MapInput<T> normed =
      p.attention.qkv->saved_input(tern::rows_of(s.normed_attention, rows), s.scale_attention);
  common_.sums.end(context, slot, [&](const ops::PendingSum<T>& input) {
    norm_.forward(context, p.norm_attention, norm_.part(s.norm_attention, rows),
                  tern::rows_of(s.input, rows), normed, input);
  });
  return attention.forward(context, p.attention, attention.part(s.attention, sequences, tokens),
                           normed, attend, sequences);
}

template <class T>
void Block<T>::forward_in_pieces(const ops::Context& context, const Parameters& p, const Saved& s,
                                 const Attend& attend, const Residual<T>& of_attention,
                                 const Residual<T>& of_mlp, const Sequences& sequences) const {
  const detail::OverlappedSums<T>& sums = common_.sums;
  const std::size_t tokens = sequences.tokens;
  const bool single = sequences.batch == 1;  // and attends as a whole
  const auto pieces = single ? sums.pieces(tokens) : sums.pieces(sequences.rows(), tokens);
  MapInput<T> whole;
  if (single) {
    sums.end(context);
    whole = attended(context, p, s, attend, {0, 1}, tokens, 0);
  }
  for (const auto& piece : pieces) {
    const Range some{piece.rows.first / tokens, piece.rows.count / tokens};
    const MapInput<T> x = single ? linear::rows_of<T>(whole, piece.rows)
                                 : attended(context, p, s, attend, some, tokens, piece.slot);
    of_attention.begin(context, common_, p.attention.output, x, piece);
  }
  for (const auto& piece : pieces) {
    const Range rows = piece.rows;
    const MapInput<T> normed =
        p.mlp.up->saved_input(tern::rows_of(s.normed_feed_forward, rows), s.scale_feed_forward);
    sums.end(context, piece.slot, [&](const ops::PendingSum<T>& middle) {
      norm_.forward(context, p.norm_feed_forward, norm_.part(s.norm_feed_forward, rows),
                    tern::rows_of(s.middle, rows), normed, middle);
    });
    const MapInput<T> activated = mlp_.forward(context, p.mlp, mlp_.part(s.mlp, rows), normed);
    of_mlp.begin(context, common_, p.mlp.down, activated, piece);
  }
}

template <class T>
void Block<T>::backward(const ops::Context& context, const Parameters& p, const Saved& saved,
                        const Mask& mask, const BlockDropout& dropout, Vector<const A> balanced,
                        Matrix<T> dstream, bool known, const Subset<T>& subset) const {
  // Gradients overwrite activations that are no longer needed.
  const Saved s = with_rows(saved, subset);
  const Matrix<T> doutput = subset.wanted() ? subset.stream : dstream;
  const auto [x, middle] = normed(p, s);
  const MapGradient<T> dmlp =
      branch_gradient<T>(context, common_, p.mlp.down, doutput, known, dropout.feed_forward);
  const Matrix<T> dmiddle =
      has_experts_ ? s.normed_feed_forward : common_.gradient_buffer(s.normed_feed_forward);
  if (has_experts_)
    experts.backward(context, p.experts, s.experts, middle.values, dmlp.values, balanced, dmiddle);
  else
    mlp_.backward(context, p.mlp, s.mlp, middle, dmlp, dmiddle);
  norm_backward(context, p.norm_feed_forward, s.norm_feed_forward, s.middle, dmiddle, doutput,
                dropout.attention);
  const MapGradient<T> dattention =
      branch_gradient<T>(context, common_, p.attention.output, doutput, true, dropout.attention);
  const Matrix<T> dx = common_.gradient_buffer(s.normed_attention);
  attention.backward(context, p.attention, s.attention, x, mask, dattention, dx, subset);
  if (subset.wanted())
    ops::scatter_rows<T>(context, subset.rows, narrow_rows(doutput, subset.rows.extent(0)),
                         dstream);
  norm_backward(context, p.norm_attention, s.norm_attention, s.input, dx, dstream, dropout.before);
}

template <class T>
void Block<T>::backward_inputs(const ops::Context& context, const Parameters& p, const Saved& s,
                               const Mask& mask, const BlockDropout& dropout,
                               const Gradients& g) const {
  const MapGradient<T> dmlp =
      branch_gradient<T>(context, common_, p.mlp.down, g.stream, false, dropout.feed_forward);
  mlp_.backward_inputs(context, p.mlp, s.mlp, dmlp, dactivated_, dnormed_);
  norm_.backward(context, p.norm_feed_forward, s.norm_feed_forward, s.middle, dnormed_, g.stream,
                 s.middle);
  const MapGradient<T> dattention =
      branch_gradient<T>(context, common_, p.attention.output, s.middle, false, dropout.attention);
  attention.backward_inputs(context, p.attention, s.attention, mask, dattention, g.qkv, dnormed_);
  norm_.backward(context, p.norm_attention, s.norm_attention, s.input, dnormed_, s.middle, s.input);
}

template <class T>
void Block<T>::backward_weights(const ops::Context& context, const Parameters& p, const Saved& s,
                                const BlockDropout& dropout, const Gradients& g) const {
  const auto [x, middle] = normed(p, s);
  const MapGradient<T> dmlp =
      branch_gradient<T>(context, common_, p.mlp.down, g.stream, false, dropout.feed_forward);
  mlp_.backward_weights(context, p.mlp, s.mlp, middle, dmlp);
  const MapGradient<T> dattention =
      branch_gradient<T>(context, common_, p.attention.output, s.middle, false, dropout.attention);
  attention.backward_weights(context, p.attention, s.attention, x, dattention, g.qkv);
}

template <class T>
void Block<T>::norm_forward(const ops::Context& context, const Gain<T>& gain,
                            const typename Norm<T>::Saved& saved, Matrix<const T> x,
                            const MapInput<T>& y) const {
  common_.sums.end(context, 0, [&](const ops::PendingSum<T>& made) {
    norm_.forward(context, gain, saved, x, y, made);
  });
}

template <class T>
void Block<T>::norm_backward(const ops::Context& context, const Gain<T>& gain,
                             const typename Norm<T>::Saved& saved, Matrix<const T> x,
                             Matrix<const T> dy, Matrix<T> dstream,
                             const ops::DropoutKey& next) const {
  // Where operands have one scale, the magnitude of all rows of dstream is found.
  const bool whole = common_.precision.whole_operands();
  if (whole) common_.sums.end(context);
  const std::size_t N = x.extent(0);
  using Pieces = std::vector<typename Residual<T>::Piece>;
  for (const auto& [rows, slot] : whole ? Pieces{{{0, N}, 0}} : common_.sums.pieces(N))
    common_.sums.end(context, slot, [&, rows = rows](const ops::PendingSum<T>& sum) {
      const Matrix<T> stream = tern::rows_of(dstream, rows);
      norm_.backward(context, gain, norm_.part(saved, rows), tern::rows_of(x, rows),
                     sum.wanted() ? sum.b : tern::rows_of(dy, rows), stream, stream, next, sum.c);
    });
}

template class Block<float>;
template class Block<double>;
template class Block<bf16>;
template class Block<fp16>;

}  // namespace tern::model
