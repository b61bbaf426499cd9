#include "model/detail/state.hpp"

namespace tern::model::detail {

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
  s.up = matrix("/up", size.up);
  s.activated = matrix("/activated", size.F);
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
                       &s.middle, &s.normed_ffn, &s.up, &s.activated})
    *m = narrow_rows(*m, N);
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
