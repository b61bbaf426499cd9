#include "model/detail/recursion.hpp"

namespace tern::model {

std::size_t passes_of(const deck::Model& model) {
  return static_cast<std::size_t>(model.inner_steps) + 1;
}

namespace detail {
namespace {

constexpr const char* answer_name = "model/initial_answer";
constexpr const char* latent_name = "model/initial_latent";

}  // namespace

Declaration declare_recursion(const deck::Model& m) {
  Declaration d(Stages::all);
  if (m.inner_steps == 0) return d;
  // Initialized like token embeddings, to which they are added.
  for (const char* state : {answer_name, latent_name})
    d.add({state, {static_cast<std::size_t>(m.hidden)}, initial_embedding(m)});
  return d;
}

template <class T>
Recursion<T>::Recursion(const deck::Model& model, const ParameterTree& tree,
                        const Parameters<T>& parameters, std::size_t rows, bool training,
                        Arena& arena)
    : passes_(passes_of(model)) {
  if (!recursive()) return;
  const Binder<T> binder(tree, parameters);
  const auto start = [&](const char* name) {
    const auto [value, gradient] = binder.vector(name);
    return Start{as_matrix(value.data(), 1, value.extent(0)), gradient};
  };
  answer_ = start(answer_name);
  latent_ = start(latent_name);
  const auto D = static_cast<std::size_t>(model.hidden);
  x_ = arena.matrix<T>("embedded tokens", Term::activations, rows, D);
  if (training) dx_ = arena.matrix<T>("gradient of embedded tokens", Term::workspace, rows, D);
}

template <class T>
void Recursion<T>::begin(const ops::Context& context, Matrix<const T> embedded) const {
  if (!recursive()) return;
  Kokkos::deep_copy(context.space, narrow_rows(x_, embedded.extent(0)), embedded);
  if (dx_.extent(0) > 0) Kokkos::deep_copy(context.space, dx_, T(0.0f));
}

template <class T>
void Recursion<T>::enter(const ops::Context& context, std::size_t step, std::size_t pass,
                         Matrix<const T> y, Matrix<const T> z, Matrix<T> to) const {
  const Matrix<const T> x = narrow_rows(Matrix<const T>(x_), to.extent(0));
  const Matrix<const T> answer = step == 0 ? answer_.value : y;
  const Matrix<const T> latent = step == 0 && pass == 0 ? latent_.value : z;
  if (pass + 1 < passes_)
    ops::sum<T>(context, x, answer, latent, to);
  else
    ops::sum<T>(context, answer, latent, {}, to);
}

template <class T>
void Recursion<T>::backward(const ops::Context& context, std::size_t step, std::size_t pass,
                            Matrix<const T> gradient) const {
  if (!recursive()) return;
  // The gradient of a pass's input is that of each of its terms; z's continues to the pass before.
  if (pass + 1 < passes_) ops::add<T>(context, gradient, dx_);
  if (step > 0) return;
  ops::column_sums<T>(context, gradient, answer_.gradient);
  if (pass == 0) ops::column_sums<T>(context, gradient, latent_.gradient);
}

template <class T>
void Recursion<T>::end(const ops::Context& context, Matrix<T> gradient) const {
  if (recursive()) Kokkos::deep_copy(context.space, gradient, dx_);
}

template class Recursion<float>;
template class Recursion<double>;
template class Recursion<bf16>;

}  // namespace detail
}  // namespace tern::model
