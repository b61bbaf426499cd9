#include "transformers/detail/config.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/utf8.hpp"

namespace tern::transformers::detail {
namespace {

std::string names_of_families() {
  std::string text;
  for (const Family* family : families())
    text += (text.empty() ? "" : ", ") + std::string(family->architecture);
  return text;
}

/// Transformers uses model_type, people read architectures: the two must agree.
const Family& family_in(const Json& config, const std::filesystem::path& file) {
  const Json listed = config.value("architectures", Json());
  const Json type = config.value("model_type", Json());
  const Json first = listed.is_array() && !listed.empty() ? listed[0] : Json();
  const Json name = listed.is_string() ? listed : first;
  const auto all = families();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Family* each) {
    return name.is_null() ? type == each->model_type : name == each->architecture;
  });
  if (found == all.end())
    user_error(
        "{}: a model of architectures = {} and model_type = {} is not supported; Tern supports {}",
        file.string(), excerpt(json_text(listed)), excerpt(json_text(type)), names_of_families());
  const Family& family = **found;
  if (!type.is_null() && type != family.model_type)
    user_error(
        "{}: architectures = {} contradicts model_type = {}, by which Transformers takes it for "
        "another model; that of {} is \"{}\"",
        file.string(), excerpt(json_text(listed)), excerpt(json_text(type)), family.architecture,
        family.model_type);
  return family;
}

Json parse_file(const std::filesystem::path& file) {
  const std::string text =
      read_text(file, "a Transformers model is a folder with config.json and *.safetensors");
  try {
    Json config = parse_ordered_json(text);
    if (!config.is_object()) user_error("{} is not a JSON object", file.string());
    return config;
  } catch (const Json::exception& error) {
    user_error("{} is not a JSON object: {}", file.string(), reason(error));
  }
}

Json token_or_null(std::int64_t token) { return token < 0 ? Json() : Json(token); }

/// One number, or a list.
Json ends_of(const TransformersTokens& tokens) {
  if (tokens.ends.size() > 1) return Json(tokens.ends);
  return token_or_null(tokens.ends.empty() ? tokens.end : tokens.ends.front());
}

}  // namespace

deck::Model read_model(const Family& family, Settings& settings) {
  deck::Model m = family.read(settings);
  m.vocabulary = settings.count("vocab_size");
  m.init_std = settings.number("initializer_range", 0.02);
  m.tie_embeddings = settings.flag("tie_word_embeddings", m.tie_embeddings);
  if (settings.has("quantization_config"))
    settings.complain("quantization_config", "is not supported (float weights only)");
  return m;
}

Config read_config(const std::filesystem::path& file) {
  Json json = parse_file(file);
  const Family& family = family_in(json, file);
  Settings settings(std::move(json), file);
  const deck::Model m = read_model(family, settings);
  settings.finish();
  if (m.heads % m.kv_heads != 0)
    user_error("{}: {} heads are not a multiple of {} key/value heads", file.string(), m.heads,
               m.kv_heads);
  return {&family, m};
}

Json settings_of(const Family& family, const deck::Model& m) {
  Json config = {{"architectures", {family.architecture}}, {"model_type", family.model_type}};
  config.update(family.write(m));
  config["vocab_size"] = m.vocabulary;
  config["initializer_range"] = m.init_std;
  config["tie_word_embeddings"] = m.tie_embeddings;
  return config;
}

std::string config_text(const Family& family, const deck::Model& model, Dtype dtype,
                        const TransformersTokens& tokens) {
  Json config = settings_of(family, model);
  config["bos_token_id"] = token_or_null(tokens.beginning);
  config["eos_token_id"] = token_or_null(tokens.end);
  config["dtype"] = config["torch_dtype"] = dtype == Dtype::f32 ? "float32" : "bfloat16";
  config["use_cache"] = true;
  return json_text(config, 2) + "\n";
}

std::string config_like(const std::string& original, bool own_head, bool float32,
                        const TransformersTokens& tokens) {
  Json config = try_ordered_json(original);
  TERN_REQUIRE(config.is_object(), "a config that has been read is none");
  const auto set = [&](const char* name, const Json& value) {
    if (config.contains(name)) config[name] = value;
  };
  if (float32) set("dtype", "float32"), set("torch_dtype", "float32");
  if (own_head) config["tie_word_embeddings"] = false;
  if (tokens.trained) config["eos_token_id"] = token_or_null(tokens.end);
  const bool same = config == try_ordered_json(original);
  return same ? original : json_text(config, 2) + "\n";
}

std::string generation_config_text(const TransformersTokens& tokens) {
  const Json config = {{"bos_token_id", token_or_null(tokens.beginning)},
                       {"eos_token_id", ends_of(tokens)},
                       {"use_cache", true}};
  return json_text(config, 2) + "\n";
}

std::string generation_config_like(const std::string& original, const TransformersTokens& tokens) {
  Json config = try_ordered_json(original);
  if (!config.is_object()) return generation_config_text(tokens);
  config["eos_token_id"] = ends_of(tokens);
  return json_text(config, 2) + "\n";
}

}  // namespace tern::transformers::detail
