// Transformers directories in and out: settings, refusals, names and shapes, and identical bits
// after a round trip.
#include "transformers/directory.hpp"

#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "model/harness.hpp"

namespace tern {
namespace {

namespace fs = std::filesystem;
using transformers::NamedArray;
using transformers::TransformersReader;

const fs::path golden = fs::path(TERN_SOURCE_DIR) / "tests/golden";

class TransformersFiles : public testing::TestWithParam<const char*> {
 protected:
  TransformersFiles() {
    std::string name = (fs::temp_directory_path() / "tern-transformers-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("cannot make " + name);
    folder_ = name;
  }
  ~TransformersFiles() override { fs::remove_all(folder_); }

  /// The golden model of that name with its config changed.
  fs::path with_config(const std::string& name,
                       const std::function<void(nlohmann::json&)>& change) const {
    fs::copy(golden / name, folder_ / name,
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    nlohmann::json config = nlohmann::json::parse(std::ifstream(golden / name / "config.json"));
    change(config);
    std::ofstream(folder_ / name / "config.json") << config;
    return folder_ / name;
  }

  std::string error_of(const std::function<void()>& action) const {
    try {
      action();
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  }

  fs::path folder_;
};

struct Loaded {
  model::ParameterTree tree;
  std::vector<std::vector<float>> values;
  explicit Loaded(const TransformersReader& reader) : tree(model::declare(reader.model())) {
    for (const model::Parameter& p : tree.parameters())
      values.push_back(reader.read(p.name, p.shape));
  }
  std::vector<NamedArray> arrays() const {
    std::vector<NamedArray> result;
    for (std::size_t i = 0; i < values.size(); ++i)
      result.push_back({tree.parameters()[i].name, tree.parameters()[i].shape, values[i].data()});
    return result;
  }
};

TEST_P(TransformersFiles, ExportHasTheSameTensorsAndTheSameBits) {
  const fs::path original = golden / GetParam();
  const TransformersReader reader(original);
  const Loaded loaded(reader);
  transformers::export_transformers(folder_ / "out", reader.model(), loaded.arrays());

  const transformers::SafetensorsReader before(original), after(folder_ / "out");
  std::vector<std::string> wanted = before.names(), got = after.names();
  std::sort(wanted.begin(), wanted.end());
  std::sort(got.begin(), got.end());
  ASSERT_EQ(wanted, got);
  for (const std::string& name : wanted) {
    EXPECT_EQ(before.shape(name), after.shape(name)) << name;
    EXPECT_EQ(before.read(name), after.read(name)) << name;
  }
  const TransformersReader again(folder_ / "out");
  EXPECT_EQ(again.architecture(), reader.architecture());
  EXPECT_EQ(Loaded(again).values, loaded.values);
}

/// Every setting that both Transformers and Tern write has the same value.
TEST_P(TransformersFiles, ExportedConfigIsTheOriginal) {
  const TransformersReader reader(golden / GetParam());
  const Loaded loaded(reader);
  transformers::export_transformers(folder_ / "out", reader.model(), loaded.arrays());
  const auto parse = [](const fs::path& file) {
    return nlohmann::json::parse(std::ifstream(file));
  };
  const nlohmann::json before = parse(golden / GetParam() / "config.json");
  const nlohmann::json after = parse(folder_ / "out/config.json");
  std::size_t compared = 0;
  for (const auto& [name, value] : before.items()) {
    if (!after.contains(name)) continue;
    EXPECT_EQ(value, after[name]) << name;
    ++compared;
  }
  EXPECT_GE(compared, 15u);
  EXPECT_TRUE(fs::exists(folder_ / "out/generation_config.json"));
}

INSTANTIATE_TEST_SUITE_P(Golden, TransformersFiles,
                         testing::Values("llama_tied", "llama_untied", "qwen3", "gpt2"),
                         [](const auto& name) { return std::string(name.param); });

class TransformersErrors : public TransformersFiles {};

TEST_F(TransformersErrors, NameEverySettingThatIsNotSupported) {
  const std::string text = error_of([&] {
    TransformersReader(with_config("qwen3", [](nlohmann::json& config) {
      config["use_sliding_window"] = true;
      config["hidden_act"] = "gelu";
      config["rope_parameters"]["rope_type"] = "yarn";
      config["layer_types"] = {"full_attention", "sliding_attention"};
      config["quantization_config"] = {{"bits", 4}};
      config.erase("num_hidden_layers");
    }));
  });
  for (const char* part :
       {"use_sliding_window = true", "hidden_act = \"gelu\"", "yarn", "sliding_attention",
        "quantization_config", "num_hidden_layers", "config.json"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
}

TEST_F(TransformersErrors, NameAnUnknownArchitecture) {
  const std::string text = error_of([&] {
    TransformersReader(with_config(
        "llama_tied", [](nlohmann::json& c) { c["architectures"] = {"MambaForCausalLM"}; }));
  });
  EXPECT_NE(text.find("MambaForCausalLM"), std::string::npos) << text;
}

TEST_F(TransformersErrors, NameATensorThatIsMissingOrOfAnotherShape) {
  const TransformersReader untied(
      with_config("llama_tied", [](nlohmann::json& c) { c["tie_word_embeddings"] = false; }));
  EXPECT_NE(error_of([&] { Loaded{untied}; }).find("'lm_head.weight'"), std::string::npos);
  const TransformersReader wider(with_config("gpt2", [](nlohmann::json& c) { c["n_inner"] = 96; }));
  const std::string text = error_of([&] { Loaded{wider}; });
  EXPECT_NE(text.find("mlp.c_fc.weight"), std::string::npos) << text;
  EXPECT_NE(text.find("(32, 128)"), std::string::npos) << text;
}

TEST_F(TransformersErrors, NameAFolderWithoutConfigAndABrokenOne) {
  EXPECT_NE(error_of([&] { TransformersReader{folder_}; }).find("config.json"), std::string::npos);
  std::ofstream(folder_ / "config.json") << "{\"hidden_size\": ";
  EXPECT_NE(error_of([&] { TransformersReader{folder_}; }).find("JSON"), std::string::npos);
}

TEST_F(TransformersErrors, NameTheNearestArchitectureAndWhatPreventsIt) {
  EXPECT_EQ(transformers::transformers_architecture(test::tiny_model()), "LlamaForCausalLM");
  EXPECT_EQ(transformers::transformers_architecture(test::gpt2_like()), "GPT2LMHeadModel");
  EXPECT_EQ(transformers::transformers_architecture(test::qwen3_like()), "Qwen3ForCausalLM");
  EXPECT_EQ(transformers::transformers_architecture(test::moe_like()), "Qwen3MoeForCausalLM");
  const struct {
    deck::Model model;
    std::function<void(deck::Model&)> change;
    const char* named;
  } cases[] = {
      {test::tiny_model(), [](deck::Model& m) { m.activation = "gelu", m.inner_steps = 4; },
       "LlamaForCausalLM, the nearest, differs in activation = 'gelu' (needs 'swiglu'), "
       "inner_steps = 4 (needs 0)"},
      {test::gpt2_like(), [](deck::Model& m) { m.kv_heads = 2; },
       "GPT2LMHeadModel, the nearest, differs in kv_heads = 2 (needs 4)"},
      {test::gpt2_like(), [](deck::Model& m) { m.attention_bias = false; },
       "GPT2LMHeadModel, the nearest, differs in attention_bias = .false. (needs .true.)"},
      {test::qwen3_like(), [](deck::Model& m) { m.ffn_bias = true; },  // Llama may have these
       "LlamaForCausalLM, the nearest, differs in qk_norm = .true. (needs .false.)"},
      {test::qwen3_like(), [](deck::Model& m) { m.logit_cap = 30; },
       "Qwen3ForCausalLM, the nearest, differs in logit_cap = 30.0 (needs 0.0)"},
      {test::moe_like(), [](deck::Model& m) { m.logit_cap = 30; },
       "Qwen3MoeForCausalLM, the nearest, differs in logit_cap = 30.0 (needs 0.0)"},
      {test::tiny_model(), [](deck::Model& m) { m.window = 16; }, "window = 16 (needs 0)"},
      {test::tiny_model(), [](deck::Model& m) { m.levels = 3; }, "levels = 3 (needs 0)"}};
  for (const auto& each : cases) {
    deck::Model m = each.model;
    each.change(m);
    const std::string text = error_of([&] { transformers::transformers_architecture(m); });
    EXPECT_NE(text.find(each.named), std::string::npos) << each.named << " in: " << text;
  }
}

TEST_F(TransformersErrors, AreNotMadeOfChoicesWithoutEffect) {
  deck::Model m = test::tiny_model();
  m.window = m.context, m.window_start = 8, m.window_steps = 10;
  m.dropout = 0.1, m.attention = "portable", m.embed_std = 1, m.load = "somewhere";
  m.renormalize_experts = false, m.recursion = "block";
  EXPECT_EQ(transformers::transformers_architecture(m), "LlamaForCausalLM");
  deck::Model learned = test::gpt2_like();
  learned.rope_base = 5;
  EXPECT_EQ(transformers::transformers_architecture(learned), "GPT2LMHeadModel");
}

}  // namespace
}  // namespace tern
