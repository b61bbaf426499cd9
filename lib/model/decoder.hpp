/// Decoding's view of the transformer: passes over rows of any number of sequences. It runs the
/// blocks; the generator keeps keys and values and does rotation, cache and attention between a
/// block's projections.
#pragma once
#include "model/detail/layer_stack.hpp"

namespace tern::model {

struct DecoderOptions {
  std::size_t rows;       // maximum per pass
  std::size_t positions;  // maximum per sequence
  std::size_t head_rows;  // rows of logits that tensor ranks gather at a time
  /// Weights of the blocks' linear maps in fp8 (ops/fp8_weight.hpp), except those of experts and
  /// their router.
  bool fp8_weights = false;
  bool fp8_inputs = false;  // with fp8_weights: inputs of these maps, too, each row with its scale
  /// In a pipeline: the output of a pass is sent when the next one begins, or by settle(), so that
  /// stages can work on consecutive passes at the same time. False: at once, and each pass waits
  /// for the stage before.
  bool overlapped = false;
};

/// If the model is divided (ParameterTree::share()), every call is collective over the replica
/// (detail/layer_stack.hpp).
template <class T>
class Decoder {
 public:
  using AttentionParameters = typename Attention<T>::Parameters;
  /// `qkv` (N, (H + 2K) E): output of the projection, neither normed nor rotated; attention writes
  /// `result` (N, H E), rounded as Attention::Attend says; lse (B H, T) is scratch.
  using AttentionRows = typename Attention<T>::Saved;
  /// One block's attention. Each place, counted over steps, passes and layers, has its own keys and
  /// values.
  using Attend = std::function<void(std::size_t place, const AttentionParameters&,
                                    const AttentionRows&, const MapInput<T>& input)>;
  /// Consecutive rows of a pass: sequences of `period` rows each, at positions `first`, `first` +
  /// 1, ...
  struct Run {
    Vector<const std::int32_t> tokens;
    std::size_t period;
    int first = 0;                           // used with learned positions only
    Vector<const std::int32_t> levels = {};  // as in Rows
  };

  /// Keeps views of `parameters`, not the object. Requests everything it needs from the arena.
  Decoder(const deck::Model& model, const ParameterTree& tree, const Parameters<T>& parameters,
          const DecoderOptions& options, Arena& arena);
  /// Fills the rotary table. Call once, after the arena allocates.
  void prepare(const ops::Context& context) const { stack_.prepare(context); }
  /// With fp8_weights: rounds them, in `parameters` as well. Call when they have been loaded or
  /// changed.
  void round_weights(const ops::Context& context) const {
    stack_.shared.precision.refresh(context);
  }

  std::size_t layers() const { return stack_.layers(); }  // on this stage
  /// Places: visits to blocks in one step of a recursive model; layers() of a plain one.
  std::size_t places() const { return stack_.visits().size(); }
  const Attention<T>& attention() const { return stack_.block.attention; }
  const ModelShard& share() const { return stack_.share(); }

  /// Runs a pass over the runs, together the rows of `sequences`; a recursive model takes `steps`
  /// steps. The result (N, D), input of logits_of(), is valid until the next pass.
  Matrix<const T> forward(const ops::Context&, const Sequences& sequences,
                          const std::vector<Run>& runs, const Attend& attend,
                          std::size_t steps = 1) const;
  /// Logits (M, V) of finished rows (M, D), the same on all ranks of the replica, so that all
  /// sample the same tokens.
  void logits_of(const ops::Context& context, Matrix<const T> rows, Matrix<T> result) const {
    stack_.logits_of(context, rows, result);
  }
  /// The same, for ranks of the last stage only.
  void last_logits_of(const ops::Context& context, Matrix<const T> rows, Matrix<T> result) const {
    stack_.head.logits_of(context, stack_.shared.links, rows, result);
  }
  /// Tokens of the last stage, to all. If overlapped, the last pass's output is sent after them.
  void from_last(const ops::Context& context, Vector<std::int32_t> tokens) const {
    stack_.shared.links.from_last_now(context, tokens.data(), tokens.size() * sizeof(std::int32_t));
  }
  /// If overlapped: sends the last pass's output, unless it has been sent.
  void settle(const ops::Context& context) const { stack_.shared.links.flush_send(context); }

 private:
  void add_value_embeddings(const ops::Context&, const std::vector<Run>& runs, std::size_t layer,
                            Matrix<T> qkv) const;
  detail::LayerStack<T> stack_;
};

}  // namespace tern::model
