/// Precision of a model's linear maps: binds each in its own, and holds what they share.
#pragma once
#include <vector>

#include "linear/linear_map.hpp"

namespace tern::linear {

struct PrecisionOptions {
  bool trains;       // a backward pass follows
  bool fp8;          // maps in fp8, as in training: ops/fp8.hpp
  bool fp8_weights;  // in evaluation: weights in fp8, ops/fp8_weight.hpp
  bool fp8_inputs;   // with fp8_weights: inputs as well
};

/// Sizes of the passes over the maps.
struct PassSizes {
  std::size_t rows;
  bool keeps_weights;         // they are in one place; false: they come and go (fully sharded)
  std::size_t head_rows = 0;  // of a chunk of the head's backward, if it may be in fp8
  MapShape head = {0, 0};
};

template <class T>
class Precision {
 public:
  Precision(const PrecisionOptions&, const model::Parameters<T>&, Arena&);
  Precision(const Precision&) = delete;  // maps refer to it
  Precision& operator=(const Precision&) = delete;

  /// `label`: of memory for it.
  Map<T> bind(const model::Linear<T>& parameters, const std::string& label);
  /// Elements of the weights of all maps.
  std::size_t weights() const;
  /// From now on each pass overwrites the gradients of weights.
  void overwrite_weight_gradients() { workspace_.weight_gradients = ops::Write::overwrite; }

  /// Memory of the maps. Call once, when all are bound.
  void request(Arena&, const PassSizes&);
  /// None in precisions without.
  Scale request_scale(Arena&, const std::string& label) const;
  /// Rounds the weights that are kept rounded. Call when they have changed.
  void refresh(const ops::Context&) const;

  /// Whether all rows of an operand share a scale, so that they are computed together.
  bool whole_operands() const { return options_.fp8; }
  const ops::HeadFp8<T>& head() const { return head_; }
  /// (1) in training with scales, else empty: raised by the count of numbers that saturate.
  const Vector<std::uint32_t>& saturated() const { return saturated_; }

 private:
  void request_fp8(Arena&, const PassSizes&);

  PrecisionOptions options_;
  Vector<T> compute_;  // all weights, which the maps have views of
  MapWorkspace<T> workspace_;
  Vector<std::uint32_t> saturated_;
  ops::HeadFp8<T> head_;
  std::vector<std::shared_ptr<LinearMap<T>>> maps_;
  std::vector<std::string> labels_;
};

}  // namespace tern::linear
