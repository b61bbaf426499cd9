#include "model/parameters.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/random.hpp"
#include "model/residence.hpp"
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

}  // namespace

ParameterTree::ParameterTree(const deck::Model& model, std::size_t parts, Division division) {
  TERN_REQUIRE(model.kv_heads > 0 && model.head_dim > 0 && model.ffn_hidden > 0,
               "the model is not resolved: kv_heads {}, head_dim {}, ffn_hidden {}", model.kv_heads,
               model.head_dim, model.ffn_hidden);
  unit_line_ = alignment * (division == Division::units ? parts : 1);
  lay_out(model, parts);
  if (division != Division::whole_matrices || parts == 1) return;
  // The parts grow by what does not fit, until all does.
  part_ = std::max(span_ / parts, round_up(largest_, alignment));
  for (lay_out(model, parts); span_ > parts * part_; lay_out(model, parts)) part_ = span_ / parts;
  span_ = parts * part_;
}

void ParameterTree::lay_out(const deck::Model& model, std::size_t parts) {
  parameters_.clear();
  index_.clear();
  units_.clear();
  span_ = 0;
  add_matrices(model);
  begin_unit(-1);
  decayed_ = span_;
  add_vectors(model);
  span_ = round_up(span_, alignment * parts);
  units_.back().count = span_ - units_.back().first;
}

void ParameterTree::begin_unit(std::int64_t layer) {
  span_ = round_up(span_, unit_line_);
  if (!units_.empty()) units_.back().count = span_ - units_.back().first;
  units_.push_back({layer, span_, 0});
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
  begin_unit(-1);
  add("model/embed_tokens/weight", {size(m.vocabulary), D}, 0, embedding_std(m));
  align();
  if (m.position == "learned") add("model/embed_positions/weight", {size(m.context), D}, 0, std);
  align();
  if (m.levels > 0) add("model/embed_levels/weight", {size(m.levels), D}, 0, std);
  for (std::int64_t l = 0; l < m.layers; ++l) {
    begin_unit(l);
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
  if (m.tie_embeddings) return;
  begin_unit(-1);
  add("lm_head/weight", {size(m.vocabulary), D}, 0, std);
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

std::vector<Held> ParameterTree::held(std::size_t part, std::size_t parts) const {
  std::vector<Held> result;
  std::size_t local = 0;
  for (const Unit& unit : units_) {
    const std::size_t count = unit.count / parts;
    TERN_REQUIRE(count * parts == unit.count, "a unit of {} in {} parts", unit.count, parts);
    result.push_back({local, unit.first + part * count, count});
    local += count;
  }
  return result;
}

template <class T>
Parameters<T>::Parameters(const ParameterTree& tree, Holds holds, Arena& arena)
    : Parameters(holds, {{0, 0, tree.span()}}, arena) {}

template <class T>
Parameters<T>::Parameters(const ParameterTree& tree, Holds holds, comm::Group& group, Arena& arena)
    : Parameters(
          holds,
          tree.held(static_cast<std::size_t>(group.rank()), static_cast<std::size_t>(group.size())),
          arena) {
  residence = std::make_shared<Residence<T>>(tree, compute, gradient, group, arena);
}

template <class T>
Parameters<T>::Parameters(Holds holds, std::vector<Held> where, Arena& arena)
    : held(std::move(where)) {
  const std::size_t count = held.back().local + held.back().count;
  const bool training = holds == Holds::training;
  if (training && !std::is_same_v<T, Accumulate<T>>)
    master = arena.vector<Accumulate<T>>("master parameters", Term::parameters, count);
  compute = arena.vector<T>("compute parameters", Term::parameters, count);
  if constexpr (std::is_same_v<T, Accumulate<T>>) master = compute;
  if (training) gradient = arena.vector<Accumulate<T>>("gradients", Term::gradients, count);
}

template <class T>
void Parameters<T>::refresh_compute(const ops::Context& context) {
  if constexpr (!std::is_same_v<T, Accumulate<T>>)
    if (has_master()) ops::convert<Accumulate<T>, T>(context, master, compute);
  if (residence) residence->renew(context);
}

template struct Parameters<float>;
template struct Parameters<double>;
template struct Parameters<bf16>;

}  // namespace tern::model
