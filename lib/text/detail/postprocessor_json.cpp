#include "text/detail/postprocessor_json.hpp"

#include <utility>

#include "base/error.hpp"
#include "base/json.hpp"

namespace tern::text::detail {
namespace {

using nlohmann::json;

/// Token ids of a special token of the template.
std::vector<std::int32_t> tokens_of(const json& node, const std::string& name,
                                    const BpeDescription& description) {
  const auto& all = node.at("special_tokens");
  if (!all.contains(name))
    user_error(
        "{}: the post-processor's template uses {}, which is missing from its special_tokens",
        description.source, name);
  std::vector<std::int32_t> tokens;
  for (const json& id : all.at(name).at("ids")) {
    const auto token = id.get<std::int64_t>();
    if (token < 0 || token >= static_cast<std::int64_t>(description.tokens.size()) ||
        description.tokens[static_cast<std::size_t>(token)].empty())
      user_error("{}: the post-processor adds token {} for {}, which is not in the vocabulary",
                 description.source, id.dump(), name);
    tokens.push_back(static_cast<std::int32_t>(token));
  }
  return tokens;
}

/// Affixes from the template "single".
void add_template(const json& node, BpeDescription& description) {
  Affixes& affixes = description.affixes;
  std::size_t texts = 0;
  for (const json& part : node.at("single")) {
    if (part.contains("Sequence")) {
      ++texts;
      continue;
    }
    const auto tokens =
        tokens_of(node, part.at("SpecialToken").at("id").get<std::string>(), description);
    auto& side = texts > 0 ? affixes.after : affixes.before;
    side.insert(side.end(), tokens.begin(), tokens.end());
  }
  if (texts != 1)
    user_error("{}: the post-processor's template for a single text has {} texts",
               description.source, texts);
}

void add(const json& node, BpeDescription& description, bool& has_template) {
  if (node.is_null()) return;
  const std::string type = node.at("type").get<std::string>();
  if (type == "Sequence") {
    for (const json& part : node.at("processors")) add(part, description, has_template);
  } else if (type == "TemplateProcessing") {
    if (std::exchange(has_template, true))
      user_error("{}: a post-processor with two templates is not supported", description.source);
    add_template(node, description);
  } else if (type != "ByteLevel") {
    user_error(
        "{}: the post-processor '{}' is not supported; TemplateProcessing, ByteLevel and Sequence "
        "are",
        description.source, type);
  }
}

}  // namespace

void read_postprocessor(const json& node, BpeDescription& description) {
  bool has_template = false;
  add(node, description, has_template);
}

}  // namespace tern::text::detail
