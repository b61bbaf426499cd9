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
Block<T>::Block(const deck::Model& model, const ModelShard& share, const BlockShared<T>& shared)
    : attention(model, share, shared),
      experts(model, share, shared),
      shared_(shared),
      norm_(model, shared),
      mlp_(model, share, shared) {}

template <class T>
typename Block<T>::Parameters Block<T>::bind(const Binder<T>& binder,
                                             linear::Precision<T>& precision,
                                             const std::string& at) const {
  Parameters p;
  p.norm_attention = binder.gain(at + "input_layernorm");
  p.attention = attention.bind(binder, precision, at + "self_attn/");
  p.norm_feed_forward = binder.gain(at + "post_attention_layernorm");
  if (has_experts())
    p.experts = experts.bind(binder, at + "mlp/");
  else
    p.mlp = mlp_.bind(binder, precision, at + "mlp/");
  return p;
}

// ---- memory ----

template <class T>
typename Block<T>::Saved Block<T>::request(Arena& arena, const std::string& label,
                                           const Sequences& sequences, bool training) const {
  const std::size_t N = sequences.rows(), D = static_cast<std::size_t>(shared_.model.hidden);
  const auto stream = [&](const char* name) {
    return arena.matrix<T>(label + name, Term::activations, N, D);
  };
  Saved s;
  s.normed_attention = stream("/normed_attention");
  s.norm_attention = norm_.request(arena, label + "/norm_attention", N);
  s.scale_attention = shared_.precision.request_scale(arena, label + "/normed_attention");
  s.scale_feed_forward = shared_.precision.request_scale(arena, label + "/normed_ffn");
  s.attention = attention.request(arena, label, sequences, training);
  if (training) s.middle = stream("/middle");
  s.normed_feed_forward = training ? stream("/normed_ffn") : s.normed_attention;
  s.norm_feed_forward = training ? norm_.request(arena, label + "/norm_ffn", N) : s.norm_attention;
  if (has_experts())
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
  if (has_experts())
    s.experts = experts.narrow(whole.experts, N);
  else
    s.mlp = mlp_.part(whole.mlp, {0, N});
  return s;
}

template <class T>
typename Block<T>::Saved Block<T>::with_rows(const Saved& whole,
                                             const ScoredRows<T>& subset) const {
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
                                 bool training, bool later) {
  const std::size_t N = sequences.rows(), D = static_cast<std::size_t>(shared_.model.hidden);
  if (has_experts()) experts.request_workspace(arena, N, places, training);
  if (training) attention.request_workspace(arena, sequences);
  if (!later) return;
  mlp_.request_workspace(arena, N);
  dnormed_ = arena.matrix<T>("norm gradient", Term::workspace, N, D);
}

// ---- forward and backward ----

template <class T>
std::vector<Map<T>> Block<T>::maps_of(const Parameters& p) {
  std::vector<Map<T>> all{p.attention.qkv, p.attention.output};
  if (p.mlp.up) all.insert(all.end(), {p.mlp.up, p.mlp.down});
  return all;
}

template <class T>
Stream<T> Block<T>::forward(const ops::Context& context, const Parameters& p, const Saved& saved,
                            const Attend& attend, const BlockDropout& dropout, Stream<T> stream,
                            Matrix<T> output, const Sequences& of,
                            const ScoredRows<T>& subset) const {
  const Saved s = with_rows(saved, subset);
  const bool overlapped = output.extent(0) > 0 && shared_.overlaps(dropout.attention, subset);
  const auto pieces = shared_.pieces(of, overlapped, s.middle.extent(0));
  Stream<T> middle(shared_.sums, s.middle), result(shared_.sums, output);
  for (const Piece& piece : pieces.attention) {
    const Range rows = piece.rows, sequences{rows.first / of.tokens, rows.count / of.tokens};
    const MapInput<T> x =
        p.attention.qkv->saved_input(tern::rows_of(s.normed_attention, rows), s.scale_attention);
    norm_forward(context, p.norm_attention, s.norm_attention, stream, piece, s.input, x);
    const MapInput<T> attended =
        attention.forward(context, p.attention, attention.part(s.attention, sequences, of.tokens),
                          x, attend, sequences, subset);
    if (subset.wanted()) ops::gather_rows<T>(context, subset.rows, s.input, s.middle);
    const Piece branch = subset.wanted() ? Piece{{0, subset.padded()}} : piece;
    shared_.add_map(context, middle, branch, subset.wanted() ? s.middle : s.input,
                    p.attention.output, attended, dropout.attention);
  }
  shared_.settle(context, middle, overlapped);
  for (const Piece& piece : pieces.feed_forward) {
    const MapInput<T> x = feed_forward_input(p, s, piece.rows);
    norm_forward(context, p.norm_feed_forward, s.norm_feed_forward, middle, piece, s.middle, x);
    feed_forward(context, p, s, x, result, piece, dropout.feed_forward);
  }
  shared_.settle(context, result, overlapped);
  return result;
}

