#include "transformers/directory.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "base/error.hpp"
#include "base/types.hpp"
#include "transformers/detail/config.hpp"
#include "transformers/detail/names.hpp"

namespace tern::transformers {
namespace {

/// Early GPT-2 files lack the prefix.
std::string stored_name(const SafetensorsReader& weights, const std::string& name) {
  constexpr std::string_view prefix = "transformer.";
  if (!weights.has(name) && name.rfind(prefix, 0) == 0) {
    const std::string bare = name.substr(prefix.size());
    if (weights.has(bare)) return bare;
  }
  return name;
}

/// The fault of the stored tensor; empty: none.
std::string mismatch(const SafetensorsReader& weights, const detail::TensorLocation& location) {
  if (!weights.has(location.tensor))
    return fmt::format("has no tensor '{}', which its config.json requires", location.tensor);
  const std::vector<std::size_t> shape = weights.shape(location.tensor);
  if (shape == location.shape) return "";
  return fmt::format("tensor '{}' has shape ({}), and config.json requires ({})", location.tensor,
                     fmt::join(shape, ", "), fmt::join(location.shape, ", "));
}

/// Tensors in files that Transformers itself recomputes: the head of tied embeddings, rotary
/// frequencies, the causal mask of old GPT-2 files.
bool is_surplus(const std::string& name, bool tied) {
  return (tied && name == "lm_head.weight") || name.ends_with(".rotary_emb.inv_freq") ||
         name.ends_with(".attn.masked_bias") || name.ends_with(".attn.bias");
}

/// Whether config.json ties the head to the embeddings although the files hold a different head.
/// Transformers 5 keeps a head that differs and ties one that is equal.
bool holds_own_head(const SafetensorsReader& weights, const detail::Config& config) {
  const std::string head = "lm_head.weight";
  if (!config.model.tie_embeddings || !weights.has(head)) return false;
  const std::string embeddings = stored_name(
      weights,
      detail::location_of(config.architecture, "model/embed_tokens/weight", {1, 1}).tensor);
  if (!weights.has(embeddings)) return false;
  const std::vector<std::size_t> shape = weights.shape(head);
  if (shape.size() != 2 || shape != weights.shape(embeddings)) return true;
  constexpr std::size_t together = std::size_t{1} << 20;
  const std::size_t rows = std::max<std::size_t>(1, together / std::max<std::size_t>(1, shape[1]));
  std::vector<float> a(std::min(rows, shape[0]) * shape[1]), b(a.size());
  for (std::size_t row = 0; row < shape[0]; row += rows) {
    const Part part{row, std::min(rows, shape[0] - row), 0, shape[1]};
    weights.read(head, part, a.data());
    weights.read(embeddings, part, b.data());
    if (std::memcmp(a.data(), b.data(), part.rows * part.columns * sizeof(float)) != 0) return true;
  }
  return false;
}

/// The first few faults of a list, and their number.
struct Faults {
  std::size_t count = 0;
  std::string shown = {};
  void add(const std::string& fault) {
    if (++count <= 8) shown += "\n  " + fault;
  }
  std::string text() const {
    return count <= 8 ? shown : fmt::format("{}\n  and {} more", shown, count - 8);
  }
};

struct Requirement {
  const char* name;
  std::string value;
  bool fits;
  const char* wanted;
};

/// "name = value (needs wanted)" for each unmet requirement; empty if all are met.
std::string unmet(const std::vector<Requirement>& requirements) {
  std::string text;
  for (const Requirement& requirement : requirements)
    if (!requirement.fits)
      text += fmt::format("{}{} = {} (needs {})", text.empty() ? "" : ", ", requirement.name,
                          requirement.value, requirement.wanted);
  return text;
}

std::string quoted(const std::string& text) { return "'" + text + "'"; }
std::string flag(bool value) { return value ? ".true." : ".false."; }

Requirement once(const deck::Model& m) {
  return {"inner_steps", std::to_string(m.inner_steps), m.inner_steps == 0, "0"};
}
Requirement uncapped(const deck::Model& m) {
  return {"logit_cap", fmt::format("{}", m.logit_cap), m.logit_cap == 0, "0"};
}
/// Adds those of all architectures: none has connections, value embeddings or a window.
std::vector<Requirement> with_plain_blocks(std::vector<Requirement> all, const deck::Model& m) {
  all.push_back({"skip_connections", flag(m.skip_connections), !m.skip_connections, ".false."});
  all.push_back({"input_shortcut", flag(m.input_shortcut), !m.input_shortcut, ".false."});
  all.push_back(
      {"value_embeddings", std::to_string(m.value_embeddings), m.value_embeddings == 0, "0"});
  all.push_back({"window", std::to_string(m.window), m.window == 0 || m.window >= m.context,
                 "0, or context"});
  return all;
}

std::vector<Requirement> llama_requirements(const deck::Model& m) {
  return {{"activation", quoted(m.activation), m.activation == "swiglu", "'swiglu'"},
          {"experts", std::to_string(m.experts), m.experts == 0 || m.qk_norm, "0 without qk_norm"},
          {"norm", quoted(m.norm), m.norm == "rmsnorm", "'rmsnorm'"},
          {"position", quoted(m.position), m.position == "rope", "'rope'"},
          {"ffn_bias", flag(m.ffn_bias), !(m.qk_norm && m.ffn_bias), ".false. with qk_norm"},
          once(m),
          uncapped(m)};
}

std::vector<Requirement> gpt2_requirements(const deck::Model& m) {
  return {
      {"activation", quoted(m.activation), m.activation == "gelu", "'gelu'"},
      {"norm", quoted(m.norm), m.norm == "layernorm", "'layernorm'"},
      {"position", quoted(m.position), m.position == "learned", "'learned'"},
      {"attention_bias", flag(m.attention_bias), m.attention_bias, ".true."},
      {"ffn_bias", flag(m.ffn_bias), m.ffn_bias, ".true."},
      {"qk_norm", flag(m.qk_norm), !m.qk_norm, ".false."},
      {"experts", std::to_string(m.experts), m.experts == 0, "0"},
      {"kv_heads", std::to_string(m.kv_heads), m.kv_heads == m.heads, "same as heads"},
      {"head_dim", std::to_string(m.head_dim), m.head_dim * m.heads == m.hidden, "hidden / heads"},
      once(m),
      uncapped(m)};
}

}  // namespace

bool is_transformers(const std::filesystem::path& directory) {
  return std::filesystem::exists(directory / "config.json");
}

deck::Model transformers_model(const std::filesystem::path& directory) {
  detail::Config config = detail::read_config(directory / "config.json");
  std::optional<SafetensorsReader> weights;
  try {
    if (config.model.tie_embeddings) weights.emplace(directory);
  } catch (const UserError&) {  // optional here; reported by TransformersReader when needed
    return config.model;
  }
  if (weights && holds_own_head(*weights, config)) config.model.tie_embeddings = false;
  return config.model;
}

TransformersReader::TransformersReader(const std::filesystem::path& directory)
    : TransformersReader(directory, detail::read_config(directory / "config.json")) {}

TransformersReader::TransformersReader(const std::filesystem::path& directory,
                                       const detail::Config& config)
    : directory_(directory),
      model_(config.model),
      architecture_(config.architecture),
      weights_(directory),
      own_head_(holds_own_head(weights_, config)) {
  if (own_head_) model_.tie_embeddings = false;
}

/// Actual or expected location of the parameter in the files.
detail::TensorLocation TransformersReader::location(const std::string& name,
                                                    const std::vector<std::size_t>& shape) const {
  detail::TensorLocation location = detail::location_of(architecture_, name, shape);
  location.tensor = stored_name(weights_, location.tensor);
  if (weights_.has(location.tensor)) return location;
  const auto fused = detail::fused_location(name, shape, static_cast<std::size_t>(model_.experts));
  return fused && weights_.has(fused->tensor) ? *fused : location;
}

detail::TensorLocation TransformersReader::stored_location(
    const std::string& name, const std::vector<std::size_t>& shape) const {
  detail::TensorLocation found = location(name, shape);
  if (const std::string wrong = mismatch(weights_, found); !wrong.empty())
    user_error("{}: {}", directory_.string(), wrong);
  return found;
}

void TransformersReader::require(const std::vector<Described>& parameters) const {
  Faults faults;
  std::set<std::string> known;
  for (const Described& p : parameters) {
    const detail::TensorLocation found = location(p.name, p.shape);
    if (!known.insert(found.tensor).second) continue;
    if (const std::string wrong = mismatch(weights_, found); !wrong.empty()) faults.add(wrong);
  }
  for (const std::string& name : weights_.names())
    if (!known.contains(name) && !is_surplus(name, model_.tie_embeddings))
      faults.add(fmt::format("tensor '{}' is not part of the model", name));
  if (faults.count > 0)
    user_error("{}: the weights do not match its config.json:{}", directory_.string(),
               faults.text());
}

template <class V>
void TransformersReader::read(const std::string& name, const std::vector<std::size_t>& shape,
                              const Part& part, V* to) const {
  const detail::TensorLocation found = stored_location(name, shape);
  const Part stored = detail::part_in_tensor(found, part);
  if (!found.transposed) return weights_.read(found.tensor, stored, to);
  std::vector<V> turned(part.rows * part.columns);
  weights_.read(found.tensor, stored, turned.data());
  for (std::size_t r = 0; r < part.rows; ++r)
    for (std::size_t c = 0; c < part.columns; ++c)
      to[r * part.columns + c] = turned[c * part.rows + r];
}

std::vector<float> TransformersReader::read(const std::string& name,
                                            const std::vector<std::size_t>& shape) const {
  const std::size_t columns = shape.back();
  const std::size_t rows = shape.size() > 1 ? shape[0] : 1;
  std::vector<float> values(rows * columns);
  read(name, shape, {0, rows, 0, columns}, values.data());
  return values;
}

const std::string& TransformersReader::dtype(const Described& p) const {
  return weights_.dtype(stored_location(p.name, p.shape).tensor);
}

std::pair<std::size_t, std::size_t> TransformersReader::position(const Described& p) const {
  const detail::TensorLocation found = stored_location(p.name, p.shape);
  auto [file, byte] = weights_.position(found.tensor);
  return {file, byte + found.first};
}

template void TransformersReader::read(const std::string&, const std::vector<std::size_t>&,
                                       const Part&, float*) const;
template void TransformersReader::read(const std::string&, const std::vector<std::size_t>&,
                                       const Part&, bf16*) const;
template void TransformersReader::read(const std::string&, const std::vector<std::size_t>&,
                                       const Part&, fp16*) const;

std::string transformers_architecture(const deck::Model& model) {
  const std::string llama = unmet(with_plain_blocks(llama_requirements(model), model)),
                    gpt2 = unmet(with_plain_blocks(gpt2_requirements(model), model));
  const char* kind = model.experts > 0 ? "Qwen3MoeForCausalLM"
                     : model.qk_norm   ? "Qwen3ForCausalLM"
                                       : "LlamaForCausalLM";
  if (llama.empty()) return kind;
  if (gpt2.empty()) return "GPT2LMHeadModel";
  user_error(
      "this model has no architecture in Transformers: {} differs in {}; GPT2LMHeadModel in {}",
      kind, llama, gpt2);
}

}  // namespace tern::transformers
