/// Muon (Jordan et al. 2024; the formulas of torch.optim.Muon): momentum with Nesterov's step, made
/// orthogonal, with decoupled weight decay:
///   w <- (1 - rate * decay) w - rate * scale(rows, columns) * orthogonal(momentum).
/// For the matrices of the blocks, each projection alone (q, k and v are three). Embeddings, head
/// and vectors are updated by AdamW.
///
/// A rank updates the matrices of its owned range, which it must own as a whole (division()), so
/// that with sharded states each matrix is orthogonalised once. Products are made in the storage
/// type on a device, in the accumulation type on the host.
#pragma once
#include "optimizer/adamw.hpp"
#include "optimizer/detail/newton_schulz.hpp"

namespace tern::optimizer {

template <class T>
class Muon : public Update<T> {
  using A = Accumulate<T>;
  static constexpr bool on_host = std::is_same_v<Device, Kokkos::DefaultHostExecutionSpace>;
  using Product = std::conditional_t<on_host, A, T>;

 public:
  Muon(const deck::Optimizer& optimizer, const model::ParameterTree& tree, Range owned,
       Arena& arena);

  /// The rates of both kinds of parameters are to `rate` as matrix_lr and embed_lr to lr.
  void apply(const ops::Context& context, const model::Parameters<T>& parameters,
             Vector<const A> scale, double rate, std::int64_t step) override;
  std::vector<State<T>> states() const override;

 private:
  struct Matrices {
    Range range{};  // of the span: the blocks' matrices, and nothing else
    std::vector<const model::Parameter*> all;
    std::size_t elements = 0, side = 0;  // of the largest, and the greatest lesser side
  };
  static Matrices matrices(const model::ParameterTree& tree);
  Muon(const deck::Optimizer& optimizer, const model::ParameterTree& tree, const Matrices& matrices,
       Range owned, Arena& arena);
  void descend(const ops::Context& context, const model::Parameters<T>& parameters,
               Vector<const A> scale, double rate, const model::Parameter& matrix) const;

  deck::Optimizer optimizer_;
  Range covered_, held_;
  std::vector<model::Parameter> matrices_;  // of the held range
  Vector<A> momentum_;
  detail::NewtonSchulz<Product> newton_schulz_;
  AdamW<T> before_, after_;  // of the parameters before and after the blocks' matrices
};

}  // namespace tern::optimizer