template <class T>
void Block<T>::backward(const ops::Context& context, const Parameters& p, const Saved& saved,
                        const Mask& mask, const BlockDropout& dropout, Vector<const A> balanced,
                        StreamGradient<T>& dstream, WeightGradients<T>& weights,
                        const ScoredRows<T>& subset) const {
  // Gradients overwrite activations that are no longer needed.
  const Saved s = with_rows(saved, subset);
  const bool later = weights.later();
  const auto gradient_of = [&](Matrix<T> x) { return later ? dnormed_ : shared_.dx_target(x); };
  const Matrix<T> all = dstream.rows;
  if (subset.wanted()) dstream.rows = subset.stream;
  const BranchGradient<T> dmlp =
      shared_.branch_gradient(context, p.mlp.down, dstream, dropout.feed_forward);
  const MapInput<T> middle = feed_forward_input(p, s, {0, s.middle.extent(0)});
  Stream<T> dmiddle = has_experts()
                          ? experts.backward(context, p.experts, s.experts, middle.values,
                                             dmlp.dy.values, balanced, s.normed_feed_forward)
                          : mlp_.backward(context, p.mlp, s.mlp, middle, dmlp,
                                          gradient_of(s.normed_feed_forward), weights);
  norm_backward(context, p.norm_feed_forward, s.norm_feed_forward, s.middle, std::move(dmiddle),
                dstream, dropout.attention, later);
  const BranchGradient<T> dattention =
      shared_.branch_gradient(context, p.attention.output, dstream, dropout.attention);
  const MapInput<T> x = p.attention.qkv->saved_input(s.normed_attention, s.scale_attention);
  const Matrix<T> dqkv = later ? std::exchange(dstream.dqkv, s.attention.qkv) : attention.dqkv();
  Stream<T> dx = attention.backward(context, p.attention, s.attention, x, mask, dattention, dqkv,
                                    gradient_of(s.normed_attention), weights, subset);
  if (subset.wanted()) {
    ops::scatter_rows<T>(context, subset.rows, narrow_rows(dstream.rows, subset.rows.extent(0)),
                         all);
    dstream.rows = all;
  }
  norm_backward(context, p.norm_attention, s.norm_attention, s.input, std::move(dx), dstream,
                dropout.before, later);
}

template <class T>
MapInput<T> Block<T>::feed_forward_input(const Parameters& p, const Saved& s, Range rows) const {
  const Matrix<T> normed = tern::rows_of(s.normed_feed_forward, rows);
  return has_experts() ? MapInput<T>{normed} : p.mlp.up->saved_input(normed, s.scale_feed_forward);
}

template <class T>
void Block<T>::feed_forward(const ops::Context& context, const Parameters& p, const Saved& s,
                            const MapInput<T>& x, Stream<T>& to, const Piece& piece,
                            const ops::DropoutKey& dropout) const {
  if (has_experts()) {
    experts.forward(context, p.experts, s.experts, x.values);
    return experts.add(context, p.experts, s.experts, to, s.middle, dropout);
  }
  const MapInput<T> activated = mlp_.forward(context, p.mlp, mlp_.part(s.mlp, piece.rows), x);
  shared_.add_map(context, to, piece, s.middle, p.mlp.down, activated, dropout);
}

template <class T>
void Block<T>::norm_forward(const ops::Context& context, const Gain<T>& gain,
                            const typename Norm<T>::Saved& saved, Stream<T>& stream,
                            const Piece& piece, Matrix<const T> x, const MapInput<T>& y) const {
  stream.read(context, piece, [&](const ops::PendingSum<T>& made) {
    norm_.forward(context, gain, norm_.part(saved, piece.rows), tern::rows_of(x, piece.rows), y,
                  made);
  });
}

template <class T>
void Block<T>::norm_backward(const ops::Context& context, const Gain<T>& gain,
                             const typename Norm<T>::Saved& saved, Matrix<T> x, Stream<T> dy,
                             StreamGradient<T>& dstream, const ops::DropoutKey& next,
                             bool later) const {
  const Matrix<T> to = later ? x : dstream.rows;
  for (const Piece& piece : shared_.norm_pieces(x.extent(0)))
    dy.read(context, piece, [&, rows = piece.rows](const ops::PendingSum<T>& sum) {
      norm_.backward(context, gain, norm_.part(saved, rows), tern::rows_of(x, rows),
                     sum.wanted() ? sum.b : tern::rows_of(dy.rows(), rows),
                     tern::rows_of(dstream.rows, rows), tern::rows_of(to, rows), next, sum.c);
    });
  dstream.rows = to;
  dstream.by_norm = true;
}

template class Block<float>;
template class Block<double>;
template class Block<bf16>;
template class Block<fp16>;

}  // namespace tern::model
