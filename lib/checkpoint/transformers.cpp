#include "checkpoint/transformers.hpp"

#include "base/error.hpp"
#include "checkpoint/detail/files.hpp"
#include "checkpoint/detail/transformers_config.hpp"
#include "checkpoint/detail/transformers_names.hpp"

namespace tern::checkpoint {
namespace {

std::size_t elements(const std::vector<std::size_t>& shape) {
  std::size_t count = 1;
  for (const std::size_t extent : shape) count *= extent;
  return count;
}

/// GPT-2 files of the first kind lack the prefix.
std::string stored_name(const SafetensorsReader& weights, const std::string& name) {
  constexpr std::string_view prefix = "transformer.";
  if (!weights.has(name) && name.rfind(prefix, 0) == 0) {
    const std::string bare = name.substr(prefix.size());
    if (weights.has(bare)) return bare;
  }
  return name;
}

struct Wish {
  const char* name;
  std::string value;
  bool fits;
  const char* wanted;
};

/// "name = value (needs wanted)" of each wish that is not met; empty if all are.
std::string unmet(const std::vector<Wish>& wishes) {
  std::string text;
  for (const Wish& wish : wishes)
    if (!wish.fits)
      text += fmt::format("{}{} = {} (needs {})", text.empty() ? "" : ", ", wish.name, wish.value,
                          wish.wanted);
  return text;
}

std::string quoted(const std::string& text) { return "'" + text + "'"; }
std::string flag(bool value) { return value ? ".true." : ".false."; }

Wish once(const deck::Model& m) {
  return {"inner_steps", std::to_string(m.inner_steps), m.inner_steps == 0, "0"};
}
Wish uncapped(const deck::Model& m) {
  return {"logit_cap", fmt::format("{}", m.logit_cap), m.logit_cap == 0, "0"};
}

std::vector<Wish> llama_wishes(const deck::Model& m) {
  return {{"activation", quoted(m.activation), m.activation == "swiglu", "'swiglu'"},
          {"norm", quoted(m.norm), m.norm == "rmsnorm", "'rmsnorm'"},
          {"position", quoted(m.position), m.position == "rope", "'rope'"},
          {"ffn_bias", flag(m.ffn_bias), !(m.qk_norm && m.ffn_bias), ".false. with qk_norm"},
          once(m),
          uncapped(m)};
}

std::vector<Wish> gpt2_wishes(const deck::Model& m) {
  return {
      {"activation", quoted(m.activation), m.activation == "gelu", "'gelu'"},
      {"norm", quoted(m.norm), m.norm == "layernorm", "'layernorm'"},
      {"position", quoted(m.position), m.position == "learned", "'learned'"},
      {"attention_bias", flag(m.attention_bias), m.attention_bias, ".true."},
      {"ffn_bias", flag(m.ffn_bias), m.ffn_bias, ".true."},
      {"qk_norm", flag(m.qk_norm), !m.qk_norm, ".false."},
      {"kv_heads", std::to_string(m.kv_heads), m.kv_heads == m.heads, "as many as heads"},
      {"head_dim", std::to_string(m.head_dim), m.head_dim * m.heads == m.hidden, "hidden / heads"},
      once(m),
      uncapped(m)};
}

}  // namespace

TransformersReader::TransformersReader(const std::filesystem::path& directory)
    : TransformersReader(directory, detail::read_config(directory / "config.json")) {}

TransformersReader::TransformersReader(const std::filesystem::path& directory,
                                       const detail::Config& config)
    : directory_(directory),
      model_(config.model),
      architecture_(config.architecture),
      weights_(directory) {}

std::vector<float> TransformersReader::read(const std::string& name,
                                            const std::vector<std::size_t>& shape) const {
  const detail::Place place = detail::place_of(architecture_, name);
  const std::string stored = stored_name(weights_, place.tensor);
  if (!weights_.has(stored))
    user_error("{} has no tensor '{}', which its config.json asks for", directory_.string(),
               place.tensor);
  const std::vector<std::size_t> wanted = detail::tensor_shape(place, shape);
  if (weights_.shape(stored) != wanted)
    user_error("{}: tensor '{}' has shape ({}), config.json asks for ({})", directory_.string(),
               stored, fmt::join(weights_.shape(stored), ", "), fmt::join(wanted, ", "));
  return detail::extract(place, shape, weights_.read(stored));
}

std::string transformers_architecture(const deck::Model& model) {
  const std::string llama = unmet(llama_wishes(model)), gpt2 = unmet(gpt2_wishes(model));
  if (llama.empty()) return model.qk_norm ? "Qwen3ForCausalLM" : "LlamaForCausalLM";
  if (gpt2.empty()) return "GPT2LMHeadModel";
  user_error(
      "no architecture of Transformers is this model: {} differs in {}; GPT2LMHeadModel in {}",
      model.qk_norm ? "Qwen3ForCausalLM" : "LlamaForCausalLM", llama, gpt2);
}

void export_transformers(const std::filesystem::path& directory, const deck::Model& model,
                         const std::vector<NamedArray>& arrays, Dtype dtype,
                         const TransformersTokens& tokens) {
  const std::string architecture = transformers_architecture(model);
  std::map<std::string, std::pair<std::vector<std::size_t>, std::vector<float>>> tensors;
  for (const NamedArray& array : arrays) {
    const detail::Place place = detail::place_of(architecture, array.name);
    auto& [shape, values] = tensors[place.tensor];
    shape = detail::tensor_shape(place, array.shape);
    values.resize(elements(shape));
    detail::insert(place, array.shape, array.data, values);
  }
  std::vector<NamedArray> named;
  for (const auto& [name, tensor] : tensors)
    named.push_back({name, tensor.first, tensor.second.data()});
  try {
    std::filesystem::create_directories(directory);
    write_safetensors(directory / "model.safetensors", named, dtype, {{"format", "pt"}});
    detail::write_durably(directory / "generation_config.json",
                          detail::generation_config_text(tokens));
    detail::write_durably(directory / "config.json",
                          detail::config_text(architecture, model, dtype, tokens));
  } catch (const detail::FileError& error) {
    user_error("cannot export to {}: {}", directory.string(), error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    user_error("cannot export to {}: {}", directory.string(), error.what());
  }
}

}  // namespace tern::checkpoint
