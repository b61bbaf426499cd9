// Whole directories: what Transformers wrote is reproduced bit for bit, with the files next to the
// weights. tests/golden/make_directories.py wrote them.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "model/harness.hpp"
#include "refusal.hpp"
#include "transformers/directory.hpp"

namespace tern {
namespace {

namespace fs = std::filesystem;
using transformers::Described;
using transformers::ExportedParameter;
using transformers::Part;
using transformers::SafetensorsReader;
using transformers::TransformersReader;

const fs::path golden = fs::path(TERN_SOURCE_DIR) / "tests/golden";

std::string text_of(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<Described> parameters_of(const deck::Model& model) {
  std::vector<Described> all;
  const model::ParameterTree tree(model::declare(model));
  for (const model::Parameter& p : tree.parameters()) all.push_back({p.name, p.whole});
  return all;
}

std::vector<ExportedParameter> parameters_in(const TransformersReader& reader) {
  std::vector<ExportedParameter> all;
  for (const Described& p : parameters_of(reader.model()))
    all.push_back({p.name, p.shape, [&, p](std::size_t first, std::size_t count, float* to) {
                     const std::vector<float> values = reader.read(p.name, p.shape);
                     std::copy_n(values.data() + first, count, to);
                   }});
  return all;
}

class Directories : public testing::TestWithParam<const char*> {
 protected:
  Directories() {
    std::string name = (fs::temp_directory_path() / "tern-directories-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw std::runtime_error("cannot make " + name);
    folder_ = name;
  }
  ~Directories() override { fs::remove_all(folder_); }

  /// Exports the contents of `from`, with the same kinds of files.
  fs::path round_trip(const fs::path& from, std::size_t shard_bytes) const {
    const TransformersReader reader(from);
    transformers::ExportOptions options;
    options.like = from, options.shard_bytes = shard_bytes;
    transformers::export_transformers(folder_ / "out", reader.model(), parameters_in(reader),
                                      options);
    return folder_ / "out";
  }

  fs::path folder_;
};

void expect_same_tensors(const fs::path& a, const fs::path& b) {
  const SafetensorsReader before(a), after(b);
  std::vector<std::string> wanted = before.names(), got = after.names();
  ASSERT_EQ(std::set(wanted.begin(), wanted.end()), std::set(got.begin(), got.end()));
  for (const std::string& name : wanted) {
    EXPECT_EQ(before.dtype(name), after.dtype(name)) << name;
    EXPECT_EQ(before.shape(name), after.shape(name)) << name;
    EXPECT_EQ(before.read(name), after.read(name)) << name;  // exact: bf16 widens to float
  }
}

TEST_P(Directories, ComeBackBitForBit) {
  const fs::path from = golden / GetParam();
  TransformersReader(from).require(parameters_of(TransformersReader(from).model()));
  for (const std::size_t limit : {std::size_t{5'000'000'000}, std::size_t{30'000}}) {
    const fs::path out = round_trip(from, limit);
    EXPECT_EQ(fs::exists(out / "model.safetensors"), limit > 100'000);
    expect_same_tensors(from, out);
    EXPECT_EQ(text_of(out / "config.json"), text_of(from / "config.json"));
    for (const auto& entry : fs::directory_iterator(from)) {
      const std::string name = entry.path().filename().string();
      if (name.find("safetensors") != std::string::npos) continue;
      EXPECT_EQ(text_of(out / name), text_of(entry.path())) << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, Directories, testing::Values("qwen3", "qwen3_bf16", "moe_shards"),
                         [](const auto& name) { return std::string(name.param); });

using OneDirectory = Directories;

TEST_F(OneDirectory, FusedExpertsAreTakenApart) {
  expect_same_tensors(golden / "moe_shards", round_trip(golden / "moe_fused", 30'000));
}

TEST_F(OneDirectory, PartsAreThoseOfTheWholeParameter) {
  for (const char* name : {"moe_fused", "moe_shards", "qwen3_bf16"}) {
    const TransformersReader reader(golden / name);
    for (const Described& p : parameters_of(reader.model())) {
      const std::vector<float> whole = reader.read(p.name, p.shape);
      const std::size_t width = p.shape.back(), height = whole.size() / width;
      const Part part{height / 3, (height + 1) / 2, width / 4, width / 2};
      std::vector<bf16> got(part.rows * part.columns);
      reader.read(p.name, p.shape, part, got.data());
      for (std::size_t i = 0; i < got.size(); ++i)
        ASSERT_EQ(static_cast<float>(got[i]),
                  whole[(part.row + i / part.columns) * width + part.column + i % part.columns])
            << p.name;
    }
  }
}

TEST_F(OneDirectory, ConvolutionsOfGpt2ArePartsToo) {
  const TransformersReader reader(golden / "gpt2");
  const std::string name = "model/layers/1/self_attn/k_proj/weight";
  const std::vector<float> whole = reader.read(name, {32, 32});
  std::vector<float> got(5 * 7);
  reader.read(name, {32, 32}, {3, 5, 20, 7}, got.data());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(got[i], whole[(3 + i / 7) * 32 + 20 + i % 7]);
  std::vector<float> bias(4);
  reader.read("model/layers/1/self_attn/v_proj/bias", {32}, {0, 1, 10, 4}, bias.data());
  const std::vector<float> stored =
      SafetensorsReader(golden / "gpt2").read("transformer.h.1.attn.c_attn.bias");
  EXPECT_EQ(bias, std::vector<float>(stored.begin() + 74, stored.begin() + 78));
}

/// A model without a directory gets a config of its own, which describes the same model.
TEST_F(OneDirectory, OwnConfigDescribesTheSameModel) {
  for (const char* name : {"qwen3_bf16", "moe_shards"}) {
    const TransformersReader reader(golden / name);
    transformers::ExportOptions options;
    options.dtype = transformers::Dtype::bf16;
    transformers::export_transformers(folder_ / "out", reader.model(), parameters_in(reader),
                                      options);
    expect_same_tensors(golden / name, folder_ / "out");
    EXPECT_EQ(transformers::transformers_model(folder_ / "out"), reader.model());
    const auto parse = [](const fs::path& file) {
      return nlohmann::json::parse(std::ifstream(file));
    };
    const auto before = parse(golden / name / "config.json");
    const auto after = parse(folder_ / "out/config.json");
    std::size_t compared = 0;
    for (const auto& [key, value] : before.items()) {
      if (!after.contains(key)) continue;
      EXPECT_EQ(value, after[key]) << key;
      ++compared;
    }
    EXPECT_GE(compared, 20u);
  }
}

TEST_F(OneDirectory, WhatIsMissingMisshapedOrTooMuchIsOneError) {
  const TransformersReader reader(golden / "moe_shards");
  std::vector<Described> wanted = parameters_of(reader.model());
  reader.require(wanted);
  wanted[0].shape[0] += 1;  // embed_tokens
  wanted.push_back({"model/layers/7/input_layernorm/weight", {32}});
  wanted.erase(std::find_if(wanted.begin(), wanted.end(),
                            [](const Described& p) { return p.name == "model/norm/weight"; }));
  const std::string text = test::refusal([&] { reader.require(wanted); });
  for (const char* part :
       {"moe_shards",
        "'model.embed_tokens.weight' has shape (80, 32), and config.json requires (81, 32)",
        "no tensor 'model.layers.7.input_layernorm.weight'",
        "tensor 'model.norm.weight' is not part of the model"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
}

TEST_F(OneDirectory, TiedHeadsThatAreStoredAreNoMistake) {
  const TransformersReader reader(golden / "qwen3_bf16");
  transformers::ExportOptions options;
  auto parameters = parameters_in(reader);
  ExportedParameter head = parameters[0];
  head.name = "lm_head/weight";
  parameters.push_back(head);
  transformers::export_transformers(folder_ / "out", reader.model(), parameters, options);
  const TransformersReader again(folder_ / "out");
  EXPECT_NO_THROW(again.require(parameters_of(again.model())));
}

/// Transformers 5 keeps a stored head that differs from the embeddings, whatever config.json says.
TEST_F(OneDirectory, HeadsOfTheirOwnAreKeptThoughConfigTiesThem) {
  for (const char* name : {"qwen3_bf16", "gpt2"}) {
    const TransformersReader reader(golden / name);
    ASSERT_TRUE(reader.model().tie_embeddings);
    transformers::ExportOptions options;
    auto parameters = parameters_in(reader);
    ExportedParameter head = parameters[0];
    head.name = "lm_head/weight";
    head.read = [read = head.read](std::size_t first, std::size_t count, float* to) {
      read(first, count, to);
      if (first == 0) to[count - 1] += 1;
    };
    parameters.push_back(head);
    transformers::export_transformers(folder_ / name, reader.model(), parameters, options);
    const TransformersReader again(folder_ / name);
    EXPECT_TRUE(again.has_own_head());
    EXPECT_FALSE(again.model().tie_embeddings);
    EXPECT_FALSE(transformers::transformers_model(folder_ / name).tie_embeddings);
    EXPECT_NO_THROW(again.require(parameters_of(again.model())));
    EXPECT_NE(again.read("lm_head/weight", head.shape),
              again.read("model/embed_tokens/weight", head.shape));

    // Its export says so to Transformers of all versions.
    transformers::ExportOptions like;
    like.like = folder_ / name;
    transformers::export_transformers(folder_ / "copy", again.model(), parameters_in(again), like);
    const auto config = nlohmann::json::parse(std::ifstream(folder_ / "copy/config.json"));
    EXPECT_EQ(config.at("tie_word_embeddings"), false);
    expect_same_tensors(folder_ / name, folder_ / "copy");
    fs::remove_all(folder_ / "copy");
  }
}

/// A safetensors file of float16, made from the golden one in float32.
void write_as_float16(const fs::path& from, const fs::path& to) {
  const SafetensorsReader weights(from);
  nlohmann::ordered_json header;
  std::string data;
  for (const std::string& name : weights.names()) {
    const std::size_t first = data.size();
    for (const float value : weights.read(name)) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof bits);
      const auto exponent = static_cast<std::int32_t>((bits >> 23) & 0xff) - 127 + 15;
      std::uint32_t half = (bits >> 16) & 0x8000;  // truncated, not rounded: any value will do
      if (exponent > 0 && exponent < 31)
        half |= static_cast<std::uint32_t>(exponent) << 10 | ((bits >> 13) & 0x3ff);
      data += {static_cast<char>(half & 0xff), static_cast<char>(half >> 8)};
    }
    header[name] = {{"dtype", "F16"}, {"shape", weights.shape(name)}};
    header[name]["data_offsets"] = {first, data.size()};
  }
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  std::ofstream file(to, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file << text << data;
}

TEST_F(OneDirectory, Float16BecomesFloat32InFilesAndConfig) {
  const fs::path from = folder_ / "half", out = folder_ / "out";
  fs::create_directories(from);
  write_as_float16(golden / "qwen3", from / "model.safetensors");
  auto config = nlohmann::json::parse(std::ifstream(golden / "qwen3/config.json"));
  config["dtype"] = config["torch_dtype"] = "float16";
  std::ofstream(from / "config.json") << config;
  const TransformersReader reader(from);
  ASSERT_EQ(reader.dtype(parameters_of(reader.model()).front()), "F16");
  round_trip(from, 5'000'000'000);
  const SafetensorsReader weights(out);
  for (const std::string& name : weights.names()) EXPECT_EQ(weights.dtype(name), "F32");
  auto written = nlohmann::json::parse(std::ifstream(out / "config.json"));
  EXPECT_EQ(written["dtype"], "float32");
  EXPECT_EQ(written["torch_dtype"], "float32");
  written["dtype"] = written["torch_dtype"] = "float16";
  EXPECT_EQ(written, config);
}

TEST_F(OneDirectory, IsNotWrittenOverItself) {
  fs::copy(golden / "qwen3_bf16", folder_ / "out");
  const std::string text = test::refusal([&] { round_trip(folder_ / "out", 1'000'000); });
  EXPECT_NE(text.find("was loaded from there"), std::string::npos) << text;
}

}  // namespace
}  // namespace tern
