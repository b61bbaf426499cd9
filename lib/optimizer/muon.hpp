/// Muon (Jordan et al. 2024; formulas of torch.optim.Muon): Nesterov momentum, orthogonalized, with
/// decoupled weight decay:
///   w <- (1 - rate * decay) w - rate * scale(rows, columns) * orthogonal(momentum).
/// Used for the blocks' matrices, each projection on its own (q, k and v are three). Embeddings,
/// head and vectors are updated by AdamW.
///
/// A rank updates the matrices of its owned range, which it must own whole (division()), so that
/// with sharded states each matrix is orthogonalized once. Matrices of one shape are orthogonalized
/// together, in groups of bounded size. Products use the storage type on a device, the accumulation
/// type on the host.
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
  /// Maximum bytes of a group's matrices in the products' type; a larger matrix is its own group.
  /// The workspace is at most four times that. On an H100 groups of 64 MiB are as fast as larger
  /// ones (bench_muon); on the host groups gain nothing.
  static constexpr std::size_t default_group_bytes = on_host ? 0 : std::size_t{64} << 20;

  Muon(const deck::Optimizer& optimizer, const model::ParameterTree& tree, Range owned,
       Arena& arena, std::size_t group_bytes = default_group_bytes);

  /// Rates of the blocks' matrices, of the embeddings, and of what follows the matrices (an untied
  /// head, vectors) relate to `rate` as matrix_lr, embed_lr and head_lr to lr.
  void apply(const ops::Context& context, const model::Parameters<T>& parameters,
             Vector<const A> scale, double rate, std::int64_t step) override;
  std::vector<State<T>> states() const override;

 private:
  struct Matrices {
    Range range{};  // blocks' matrices in the span, and nothing else
    std::vector<model::Parameter> all;
  };
  static Matrices matrices(const model::ParameterTree& tree);
  /// Matrices of one shape; `first`: index of the first in the list over all groups.
  struct Group {
    std::size_t rows, columns, first, count;
  };
  static std::vector<Group> groups(const std::vector<model::Parameter>& matrices,
                                   std::size_t group_bytes);
  static detail::BatchSize largest(const std::vector<Group>& groups);
  Muon(const deck::Optimizer& optimizer, const model::ParameterTree& tree, Matrices matrices,
       Range owned, Arena& arena, std::size_t group_bytes);
  void descend(const ops::Context& context, const model::Parameters<T>& parameters,
               Vector<const A> scale, double rate, const Group& group) const;

  deck::Optimizer optimizer_;
  Range covered_, held_;
  std::vector<Group> groups_;  // groups of the held matrices
  Vector<std::size_t> at_;     // their offsets in the span, by group
  Vector<A> momentum_;
  detail::NewtonSchulz<Product> newton_schulz_;
  AdamW<T> before_, after_;  // parameters before and after the blocks' matrices
};

}  // namespace tern::optimizer
