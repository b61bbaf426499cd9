#include "transformers/detail/config.hpp"

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/utf8.hpp"

namespace tern::transformers::detail {
namespace {

using Json = nlohmann::ordered_json;

/// Settings of a config by name; collects all complaints about them.
class Settings {
 public:
  Settings(Json values, std::filesystem::path file)
      : values_(std::move(values)), file_(std::move(file)) {}

  const Json& at(const std::string& name) const {
    static const Json none;
    const auto found = values_.find(name);
    return found == values_.end() ? none : *found;
  }
  bool has(const std::string& name) const { return !at(name).is_null(); }

  /// Whether the setting is present, even as null.
  bool given(const std::string& name) const { return values_.contains(name); }

  std::int64_t count(const char* name) { return positive(name, at(name)); }
  std::int64_t count_or(const char* name, std::int64_t otherwise) {
    return has(name) ? positive(name, at(name)) : otherwise;
  }
  double number(const std::string& name, double otherwise) {
    if (!has(name)) return otherwise;
    if (!at(name).is_number()) return complain(name, "is not a number"), otherwise;
    return at(name).get<double>();
  }
  /// Also makes members of the object `name` available as "name.member".
  void flatten(const char* name) {
    const Json object = at(name);
    for (const auto& [below, value] : object.items())
      values_[fmt::format("{}.{}", name, below)] = value;
  }
  bool flag(const char* name, bool otherwise) {
    if (!has(name)) return otherwise;
    if (!at(name).is_boolean()) return complain(name, "is not true or false"), otherwise;
    return at(name).get<bool>();
  }
  /// Complains unless the setting is missing or one of `allowed`.
  void allow(const std::string& name, const std::vector<Json>& allowed) {
    if (!has(name)) return;
    for (const Json& value : allowed)
      if (at(name) == value) return;
    complain(name, fmt::format("is not supported (Tern supports {})", json_text(Json(allowed))));
  }
  void complain(const std::string& name, const std::string& what) {
    const auto found = values_.find(name);
    complaints_ +=
        fmt::format("\n  {} = {} {}", excerpt(name),
                    found == values_.end() ? "(missing)" : excerpt(json_text(*found), 200), what);
  }
  void finish() const {
    if (!complaints_.empty())
      user_error("{} describes a model that Tern cannot load:{}", file_.string(), complaints_);
  }

 private:
  std::int64_t positive(const char* name, const Json& value) {
    if (value.is_number_integer() && value.get<std::int64_t>() > 0)
      return value.get<std::int64_t>();
    complain(name, "is not a positive number");
    return 1;
  }

