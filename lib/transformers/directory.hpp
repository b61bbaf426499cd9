/// Import and export of Hugging Face Transformers models: a directory with config.json and
/// safetensors, of one of the families in families/. Weights have Tern's parameter names
/// ("model/layers/0/self_attn/q_proj/weight") and shapes (out, in) in every family: matrices that a
/// family stores transposed or fused are converted here. Experts are written one tensor each, as in
/// the hub's files.
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
struct Family;
struct TensorLocation;
}  // namespace detail

/// Whether the directory holds a config.json.
bool is_transformers(const std::filesystem::path& directory);

/// The model described by config.json, resolved. Weights are optional and read only to detect a
/// separate head despite tied embeddings: see TransformersReader::has_own_head(). Dropout, a choice
/// of training, stays 0; `context` is max_position_embeddings or n_positions; router_loss is 0
/// unless output_router_logits is set. Throws UserError naming every unsupported setting with its
/// value.
deck::Model transformers_model(const std::filesystem::path& directory);

/// Name and shape of a whole parameter in Tern.
struct Described {
  std::string name;
  std::vector<std::size_t> shape;
};

class TransformersReader {
 public:
  /// Reads config.json and opens the weights. Throws like transformers_model().
  explicit TransformersReader(const std::filesystem::path& directory);

  const deck::Model& model() const { return model_; }
  std::string architecture() const;
  /// Whether the files hold a head that differs from the embeddings although config.json ties them:
  /// the model is then untied, as in Transformers 5.
  bool has_own_head() const { return own_head_; }

  /// Throws one UserError listing tensors that are missing, of another shape, or not part of the
  /// model. `parameters`: all of the model.
  void require(const std::vector<Described>& parameters) const;

  /// Reads a part of a parameter, row-major (a vector is one row), as float, bf16 or fp16. `shape`: of
  /// the whole parameter. Throws UserError if it is missing or has another shape. Thread-safe.
  /// Transposed tensors need a temporary of the part's size.
  template <class V>
  void read(const std::string& name, const std::vector<std::size_t>& shape, const Part& part,
            V* to) const;
  /// A whole parameter in float32.
  std::vector<float> read(const std::string& name, const std::vector<std::size_t>& shape) const;

  /// Stored type, e.g. "BF16", and position: file and byte.
  const std::string& dtype(const Described& parameter) const;
  std::pair<std::size_t, std::size_t> position(const Described& parameter) const;

 private:
  TransformersReader(const std::filesystem::path& directory, const detail::Config& config);
  detail::TensorLocation location(const std::string& name,
                                  const std::vector<std::size_t>& shape) const;
  detail::TensorLocation stored_location(const std::string& name,
                                         const std::vector<std::size_t>& shape) const;

  std::filesystem::path directory_;
  const detail::Family& family_;
  deck::Model model_;
  SafetensorsReader weights_;
  bool own_head_;
};

/// The Transformers architecture that computes the same as this model. If there is none, throws
/// UserError naming the nearest one and each setting that prevents it.
std::string transformers_architecture(const deck::Model& model);

struct TransformersTokens {
  std::int64_t beginning = -1, end = -1;  // BOS, EOS; -1: none
  /// All tokens that end a text, for generation_config.json; empty: `end` only.
  std::vector<std::int64_t> ends = {};
  /// Whether they were trained: then they replace the EOS of files copied from ExportOptions::like.
  bool trained = false;
};

/// A whole parameter to export. `read` fills flat ranges and is called in increasing order, or once
/// for everything if the architecture stores it transposed or fused.
struct ExportedParameter {
  std::string name;
  std::vector<std::size_t> shape;
  std::function<void(std::size_t first, std::size_t count, float* to)> read;
};

struct ExportOptions {
  /// A Transformers directory of the same model: tensors keep their types (F16 and F64 become F32,
  /// also in config.json); config.json, generation_config.json, tokenizer files and chat template
  /// are copied, except for an EOS that was trained. Empty: none.
  std::filesystem::path like;
  Dtype dtype = Dtype::f32;   // without `like`
  TransformersTokens tokens;  // without `like`, or if they were trained
  std::size_t shard_bytes = 5'000'000'000;
};

/// Writes weights, config.json and generation_config.json into `directory`, created if missing.
/// `parameters`: all, in any order. Holds a few MiB of weights at a time, or one tensor that is
/// stored transposed or fused. Weights and config.json are renamed into place, config.json last.
/// Throws UserError.
void export_transformers(const std::filesystem::path& directory, const deck::Model& model,
                         const std::vector<ExportedParameter>& parameters,
                         const ExportOptions& options);
/// The same with parameters in memory.
void export_transformers(const std::filesystem::path& directory, const deck::Model& model,
                         const std::vector<NamedArray>& arrays, Dtype dtype = Dtype::f32,
                         const TransformersTokens& tokens = {});

}  // namespace tern::transformers
