/// Kinds of optimizers. Each is one row, defined next to its class; what the deck's checks ask is in
/// deck/optimizer_kind.hpp.
#pragma once
#include <tuple>
#include <vector>

#include "optimizer/update.hpp"

namespace tern::optimizer {

template <class T>
using Maker = std::unique_ptr<Update<T>> (*)(const deck::Optimizer&, const model::ParameterTree&,
                                             Range owned, std::size_t decayed, Arena&);
using Makers = std::tuple<Maker<float>, Maker<bf16>, Maker<fp16>, Maker<double>>;

/// What a rank updates, for the plan.
struct Owned {
  struct Matrix {
    double rows, columns;
  };
  double parameters, in_matrices;  // of blocks
  double copy;                     // bytes per value of the compute copy; 0: the masters themselves
  std::vector<Matrix> matrices;    // shapes of a layer
  double layers;                   // of which the rank owns the matrices
};

/// Work of an update.
struct Cost {
  struct Pass {
    double bytes, kernels;
  };
  std::vector<Pass> passes;              // memory-bound
  double product_flops = 0, groups = 0;  // products of matrices, and kernels that batch them
};

struct Kind {
  const char* name;
  Makers make;
  Cost (*cost)(const Owned&);
};

/// The row of &optimizer kind.
const Kind& kind(const deck::Optimizer& optimizer);

/// AdamW of so many parameters.
Cost::Pass adamw_pass(double parameters, double copy, double kernels);

}  // namespace tern::optimizer
