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

/// Each block adds two projections to the residual stream (GPT-2, section 2.3).
double residual_std(const deck::Model& m) {
  return m.init_scaled_residual ? m.init_std / std::sqrt(2.0 * m.layers) : m.init_std;
}

}  // namespace

ParameterTree::ParameterTree(const deck::Model& model, std::size_t parts, Division division,
                             const Share& share)
    : share_(share), kv_heads_(size(model.kv_heads)) {
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
  place_ = 0;
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

/// Aligns, and if the current part has no room for the next `count` groups of `elements`, which
/// follow each other at equal distances, moves them such that the next part begins with a group.
void ParameterTree::keep_together(std::size_t elements, std::size_t count) {
  if (!here_) return;
  align();
  const std::size_t group = round_up(elements, alignment);
  largest_ = std::max(largest_, count * group);
  if (part_ == 0) return;
  const std::size_t room = part_ - span_ % part_;
  if (count * group > room) span_ += room % group;
}

/// `shape` is the whole's. What is not here only takes its place.
void ParameterTree::add(std::string name, std::vector<std::size_t> shape, double mean, double std,
                        Held held) {
  const std::uint64_t place = place_++;
  if (!here_) return;
  Parameter p{std::move(name), shape, span_, 1, mean, std, shape, {}, place};
  p.first.assign(shape.size(), 0);
  const auto cut = [&](std::size_t dimension, std::size_t part, std::size_t parts) {
    TERN_REQUIRE(shape[dimension] % parts == 0, "'{}' of {} in {} parts", p.name, shape[dimension],
                 parts);
    p.shape[dimension] /= parts;
    p.first[dimension] = part * p.shape[dimension];
  };
  const std::size_t rank = share_.tensor, ranks = share_.tensors;
  if (held == Held::rows) cut(0, rank, ranks);
  if (held == Held::columns) cut(1, rank, ranks);
  if (held == Held::kv_rows) {
    const std::size_t holders = std::max<std::size_t>(1, ranks / kv_heads_);
    cut(0, rank / holders, ranks / holders);
    p.counted = rank % holders == 0;
    if (holders > 1) p.summed = Summed::sharers;
  }
  if (held == Held::whole || held == Held::whole_of_heads) p.counted = rank == 0;
  if (held == Held::whole_of_heads && ranks > 1) p.summed = Summed::tensor;
  for (const std::size_t extent : p.shape) p.count *= extent;
  index_.emplace(p.name, parameters_.size());
  span_ += p.count;
  parameters_.push_back(std::move(p));
}

bool ParameterTree::holds_layer(const deck::Model& m, std::int64_t layer) const {
  const Layers held = layers_of(m, share_);
  return size(layer) >= held.first && size(layer) < held.end;
}

void ParameterTree::add_matrices(const deck::Model& m) {
  const std::size_t D = size(m.hidden), F = size(m.ffn_hidden);
  const std::size_t q = size(m.heads * m.head_dim), kv = size(m.kv_heads * m.head_dim);
  const double std = m.init_std, residual = residual_std(m);
  here_ = share_.first() || (share_.last() && m.tie_embeddings);
  begin_unit(-1);
  add("model/embed_tokens/weight", {size(m.vocabulary), D}, 0, embedding_std(m), Held::rows);
  if (here_ && m.tie_embeddings && share_.stages > 1) {
    parameters_.back().counted = share_.first();
    parameters_.back().summed = Summed::ends;
  }
  here_ = share_.first();
  align();
  if (m.position == "learned") add("model/embed_positions/weight", {size(m.context), D}, 0, std);
  align();
  if (m.levels > 0) add("model/embed_levels/weight", {size(m.levels), D}, 0, std);
  for (std::int64_t l = 0; l < m.layers; ++l) {
    here_ = holds_layer(m, l);
    if (here_) begin_unit(l);
    keep_together((q + 2 * kv) * D);
    add(layer_name(l, "self_attn/q_proj/weight"), {q, D}, 0, std, Held::rows);
    add(layer_name(l, "self_attn/k_proj/weight"), {kv, D}, 0, std, Held::kv_rows);
    add(layer_name(l, "self_attn/v_proj/weight"), {kv, D}, 0, std, Held::kv_rows);
    keep_together(D * q);
    add(layer_name(l, "self_attn/o_proj/weight"), {D, q}, 0, residual, Held::columns);
    if (m.experts > 0) {
      add_experts(m, l);
      continue;
    }
    keep_together((m.activation == "swiglu" ? 2 : 1) * F * D);
    if (m.activation == "swiglu")
      add(layer_name(l, "mlp/gate_proj/weight"), {F, D}, 0, std, Held::rows);
    add(layer_name(l, "mlp/up_proj/weight"), {F, D}, 0, std, Held::rows);
    keep_together(D * F);
    add(layer_name(l, "mlp/down_proj/weight"), {D, F}, 0, residual, Held::columns);
  }
  here_ = share_.last();
  if (!m.tie_embeddings) {
    begin_unit(-1);
    add("lm_head/weight", {size(m.vocabulary), D}, 0, std, Held::rows);
  }
  here_ = true;
}

void ParameterTree::add_experts(const deck::Model& m, std::int64_t layer) {
  const std::size_t D = size(m.hidden), F = size(m.expert_hidden), X = size(m.experts);
  const auto name = [&](std::size_t expert, const char* module) {
    return layer_name(layer, fmt::format("mlp/experts/{}/{}/weight", expert, module).c_str());
  };
  keep_together(X * D);
  add(layer_name(layer, "mlp/gate/weight"), {X, D}, 0, m.init_std);
  keep_together(2 * F / share_.tensors * D, X);
  for (std::size_t e = 0; e < X; ++e, align()) {
    add(name(e, "gate_proj"), {F, D}, 0, m.init_std, Held::rows);
    add(name(e, "up_proj"), {F, D}, 0, m.init_std, Held::rows);
  }
  keep_together(D * (F / share_.tensors), X);
  for (std::size_t e = 0; e < X; ++e, align())
    add(name(e, "down_proj"), {D, F}, 0, residual_std(m), Held::columns);
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
    here_ = holds_layer(m, l);
    norm(layer_name(l, "input_layernorm"));
    if (m.attention_bias) {
      align();
      add(layer_name(l, "self_attn/q_proj/bias"), {q}, 0, 0, Held::rows);
      add(layer_name(l, "self_attn/k_proj/bias"), {kv}, 0, 0, Held::kv_rows);
      add(layer_name(l, "self_attn/v_proj/bias"), {kv}, 0, 0, Held::kv_rows);
      align();
      add(layer_name(l, "self_attn/o_proj/bias"), {D}, 0, 0);
    }
    if (m.qk_norm) {
      align();
      add(layer_name(l, "self_attn/q_norm/weight"), {E}, 1, 0, Held::whole_of_heads);
      align();
      add(layer_name(l, "self_attn/k_norm/weight"), {E}, 1, 0, Held::whole_of_heads);
    }
    norm(layer_name(l, "post_attention_layernorm"));
    if (m.ffn_bias) {
      align();
      if (m.activation == "swiglu") add(layer_name(l, "mlp/gate_proj/bias"), {F}, 0, 0, Held::rows);
      add(layer_name(l, "mlp/up_proj/bias"), {F}, 0, 0, Held::rows);
      align();
      add(layer_name(l, "mlp/down_proj/bias"), {D}, 0, 0);
    }
  }
  here_ = share_.last();
  norm("model/norm");
  here_ = true;
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

std::vector<Section> ParameterTree::sections(std::size_t part, std::size_t parts) const {
  std::vector<Section> result;
  std::size_t local = 0;
  for (const Unit& unit : units_) {
    const std::size_t count = unit.count / parts;
    TERN_REQUIRE(count * parts == unit.count, "a unit of {} in {} parts", unit.count, parts);
    result.push_back({local, unit.first + part * count, count});
    local += count;
  }
  return result;
}

std::vector<ParameterTree::Stretch> ParameterTree::counted() const {
  std::vector<Stretch> stretches;
  bool going_on = false;
  for (const Parameter& p : parameters_) {
    if (p.counted && !going_on) stretches.push_back({p.offset, 0});
    if (!p.counted && going_on) stretches.back().end = p.offset;
    going_on = p.counted;
  }
  if (going_on) stretches.back().end = span_;
  return stretches;
}

template <class T>
Parameters<T>::Parameters(const ParameterTree& tree, Holds holds, Arena& arena)
    : Parameters(holds, {{0, 0, tree.span()}}, arena) {}

template <class T>
Parameters<T>::Parameters(const ParameterTree& tree, Holds holds, comm::Group& group, Arena& arena)
    : Parameters(holds,
                 tree.sections(static_cast<std::size_t>(group.rank()),
                               static_cast<std::size_t>(group.size())),
                 arena) {
  residence = std::make_shared<Residence<T>>(tree, compute, gradient, group, arena);
}

template <class T>
Parameters<T>::Parameters(Holds holds, std::vector<Section> where, Arena& arena)
    : sections(std::move(where)) {
  const std::size_t count = sections.back().local + sections.back().count;
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

template <class T>
void Parameters<T>::complete_gradients(const ops::Context& context,
                                       const ParameterTree& tree) const {
  const comm::Mesh* mesh = tree.share().mesh;
  if (!mesh || mesh->replica().size() == 1) return;
#if !defined(KOKKOS_ENABLE_CUDA)
  context.fence("gradients before MPI");
#endif
  for (const Parameter& p : tree.parameters()) {
    Accumulate<T>* values = gradient.data() + p.offset;
    if (p.summed == Summed::tensor) mesh->tensor().all_reduce(values, p.count, context.stream());
    if (p.summed == Summed::sharers) mesh->sharers().all_reduce(values, p.count, context.stream());
    if (p.summed == Summed::ends) mesh->ends().all_reduce(values, p.count, context.stream());
  }
}

template struct Parameters<float>;
template struct Parameters<double>;
template struct Parameters<bf16>;

}  // namespace tern::model
