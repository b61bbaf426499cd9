#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "transformers/detail/family.hpp"

namespace tern::transformers::detail {
namespace {

deck::Model read(Settings& settings) {
  deck::Model m;
  m.layers = settings.count("n_layer");
  m.hidden = settings.count("n_embd");
  m.heads = m.kv_heads = settings.count("n_head");
  m.head_dim = m.hidden / m.heads;
  m.ffn_hidden = settings.count_or("n_inner", 4 * m.hidden);
  m.context = settings.count_or("n_positions", settings.count_or("n_ctx", 1024));
  m.activation = "gelu";
  m.norm = "layernorm";
  m.norm_eps = settings.number("layer_norm_epsilon", 1e-5);
  m.attention_bias = m.ffn_bias = true;
  m.position = "learned";
  m.tie_embeddings = true;
  settings.allow("activation_function", {"gelu_new", "gelu_pytorch_tanh"});
  settings.allow("scale_attn_weights", {true});
  settings.allow("scale_attn_by_inverse_layer_idx", {false});
  settings.allow("add_cross_attention", {false});
  return m;
}

Json write(const deck::Model& m) {
  return {{"activation_function", "gelu_new"},
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

/// A module of a block. Its matrices are Conv1D's, (inputs, outputs), if it is a linear map.
struct Module {
  const char* name;
  bool linear = false;
  std::size_t part = 0, parts = 1;  // number and count of equal parts along the outputs
};

TensorLocation location_in(const Module& module, const std::string& tensor, Shape shape) {
  TensorLocation location{tensor, {}, module.linear && shape.size() > 1, module.part * shape[0]};
  shape[0] *= module.parts;
  if (location.transposed) std::reverse(shape.begin(), shape.end());
  location.shape = std::move(shape);
  return location;
}

/// Without the prefix "transformer.", except for the head.
TensorLocation location_of(const std::string& parameter, const Shape& shape) {
  static const std::map<std::string, std::string> top = {
      {"model/embed_tokens/weight", "wte.weight"},
      {"model/embed_positions/weight", "wpe.weight"},
      {"model/norm/weight", "ln_f.weight"},
      {"model/norm/bias", "ln_f.bias"}};
  static const std::map<std::string, Module> inner = {
      {"input_layernorm", {"ln_1"}},
      {"post_attention_layernorm", {"ln_2"}},
      {"self_attn/q_proj", {"attn.c_attn", true, 0, 3}},
      {"self_attn/k_proj", {"attn.c_attn", true, 1, 3}},
      {"self_attn/v_proj", {"attn.c_attn", true, 2, 3}},
      {"self_attn/o_proj", {"attn.c_proj", true}},
      {"mlp/up_proj", {"mlp.c_fc", true}},
      {"mlp/down_proj", {"mlp.c_proj", true}}};
  if (const auto found = top.find(parameter); found != top.end()) return {found->second, shape};
  const std::string layers = "model/layers/";
  const std::size_t start = layers.size(), after = parameter.find('/', start),
                    leaf = parameter.rfind('/');
  TERN_REQUIRE(parameter.rfind(layers, 0) == 0 && after < leaf && leaf != std::string::npos,
               "GPT-2 has no '{}'", parameter);
  const auto found = inner.find(parameter.substr(after + 1, leaf - after - 1));
  TERN_REQUIRE(found != inner.end(), "GPT-2 has no '{}'", parameter);
  return location_in(found->second,
                     fmt::format("h.{}.{}.{}", parameter.substr(start, after - start),
                                 found->second.name, parameter.substr(leaf + 1)),
                     shape);
}

std::vector<TensorLocation> locations(const std::string& parameter, const Shape& shape,
                                      const deck::Model&) {
  if (parameter == "lm_head/weight") return {same_name(parameter, shape)};
  const TensorLocation early = location_of(parameter, shape);  // in early files
  TensorLocation now = early;
  now.tensor = "transformer." + early.tensor;
  return {now, early};
}

/// The causal mask.
bool recomputed(const std::string& tensor) {
  return tensor.ends_with(".attn.bias") || tensor.ends_with(".attn.masked_bias");
}

}  // namespace

extern const Family gpt2{"GPT2LMHeadModel", "gpt2", read, write, locations, recomputed};

}  // namespace tern::transformers::detail
