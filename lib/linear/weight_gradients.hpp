/// Gradients of linear maps' weights in a backward pass: a queue, since nothing waits for them. They
/// run
///  - at once, before their operands' buffers serve again;
///  - while tensor ranks exchange the gradients of inputs; or
///  - after the next micro-batch's forward, when a pipeline's previous stage has the gradient of its
///    output ("Zero Bubble Pipeline Parallelism", Qi et al., arXiv 2401.10241, section 2).
#pragma once
#include <vector>

#include "linear/linear_map.hpp"

namespace tern::linear {

/// Gradient of a branch's output (N, D), which is that of the stream, or its dropout.
template <class T>
struct BranchGradient {
  MapGradient<T> dy;
  Matrix<const T> stream;
  ops::DropoutKey dropout = {};

  /// Whether dy is in a workspace that the next branch overwrites.
  bool in_workspace() const { return dy.rounded.wanted() || dy.values.data() != stream.data(); }
};

template <class T>
class WeightGradients {
 public:
  enum class When { at_once, under_exchange, later };

  explicit WeightGradients(When when = When::at_once) : when_(when) {}

  /// If so, operands stay unchanged after the pass, except workspaces of BranchGradient.
  bool later() const { return when_ == When::later; }

  void add(const ops::Context&, const Map<T>&, const MapGradient<T>& dy, const MapInput<T>& x);
  void add(const ops::Context&, const Map<T>&, const BranchGradient<T>& dy, const MapInput<T>& x);
  /// Runs what is queued, unless it is for later: call under an exchange, and before operands are
  /// overwritten.
  void run(const ops::Context&);
  /// Runs what is queued for later.
  void run_later(const ops::Context&);

 private:
  struct Entry {
    Map<T> map;
    BranchGradient<T> dy;
    MapInput<T> x;
    void run(const ops::Context& context) const { map->weight_gradient(context, dy.dy, x); }
  };

  When when_;
  std::vector<Entry> queue_;
};

}  // namespace tern::linear
