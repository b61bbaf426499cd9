/// Grouped-query attention (GQA): fused q, k and v projections, optional RMSNorm of each query and
/// key head (Qwen3), rotation, softmax attention, output projection.
///
/// Tensor ranks hold whole heads (model_shard.hpp).
#pragma once
#include <functional>

#include "block/dimensions.hpp"
#include "block/shared.hpp"
#include "memory/narrow.hpp"
#include "parameters/declaration.hpp"

namespace tern::model {

/// `at`: e.g. "model/layers/0/self_attn/".
void declare_attention(const deck::Model& model, const std::string& at, Declaration& d);
std::vector<Divided> divided_of_attention(const deck::Model& model);

/// Attention mask of a pass and positions of its rows.
struct Mask {
  Sequences sequences;
  ops::Pattern pattern;
  Vector<const std::int32_t> positions = {};  // (N); empty: 0, 1, ... in each sequence
};

/// That of some of its sequences.
Mask part_of(const Mask& mask, Range sequences);

template <class T>
class Attention {
  using A = Accumulate<T>;

 public:
  struct Parameters {
    Map<T> qkv, output;      // ((H + 2K) E, D), (D, H E)
    Gain<T> norm_q, norm_k;  // (E), empty without q/k norm
  };
  /// Kept by forward for backward, which also needs x.
  struct Saved {
    Matrix<T> qkv;  // (N, (H + 2K) E)
    /// (N, (H + K) E), queries and keys normed and rotated; empty: in place in `qkv`, without q/k
    /// norm or in evaluation.
    Matrix<T> placed;
    Vector<A> rstd_q, rstd_k;         // (N H), (N K); empty likewise
    Matrix<T> result;                 // (N, H E)
    linear::Scale scale, dqkv_scale;  // of `result` and of the gradient of `qkv`
    Matrix<A> lse;                    // (B H, T)
  };
  /// Computes `result` of some sequences of the pass from their `qkv`, and rounds its rows to `input`,
  /// that of the output map, in formats that do: attend(), or a generator's attention over its cache.
  using Attend = std::function<void(const Parameters&, const Saved&, const MapInput<T>& input,
                                    Range sequences)>;

  Attention(const deck::Model& model, const ModelShard& share, const BlockShared<T>& shared);
  static Parameters bind(const Binder<T>&, linear::Precision<T>&, const std::string& at);
  Saved request(Arena& arena, const std::string& label, const Sequences&, bool training) const;
  /// The buffers of some sequences, of `tokens` each.
  Saved part(const Saved& whole, Range sequences, std::size_t tokens) const;
  /// Workspace of backward; carved buffers may be overwritten between backward calls. `later`:
  /// gradients of weights run later.
  void request_workspace(Arena& arena, const Sequences& sequences);
  void carve_workspace(Carver<T>& carver, const Sequences& sequences, bool later);
  /// Fills the rotary table. Call once, after the arena allocates.
  void prepare(const ops::Context& context) const;
  /// `positions`: rows of the rotary table.
  void request_table(Arena& arena, std::size_t positions);

  /// From x (N, D), the rows of `sequences`; the input of the last map, `output`, for all rows or a
  /// subset.
  MapInput<T> forward(const ops::Context&, const Parameters&, const Saved&, const MapInput<T>& x,
                      const Attend& attend, Range sequences,
                      const ScoredRows<T>& subset = {}) const;
  /// Head norms, rotation and attention within the pass.
  void attend(const ops::Context&, const Parameters&, const Saved&, const Mask&) const;
  /// Only head norms and rotation to the rows' positions; in evaluation in place.
  void place_heads(const ops::Context&, const Parameters&, const Saved&, const Sequences&,
                   const ops::Positions&) const;
  /// Gradient of x, in dx (N, D), which may be x unless gradients of weights run later, from that of
  /// the branch (N, D), or (M', D) of a subset. dqkv (N, (H + 2K) E): for the gradient of the
  /// projection's output; not `qkv`.
  Stream<T> backward(const ops::Context&, const Parameters&, const Saved&, const MapInput<T>& x,
                     const Mask&, const BranchGradient<T>& dbranch, Matrix<T> dqkv, Matrix<T> dx,
                     WeightGradients<T>&, const ScoredRows<T>& subset = {}) const;

  /// Workspace (N, (H + 2K) E) for the gradient of the projection's output.
  Matrix<T> dqkv() const { return dqkv_; }

  /// Norm and rotation, for operations that fuse them into the store to a cache.
  ops::HeadStage<T> head_stage(const Parameters& p) const {
    return {p.norm_q.gain, p.norm_k.gain, eps_, rotary_};
  }

 private:
  /// Queries, keys or values of a fused buffer.
  Heads<T> part(const Matrix<T>& fused, std::size_t first_head, std::size_t heads,
                const Sequences& s) const {
    return heads_of(fused, first_head * size_.E, s.batch, s.tokens, heads, size_.E);
  }
  /// Queries and keys as attention takes them.
  static Matrix<T> placed(const Saved& s) { return s.placed.size() > 0 ? s.placed : s.qkv; }
  void rotate(const ops::Context&, Matrix<T> qkv, const Sequences&, const ops::Positions&) const;
  /// Input of the output map: rows of `result`, which gather_output() copies if they are a subset.
  MapInput<T> output_input(const Parameters&, const Saved&, const ScoredRows<T>&,
                           linear::Use) const;
  void gather_output(const ops::Context&, const Saved&, const ScoredRows<T>&) const;
  /// Workspace (M', H E) of a subset, where the gradient of the projection comes later.
  Matrix<T> of_subset(const ScoredRows<T>& subset) const {
    return as_matrix(dqkv_.data(), subset.padded(), size_.H * size_.E);
  }
  /// The gradient of `result`.
  void result_gradient(const ops::Context&, const Parameters&, const MapGradient<T>& dbranch,
                       const ScoredRows<T>&) const;
  /// The gradient of the projection's output, from that of `result`, written to dqkv.
  MapGradient<T> qkv_gradient(const ops::Context&, const Parameters&, const Saved&, const Mask&,
                              Matrix<T> dqkv) const;
  /// From the gradient of the normed heads in dqkv to that of the projection.
  void head_norms_backward(const ops::Context&, const Parameters&, const Saved&, const Mask&,
                           Matrix<T> dqkv) const;

  const BlockShared<T>& shared_;
  Dimensions size_;
  double eps_, scale_, rope_base_;
  bool rope_, qk_norm_;
  Matrix<A> rotary_;   // (positions, E), empty without rope
  Matrix<T> dresult_;  // (N, H E)
  Matrix<T> dqkv_;     // (N, (H + 2K) E)
  Matrix<A> delta_;    // (B H, T)
};

}  // namespace tern::model
