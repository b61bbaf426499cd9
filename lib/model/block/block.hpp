/// A pre-norm block of the transformer: x += attention(norm(x)); x += feed_forward(norm(x)), where
/// the feed-forward half is an MLP or a mixture of experts. Dropout stands where GPT-2 has residual
/// dropout: on each branch before it is added.
///
/// One Block serves all layers: it holds settings and workspace; a layer's parameters and what a
/// place keeps for backward are passed to it.
#pragma once
#include "model/block/attention.hpp"
#include "model/block/experts.hpp"
#include "model/block/mlp.hpp"
#include "model/block/norm.hpp"

namespace tern::model {

/// "model/layers/LAYER/".
std::string block_name(std::int64_t layer);
/// At block_name().
void declare_block(const deck::Model& model, const std::string& at, Declaration& d);
std::vector<Divided> divided_of_block(const deck::Model& model);

/// Keys of the dropout of the two branches.
struct BlockDropout {
  ops::DropoutKey attention, feed_forward;
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
  /// What forward keeps for backward; views of the arena. With recompute = 'block' all layers share
  /// one of these and keep `input` alone. In evaluation all share one, `input` and `middle` are the
  /// same view, and so are the two normed ones. Backward writes gradients over what it no longer
  /// needs, so each forward serves one backward.
  struct Saved {
    Matrix<T> input;                // (N, D) residual stream entering the block
    Matrix<T> normed_attention;     // (N, D)
    Matrix<T> middle;               // (N, D) residual stream between the halves
    Matrix<T> normed_feed_forward;  // (N, D)
    typename Norm<T>::Saved norm_attention, norm_feed_forward;
    typename Attention<T>::Saved attention;
    typename Mlp<T>::Saved mlp;  // one of the two, the other is empty
    typename Experts<T>::Saved experts;
  };

  Block(const deck::Model& model, const Share& share, const Common<T>& common);
  Parameters bind(const Binder<T>& binder, const std::string& at) const;
  /// Everything but `input`; in evaluation but `middle`, too.
  Saved request(Arena& arena, const std::string& label, const Sequences&, bool training) const;
  /// The same buffers for fewer rows.
  Saved narrow(const Saved& whole, const Sequences&) const;
  /// Workspace shared by all places of a pass, `places` of them.
  void request_workspace(Arena& arena, const Sequences&, std::size_t places, bool training);
  /// The linear maps of a block, for workspace in 8 bits; empty for what never is.
  std::vector<MapShape> maps() const;

  /// From `input` of the saved to `output`; without `output` only as far as backward needs it.
  void forward(const ops::Context&, const Parameters&, const Saved&, const Attend&,
               const BlockDropout&, Matrix<T> output) const;
  /// dstream (N, D): from the gradient of the block's output to that of its input. balanced: see
  /// Experts::backward.
  void backward(const ops::Context&, const Parameters&, const Saved&, const Mask&,
                const BlockDropout&, Vector<const A> balanced, Matrix<T> dstream) const;

  bool has_experts() const { return has_experts_; }
  Attention<T> attention;
  Experts<T> experts;

 private:
  const Common<T>& common_;
  bool has_experts_;
  Norm<T> norm_;
  Mlp<T> mlp_;
};

}  // namespace tern::model
