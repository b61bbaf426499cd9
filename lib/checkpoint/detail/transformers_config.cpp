#include "checkpoint/detail/transformers_config.hpp"

#include "base/error.hpp"
#include "base/json.hpp"
#include "checkpoint/detail/files.hpp"

namespace tern::checkpoint::detail {
namespace {

using Json = nlohmann::ordered_json;

/// Settings of a config by name, with everything that is wrong with them collected.
class Settings {
 public:
  Settings(Json values, std::filesystem::path file)
      : values_(std::move(values)), file_(std::move(file)) {}

  const Json& at(const char* name) const {
    static const Json none;
    const auto found = values_.find(name);
    return found == values_.end() ? none : *found;
  }
  bool has(const char* name) const { return !at(name).is_null(); }

  std::int64_t count(const char* name) { return positive(name, at(name)); }
  std::int64_t count_or(const char* name, std::int64_t otherwise) {
    return has(name) ? positive(name, at(name)) : otherwise;
  }
  double number(const char* name, double otherwise) {
    if (!has(name)) return otherwise;
    if (!at(name).is_number()) return complain(name, "is not a number"), otherwise;
    return at(name).get<double>();
  }
  bool flag(const char* name, bool otherwise) {
    if (!has(name)) return otherwise;
    if (!at(name).is_boolean()) return complain(name, "is not true or false"), otherwise;
    return at(name).get<bool>();
  }
  /// The setting may be missing, or one of these.
  void allow(const char* name, const std::vector<Json>& allowed) {
    if (!has(name)) return;
    for (const Json& value : allowed)
      if (at(name) == value) return;
    complain(name, fmt::format("is not supported (Tern has {})", json_text(Json(allowed))));
  }
  void complain(const std::string& name, const std::string& what) {
    const auto found = values_.find(name);
    complaints_ += fmt::format("\n  {} = {} {}", name,
                               found == values_.end() ? "(missing)" : found->dump(), what);
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

/// Base of the rotary angles: Transformers 5 keeps it in rope_parameters, older ones in rope_theta.
double rope_base(Settings& settings) {
  double base = settings.number("rope_theta", 10000.0);
  for (const char* name : {"rope_parameters", "rope_scaling"}) {
    const Json& rope = settings.at(name);
    if (rope.is_null()) continue;
    const Json type = rope.contains("rope_type") ? rope["rope_type"] : rope.value("type", Json());
    if (!type.is_null() && type != "default")
      settings.complain(name, "is not supported (rope_type)");
    if (rope.contains("rope_theta") && rope["rope_theta"].is_number())
      base = rope["rope_theta"].get<double>();
  }
  settings.allow("partial_rotary_factor", {1.0, 1});
  return base;
}

/// What all layers of Qwen3-MoE have in place of one feed-forward layer.
void read_experts(Settings& settings, deck::Model& m) {
  // Transformers 5 writes num_local_experts, the hub's files have num_experts.
  m.experts =
      settings.count(settings.has("num_local_experts") ? "num_local_experts" : "num_experts");
  m.experts_per_token = settings.count("num_experts_per_tok");
  m.expert_hidden = settings.count("moe_intermediate_size");
  m.renormalise_experts = settings.flag("norm_topk_prob", false);
  m.router_loss = settings.number("router_aux_loss_coef", 0.001);
  settings.allow("decoder_sparse_step", {1});
  settings.allow("mlp_only_layers", {Json::array()});
  if (m.experts_per_token > m.experts)
    settings.complain("num_experts_per_tok", "is more than there are experts");
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
  if (const Json& types = settings.at("layer_types"); types.is_array())
    for (const Json& type : types)
      if (type != "full_attention") {
        settings.complain("layer_types", "is not supported (only full_attention)");
        break;
      }
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

std::string architecture_in(const Json& config) {
  const Json listed = config.value("architectures", Json());
  if (listed.is_array() && !listed.empty() && listed[0].is_string())
    return listed[0].get<std::string>();
  const std::string type = config.value("model_type", "");
  if (type == "llama") return "LlamaForCausalLM";
  if (type == "qwen3") return "Qwen3ForCausalLM";
  if (type == "qwen3_moe") return "Qwen3MoeForCausalLM";
  return type == "gpt2" ? "GPT2LMHeadModel" : type;
}

Json parse_file(const std::filesystem::path& file) {
  std::string text;
  try {
    text = read_text(file);
  } catch (const FileError& error) {
    user_error("{}: a Transformers model is a folder with config.json and *.safetensors",
               error.what());
  }
  Json config = try_ordered_json(text);
  if (!config.is_object()) user_error("{} is not a JSON object", file.string());
  return config;
}

Json token_or_null(std::int64_t token) { return token < 0 ? Json() : Json(token); }

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
          {"norm_topk_prob", m.renormalise_experts},
          {"num_experts", m.experts},
          {"num_experts_per_tok", m.experts_per_token},
          {"output_router_logits", false},
          {"router_aux_loss_coef", m.router_loss}};
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
                 {"rope_theta", m.rope_base}};  // what Transformers before 5 read
  if (m.qk_norm)
    config["use_sliding_window"] = false;
  else
    config["mlp_bias"] = m.ffn_bias;
  if (m.experts > 0) config.update(experts_config(m));
  return config;
}

}  // namespace

Config read_config(const std::filesystem::path& file) {
  const Json json = parse_file(file);
  Config result;
  result.architecture = architecture_in(json);
  Settings settings(json, file);
  if (result.architecture == "LlamaForCausalLM" || result.architecture == "Qwen3ForCausalLM" ||
      result.architecture == "Qwen3MoeForCausalLM")
    result.model = read_llama(settings, result.architecture);
  else if (result.architecture == "GPT2LMHeadModel")
    result.model = read_gpt2(settings);
  else
    user_error(
        "{}: architecture '{}' is not one of LlamaForCausalLM, Qwen3ForCausalLM, "
        "Qwen3MoeForCausalLM, GPT2LMHeadModel",
        file.string(), result.architecture);
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

std::string generation_config_text(const TransformersTokens& tokens) {
  const Json config = {{"bos_token_id", token_or_null(tokens.beginning)},
                       {"eos_token_id", token_or_null(tokens.end)},
                       {"use_cache", true}};
  return json_text(config, 2) + "\n";
}

}  // namespace tern::checkpoint::detail
