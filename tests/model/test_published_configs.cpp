// config.json of the published Qwen3 models: the settings that name the model, copied from
// huggingface.co/Qwen.
#include <cstdlib>
#include <fstream>

#include "base/error.hpp"
#include "model/harness.hpp"
#include "transformers/directory.hpp"

namespace tern {
namespace {

namespace fs = std::filesystem;

/// Settings shared by all of them.
constexpr const char* common = R"("attention_bias": false, "attention_dropout": 0.1,
  "bos_token_id": 151643, "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu",
  "initializer_range": 0.02, "rms_norm_eps": 1e-06, "rope_scaling": null, "sliding_window": null,
  "torch_dtype": "bfloat16", "transformers_version": "4.51.0", "use_cache": true,
  "use_sliding_window": false, "vocab_size": 151936)";

std::string dense(int hidden, int ffn, int layers, int heads, bool tied,
                  const std::string& positions) {
  return fmt::format(
      R"({{{}, "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "hidden_size": {},
        "intermediate_size": {}, "num_hidden_layers": {}, "max_window_layers": {},
        "num_attention_heads": {}, "num_key_value_heads": 8, "tie_word_embeddings": {}, {}}})",
      common, hidden, ffn, layers, layers, heads, tied, positions);
}

std::string experts(const std::string& positions) {
  return fmt::format(
      R"({{{}, "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe",
        "decoder_sparse_step": 1, "hidden_size": 2048, "intermediate_size": 6144,
        "max_window_layers": 48, "mlp_only_layers": [], "moe_intermediate_size": 768,
        "norm_topk_prob": true, "num_attention_heads": 32, "num_experts": 128,
        "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4,
        "output_router_logits": false, "router_aux_loss_coef": 0.001,
        "tie_word_embeddings": false, {}}})",
      common, positions);
}

const std::string first = R"("max_position_embeddings": 40960, "rope_theta": 1000000)";

