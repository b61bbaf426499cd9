#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/shape.hpp"
#include "transformers/detail/config.hpp"
#include "transformers/directory.hpp"

namespace tern::transformers {
namespace {

namespace fs = std::filesystem;

/// A Transformers tensor and the parameters it consists of.
struct Recipe {
  detail::TensorLocation location;  // of the first part
  std::vector<std::pair<detail::TensorLocation, const ExportedParameter*>> parts = {};
};

/// Copies a whole parameter to its location in the tensor.
void insert(const detail::TensorLocation& location, const ExportedParameter& p,
            std::vector<float>& tensor) {
  const std::size_t columns = p.shape.back(), rows = p.shape.size() > 1 ? p.shape[0] : 1;
  std::vector<float> values(rows * columns);
  p.read(0, values.size(), values.data());
  const Part at = detail::part_in_tensor(location, {0, rows, 0, columns});
  const std::size_t width = location.shape.back();
  for (std::size_t r = 0; r < at.rows; ++r)
    for (std::size_t c = 0; c < at.columns; ++c)
      tensor[(at.row + r) * width + at.column + c] =
          location.transposed ? values[c * columns + r] : values[r * columns + c];
}

/// A parameter stored unchanged is streamed; any other tensor is assembled at the first read.
StreamedArray streamed(const std::string& name, const Recipe& recipe, Dtype dtype) {
  const detail::TensorLocation& location = recipe.location;
  if (recipe.parts.size() == 1 && !location.transposed)
    return {name, location.shape, dtype, recipe.parts.front().second->read};
  const auto whole = std::make_shared<std::vector<float>>();
  return {name, location.shape, dtype, [=](std::size_t first, std::size_t count, float* to) {
            if (whole->empty()) {
              whole->resize(element_count(recipe.location.shape));
              for (const auto& [at, p] : recipe.parts) insert(at, *p, *whole);
            }
            std::copy_n(whole->data() + first, count, to);
            if (first + count == whole->size()) whole->clear(), whole->shrink_to_fit();
          }};
}

Dtype type_like(const std::optional<TransformersReader>& like, const ExportedParameter& p,
                Dtype otherwise) {
  if (!like) return otherwise;
  return like->dtype({p.name, p.shape}) == "BF16" ? Dtype::bf16 : Dtype::f32;
}

std::vector<StreamedArray> tensors_of(const detail::Family& family, const deck::Model& model,
                                      const std::vector<ExportedParameter>& parameters,
                                      const std::optional<TransformersReader>& like, Dtype dtype) {
  std::map<std::string, Recipe> recipes;
  for (const ExportedParameter& p : parameters) {
    detail::TensorLocation location = family.locations(p.name, p.shape, model).front();
    auto& recipe = recipes.try_emplace(location.tensor, Recipe{location}).first->second;
    recipe.parts.emplace_back(std::move(location), &p);
  }
  std::vector<StreamedArray> tensors;
  for (const auto& [name, recipe] : recipes)
    tensors.push_back(streamed(name, recipe, type_like(like, *recipe.parts.front().second, dtype)));
  return tensors;
}

/// Files of a model's folder next to weights and config.json.
constexpr const char* auxiliary_files[] = {"generation_config.json",
                                           "tokenizer.json",
                                           "tokenizer_config.json",
                                           "vocab.json",
                                           "merges.txt",
                                           "encoder.json",
                                           "vocab.bpe",
                                           "added_tokens.json",
                                           "special_tokens_map.json",
                                           "chat_template.jinja",
                                           "chat_template.json",
                                           "tokenizer.model",
                                           "LICENSE"};

void copy_auxiliary_files(const fs::path& from, const fs::path& to) {
  for (const char* name : auxiliary_files) {
    if (!fs::exists(from / name)) continue;
    if (leads_out(from, name))  // it may be any file of the user's, which an export publishes
      user_error(
          "{} is a link out of its folder and is not exported; replace it with a copy of the file",
          (from / name).string());
    fs::copy_file(from / name, to / name, fs::copy_options::overwrite_existing);
  }
}

void write_files(const fs::path& directory, const deck::Model& model,
                 const std::vector<ExportedParameter>& parameters, const ExportOptions& options) {
  const detail::Family& family = detail::family_of(model);
  std::optional<TransformersReader> like;
  if (!options.like.empty()) like.emplace(options.like);
  fs::create_directories(directory);
  if (like && fs::equivalent(directory, options.like))
    user_error("cannot export to {}: the model was loaded from there; give another folder",
               directory.string());
  const std::vector<StreamedArray> tensors =
      tensors_of(family, model, parameters, like, options.dtype);
  write_model(directory, tensors, options.shard_bytes);
  if (like) {
    copy_auxiliary_files(options.like, directory);
    const bool float32 = std::none_of(tensors.begin(), tensors.end(), [](const auto& tensor) {
      return tensor.dtype == Dtype::bf16;
    });
    write_durably(directory / "config.json",
                  detail::config_like(read_text(options.like / "config.json"), like->has_own_head(),
                                      float32, options.tokens));
    if (options.tokens.trained)
      write_durably(
          directory / "generation_config.json",
          detail::generation_config_like(
              read_text_or_empty(options.like / "generation_config.json"), options.tokens));
    return;
  }
  write_durably(directory / "generation_config.json",
                detail::generation_config_text(options.tokens));
  write_durably(directory / "config.json",
                detail::config_text(family, model, options.dtype, options.tokens));
}

}  // namespace

void export_transformers(const fs::path& directory, const deck::Model& model,
                         const std::vector<ExportedParameter>& parameters,
                         const ExportOptions& options) {
  try {
    write_files(directory, model, parameters, options);
  } catch (const FileError& error) {
    user_error("cannot export to {}: {}", directory.string(), error.what());
  } catch (const fs::filesystem_error& error) {
    user_error("cannot export to {}: {}", directory.string(), error.what());
  }
}

void export_transformers(const fs::path& directory, const deck::Model& model,
                         const std::vector<NamedArray>& arrays, Dtype dtype,
                         const TransformersTokens& tokens) {
  std::vector<ExportedParameter> parameters;
  for (const NamedArray& array : arrays)
    parameters.push_back({array.name, array.shape,
                          [data = array.data](std::size_t first, std::size_t count, float* to) {
                            std::copy_n(data + first, count, to);
                          }});
  ExportOptions options;
  options.dtype = dtype;
  options.tokens = tokens;
  export_transformers(directory, model, parameters, options);
}

}  // namespace tern::transformers
