/// Models of Hugging Face Transformers: a directory with config.json and safetensors, in and out.
/// Architectures: LlamaForCausalLM, Qwen3ForCausalLM, Qwen3MoeForCausalLM, GPT2LMHeadModel. Weights
/// go by Tern's parameter names ("model/layers/0/self_attn/q_proj/weight") and shapes (out, in),
/// whatever the architecture keeps: GPT-2's transposed Conv1D matrices and fused c_attn, and
/// experts that share a tensor, are taken apart here; experts are written one by one, as the hub's
/// files have them.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "deck/deck.hpp"
#include "transformers/safetensors.hpp"

namespace tern::transformers {

namespace detail {
struct Config;
struct Place;
}  // namespace detail

/// Whether a path is such a directory: it holds a config.json.
bool is_transformers(const std::filesystem::path& directory);

/// The model that config.json describes. Of the weights, if they are there, only a head beside tied
/// embeddings is looked at: see TransformersReader::has_own_head(). Resolved; dropout is a choice
/// of training and stays 0; `context` is max_position_embeddings or n_positions; router_loss is 0
/// unless output_router_logits is set. Throws UserError that names every setting Tern does not
/// have, with its value.
deck::Model transformers_model(const std::filesystem::path& directory);

/// A whole parameter's name and shape in Tern.
struct Described {
  std::string name;
  std::vector<std::size_t> shape;
};

class TransformersReader {
 public:
  /// Reads config.json (throws as transformers_model does) and opens the weights.
  explicit TransformersReader(const std::filesystem::path& directory);

  const deck::Model& model() const { return model_; }
  const std::string& architecture() const { return architecture_; }
  /// Whether the files hold a head that differs from the embeddings though config.json ties them:
  /// the model's are then untied, as Transformers 5 has it.
  bool has_own_head() const { return own_head_; }

  /// Throws one UserError with what is missing, of another shape, or there but in none of the
  /// model's `parameters`, which are all of them.
  void require(const std::vector<Described>& parameters) const;

  /// Reads a part of a parameter, row after row (a vector is one row), as float or bf16. `shape` is
  /// the whole parameter's. Throws UserError if the files lack it or have another shape. Several
  /// threads may read at once; what is stored transposed takes as much memory again as the part.
  template <class V>
  void read(const std::string& name, const std::vector<std::size_t>& shape, const Part& part,
            V* to) const;
  /// A whole parameter in float32.
  std::vector<float> read(const std::string& name, const std::vector<std::size_t>& shape) const;

  /// How the parameter is stored, "BF16" for instance, and where: file and byte.
  const std::string& dtype(const Described& parameter) const;
  std::pair<std::size_t, std::size_t> position(const Described& parameter) const;

 private:
  TransformersReader(const std::filesystem::path& directory, const detail::Config& config);
  detail::Place place(const std::string& name, const std::vector<std::size_t>& shape) const;
  detail::Place stored_place(const std::string& name, const std::vector<std::size_t>& shape) const;

  std::filesystem::path directory_;
  deck::Model model_;
  std::string architecture_;
  SafetensorsReader weights_;
  bool own_head_;
};

/// The architecture of Transformers that computes what this model computes. Throws UserError that
/// names each value which stands in the way if there is none.
std::string transformers_architecture(const deck::Model& model);

struct TransformersTokens {
  std::int64_t beginning = -1, end = -1;  // of text; -1: none
};

/// A parameter to be exported, whole. `read` gives a flat range of it and is called in order of
/// increasing ranges; where the architecture stores it transposed or fused, once for all of it.
struct ExportedParameter {
  std::string name;
  std::vector<std::size_t> shape;
  std::function<void(std::size_t first, std::size_t count, float* to)> read;
};

struct ExportOptions {
  /// A Transformers directory of the same model: each tensor gets the type that it has there (F16
  /// and F64 become F32, and then config.json says so), and config.json, generation_config.json,
  /// the tokenizer's files and the chat template are copied from it. Empty: there is none.
  std::filesystem::path like;
  Dtype dtype = Dtype::f32;   // without `like`
  TransformersTokens tokens;  // without `like`
  std::size_t shard_bytes = 5'000'000'000;
};

/// Writes weights, config.json and generation_config.json into `directory`, made if missing. The
/// parameters: all, in any order; of the weights a few MiB at a time are held, or the one tensor
/// that is stored transposed or fused. Each file appears whole, config.json last.
void export_transformers(const std::filesystem::path& directory, const deck::Model& model,
                         const std::vector<ExportedParameter>& parameters,
                         const ExportOptions& options);
/// Parameters in memory.
void export_transformers(const std::filesystem::path& directory, const deck::Model& model,
                         const std::vector<NamedArray>& arrays, Dtype dtype = Dtype::f32,
                         const TransformersTokens& tokens = {});

}  // namespace tern::transformers
