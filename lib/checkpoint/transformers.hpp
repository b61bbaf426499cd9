/// Models of Hugging Face Transformers: a directory with config.json and safetensors, in and out.
/// Architectures: LlamaForCausalLM, Qwen3ForCausalLM (dense), GPT2LMHeadModel. Weights go by Tern's
/// parameter names ("model/layers/0/self_attn/q_proj/weight") and shapes (out, in), whatever the
/// architecture keeps: GPT-2's transposed Conv1D matrices and fused c_attn are taken apart and put
/// together here.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/safetensors.hpp"
#include "deck/deck.hpp"

namespace tern::checkpoint {

namespace detail {
struct Config;
}

class TransformersReader {
 public:
  /// Reads config.json and opens the weights. Throws UserError that names every setting Tern does
  /// not have, with its value.
  explicit TransformersReader(const std::filesystem::path& directory);

  /// The model, resolved. Dropout is a choice of training and stays 0; `context` is what the config
  /// says (max_position_embeddings, n_positions).
  const deck::Model& model() const { return model_; }
  const std::string& architecture() const { return architecture_; }
  /// One parameter in float32, by Tern's name, which must have this shape. Throws UserError if the
  /// files lack it or have another shape.
  std::vector<float> read(const std::string& name, const std::vector<std::size_t>& shape) const;

 private:
  TransformersReader(const std::filesystem::path& directory, const detail::Config& config);

  std::filesystem::path directory_;
  deck::Model model_;
  std::string architecture_;
  SafetensorsReader weights_;
};

/// The architecture of Transformers that computes what this model computes. Throws UserError that
/// names each value which stands in the way if there is none.
std::string transformers_architecture(const deck::Model& model);

struct TransformersTokens {
  std::int64_t beginning = -1, end = -1;  // of text; -1: none
};

/// Writes config.json, generation_config.json and model.safetensors into `directory`, made if
/// missing. `arrays`: all parameters by Tern's names, in any order. Each file appears whole,
/// config.json last.
void export_transformers(const std::filesystem::path& directory, const deck::Model& model,
                         const std::vector<NamedArray>& arrays, Dtype dtype = Dtype::f32,
                         const TransformersTokens& tokens = {});

}  // namespace tern::checkpoint
