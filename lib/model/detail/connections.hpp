/// Connections of blocks next to the residual stream, as public speed runs of GPT training use
/// them (KellerJordan/modded-nanogpt, records of November 2024): in a model of L blocks, with
/// learned scalars a, b, c of each block l > 0, its input is
///
///   a x + b x0 + c s
///
/// where x is the output of block l - 1. With input_shortcut, x0 is the embedded tokens (else a =
/// 1, b = 0). With skip_connections, s is the output of block L - 1 - l where that comes before
/// block l - 1 (U-net; else c = 0). They start as a = 1, b = 0, c = 1. All rows of a pass are on one
/// stage, in one micro-batch.
#pragma once
#include "block/shared.hpp"
#include "memory/narrow.hpp"
#include "model/pass.hpp"
#include "parameters/declaration.hpp"

namespace tern::model::detail {

/// Whether the model has any.
bool connects_blocks(const deck::Model& model);
/// Scalars of block `layer`; `at`: block_name().
void declare_connections(const deck::Model& model, std::int64_t layer, const std::string& at,
                         Declaration& d);

template <class T>
class Connections {
  using A = Accumulate<T>;

 public:
  Connections(const deck::Model& model, const ParameterTree& tree, const Parameters<T>& parameters,
              const TransformerOptions& options, Arena& arena);

  bool any() const { return !blocks_.empty(); }
  /// Whether the input of block `layer` differs from the output of the block before.
  bool enter(std::size_t layer) const { return layer < blocks_.size() && blocks_[layer].used(); }
  /// In training: where the block before `layer`, which they enter, leaves its output (N, D).
  Matrix<T> stream(std::size_t layer) const { return blocks_[layer].stream; }

  /// `inputs` (N, D): of all blocks, kept for backward; empty in evaluation, where the stream and
  /// the input of a block are the same buffer `input` (rows, D). Call before each block.
  void before(const ops::Context&, std::size_t layer, const std::vector<Matrix<T>>& inputs,
              Matrix<T> input) const;
  /// Call after each block, with its output (rows, D).
  void after(const ops::Context&, std::size_t layer, Matrix<const T> output) const;

  // Backward; dstream (N, D) is the gradient of the block's output, then of its input.
  /// Call before the block's backward. A gradient to come takes the place of an input that has
  /// served.
  void add_gradient(const ops::Context&, std::size_t layer, const std::vector<Matrix<T>>& inputs,
                    Matrix<T> dstream) const;
  /// Call after it: from the gradient of the block's input to that of the previous output.
  void backward(const ops::Context&, std::size_t layer, const std::vector<Matrix<T>>& inputs,
                Matrix<T> dstream) const;
  /// Whether they change the gradient of the block's output after a norm has found its magnitude.
  bool change_gradient(std::size_t layer) const {
    return layer < pairs_ || (shortcut_ && layer + 1 < blocks_.size());
  }

 private:
  struct Scalar {
    Vector<const T> value;  // (1), or empty
    Vector<A> gradient;
  };
  struct Entry {
    Scalar a, b, c;
    Matrix<T> stream;  // (N, D) in training
    bool used() const { return a.value.extent(0) + c.value.extent(0) > 0; }
  };

  /// Output of block `layer`, in training.
  Matrix<const T> output(std::size_t layer, const std::vector<Matrix<T>>& inputs) const {
    return enter(layer + 1) ? blocks_[layer + 1].stream : inputs[layer + 1];
  }
  std::size_t partner(std::size_t layer) const { return blocks_.size() - 1 - layer; }

  bool shortcut_;
  std::size_t pairs_;            // blocks 0 to pairs_ - 1 are skipped from
  std::vector<Entry> blocks_;    // empty without connections
  Matrix<T> dinput_;             // (N, D): gradient of x0, in training
  Vector<A> partial_;            // workspace
  Matrix<T> input_;              // (N, D): x0, in evaluation
  std::vector<Matrix<T>> kept_;  // (N, D): outputs of the blocks skipped from, in evaluation
};

}  // namespace tern::model::detail
