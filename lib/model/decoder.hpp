/// The transformer as generators see it: passes over rows of any number of sequences, whose keys
/// and values the generator keeps. It runs the blocks; rotation, cache and attention between a
/// block's projections are the generator's.
#pragma once
#include "model/detail/core.hpp"

namespace tern::model {

struct DecoderOptions {
  std::size_t rows;       // of a pass, at most
  std::size_t positions;  // of a sequence, at most
  std::size_t head_rows;  // of logits that tensor ranks gather at once
};

/// Of a share of a model (ParameterTree::share()) every call is made by all ranks of the replica,
/// in the same order (detail/core.hpp).
template <class T>
class Decoder {
 public:
  using AttentionParameters = typename Attention<T>::Parameters;
  /// `qkv` (N, (H + 2K) E): q, k, v as they left their product, neither normed nor rotated; the
  /// result goes to `result` (N, H E); lse (B H, T) is free to use.
  using AttentionRows = typename Attention<T>::Saved;
  /// One block's attention. Each place, counted over steps, passes and layers, has keys and values
  /// of its own.
  using Attend =
      std::function<void(std::size_t place, const AttentionParameters&, const AttentionRows&)>;
  /// Neighbouring rows of a pass: sequences of `period` rows each, which stand at `first` and on.
  struct Run {
    Vector<const std::int32_t> tokens;
    std::size_t period;
    int first = 0;                           // read where positions are learned
    Vector<const std::int32_t> levels = {};  // as in Rows
  };

  /// Keeps views of `parameters`, not the object. Requests everything it needs from the arena.
  Decoder(const deck::Model& model, const ParameterTree& tree, const Parameters<T>& parameters,
          const DecoderOptions& options, Arena& arena);
  /// Fills what is constant (rotary table). Once, after the arena allocates.
  void prepare(const ops::Context& context) const { core_.prepare(context); }

  std::size_t layers() const { return core_.layers(); }  // of this stage
  /// Places of one step of a recursive model; of a plain one, layers().
  std::size_t places() const { return core_.places(); }
  const Attention<T>& attention() const { return core_.block.attention; }

  /// A pass over the runs, which are the rows of `sequences` one after another, in `steps` steps of
  /// a recursive model. The result (N, D) goes to logits_of(), and lasts until the next pass.
  Matrix<const T> forward(const ops::Context&, const Sequences& sequences,
                          const std::vector<Run>& runs, const Attend& attend,
                          std::size_t steps = 1) const;
  /// Logits (M, V) of finished rows (M, D). On all ranks of the replica, which may draw the same
  /// tokens from them.
  void logits_of(const ops::Context& context, Matrix<const T> rows, Matrix<T> result) const {
    core_.logits_of(context, rows, result);
  }

 private:
  detail::Core<T> core_;
};

}  // namespace tern::model
