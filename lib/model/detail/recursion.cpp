#include "model/detail/recursion.hpp"

#include <fmt/format.h>

#include "block/block.hpp"

namespace tern::model::detail {
namespace {

constexpr const char* answer_name = "model/initial_answer";
constexpr const char* latent_name = "model/initial_latent";

std::string norm_name(const std::string& at) { return at + "recursion_layernorm"; }

}  // namespace

bool recurs_by_block(const deck::Model& m) { return m.inner_steps > 0 && m.recursion == "block"; }

Declaration declare_recursion(const deck::Model& m) {
  Declaration d(Stages::all);
  if (m.inner_steps == 0 || m.initial_states == "input") return d;
  // Initialized like token embeddings, to which they are added.
  for (const char* state : {answer_name, latent_name})
    d.add({state, {static_cast<std::size_t>(m.hidden)}, initial_embedding(m)});
  return d;
}

void declare_recursion_of_block(const deck::Model& m, const std::string& at, Declaration& d) {
  if (recurs_by_block(m)) declare_norm(m, norm_name(at), d);
}

template <class T>
Recursion<T>::Recursion(const deck::Model& model, const ParameterTree& tree,
                        const Parameters<T>& parameters, const TransformerOptions& options,
                        const BlockShared<T>& shared, Arena& arena)
    : passes_(passes_of(model)),
      connected_(options.connected),
      by_block_(recurs_by_block(model)),
      norm_(model, shared) {
  if (!recursive()) return;
  const Binder<T> binder(tree, parameters);
  const auto start = [&](const char* name) {
    const auto [value, gradient] = binder.vector(name);
    return Start{as_matrix(value.data(), 1, value.extent(0)), gradient};
  };
  if (model.initial_states == "learned") {
    answer_ = start(answer_name);
    latent_ = start(latent_name);
  }
  const std::size_t N = options.batch * options.tokens, D = static_cast<std::size_t>(model.hidden);
  x_ = arena.matrix<T>("embedded tokens", Term::activations, N, D);
  const auto workspace = [&](const char* name) {
    return arena.matrix<T>(name, Term::workspace, N, D);
  };
  if (options.training) dx_ = workspace("gradient of embedded tokens");
  if (options.training && (by_block_ || connected_ > 1)) {
    dy_ = workspace("gradient of the answer");
    dz_ = workspace("gradient of the latent");
  }
  if (!by_block_) return;
  y_ = arena.matrix<T>("answer", Term::activations, N, D);
  z_ = arena.matrix<T>("latent", Term::activations, N, D);
  output_ = workspace("output of a block");
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    gains_.push_back(binder.gain(norm_name(block_name(layer))));
  const std::size_t kept = options.training ? connected_ * passes_ * gains_.size() : 1;
  for (std::size_t i = 0; i < kept; ++i) {
    const std::string name = kept > 1 ? fmt::format("recursion {}", i) : "recursion";
    entries_.push_back(
        {arena.matrix<T>(name + "/sum", Term::activations, N, D), norm_.request(arena, name, N)});
  }
}

template <class T>
void Recursion<T>::begin(const ops::Context& context, Matrix<const T> embedded) const {
  if (!recursive()) return;
  const Matrix<T> x = narrow_rows(x_, embedded.extent(0));
  Kokkos::deep_copy(context.space, x, embedded);
  if (dx_.extent(0) > 0) Kokkos::deep_copy(context.space, dx_, T(0.0f));
  if (!by_block_) return;
  const Matrix<T> y = narrow_rows(y_, x.extent(0)), z = narrow_rows(z_, x.extent(0));
  ops::sum<T>(context, from_input() ? Matrix<const T>(x) : answer_.value, {}, {}, y);
  ops::sum<T>(context, latent_.value, {}, {}, z);
}

template <class T>
void Recursion<T>::end(const ops::Context& context, Matrix<T> gradient) const {
  if (recursive()) Kokkos::deep_copy(context.space, gradient, dx_);
}

// ---- recursion = 'stack' ----

template <class T>
void Recursion<T>::enter(const ops::Context& context, std::size_t step, std::size_t pass,
                         Matrix<const T> y, Matrix<const T> z, Matrix<T> to) const {
  const Matrix<const T> x = narrow_rows(Matrix<const T>(x_), to.extent(0));
  const Matrix<const T> initial = from_input() ? x : answer_.value;
  const Matrix<const T> answer = step == 0 ? initial : y;
  const Matrix<const T> latent = step == 0 && pass == 0 ? latent_.value : z;
  if (answers(pass))
    ops::sum<T>(context, answer, latent, {}, to);
  else
    ops::sum<T>(context, x, answer, latent, to);
}

template <class T>
void Recursion<T>::backward(const ops::Context& context, std::size_t step, std::size_t pass,
                            Matrix<const T> gradient) const {
  if (!recursive()) return;
  // The gradient of a pass's input is that of each of its terms; z's continues to the pass before.
  if (!answers(pass)) ops::add<T>(context, gradient, dx_);
  if (step == 0 && from_input()) return ops::add<T>(context, gradient, dx_);
  if (step == 0) {
    ops::column_sums<T>(context, gradient, answer_.gradient);
    if (pass == 0) ops::column_sums<T>(context, gradient, latent_.gradient);
  } else if (carried(step - 1)) {
    answers(pass) ? Kokkos::deep_copy(context.space, dy_, gradient)
                  : ops::add<T>(context, gradient, dy_);
    if (pass == 0) Kokkos::deep_copy(context.space, dz_, gradient);
  }
}

template <class T>
void Recursion<T>::add_carried(const ops::Context& context, std::size_t step, std::size_t pass,
                               Matrix<T> gradient) const {
  if (carried(step) && answers(pass)) ops::add<T>(context, dy_, gradient);
  if (carried(step) && answers(pass + 1)) ops::add<T>(context, dz_, gradient);
}

// ---- recursion = 'block' ----

template <class T>
void Recursion<T>::enter_block(const ops::Context& context, const Visit& visit, std::size_t kept,
                               Matrix<T> to) const {
  const std::size_t rows = to.extent(0);
  const auto of_rows = [&](const Matrix<T>& m) { return Matrix<const T>(narrow_rows(m, rows)); };
  const Entry& entry = entries_[kept % entries_.size()];
  const Matrix<T> sum = narrow_rows(entry.sum, rows);
  ops::sum<T>(context, of_rows(y_), of_rows(z_),
              answers(visit.pass) ? Matrix<const T>() : of_rows(x_), sum);
  norm_.forward(context, gains_[visit.layer], norm_.part(entry.norm, {0, rows}), sum, {to});
}

template <class T>
void Recursion<T>::leave_block(const ops::Context& context, const Visit& visit,
                               std::size_t rows) const {
  ops::add<T>(context, output(rows), narrow_rows(answers(visit.pass) ? y_ : z_, rows));
}

template <class T>
void Recursion<T>::begin_backward(const ops::Context& context, std::size_t step) const {
  if (by_block_ && !carried(step)) Kokkos::deep_copy(context.space, dz_, T(0.0f));
}

template <class T>
void Recursion<T>::backward_block(const ops::Context& context, const Visit& visit, std::size_t kept,
                                  Matrix<const T> gradient) const {
  const Entry& entry = entries_[kept % entries_.size()];
  norm_.backward(context, gains_[visit.layer], entry.norm, entry.sum, gradient, {}, output_);
  if (!answers(visit.pass)) ops::add<T>(context, output_, dx_);
  ops::add<T>(context, output_, dy_);
  ops::add<T>(context, output_, dz_);
}

template <class T>
void Recursion<T>::end_backward(const ops::Context& context, std::size_t step) const {
  if (!by_block_ || step > 0) return;
  if (from_input()) return ops::add<T>(context, dy_, dx_);
  ops::column_sums<T>(context, dy_, answer_.gradient);
  ops::column_sums<T>(context, dz_, latent_.gradient);
}

template class Recursion<float>;
template class Recursion<double>;
template class Recursion<bf16>;
template class Recursion<fp16>;

}  // namespace tern::model::detail
