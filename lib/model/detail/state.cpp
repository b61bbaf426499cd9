#include "model/detail/state.hpp"

namespace tern::model::detail {
namespace {

template <class T>
RouterState<T> request_router(Arena& arena, const std::string& label, const Dimensions& size,
                              std::size_t N) {
  using A = Accumulate<T>;
  using Index = std::int32_t;
  const auto name = [&](const char* of) { return label + "/router/" + of; };
  RouterState<T> s;
  s.probabilities = arena.matrix<A>(name("probabilities"), Term::activations, N, size.X);
  s.weights = arena.matrix<A>(name("weights"), Term::activations, N, size.k);
  s.routing.experts = arena.matrix<Index>(name("experts"), Term::activations, N, size.k);
  s.routing.offsets = arena.vector<Index>(name("offsets"), Term::activations, size.X + 1);
  s.routing.pairs = arena.vector<Index>(name("pairs"), Term::activations, N * size.k);
  s.routing.tokens = arena.vector<Index>(name("tokens"), Term::activations, N * size.k);
  s.routing.rows = arena.matrix<Index>(name("rows"), Term::activations, N, size.k);
  return s;
}

}  // namespace

template <class T>
LayerState<T> request_state(Arena& arena, const std::string& label, const Dimensions& size,
                            const StateOptions& options) {
  using A = Accumulate<T>;
  const std::size_t N = options.batch * options.tokens;
  const auto matrix = [&](const char* name, std::size_t columns) {
    return arena.matrix<T>(label + name, Term::activations, N, columns);
  };
  const auto vector = [&](const char* name, std::size_t count) {
    return arena.vector<A>(label + name, Term::activations, count);
  };
  LayerState<T> s;
  s.normed_attention = matrix("/normed_attention", size.D);
  s.qkv = matrix("/qkv", size.qkv);
  if (options.qk_norm) {
    s.q_saved = matrix("/q_saved", size.H * size.E);
    s.k_saved = matrix("/k_saved", size.K * size.E);
    s.rstd_q = vector("/rstd_q", N * size.H);
    s.rstd_k = vector("/rstd_k", N * size.K);
  }
  s.attention = matrix("/attention", size.H * size.E);
  s.lse =
      arena.matrix<A>(label + "/lse", Term::activations, options.batch * size.H, options.tokens);
  if (options.training) s.middle = matrix("/middle", size.D);
  s.normed_ffn = options.training ? matrix("/normed_ffn", size.D) : s.normed_attention;
  s.up = arena.matrix<T>(label + "/up", Term::activations, N * size.k, size.up);
  s.activated = arena.matrix<T>(label + "/activated", Term::activations, N * size.k, size.F);
  if (size.X > 0) s.router = request_router<T>(arena, label, size, N);
  s.rstd1 = vector("/rstd1", N);
  s.rstd2 = options.training ? vector("/rstd2", N) : s.rstd1;
  if (options.layernorm) {
    s.mean1 = vector("/mean1", N);
    s.mean2 = options.training ? vector("/mean2", N) : s.mean1;
  }
  return s;
}

template <class T>
LayerState<T> narrow(const LayerState<T>& whole, const Dimensions& size, std::size_t batch,
                     std::size_t tokens) {
  const std::size_t N = batch * tokens;
  LayerState<T> s = whole;
  for (Matrix<T>* m : {&s.input, &s.normed_attention, &s.qkv, &s.q_saved, &s.k_saved, &s.attention,
                       &s.middle, &s.normed_ffn})
    *m = narrow_rows(*m, N);
  for (Matrix<T>* m : {&s.up, &s.activated}) *m = narrow_rows(*m, N * size.k);
  s.router.probabilities = narrow_rows(s.router.probabilities, N);
  s.router.weights = narrow_rows(s.router.weights, N);
  ops::Routing& routing = s.router.routing;
  for (Matrix<std::int32_t>* m : {&routing.experts, &routing.rows}) *m = narrow_rows(*m, N);
  for (Vector<std::int32_t>* v : {&routing.pairs, &routing.tokens})
    *v = narrow_rows(*v, N * size.k);
  for (Vector<Accumulate<T>>* v : {&s.mean1, &s.rstd1, &s.mean2, &s.rstd2}) *v = narrow_rows(*v, N);
  s.rstd_q = narrow_rows(s.rstd_q, N * size.H);
  s.rstd_k = narrow_rows(s.rstd_k, N * size.K);
  s.lse = as_matrix(whole.lse.data(), batch * size.H, tokens);
  return s;
}

template LayerState<float> request_state(Arena&, const std::string&, const Dimensions&,
                                         const StateOptions&);
template LayerState<double> request_state(Arena&, const std::string&, const Dimensions&,
                                          const StateOptions&);
template LayerState<bf16> request_state(Arena&, const std::string&, const Dimensions&,
                                        const StateOptions&);
template LayerState<float> narrow(const LayerState<float>&, const Dimensions&, std::size_t,
                                  std::size_t);
template LayerState<double> narrow(const LayerState<double>&, const Dimensions&, std::size_t,
                                   std::size_t);
template LayerState<bf16> narrow(const LayerState<bf16>&, const Dimensions&, std::size_t,
                                 std::size_t);

}  // namespace tern::model::detail
