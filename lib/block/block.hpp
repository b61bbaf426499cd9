/// A pre-norm block of the transformer: x += attention(norm(x)); x += feed_forward(norm(x)), where
/// the feed-forward half is an MLP or a mixture of experts. Dropout is GPT-2's residual dropout: on
/// each branch before it is added.
///
/// One Block serves all layers: it holds settings and workspace; parameters and saved activations
/// are passed in.
#pragma once
#include "block/attention.hpp"
#include "block/experts.hpp"
#include "block/mlp.hpp"
#include "block/norm.hpp"

namespace tern::model {

/// "model/layers/LAYER/".
std::string block_name(std::int64_t layer);
/// `at`: block_name().
void declare_block(const deck::Model& model, const std::string& at, Declaration& d);
std::vector<Divided> divided_of_block(const deck::Model& model);

/// Dropout keys of the two branches, and of the block before's last one; that one's probability is
/// 0 if no block is before.
struct BlockDropout {
  ops::DropoutKey attention, feed_forward, before;
};

template <class T>
class Block {
  using A = Accumulate<T>;

 public:
  using Attend = typename Attention<T>::Attend;

  struct Parameters {
    Gain<T> norm_attention, norm_feed_forward;
    typename Attention<T>::Parameters attention;
    typename Mlp<T>::Parameters mlp;  // one of the two, the other is empty
    typename Experts<T>::Parameters experts;
  };
  /// Kept by forward for backward; views of the arena. With recompute = 'block' all layers share
  /// one Saved and keep only their `input`. In evaluation all share one, `input` and `middle` are
  /// the same view, and so are the two normed ones. Backward overwrites what it no longer needs
  /// with gradients, so each forward serves one backward.
  struct Saved {
    Matrix<T> input;                                    // (N, D) residual stream entering the block
    Matrix<T> normed_attention;                         // (N, D)
    Matrix<T> middle;                                   // (N, D) residual stream between the halves
    Matrix<T> normed_feed_forward;                      // (N, D)
    linear::Scale scale_attention, scale_feed_forward;  // of the normed ones
    typename Norm<T>::Saved norm_attention, norm_feed_forward;
    typename Attention<T>::Saved attention;
    typename Mlp<T>::Saved mlp;  // one of the two, the other is empty
    typename Experts<T>::Saved experts;
  };

  Block(const deck::Model& model, const ModelShard& share, const BlockShared<T>& shared);
  Parameters bind(const Binder<T>&, linear::Precision<T>&, const std::string& at) const;
  /// Everything except `input` and, in evaluation, `middle`.
  Saved request(Arena& arena, const std::string& label, const Sequences&, bool training) const;
  /// The same buffers for fewer rows.
  Saved narrow(const Saved& whole, const Sequences&) const;
  /// Workspace shared by the `places` places of a pass. `later`: gradients of weights run later.
  void request_workspace(Arena& arena, const Sequences&, std::size_t places, bool training,
                         bool later);
  /// Linear maps whose precision is chosen: all but experts and their router.
  static std::vector<Map<T>> maps_of(const Parameters& p);

  /// From the stream, whose rows are `input` of Saved, to `output`, of all rows or a subset; if that
  /// is empty, only as far as backward needs. Sums of the result may be pending for the next norm.
  Stream<T> forward(const ops::Context&, const Parameters&, const Saved&, const Attend&,
                    const BlockDropout&, Stream<T> stream, Matrix<T> output, const Sequences&,
                    const ScoredRows<T>& subset = {}) const;
  /// dstream: in, gradient of the block's output, unless a subset's stream is; out, of its input. If
  /// gradients of weights run later, it moves from the rows of the output to those of the input.
  /// balanced: see Experts::backward.
  void backward(const ops::Context&, const Parameters&, const Saved&, const Mask&,
                const BlockDropout&, Vector<const A> balanced, StreamGradient<T>& dstream,
                WeightGradients<T>&, const ScoredRows<T>& subset = {}) const;

  bool has_experts() const { return shared_.model.experts > 0; }
  Attention<T> attention;
  Experts<T> experts;

 private:
  /// Of the feed-forward half.
  MapInput<T> feed_forward_input(const Parameters&, const Saved&, Range rows) const;
  /// The same buffers, those of the feed-forward half for the rows of a subset.
  Saved with_rows(const Saved& whole, const ScoredRows<T>&) const;
  /// Adds the branch of x, rows of a piece of the second half, to the stream.
  void feed_forward(const ops::Context&, const Parameters&, const Saved&, const MapInput<T>& x,
                    Stream<T>& to, const Piece&, const ops::DropoutKey&) const;
  /// Norm::forward of a piece of x, rows of the stream.
  void norm_forward(const ops::Context&, const Gain<T>&, const typename Norm<T>::Saved&,
                    Stream<T>& stream, const Piece&, Matrix<const T> x, const MapInput<T>& y) const;
  /// Norm::backward of dy, added to the gradient of the stream; `later`: that is left in x.
  void norm_backward(const ops::Context&, const Gain<T>&, const typename Norm<T>::Saved&,
                     Matrix<T> x, Stream<T> dy, StreamGradient<T>& dstream,
                     const ops::DropoutKey& next, bool later) const;

  const BlockShared<T>& shared_;
  Norm<T> norm_;
  Mlp<T> mlp_;
  Matrix<T> dnormed_;  // (N, D), if gradients of weights run later
};

}  // namespace tern::model
