#include "model/detail/connections.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "block/block.hpp"

namespace tern::model::detail {
namespace {

/// Blocks skipped from: those whose partner is not the next block.
std::size_t pairs_of(const deck::Model& m) {
  return m.skip_connections ? static_cast<std::size_t>((m.layers - 1) / 2) : 0;
}

bool skips_to(const deck::Model& m, std::size_t layer) {
  return static_cast<std::size_t>(m.layers) - 1 - layer < pairs_of(m);
}

}  // namespace

bool connects_blocks(const deck::Model& m) { return m.input_shortcut || pairs_of(m) > 0; }

void declare_connections(const deck::Model& m, std::int64_t layer, const std::string& at,
                         Declaration& d) {
  if (m.input_shortcut && layer > 0) {
    d.add({at + "stream_scale", {1}, {1, 0}});
    d.add({at + "input_scale", {1}, {0, 0}});
  }
  if (skips_to(m, static_cast<std::size_t>(layer))) d.add({at + "skip_scale", {1}, {1, 0}});
}

template <class T>
Connections<T>::Connections(const deck::Model& m, const ParameterTree& tree,
                            const Parameters<T>& parameters, const TransformerOptions& options,
                            Arena& arena)
    : shortcut_(m.input_shortcut), pairs_(pairs_of(m)) {
  if (!connects_blocks(m)) return;
  TERN_REQUIRE(tree.share().stages == 1 && options.in_flight == 1 && m.inner_steps == 0,
               "connections of blocks over {} stages, {} micro-batches, {} inner steps",
               tree.share().stages, options.in_flight, m.inner_steps);
  const Binder<T> binder(tree, parameters);
  const auto scalar = [&](const std::string& name) {
    const auto [value, gradient] = binder.vector(name);
    return Scalar{value, gradient};
  };
  const std::size_t N = options.batch * options.tokens, D = static_cast<std::size_t>(m.hidden);
  for (std::int64_t l = 0; l < m.layers; ++l) {
    const std::string at = block_name(l);
    Entry entry;
    if (shortcut_ && l > 0)
      entry.a = scalar(at + "stream_scale"), entry.b = scalar(at + "input_scale");
    if (skips_to(m, static_cast<std::size_t>(l))) entry.c = scalar(at + "skip_scale");
    if (options.training && entry.used())
      entry.stream = arena.matrix<T>(fmt::format("layer {}/stream", l), Term::activations, N, D);
    blocks_.push_back(entry);
  }
  if (options.training) {
    if (shortcut_)
      dinput_ = arena.matrix<T>("gradient of the embedded tokens", Term::workspace, N, D);
    partial_ =
        arena.vector<A>("connections' partial sums", Term::workspace, ops::connect_partials());
    return;
  }
  if (shortcut_) input_ = arena.matrix<T>("embedded tokens", Term::activations, N, D);
  for (std::size_t i = 0; i < pairs_; ++i)
    kept_.push_back(arena.matrix<T>(fmt::format("layer {}/output", i), Term::activations, N, D));
}

template <class T>
void Connections<T>::before(const ops::Context& context, std::size_t layer,
                            const std::vector<Matrix<T>>& inputs, Matrix<T> input) const {
  const std::size_t rows = input.extent(0);
  const bool training = !inputs.empty();
  if (layer == 0 && shortcut_ && !training)
    Kokkos::deep_copy(context.space, narrow_rows(input_, rows), input);
  if (!enter(layer)) return;
  const Entry& entry = blocks_[layer];
  const bool skips = entry.c.value.extent(0) > 0;
  const auto skip = [&]() -> Matrix<const T> {
    if (!skips) return {};
    return training ? output(partner(layer), inputs) : narrow_rows(kept_[partner(layer)], rows);
  };
  const Matrix<const T> x0 = training ? inputs.front() : narrow_rows(input_, rows);
  ops::connect_forward<T>(context, {.x = training ? entry.stream : input,
                                    .input = shortcut_ ? x0 : Matrix<const T>(),
                                    .skip = skip(),
                                    .a = entry.a.value,
                                    .b = entry.b.value,
                                    .c = entry.c.value,
                                    .y = input});
}

template <class T>
void Connections<T>::after(const ops::Context& context, std::size_t layer,
                           Matrix<const T> output) const {
  if (layer < kept_.size())
    Kokkos::deep_copy(context.space, narrow_rows(kept_[layer], output.extent(0)), output);
}

template <class T>
void Connections<T>::add_gradient(const ops::Context& context, std::size_t layer,
                                  const std::vector<Matrix<T>>& inputs, Matrix<T> dstream) const {
  if (layer + 1 == blocks_.size() && shortcut_) Kokkos::deep_copy(context.space, dinput_, T(0.0f));
  if (layer < pairs_) ops::add<T>(context, inputs[partner(layer)], dstream);
}

template <class T>
void Connections<T>::backward(const ops::Context& context, std::size_t layer,
                              const std::vector<Matrix<T>>& inputs, Matrix<T> dstream) const {
  if (layer == 0 && shortcut_) ops::add<T>(context, dinput_, dstream);
  if (!enter(layer)) return;
  const Entry& entry = blocks_[layer];
  const bool skips = entry.c.value.extent(0) > 0;
  const Matrix<const T> none;
  ops::connect_backward<T>(context, {.x = entry.stream,
                                     .input = shortcut_ ? Matrix<const T>(inputs.front()) : none,
                                     .skip = skips ? output(partner(layer), inputs) : none,
                                     .a = entry.a.value,
                                     .b = entry.b.value,
                                     .c = entry.c.value,
                                     .dy = dstream,
                                     .dinput = dinput_,
                                     .dskip = skips ? inputs[layer] : Matrix<T>(),
                                     .da = entry.a.gradient,
                                     .db = entry.b.gradient,
                                     .dc = entry.c.gradient,
                                     .partial = partial_});
}

template class Connections<float>;
template class Connections<double>;
template class Connections<bf16>;
template class Connections<fp16>;

}  // namespace tern::model::detail