  Json values_;
  std::filesystem::path file_;
  std::string complaints_;
};

/// Complains about any rotary setting in the flattened object `name` other than the base.
void require_plain_rope(Settings& settings, const std::string& name) {
  for (const char* type : {"rope_type", "type"}) {
    const std::string full = fmt::format("{}.{}", name, type);
    if (settings.given(full) && settings.at(full) != "default")
      settings.complain(full, "is not supported (only \"default\")");
  }
  for (const auto& [key, value] : settings.at(name).items())
    if (value.is_object())
      settings.complain(fmt::format("{}.{}", name, key),
                        "is not supported (one base for all layers)");
  settings.allow(name + ".partial_rotary_factor", {1.0, 1});
}

/// Base of the rotary angles: rope_parameters in Transformers 5, rope_theta in older versions.
double rope_base(Settings& settings) {
  std::string base = "rope_theta";
  settings.number(base, 0);  // checked, even if overridden below
  for (const std::string name : {"rope_parameters", "rope_scaling"}) {
    if (!settings.has(name)) continue;
    if (!settings.at(name).is_object()) {
      settings.complain(name, "is not an object");
      continue;
    }
    settings.flatten(name.c_str());
    require_plain_rope(settings, name);
    if (settings.has(name + ".rope_theta")) base = name + ".rope_theta";
  }
  settings.allow("partial_rotary_factor", {1.0, 1});
  const double value = settings.number(base, 10000.0);
  if (!(value > 0)) settings.complain(base, "is not above 0");
  return value;
}

/// Settings of the MoE layers of Qwen3-MoE.
void read_experts(Settings& settings, deck::Model& m) {
  // num_local_experts in Transformers 5, num_experts in the hub's files.
  m.experts =
      settings.count(settings.has("num_local_experts") ? "num_local_experts" : "num_experts");
  m.experts_per_token = settings.count("num_experts_per_tok");
  m.expert_hidden = settings.count("moe_intermediate_size");
  m.renormalize_experts = settings.flag("norm_topk_prob", false);
  // Transformers adds this loss only if it returns the router's logits.
  const double weight = settings.number("router_aux_loss_coef", 0.001);
  m.router_loss = settings.flag("output_router_logits", false) ? weight : 0;
  if (weight < 0) settings.complain("router_aux_loss_coef", "is below 0");
  settings.allow("decoder_sparse_step", {1});
  settings.allow("mlp_only_layers", {Json::array()});
  if (m.experts_per_token > m.experts)
    settings.complain("num_experts_per_tok", "is more than the number of experts");
}

deck::Model read_llama(Settings& settings, const std::string& architecture) {
  const bool qwen3 = architecture != "LlamaForCausalLM";
  deck::Model m;
  m.layers = settings.count("num_hidden_layers");
  m.hidden = settings.count("hidden_size");
  m.heads = settings.count("num_attention_heads");
  m.kv_heads = settings.count_or("num_key_value_heads", m.heads);
  const bool experts = architecture == "Qwen3MoeForCausalLM";
  m.head_dim = settings.count_or("head_dim", qwen3 && !experts ? 128 : m.hidden / m.heads);
  m.ffn_hidden = settings.count("intermediate_size");
  m.context = settings.count("max_position_embeddings");
  m.vocabulary = settings.count("vocab_size");
  m.norm_eps = settings.number("rms_norm_eps", 1e-6);
  m.qk_norm = qwen3;
  m.attention_bias = settings.flag("attention_bias", false);
  m.ffn_bias = !qwen3 && settings.flag("mlp_bias", false);
  m.rope_base = rope_base(settings);
  m.tie_embeddings = settings.flag("tie_word_embeddings", false);
  m.init_std = settings.number("initializer_range", 0.02);
  if (experts) read_experts(settings, m);
  settings.allow("hidden_act", {"silu", "swish"});
  settings.allow("use_sliding_window", {false});
  if (const Json& types = settings.at("layer_types"); !types.is_null())
    if (!types.is_array() || std::any_of(types.begin(), types.end(),
                                         [](const Json& type) { return type != "full_attention"; }))
      settings.complain("layer_types", "is not supported (only full_attention)");
  return m;
}

deck::Model read_gpt2(Settings& settings) {
  deck::Model m;
  m.layers = settings.count("n_layer");
  m.hidden = settings.count("n_embd");
  m.heads = m.kv_heads = settings.count("n_head");
  m.head_dim = m.hidden / m.heads;
  m.ffn_hidden = settings.count_or("n_inner", 4 * m.hidden);
  m.context = settings.count_or("n_positions", settings.count_or("n_ctx", 1024));
  m.vocabulary = settings.count("vocab_size");
  m.activation = "gelu";
  m.norm = "layernorm";
  m.norm_eps = settings.number("layer_norm_epsilon", 1e-5);
  m.attention_bias = m.ffn_bias = true;
  m.position = "learned";
  m.tie_embeddings = settings.flag("tie_word_embeddings", true);
  m.init_std = settings.number("initializer_range", 0.02);
  settings.allow("activation_function", {"gelu_new", "gelu_pytorch_tanh"});
  settings.allow("scale_attn_weights", {true});
  settings.allow("scale_attn_by_inverse_layer_idx", {false});
  settings.allow("add_cross_attention", {false});
  return m;
}

/// Supported architectures and their model_type.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> known{
    {{"LlamaForCausalLM", "llama"},
     {"Qwen3ForCausalLM", "qwen3"},
     {"Qwen3MoeForCausalLM", "qwen3_moe"},
     {"GPT2LMHeadModel", "gpt2"}}};

/// Transformers uses model_type, people read architectures: the two must agree.
std::string architecture_in(const Json& config, const std::filesystem::path& file) {
  const Json listed = config.value("architectures", Json());
  const Json type = config.value("model_type", Json());
  const Json first = listed.is_array() && !listed.empty() ? listed[0] : Json();
  const Json name = listed.is_string() ? listed : first;
  const auto found = std::find_if(known.begin(), known.end(), [&](const auto& each) {
    return name.is_null() ? type == each.second : name == each.first;
  });
  if (found == known.end())
    user_error(
        "{}: a model of architectures = {} and model_type = {} is not supported; Tern supports "
        "LlamaForCausalLM, Qwen3ForCausalLM, Qwen3MoeForCausalLM, GPT2LMHeadModel",
        file.string(), excerpt(json_text(listed)), excerpt(json_text(type)));
  if (!type.is_null() && type != found->second)
    user_error(
        "{}: architectures = {} contradicts model_type = {}, by which Transformers takes it for "
        "another model; that of {} is \"{}\"",
        file.string(), excerpt(json_text(listed)), excerpt(json_text(type)), found->first,
        found->second);
  return std::string(found->first);
}

Json parse_file(const std::filesystem::path& file) {
  const std::string text =
      read_text(file, "a Transformers model is a folder with config.json and *.safetensors");
  try {
    Json config = parse_ordered_json(text);
    if (!config.is_object()) user_error("{} is not a JSON object", file.string());
    return config;
  } catch (const Json::exception& error) {
    user_error("{} is not a JSON object: {}", file.string(), reason(error));
  }
}

Json token_or_null(std::int64_t token) { return token < 0 ? Json() : Json(token); }

/// One number, or a list.
Json ends_of(const TransformersTokens& tokens) {
  if (tokens.ends.size() > 1) return Json(tokens.ends);
  return token_or_null(tokens.ends.empty() ? tokens.end : tokens.ends.front());
}

Json gpt2_config(const deck::Model& m) {
  return {{"model_type", "gpt2"},
          {"activation_function", "gelu_new"},
          {"attn_pdrop", 0.0},
          {"embd_pdrop", m.dropout},
          {"resid_pdrop", m.dropout},
          {"layer_norm_epsilon", m.norm_eps},
          {"n_embd", m.hidden},
          {"n_head", m.heads},
          {"n_inner", m.ffn_hidden},
          {"n_layer", m.layers},
          {"n_positions", m.context},
          {"scale_attn_weights", true},
          {"scale_attn_by_inverse_layer_idx", false}};
}

Json experts_config(const deck::Model& m) {
  return {{"model_type", "qwen3_moe"},
          {"decoder_sparse_step", 1},
          {"mlp_only_layers", Json::array()},
          {"moe_intermediate_size", m.expert_hidden},
          {"norm_topk_prob", m.renormalize_experts},
          {"num_experts", m.experts},
          {"num_experts_per_tok", m.experts_per_token},
          {"output_router_logits", m.router_loss > 0}};
}

Json llama_config(const deck::Model& m) {
  Json config = {{"model_type", m.qk_norm ? "qwen3" : "llama"},
                 {"attention_bias", m.attention_bias},
                 {"attention_dropout", 0.0},
                 {"head_dim", m.head_dim},
                 {"hidden_act", "silu"},
                 {"hidden_size", m.hidden},
                 {"intermediate_size", m.ffn_hidden},
                 {"max_position_embeddings", m.context},
                 {"num_attention_heads", m.heads},
                 {"num_hidden_layers", m.layers},
                 {"num_key_value_heads", m.kv_heads},
                 {"rms_norm_eps", m.norm_eps},
                 {"rope_parameters", {{"rope_theta", m.rope_base}, {"rope_type", "default"}}},
                 {"rope_theta", m.rope_base}};  // read by Transformers before 5
  if (m.qk_norm)
    config["use_sliding_window"] = false;
  else
    config["mlp_bias"] = m.ffn_bias;
  if (m.experts > 0) config.update(experts_config(m));
  if (m.router_loss > 0) config["router_aux_loss_coef"] = m.router_loss;
  return config;
}

}  // namespace

