#include "transformers/families/llama.hpp"

#include <algorithm>

namespace tern::transformers::detail {

deck::Model read_llama(Settings& settings) {
  deck::Model m;
  m.layers = settings.count("num_hidden_layers");
  m.hidden = settings.count("hidden_size");
  m.heads = settings.count("num_attention_heads");
  m.kv_heads = settings.count_or("num_key_value_heads", m.heads);
  m.head_dim = settings.count_or("head_dim", m.hidden / m.heads);
  m.ffn_hidden = settings.count("intermediate_size");
  m.context = settings.count("max_position_embeddings");
  m.norm_eps = settings.number("rms_norm_eps", 1e-6);
  m.rope_base = settings.rope_base();
  m.tie_embeddings = false;
  settings.allow("hidden_act", {"silu", "swish"});
  settings.allow("use_sliding_window", {false});
  if (const Json& types = settings.at("layer_types"); !types.is_null())
    if (!types.is_array() || std::any_of(types.begin(), types.end(),
                                         [](const Json& type) { return type != "full_attention"; }))
      settings.complain("layer_types", "is not supported (only full_attention)");
  return m;
}

Json write_llama(const deck::Model& m) {
  return {{"attention_dropout", 0.0},
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
}

std::vector<TensorLocation> locations_of_llama(const std::string& parameter, const Shape& shape,
                                               const deck::Model&) {
  return {same_name(parameter, shape)};
}

bool recomputed_by_llama(const std::string& tensor) {
  return tensor.ends_with(".rotary_emb.inv_freq");
}

namespace {

deck::Model read(Settings& settings) {
  deck::Model m = read_llama(settings);
  m.attention_bias = settings.flag("attention_bias", false);
  m.ffn_bias = settings.flag("mlp_bias", false);
  return m;
}

Json write(const deck::Model& m) {
  Json config = write_llama(m);
  config["attention_bias"] = m.attention_bias;
  config["mlp_bias"] = m.ffn_bias;
  return config;
}

}  // namespace

extern const Family llama{"LlamaForCausalLM", "llama", read, write, locations_of_llama,
                          recomputed_by_llama};

}  // namespace tern::transformers::detail
