/// Row norm, RMSNorm or LayerNorm as the deck says, before each half of a block and before the
/// head.
#pragma once
#include "block/shared.hpp"
#include "parameters/declaration.hpp"

namespace tern::model {

/// Gain and, for LayerNorm, bias of the norm `at`, e.g. "model/norm".
void declare_norm(const deck::Model& model, const std::string& at, Declaration& d);

template <class T>
class Norm {
  using A = Accumulate<T>;

 public:
  /// Kept by forward for backward, which also needs x.
  struct Saved {
    Vector<A> mean, rstd;  // (N); mean empty for rmsnorm
  };

  Norm(const deck::Model& model, const BlockShared<T>& shared);
  Saved request(Arena& arena, const std::string& label, std::size_t rows) const;
  static Saved part(const Saved& whole, Range rows);

  /// y (N, D) from x (N, D), which may have to be `made` first.
  void forward(const ops::Context&, const Gain<T>&, const Saved&, Matrix<const T> x,
               const MapInput<T>& y, const ops::PendingSum<T>& made = {}) const;
  /// dx (N, D), the stream's gradient, which may be x, from dy (N, D) and the gradient that passes
  /// by, `residual`, (N, D), which may be dx, or empty; accumulates the gradients of gain and bias,
  /// and finds the magnitude of BlockShared::dstream. `next`: of the branch whose gradient is made from
  /// dx, see BlockShared::fuses_next_dropout. dy_added (N, D) or empty: the rest of dy.
  void backward(const ops::Context&, const Gain<T>&, const Saved&, Matrix<const T> x,
                Matrix<const T> dy, Matrix<const T> residual, Matrix<T> dx,
                const ops::DropoutKey& next = {}, Matrix<const T> dy_added = {}) const;

 private:
  const BlockShared<T>& shared_;
  ops::Norm kind_;
  double eps_;
};

}  // namespace tern::model
