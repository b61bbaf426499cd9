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

  Block(const deck::Model& model, const Share& share, const Common<T>& common);
  Parameters bind(const Binder<T>&, linear::Precision<T>&, const std::string& at) const;
  /// Everything except `input` and, in evaluation, `middle`.
  Saved request(Arena& arena, const std::string& label, const Sequences&, bool training) const;
  /// The same buffers for fewer rows.
  Saved narrow(const Saved& whole, const Sequences&) const;
  /// Workspace shared by the `places` places of a pass.
  void request_workspace(Arena& arena, const Sequences&, std::size_t places, bool training);
  void request_workspace_of_halves(Arena& arena, const Sequences&);  // of backward_inputs()
  /// Linear maps whose precision is chosen: all but experts and their router.
  static std::vector<Map<T>> maps_of(const Parameters& p);

  /// From `input` of Saved to `output`, of all rows or a subset; if that is empty, only as far as
  /// backward needs. With several tensor ranks, open Common::sums make the input at first, and the
  /// output at the end.
  void forward(const ops::Context&, const Parameters&, const Saved&, const Attend&,
               const BlockDropout&, Matrix<T> output, const Sequences&,
               const Subset<T>& subset = {}) const;
  /// dstream (N, D): in, gradient of the block's output, unless a subset's stream is; out, of its
  /// input. `known`: a norm's backward wrote it last, so Common::dstream has its magnitude.
  /// balanced: see Experts::backward.
  void backward(const ops::Context&, const Parameters&, const Saved&, const Mask&,
                const BlockDropout&, Vector<const A> balanced, Matrix<T> dstream, bool known,
                const Subset<T>& subset = {}) const;
  /// What backward_inputs() leaves for backward_weights(): the gradient of the block's output (N, D)
  /// and, as a place for it, that of the projection to q, k and v.
  struct Gradients {
    Matrix<T> stream, qkv;
  };
  // The two halves of backward(), on one tensor rank, without fp8 and experts: the gradients of
  // weights may wait until those of the inputs of all blocks are known ("Zero Bubble Pipeline
  // Parallelism", Qi et al., arXiv 2401.10241, section 2). After the first half `input` of Saved
  // holds the gradient of the block's input, and attention.qkv is free for that of the block before.
  void backward_inputs(const ops::Context&, const Parameters&, const Saved&, const Mask&,
                       const BlockDropout&, const Gradients&) const;
  void backward_weights(const ops::Context&, const Parameters&, const Saved&, const BlockDropout&,
                        const Gradients&) const;

  bool has_experts() const { return has_experts_; }
  Attention<T> attention;
  Experts<T> experts;

 private:
  /// Inputs of the two halves.
  struct Inputs {
    MapInput<T> attention, feed_forward;
  };
  Inputs normed(const Parameters&, const Saved&) const;
  /// The same buffers, those of the feed-forward half for the rows of a subset.
  Saved with_rows(const Saved& whole, const Subset<T>&) const;
  // forward() in pieces, so that the sums over tensor ranks of one overlap with the other.
  void forward_in_pieces(const ops::Context&, const Parameters&, const Saved&, const Attend&,
                         const Residual<T>& of_attention, const Residual<T>& of_mlp,
                         const Sequences&) const;
  MapInput<T> attended(const ops::Context&, const Parameters&, const Saved&, const Attend&,
                       Range sequences, std::size_t tokens, std::size_t slot) const;
  /// Norm::forward of x, which an open one of Common::sums may make.
  void norm_forward(const ops::Context&, const Gain<T>&, const typename Norm<T>::Saved&,
                    Matrix<const T> x, const MapInput<T>& y) const;
  /// Norm::backward of dy, which open Common::sums make, added to dstream.
  void norm_backward(const ops::Context&, const Gain<T>&, const typename Norm<T>::Saved&,
                     Matrix<const T> x, Matrix<const T> dy, Matrix<T> dstream,
                     const ops::DropoutKey& next) const;

  const Common<T>& common_;
  bool has_experts_;
  std::size_t D_;
  Norm<T> norm_;
  Mlp<T> mlp_;
  Matrix<T> dactivated_, dnormed_;  // (N, F), (N, D)
};

}  // namespace tern::model
