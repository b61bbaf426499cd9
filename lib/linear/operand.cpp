#include "linear/operand.hpp"

#include "memory/narrow.hpp"

namespace tern::linear {

template <class T>
MapInput<T> rows_of(const MapInput<T>& all, Range rows) {
  MapInput<T> some{tern::rows_of(all.values, rows), all.rounded, all.coded.rows(rows)};
  some.rounded.straight = tern::rows_of(all.rounded.straight, rows);
  some.rounded.transposed = {};
  return some;
}

template <class T>
void norm_forward(const ops::Context& context, ops::NormForward<T> call, const MapInput<T>& y) {
  call.rounded = y.rounded;
  call.coded = y.coded;
  ops::norm_forward<T>(context, call);
}

template <class T>
void attention_backward(const ops::Context& context, ops::AttentionBackward<T> call,
                        const ops::HeadRotation<Accumulate<T>>& rotation, std::size_t rotated,
                        const MapGradient<T>& dheads) {
  const bool rounds = dheads.rounded.wanted();
  if (!rounds) call.rotation = rotation;
  ops::attention_backward<T>(context, call);
  if (rounds && rotation.wanted())
    ops::rotary_backward_to_fp8<T>(context, dheads.values, call.q.extent(1), rotated,
                                   rotation.table, rotation.positions, dheads.rounded);
}

#define INSTANTIATE(T)                                                                      \
  template MapInput<T> rows_of(const MapInput<T>&, Range);                                  \
  template void norm_forward(const ops::Context&, ops::NormForward<T>, const MapInput<T>&); \
  template void attention_backward(const ops::Context&, ops::AttentionBackward<T>,          \
                                   const ops::HeadRotation<Accumulate<T>>&, std::size_t,    \
                                   const MapGradient<T>&);
INSTANTIATE(float)
INSTANTIATE(double)
INSTANTIATE(bf16)
INSTANTIATE(fp16)

}  // namespace tern::linear
