/// The operations of this family as functions, each a call of run(). For callers that do not make the calls
/// themselves.
#pragma once
#include "ops/norm/norm.hpp"

namespace tern::ops {

template <class T>
void norm_forward(const Context& context, const NormForward<T>& call) {
  run(context, call);
}
template <class T>
void norm_backward(const Context& context, const NormBackward<T>& call) {
  run(context, call);
}

}  // namespace tern::ops
