#include "ops/linear/fp8_weight.hpp"

#include "base/error.hpp"

namespace tern::ops {

template <class T>
void Fp8WeightForward<T>::check() const {
  TERN_REQUIRE(x.extent(1) == w.extent(1) && y.extent(0) == x.extent(0) &&
                   y.extent(1) == w.extent(0) && rounded.undo.size() == w.extent(0) &&
                   (!coded.wanted() || coded.undo.size() == x.extent(0)),
               "({}, {}) x ({}, {})^T -> ({}, {}), {} and {} scales", x.extent(0), x.extent(1),
               w.extent(0), w.extent(1), y.extent(0), y.extent(1), rounded.undo.size(),
               coded.undo.size());
}

template <class T>
void Fp8WeightForward<T>::portable(const Context& context, const Fp8WeightForward& call) {
  run(context, LinearForward<T>{
                   .x = call.x, .w = call.w, .bias = call.bias, .y = call.y, .added = call.added});
}

TERN_INSTANTIATE_PORTABLE(Fp8WeightForward)

}  // namespace tern::ops
