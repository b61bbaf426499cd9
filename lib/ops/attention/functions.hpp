/// The operations of this family as functions, each a call of run(). For callers that do not make the calls
/// themselves.
#pragma once
#include "ops/attention/attention.hpp"
#include "ops/attention/head_norm.hpp"
#include "ops/attention/rotary.hpp"

namespace tern::ops {

template <class T>
void attention_forward(const Context& context, const AttentionForward<T>& call) {
  run(context, call);
}
template <class T>
void attention_backward(const Context& context, const AttentionBackward<T>& call) {
  run(context, call);
}
template <class T>
void head_norm_forward(const Context& context, const HeadNormForward<T>& call) {
  run(context, call);
}
template <class T>
void head_norm_backward(const Context& context, const HeadNormBackward<T>& call) {
  run(context, call);
}
template <class T>
void rotary_table(const Context& context, double base, Matrix<T> table) {
  run(context, RotaryTable<T>{base, table});
}
template <class T>
void rotary(const Context& context, Heads<T> x, Matrix<const Accumulate<T>> table,
            const Positions& positions, Direction direction) {
  run(context, Rotary<T>{x, table, positions, direction});
}
template <class T>
void rotary_backward_to_fp8(const Context& context, Matrix<T> dqkv, std::size_t tokens,
                            std::size_t heads, Matrix<const Accumulate<T>> table,
                            const Positions& positions, const Fp8Matrix& rounded) {
  run(context, RotaryBackwardToFp8<T>{dqkv, tokens, heads, table, positions, rounded});
}

}  // namespace tern::ops