class PublishedConfigs : public testing::Test {
 protected:
  PublishedConfigs() {
    std::string name = (fs::temp_directory_path() / "tern-configs-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("cannot make " + name);
    folder_ = name;
  }
  ~PublishedConfigs() override { fs::remove_all(folder_); }

  deck::Model read(const std::string& config) const {
    std::ofstream(folder_ / "config.json") << config;
    return transformers::transformers_model(folder_);
  }
  std::string refusal(std::string config, const std::string& from, const std::string& to) const {
    const std::size_t at = config.find(from);
    if (at == std::string::npos) return "the test's config has no " + from;
    try {
      read(config.replace(at, from.size(), to));
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  }

  fs::path folder_;
};

/// Numbers of parameters: what the safetensors files on the hub add up to (the head of a tied model
/// is not stored).
TEST_F(PublishedConfigs, DenseModelsHaveTheirParameters) {
  const struct {
    int hidden, ffn, layers, heads;
    bool tied;
    std::size_t parameters;
  } models[] = {
      {1024, 3072, 28, 16, true, 596'049'920},      {2048, 6144, 28, 16, true, 1'720'574'976},
      {2560, 9728, 36, 32, true, 4'022'468'096},    {4096, 12288, 36, 32, false, 8'190'735'360},
      {5120, 17408, 40, 40, false, 14'768'307'200}, {5120, 25600, 64, 64, false, 32'762'123'264}};
  for (const auto& m : models) {
    const deck::Model model = read(dense(m.hidden, m.ffn, m.layers, m.heads, m.tied, first));
    EXPECT_EQ(model::ParameterTree(model::declare(model)).count(), m.parameters) << m.hidden;
    EXPECT_EQ(model.dropout, 0);  // training's choice, whatever attention_dropout is
    EXPECT_EQ(model.heads, m.heads);
    EXPECT_EQ(model.kv_heads, 8);
    EXPECT_EQ(model.head_dim, 128);
    EXPECT_EQ(model.tie_embeddings, m.tied);
    EXPECT_EQ(model.context, 40960);
    EXPECT_EQ(model.rope_base, 1e6);
    EXPECT_EQ(model.norm_eps, 1e-6);
    EXPECT_TRUE(model.qk_norm);
    EXPECT_FALSE(model.attention_bias);
    EXPECT_EQ(model.experts, 0);
    EXPECT_EQ(transformers::transformers_architecture(model), "Qwen3ForCausalLM");
  }
}

TEST_F(PublishedConfigs, ExpertsAreRead) {
  const deck::Model model = read(experts(first));
  EXPECT_EQ(model.layers, 48);
  EXPECT_EQ(model.hidden, 2048);
  EXPECT_EQ(model.heads, 32);
  EXPECT_EQ(model.kv_heads, 4);
  EXPECT_EQ(model.head_dim, 128);
  EXPECT_EQ(model.experts, 128);
  EXPECT_EQ(model.experts_per_token, 8);
  EXPECT_EQ(model.expert_hidden, 768);
  EXPECT_TRUE(model.renormalize_experts);
  EXPECT_EQ(model.router_loss, 0);  // Transformers adds it where router logits are returned
  EXPECT_EQ(model::ParameterTree(model::declare(model)).count(), 30'532'122'624u);
  EXPECT_EQ(transformers::transformers_architecture(model), "Qwen3MoeForCausalLM");
}

TEST_F(PublishedConfigs, TheVersionsOfJuly2025HaveTheirOwnPositions) {
  const std::string longer = R"("max_position_embeddings": 262144, "rope_theta": )";
  const deck::Model small = read(dense(2560, 9728, 36, 32, true, longer + "5000000"));
  EXPECT_EQ(small.context, 262144);
  EXPECT_EQ(small.rope_base, 5e6);
  EXPECT_EQ(model::ParameterTree(model::declare(small)).count(), 4'022'468'096u);
  const deck::Model large = read(experts(longer + "10000000"));
  EXPECT_EQ(large.context, 262144);
  EXPECT_EQ(large.rope_base, 1e7);
}

TEST_F(PublishedConfigs, TheRoutersLossIsThatOfTransformers) {
  std::string config = experts(first);
  const std::string off = "\"output_router_logits\": false";
  config.replace(config.find(off), off.size(), "\"output_router_logits\": true");
  EXPECT_EQ(read(config).router_loss, 0.001);
}

/// As Transformers 5 writes them.
TEST_F(PublishedConfigs, NewNamesOfTheSameSettings) {
  const deck::Model model =
      read(experts(R"("max_position_embeddings": 40960, "num_local_experts": 128, "rope_parameters":
        {"rope_theta": 1000000.0, "rope_type": "default"})"));
  EXPECT_EQ(model, read(experts(first)));
}

TEST_F(PublishedConfigs, WhatIsNotSupportedIsRefusedByName) {
  const struct {
    const char *from, *to, *named;
  } cases[] = {
      {"\"decoder_sparse_step\": 1", "\"decoder_sparse_step\": 2", "decoder_sparse_step = 2"},
      {"\"mlp_only_layers\": []", "\"mlp_only_layers\": [0, 3]", "mlp_only_layers = [0,3]"},
      {"\"num_experts_per_tok\": 8", "\"num_experts_per_tok\": 129", "num_experts_per_tok = 129"},
      {"\"num_experts\": 128,", "", "num_experts = (missing)"},
      {"\"moe_intermediate_size\": 768,", "", "moe_intermediate_size = (missing)"},
      {"\"norm_topk_prob\": true", "\"norm_topk_prob\": 1", "norm_topk_prob = 1"},
      {"\"use_sliding_window\": false", "\"use_sliding_window\": true", "use_sliding_window"},
      {"\"rope_scaling\": null", "\"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4.0}",
       "yarn"},
      {"\"hidden_act\": \"silu\"", "\"hidden_act\": \"gelu\"", "hidden_act = \"gelu\""},
      {"\"rope_theta\": 1000000", "\"rope_theta\": \"1e6\"", "rope_theta = \"1e6\""},
      {"\"rope_theta\": 1000000", "\"rope_theta\": 0", "rope_theta = 0"},
      {"\"rope_scaling\": null", "\"rope_scaling\": {\"type\": null}", "rope_scaling.type = null"},
      {"\"rope_scaling\": null", "\"rope_scaling\": \"yarn\"", "rope_scaling = \"yarn\""},
      {"\"rope_scaling\": null", "\"rope_parameters\": [1]", "rope_parameters = [1]"},
      {"\"rope_scaling\": null", "\"rope_parameters\": {\"rope_type\": null}",
       "rope_parameters.rope_type = null"},
      {"\"rope_scaling\": null", "\"rope_parameters\": {\"rope_type\": 1}",
       "rope_parameters.rope_type = 1"},
      {"\"rope_scaling\": null", "\"rope_parameters\": {\"rope_theta\": \"1e6\"}",
       "rope_parameters.rope_theta = \"1e6\""},
      {"\"rope_scaling\": null", "\"rope_parameters\": {\"full_attention\": {\"rope_theta\": 1e6}}",
       "rope_parameters.full_attention"},
      {"\"rope_scaling\": null", "\"rope_parameters\": {\"partial_rotary_factor\": 0.5}",
       "rope_parameters.partial_rotary_factor = 0.5"},
      {"\"use_cache\": true", "\"layer_types\": \"full\"", "layer_types = \"full\""},
      {"\"Qwen3MoeForCausalLM\"", "\"Qwen3NextForCausalLM\"", "Qwen3NextForCausalLM"},
      {"\"model_type\": \"qwen3_moe\"", "\"model_type\": \"mixtral\"",
       "architectures = [\"Qwen3MoeForCausalLM\"] contradicts model_type = \"mixtral\""},
      {"\"model_type\": \"qwen3_moe\"", "\"model_type\": 3", "model_type = 3"},
      {"[\"Qwen3MoeForCausalLM\"]", "[7]", "architectures = [7]"},
      {"\"architectures\": [\"Qwen3MoeForCausalLM\"], \"model_type\": \"qwen3_moe\"",
       "\"model_type\": \"bert\"", "model_type = \"bert\""}};
  for (const auto& each : cases) {
    const std::string text = refusal(experts(first), each.from, each.to);
    EXPECT_NE(text.find(each.named), std::string::npos) << each.named << " in: " << text;
    EXPECT_NE(text.find("config.json"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tern
