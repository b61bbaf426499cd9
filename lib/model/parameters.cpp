#include "model/parameters.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/random.hpp"
#include "ops/ops.hpp"

namespace tern::model {
namespace {

constexpr std::size_t alignment = 16;

std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::string layer_name(std::int64_t layer, const char* rest) {
  return fmt::format("model/layers/{}/{}", layer, rest);
}

double embedding_std(const deck::Model& m) { return m.embed_std > 0 ? m.embed_std : m.init_std; }

/// Four elements a Philox call: a pure function of (seed, parameter, element).
struct Draw {
  double mean, std;
  std::uint64_t seed, parameter;

  template <class A>
  KOKKOS_FUNCTION void values(std::size_t group, A (&value)[4]) const {
    const Random4 words =
        philox(seed, Stream::initialization, parameter, static_cast<std::uint32_t>(group >> 32),
               static_cast<std::uint32_t>(group));
    const Normal2 a = normal2(words.word[0], words.word[1]);
    const Normal2 b = normal2(words.word[2], words.word[3]);
    const float normal[4] = {a.first, a.second, b.first, b.second};
    for (std::size_t i = 0; i < 4; ++i) value[i] = static_cast<A>(mean + std * normal[i]);
  }
};

/// A whole parameter.
template <class V>
struct DrawWhole {
  Vector<V> to;
  Draw draw;

  KOKKOS_FUNCTION void operator()(const std::size_t group) const {
    Accumulate<V> value[4];
    draw.values(group, value);
    for (std::size_t i = 0; i < 4; ++i)
      if (4 * group + i < to.extent(0)) to(4 * group + i) = static_cast<V>(value[i]);
  }
};

/// A part of one: `columns` of each row of `all`, from the element `first` of the whole on.
template <class V>
struct DrawPart {
  Vector<V> to;
  std::size_t columns, all, first;
  Draw draw;

