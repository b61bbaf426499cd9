/// Dense feed-forward half of a block: up projection, fused with the gate's if gated; activation;
/// down projection.
///
/// Tensor ranks hold rows of gate and up and columns of down (model_shard.hpp).
#pragma once
#include "block/dimensions.hpp"
#include "block/shared.hpp"
#include "parameters/declaration.hpp"

namespace tern::model {

/// `at`: e.g. "model/layers/0/mlp/".
void declare_mlp(const deck::Model& model, const std::string& at, Declaration& d);
std::vector<Divided> divided_of_mlp(const deck::Model& model);

template <class T>
class Mlp {
 public:
  struct Parameters {
    Map<T> up, down;  // (2F or F, D), (D, F)
  };
  /// Kept by forward for backward, which overwrites it and also needs x.
  struct Saved {
    Matrix<T> up;                    // (N, 2F) = [gate | up], or (N, F)
    Matrix<T> activated;             // (N, F)
    linear::Scale scale, dup_scale;  // of `activated` and of the gradient of `up`
  };

  Mlp(const deck::Model& model, const ModelShard& share, const BlockShared<T>& shared);
  Parameters bind(const Binder<T>&, linear::Precision<T>&, const std::string& at) const;
  Saved request(Arena& arena, const std::string& label, std::size_t rows) const;
  static Saved part(const Saved& whole, Range rows);

  /// From x (N, D); the input of the last map, `down`.
  MapInput<T> forward(const ops::Context&, const Parameters&, const Saved&,
                      const MapInput<T>& x) const;
  /// Workspace of backward if gradients of weights run later.
  void request_workspace(Arena& arena, std::size_t rows);
  /// Gradient of x, in dx (N, D), which may be x unless gradients of weights run later.
  Stream<T> backward(const ops::Context&, const Parameters&, const Saved&, const MapInput<T>& x,
                     const BranchGradient<T>& dbranch, Matrix<T> dx, WeightGradients<T>&) const;

 private:
  const BlockShared<T>& shared_;
  Activation activation_;
  std::size_t F_;
  Matrix<T> dactivated_;  // (N, F)
};

}  // namespace tern::model