Config read_config(const std::filesystem::path& file) {
  const Json json = parse_file(file);
  Config result;
  result.architecture = architecture_in(json, file);
  Settings settings(json, file);
  result.model = result.architecture == "GPT2LMHeadModel"
                     ? read_gpt2(settings)
                     : read_llama(settings, result.architecture);
  if (settings.has("quantization_config"))
    settings.complain("quantization_config", "is not supported (float weights only)");
  settings.finish();
  if (result.model.heads % result.model.kv_heads != 0)
    user_error("{}: {} heads are not a multiple of {} key/value heads", file.string(),
               result.model.heads, result.model.kv_heads);
  return result;
}

std::string config_text(const std::string& architecture, const deck::Model& model, Dtype dtype,
                        const TransformersTokens& tokens) {
  Json config = {{"architectures", {architecture}}};
  config.update(architecture == "GPT2LMHeadModel" ? gpt2_config(model) : llama_config(model));
  config["vocab_size"] = model.vocabulary;
  config["initializer_range"] = model.init_std;
  config["tie_word_embeddings"] = model.tie_embeddings;
  config["bos_token_id"] = token_or_null(tokens.beginning);
  config["eos_token_id"] = token_or_null(tokens.end);
  config["dtype"] = config["torch_dtype"] = dtype == Dtype::f32 ? "float32" : "bfloat16";
  config["use_cache"] = true;
  return json_text(config, 2) + "\n";
}

std::string config_like(const std::string& original, bool own_head, bool float32,
                        const TransformersTokens& tokens) {
  Json config = try_ordered_json(original);
  TERN_REQUIRE(config.is_object(), "a config that has been read is none");
  const auto set = [&](const char* name, const Json& value) {
    if (config.contains(name)) config[name] = value;
  };
  if (float32) set("dtype", "float32"), set("torch_dtype", "float32");
  if (own_head) config["tie_word_embeddings"] = false;
  if (tokens.trained) config["eos_token_id"] = token_or_null(tokens.end);
  const bool same = config == try_ordered_json(original);
  return same ? original : json_text(config, 2) + "\n";
}

std::string generation_config_text(const TransformersTokens& tokens) {
  const Json config = {{"bos_token_id", token_or_null(tokens.beginning)},
                       {"eos_token_id", ends_of(tokens)},
                       {"use_cache", true}};
  return json_text(config, 2) + "\n";
}

std::string generation_config_like(const std::string& original, const TransformersTokens& tokens) {
  Json config = try_ordered_json(original);
  if (!config.is_object()) return generation_config_text(tokens);
  config["eos_token_id"] = ends_of(tokens);
  return json_text(config, 2) + "\n";
}

}  // namespace tern::transformers::detail