  KOKKOS_FUNCTION void operator()(const std::size_t i) const {
    const std::size_t element = first + i / columns * all + i % columns;
    Accumulate<V> value[4];
    draw.values(element / 4, value);
    to(i) = static_cast<V>(value[element % 4]);
  }
};

template <class V>
void draw_parameter(const ops::Context& context, const Parameter& p, std::uint64_t seed,
                    const Vector<V>& to) {
  const Draw draw{p.init_mean, p.init_std, seed, p.place};
  if (p.shape == p.whole) {
    Kokkos::parallel_for("draw_normal",
                         Kokkos::RangePolicy<Device>(context.space, 0, (p.count + 3) / 4),
                         DrawWhole<V>{to, draw});
    return;
  }
  TERN_REQUIRE(p.shape.size() <= 2, "'{}' is divided in {} dimensions", p.name, p.shape.size());
  const bool rows = p.shape.size() == 2;
  const std::size_t all = rows ? p.whole[1] : p.whole[0];
  const std::size_t first = rows ? p.first[0] * all + p.first[1] : p.first[0];
  Kokkos::parallel_for("draw_normal", Kokkos::RangePolicy<Device>(context.space, 0, p.count),
                       DrawPart<V>{to, p.shape.back(), all, first, draw});
}

template <class V>
void draw_all(const ops::Context& context, const ParameterTree& tree, std::uint64_t seed,
              const Vector<V>& span) {
  Kokkos::deep_copy(context.space, span, V(0));
  for (const Parameter& p : tree.parameters()) {
    const Vector<V> to(span.data() + p.offset, p.count);
    if (p.init_std == 0)
      Kokkos::deep_copy(context.space, to, static_cast<V>(static_cast<Accumulate<V>>(p.init_mean)));
    else
      draw_parameter(context, p, seed, to);
  }
}

}  // namespace

ParameterTree::ParameterTree(const deck::Model& model, std::size_t parts, Division division) {
  TERN_REQUIRE(model.kv_heads > 0 && model.head_dim > 0 && model.ffn_hidden > 0,
               "the model is not resolved: kv_heads {}, head_dim {}, ffn_hidden {}", model.kv_heads,
               model.head_dim, model.ffn_hidden);
  lay_out(model, parts);
  if (division == Division::anywhere || parts == 1) return;
  // The parts grow by what does not fit, until all does.
  part_ = std::max(span_ / parts, round_up(largest_, alignment));
  for (lay_out(model, parts); span_ > parts * part_; lay_out(model, parts)) part_ = span_ / parts;
  span_ = parts * part_;
}

void ParameterTree::lay_out(const deck::Model& model, std::size_t parts) {
  parameters_.clear();
  index_.clear();
  span_ = 0;
  add_matrices(model);
  align();
  decayed_ = span_;
  add_vectors(model);
  span_ = round_up(span_, alignment * parts);
}

void ParameterTree::align() { span_ = round_up(span_, alignment); }

/// Aligns, and goes to the next part if the current one has no room for the next `elements`.
void ParameterTree::keep_together(std::size_t elements) {
  align();
  largest_ = std::max(largest_, elements);
  if (part_ > 0 && span_ % part_ + elements > part_) span_ = round_up(span_, part_);
}

void ParameterTree::add(std::string name, std::vector<std::size_t> shape, double mean, double std) {
  std::size_t elements = 1;
  for (const std::size_t extent : shape) elements *= extent;
  index_.emplace(name, parameters_.size());
  const std::vector<std::size_t> whole = shape, first(shape.size(), 0);
  parameters_.push_back({std::move(name), std::move(shape), span_, elements, mean, std, whole,
                         first, parameters_.size()});
  span_ += elements;
}

void ParameterTree::add_matrices(const deck::Model& m) {
  const std::size_t D = size(m.hidden), F = size(m.ffn_hidden);
  const std::size_t q = size(m.heads * m.head_dim), kv = size(m.kv_heads * m.head_dim);
  const double std = m.init_std;
  // Each block adds two projections to the residual stream (GPT-2, section 2.3).
  const double residual = m.init_scaled_residual ? std / std::sqrt(2.0 * m.layers) : std;
  add("model/embed_tokens/weight", {size(m.vocabulary), D}, 0, embedding_std(m));
  align();
  if (m.position == "learned") add("model/embed_positions/weight", {size(m.context), D}, 0, std);
  align();
  if (m.levels > 0) add("model/embed_levels/weight", {size(m.levels), D}, 0, std);
  for (std::int64_t l = 0; l < m.layers; ++l) {
    keep_together((q + 2 * kv) * D);
    add(layer_name(l, "self_attn/q_proj/weight"), {q, D}, 0, std);
    add(layer_name(l, "self_attn/k_proj/weight"), {kv, D}, 0, std);
    add(layer_name(l, "self_attn/v_proj/weight"), {kv, D}, 0, std);
    keep_together(D * q);
    add(layer_name(l, "self_attn/o_proj/weight"), {D, q}, 0, residual);
    keep_together((m.activation == "swiglu" ? 2 : 1) * F * D);
    if (m.activation == "swiglu") add(layer_name(l, "mlp/gate_proj/weight"), {F, D}, 0, std);
    add(layer_name(l, "mlp/up_proj/weight"), {F, D}, 0, std);
    keep_together(D * F);
    add(layer_name(l, "mlp/down_proj/weight"), {D, F}, 0, residual);
  }
  align();
  if (!m.tie_embeddings) add("lm_head/weight", {size(m.vocabulary), D}, 0, std);
}

void ParameterTree::add_vectors(const deck::Model& m) {
  const std::size_t D = size(m.hidden), E = size(m.head_dim), F = size(m.ffn_hidden);
  const std::size_t q = size(m.heads) * E, kv = size(m.kv_heads) * E;
  const auto norm = [&](const std::string& name) {
    align();
    add(name + "/weight", {D}, 1, 0);
    align();
    if (m.norm == "layernorm") add(name + "/bias", {D}, 0, 0);
  };
  for (std::int64_t l = 0; l < m.layers; ++l) {
    norm(layer_name(l, "input_layernorm"));
    if (m.attention_bias) {
      align();
      add(layer_name(l, "self_attn/q_proj/bias"), {q}, 0, 0);
      add(layer_name(l, "self_attn/k_proj/bias"), {kv}, 0, 0);
      add(layer_name(l, "self_attn/v_proj/bias"), {kv}, 0, 0);
      align();
      add(layer_name(l, "self_attn/o_proj/bias"), {D}, 0, 0);
    }
    if (m.qk_norm) {
      align();
      add(layer_name(l, "self_attn/q_norm/weight"), {E}, 1, 0);
      align();
      add(layer_name(l, "self_attn/k_norm/weight"), {E}, 1, 0);
    }
    norm(layer_name(l, "post_attention_layernorm"));
    if (m.ffn_bias) {
      align();
      if (m.activation == "swiglu") add(layer_name(l, "mlp/gate_proj/bias"), {F}, 0, 0);
      add(layer_name(l, "mlp/up_proj/bias"), {F}, 0, 0);
      align();
      add(layer_name(l, "mlp/down_proj/bias"), {D}, 0, 0);
    }
  }
  norm("model/norm");
  if (m.inner_steps == 0) return;
  // They begin as a token's embedding does, to which they are added.
  for (const char* state : {"model/initial_answer", "model/initial_latent"}) {
    align();
    add(state, {D}, 0, embedding_std(m));
  }
}

const Parameter& ParameterTree::at(const std::string& name) const {
  const auto found = index_.find(name);
  TERN_REQUIRE(found != index_.end(), "no parameter '{}'", name);
  return parameters_[found->second];
}

bool ParameterTree::has(const std::string& name) const { return index_.count(name) > 0; }

std::size_t ParameterTree::count() const {
  std::size_t sum = 0;
  for (const Parameter& p : parameters_) sum += p.count;
  return sum;
}

template <class T>
Parameters<T>::Parameters(const ParameterTree& tree, Holds holds, Arena& arena) {
  const bool training = holds == Holds::training;
  if (training && !std::is_same_v<T, Accumulate<T>>)
    master = arena.vector<Accumulate<T>>("master parameters", Term::parameters, tree.span());
  compute = arena.vector<T>("compute parameters", Term::parameters, tree.span());
  if constexpr (std::is_same_v<T, Accumulate<T>>) master = compute;
  if (training) gradient = arena.vector<Accumulate<T>>("gradients", Term::gradients, tree.span());
}

template <class T>
void Parameters<T>::initialize(const ops::Context& context, const ParameterTree& tree,
                               std::uint64_t seed) {
  if (!has_master()) return draw_all(context, tree, seed, compute);
  draw_all(context, tree, seed, master);
  refresh_compute(context);
}

template <class T>
void Parameters<T>::refresh_compute(const ops::Context& context) {
  if constexpr (std::is_same_v<T, Accumulate<T>>)
    (void)context;
  else if (has_master())
    ops::convert<Accumulate<T>, T>(context, master, compute);
}

template struct Parameters<float>;
template struct Parameters<double>;
template struct Parameters<bf16>;

}  // namespace tern::model
