#include "model/recursion.hpp"

#include "base/error.hpp"
#include "model/detail/state.hpp"

namespace tern::model {

std::size_t passes_of(const deck::Model& model) {
  return static_cast<std::size_t>(model.inner_steps) + 1;
}

template <class T>
Recursion<T>::Recursion(const deck::Model& model, const ParameterTree& tree,
                        const Parameters<T>& parameters, Transformer<T>& transformer, bool training,
                        Arena& arena)
    : transformer_(transformer), passes_(passes_of(model)) {
  TERN_REQUIRE(transformer.passes() == passes_, "a transformer of {} passes for {}",
               transformer.passes(), passes_);
  if (!recursive()) return;
  const detail::Binder<T> binder(tree, parameters);
  const auto start = [&](const char* name) {
    const auto [value, gradient] = binder.vector(name);
    return Start{as_matrix(value.data(), 1, value.extent(0)), gradient};
  };
  answer_ = start("model/initial_answer");
  latent_ = start("model/initial_latent");
  const auto D = static_cast<std::size_t>(model.hidden);
  x_ = arena.matrix<T>("embedded tokens", Term::activations, transformer.rows(), D);
  if (training)
    dx_ = arena.matrix<T>("gradient of embedded tokens", Term::workspace, transformer.rows(), D);
}

/// Each step draws from streams of its own.
template <class T>
ops::DropoutKey Recursion<T>::key(ops::DropoutKey dropout, std::size_t step) const {
  dropout.layer += static_cast<std::uint32_t>(2 * step * passes_ * transformer_.layers());
  return dropout;
}

template <class T>
void Recursion<T>::embed(const ops::Context& context, const Rows& rows,
                         const ops::DropoutKey& dropout) {
  transformer_.embed(context, rows, dropout);
  begin(context);
}

template <class T>
void Recursion<T>::begin(const ops::Context& context) {
  steps_ = 0;
  if (!recursive()) return;
  const Matrix<T> x = detail::narrow_rows(x_, transformer_.rows());
  Kokkos::deep_copy(context.space, x, transformer_.entry(0));
  if (dx_.extent(0) > 0) Kokkos::deep_copy(context.space, dx_, T(0.0f));
}

template <class T>
Matrix<const T> Recursion<T>::advance(const ops::Context& context, const ops::Pattern& pattern,
                                      const ops::DropoutKey& dropout) {
  const ops::DropoutKey of_step = key(dropout, steps_);
  return advance(context, [&](std::size_t, std::size_t place) {
    transformer_.block(context, place, pattern, of_step);
  });
}

template <class T>
Matrix<const T> Recursion<T>::advance(const ops::Context& context, const Block& block) {
  const std::size_t step = steps_++, last = passes_ - 1, layers = transformer_.layers();
  const auto run = [&](std::size_t pass) {
    for (std::size_t layer = 0; layer < layers; ++layer) block(step, pass * layers + layer);
    return transformer_.finish(context, pass);
  };
  if (!recursive()) return run(0);
  const bool first = step == 0;
  // The states of the step before stand where its passes left them, and are read before this
  // step's passes overwrite them.
  const Matrix<const T> x = detail::narrow_rows(Matrix<const T>(x_), transformer_.rows());
  const Matrix<const T> y = first ? answer_.value : transformer_.finished(last);
  Matrix<const T> z = first ? latent_.value : transformer_.finished(last - 1);
  for (std::size_t pass = 0; pass < last; ++pass) {
    ops::sum<T>(context, x, y, z, transformer_.entry(pass));
    z = run(pass);
  }
  ops::sum<T>(context, y, z, {}, transformer_.entry(last));
  return run(last);
}

template <class T>
void Recursion<T>::blocks_backward(const ops::Context& context, std::size_t pass,
                                   const ops::Pattern& pattern, const ops::DropoutKey& dropout) {
  const std::size_t layers = transformer_.layers();
  for (std::size_t layer = layers; layer-- > 0;)
    transformer_.block_backward(context, pass * layers + layer, pattern, dropout);
}

template <class T>
void Recursion<T>::backward(const ops::Context& context, const ops::Pattern& pattern,
                            const ops::DropoutKey& dropout) {
  TERN_REQUIRE(steps_ > 0, "backward before a step");
  const ops::DropoutKey of_step = key(dropout, steps_ - 1);
  const Matrix<T> gradient = transformer_.stream_gradient();
  for (std::size_t pass = passes_; pass-- > 0;) {
    // The gradient of a pass's entry is that of each of its terms; z's goes on to the pass before.
    if (pass + 1 < passes_) transformer_.finish_backward(context, pass);
    blocks_backward(context, pass, pattern, of_step);
    if (!recursive()) return;
    if (pass + 1 < passes_) ops::add<T>(context, gradient, dx_);
    if (steps_ > 1) continue;
    ops::column_sums<T>(context, gradient, answer_.gradient);
    if (pass == 0) ops::column_sums<T>(context, gradient, latent_.gradient);
  }
}

template <class T>
void Recursion<T>::embed_backward(const ops::Context& context, const Rows& rows) {
  if (recursive()) Kokkos::deep_copy(context.space, transformer_.stream_gradient(), dx_);
  transformer_.embed_backward(context, rows);
}

template class Recursion<float>;
template class Recursion<double>;
template class Recursion<bf16>;

}  // namespace tern::model
