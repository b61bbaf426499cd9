// Exports randomly initialized models of each architecture for tests/golden/check_export.py:
//   export_models FOLDER
// writes FOLDER/NAME/{config.json, generation_config.json, model.safetensors} and FOLDER/NAME.json
// with tokens, this program's float logits, a prompt and its greedy continuation of 60 tokens.
#include <mpi.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "generate/texts.hpp"
#include "model/harness.hpp"
#include "transformers/directory.hpp"

namespace tern {
namespace {

constexpr std::size_t rows = 32, new_tokens = 60;

/// Larger than the unit tests' models: widths that are no powers of two, a padded vocabulary.
std::vector<std::pair<std::string, deck::Model>> models() {
  const auto widen = [](deck::Model m) {
    m.layers = 3, m.hidden = 96, m.heads = 6, m.kv_heads = m.kv_heads == 4 ? 6 : 2;
    m.head_dim = m.qk_norm ? 32 : 16;
    m.ffn_hidden = 200, m.context = 128, m.vocabulary = 320, m.init_std = 0.15;
    m.init_scaled_residual = false;
    return m;
  };
  deck::Model biased = widen(test::tiny_model());
  biased.attention_bias = biased.ffn_bias = true;
  biased.tie_embeddings = false;
  biased.rope_base = 500;
  return {{"llama", widen(test::tiny_model())},
          {"llama_biased", biased},
          {"qwen3", widen(test::qwen3_like())},
          {"gpt2", widen(test::gpt2_like())}};
}

std::vector<std::vector<float>> parameters_of(const test::Harness<float>& model) {
  std::vector<std::vector<float>> values;
  for (const model::Parameter& p : model.tree.parameters()) {
    const std::vector<double> v =
        test::download(Vector<float>(model.parameters->master.data() + p.offset, p.count));
    values.emplace_back(v.begin(), v.end());
  }
  return values;
}

std::vector<std::int32_t> greedy(test::Harness<float>& model,
                                 const std::vector<std::int32_t>& prompt) {
  const auto make = [&](Arena& arena) {
    return generate::Engine<float>(model.description, model.tree, *model.parameters,
                                   generate::text_options(1, prompt.size() + new_tokens, 1), arena);
  };
  Arena measure;
  make(measure);
  Arena arena(measure.bytes());
  generate::Engine<float> engine = make(arena);
  engine.prepare(model.context);
  generate::SamplingOptions greedy;
  greedy.sampling.temperature = 0;
  engine.set_sampling(greedy);
  return generate::write_texts(engine, model.context, {prompt}, new_tokens)[0];
}

void export_one(const std::filesystem::path& folder, const std::string& name,
                const deck::Model& description) {
  model::TransformerOptions options{1, rows};
  test::Harness<float> model(description, options);
  model.parameters->initialize(model.context, model.tree, 42);
  const std::vector<std::vector<float>> values = parameters_of(model);
  std::vector<transformers::NamedArray> arrays;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const model::Parameter& p = model.tree.parameters()[i];
    arrays.push_back({p.name, p.shape, values[i].data()});
  }
  transformers::export_transformers(folder / name, description, arrays);
  const std::vector<std::int32_t> tokens = test::random_tokens(rows, description.vocabulary, 1);
  model.set_batch(tokens, tokens);
  const std::vector<std::int32_t> prompt(tokens.begin(), tokens.begin() + 7);
  const nlohmann::json result = {{"tokens", tokens},
                                 {"logits", model.logits()},
                                 {"prompt", prompt},
                                 {"greedy", greedy(model, prompt)}};
  std::ofstream(folder / (name + ".json")) << result;
}

}  // namespace
}  // namespace tern

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    Kokkos::ScopeGuard kokkos(argc, argv);
    if (argc != 2) {
      std::fprintf(stderr, "usage: export_models FOLDER\n");
      return 2;
    }
    for (const auto& [name, model] : tern::models()) tern::export_one(argv[1], name, model);
  }
  MPI_Finalize();
  return 0;
}
