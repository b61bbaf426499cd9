#include "transformers/families/qwen3.hpp"

namespace tern::transformers::detail {
namespace {

deck::Model read(Settings& settings) {
  deck::Model m = read_qwen3(settings);
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
  return m;
}

Json write(const deck::Model& m) {
  Json config = write_qwen3(m);
  config.update({{"decoder_sparse_step", 1},
                 {"mlp_only_layers", Json::array()},
                 {"moe_intermediate_size", m.expert_hidden},
                 {"norm_topk_prob", m.renormalize_experts},
                 {"num_experts", m.experts},
                 {"num_experts_per_tok", m.experts_per_token},
                 {"output_router_logits", m.router_loss > 0}});
  if (m.router_loss > 0) config["router_aux_loss_coef"] = m.router_loss;
  return config;
}

/// An expert's matrix is a tensor, or in Transformers 5 a part of one tensor for all experts of a
/// layer: gate_up_proj (experts, 2 F, D) or down_proj (experts, D, F).
std::vector<TensorLocation> locations(const std::string& parameter, const Shape& shape,
                                      const deck::Model& model) {
  std::vector<TensorLocation> all{same_name(parameter, shape)};
  const std::string marker = "/mlp/experts/";
  const std::size_t at = parameter.find(marker);
  if (at == std::string::npos) return all;
  const std::size_t number = at + marker.size(), slash = parameter.find('/', number);
  const std::string kind = parameter.substr(slash + 1, parameter.rfind('/') - slash - 1);
  const auto expert = static_cast<std::size_t>(std::stoull(parameter.substr(number)));
  const bool down = kind == "down_proj";
  const std::size_t outputs = shape[0], together = down ? outputs : 2 * outputs;
  TensorLocation fused =
      same_name(parameter.substr(0, number) + (down ? "down_proj" : "gate_up_proj"),
                {static_cast<std::size_t>(model.experts), together, shape[1]});
  fused.first = expert * together + (kind == "up_proj" ? outputs : 0);
  all.push_back(std::move(fused));
  return all;
}

}  // namespace

extern const Family qwen3_moe{"Qwen3MoeForCausalLM", "qwen3_moe", read, write, locations,
                              recomputed_by_llama};

}  // namespace tern::transformers::detail
