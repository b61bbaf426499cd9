/// Operands of linear maps, and the operations that end in one.
///
/// An operand is the input (N, I) of a map or the gradient (N, O) of its output, in the format that
/// the map multiplies (linear_map.hpp). An operation that computes an operand stores it in this
/// format; its caller knows no formats.
#pragma once
#include "base/range.hpp"
#include "ops/ops.hpp"

namespace tern::linear {

/// `values` in T; or, in another format, `values` as a workspace.
template <class T>
using MapInput = ops::MapOperand<T>;
template <class T>
using MapGradient = ops::MapOperand<T>;

/// Scale of an operand, kept from forward to backward and between micro-batches; none in formats
/// without.
using Scale = ops::Fp8Scale;

/// Inputs and outputs of a linear map.
struct MapShape {
  std::size_t inputs, outputs;
};

/// Rows of an operand, for products along its rows.
template <class T>
MapInput<T> rows_of(const MapInput<T>& all, Range rows);

/// Rounds an operand whose values have been written to its format. In T: nothing.
template <class T>
void round(const ops::Context& context, const MapInput<T>& x) {
  ops::round_operand<T>(context, x, context.scaling);
}
/// The same values once more, in another layout.
template <class T>
void round_again(const ops::Context& context, const MapInput<T>& x) {
  ops::round_operand<T>(context, x, ops::again(context.scaling));
}
/// A gradient; `has_amax`: its scale already has the largest magnitude of the values.
template <class T>
void round_gradient(const ops::Context& context, const MapGradient<T>& dy, bool has_amax) {
  ops::round_operand<T>(context, dy, has_amax ? ops::Scaling::known : ops::Scaling::current);
}
/// Only in formats in which each row has a scale, for results that are computed row by row.
template <class T>
void round_rows(const ops::Context& context, const MapInput<T>& x) {
  ops::round_operand<T>(context, {x.values, {}, x.coded}, context.scaling);
}
/// Only in formats in which all rows share a scale.
template <class T>
void round_whole(const ops::Context& context, const MapInput<T>& x) {
  ops::round_operand<T>(context, {x.values, x.rounded}, context.scaling);
}

/// ops::norm_forward, whose result call.y is the values of y.
template <class T>
void norm_forward(const ops::Context&, ops::NormForward<T> call, const MapInput<T>& y);

/// ops::attention_backward, whose gradients of heads, in one fused buffer of `rotated` query and key
/// heads and the value heads, are those of a map. If `rotation` is wanted, they are rotated back and
/// rounded; if not, round() is left to the caller.
template <class T>
void attention_backward(const ops::Context&, ops::AttentionBackward<T> call,
                        const ops::HeadRotation<Accumulate<T>>& rotation, std::size_t rotated,
                        const MapGradient<T>& dheads);

}  // namespace tern::linear
