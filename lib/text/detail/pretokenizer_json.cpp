#include "text/detail/pretokenizer_json.hpp"

#include "base/error.hpp"
#include "base/json.hpp"

namespace tern::text::detail {
namespace {

using nlohmann::json;

/// Pattern that matches a literal.
std::string quoted(const std::string& literal) {
  std::string pattern;
  for (const char c : literal) {
    if (std::string_view("\\^$.|?*+()[]{}-#").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

/// Pre-tokenizer stages in order.
struct Stages {
  BpeDescription& description;
  std::vector<std::unique_ptr<Pretokenizer>> list = {};
  std::size_t seen = 0;  // nodes, including those that split nothing
  bool byte_level = false;

  void add(const json& node) {
    const std::string type = node.at("type").get<std::string>();
    if (type == "Sequence") {
      for (const json& part : node.at("pretokenizers")) add(part);
      return;
    }
    if (type == "ByteLevel")
      add_byte_level(node);
    else if (type == "Split")
      add_split(node);
    else if (type == "Digits")
      list.push_back(
          regex_pretokenizer(node.value("individual_digits", false) ? "\\p{N}" : "\\p{N}+"));
    else
      user_error(
          "{}: the pre-tokenizer '{}' is not supported; ByteLevel, Split, Digits and Sequence "
          "are",
          description.source, type);
    ++seen;
  }

  void add_byte_level(const json& node) {
    byte_level = true;
    if (node.value("add_prefix_space", true)) {
      if (seen > 0)
        user_error("{}: add_prefix_space after another pre-tokenizer is not supported",
                   description.source);
      description.add_prefix_space = true;
    }
    if (node.value("use_regex", true)) list.push_back(gpt2_pretokenizer());
  }

  void add_split(const json& node) {
    const std::string behavior = node.at("behavior").get<std::string>();
    const bool invert = node.value("invert", false);
    const bool isolated = behavior == "Isolated", removed = behavior == "Removed" && invert;
    if (!isolated && !removed)
      user_error("{}: the Split behavior '{}'{} is not supported; Isolated is", description.source,
                 behavior, invert ? " (inverted)" : "");
    const json& pattern = node.at("pattern");
    const std::string text = pattern.contains("Regex")
                                 ? pattern.at("Regex").get<std::string>()
                                 : quoted(pattern.at("String").get<std::string>());
    try {
      list.push_back(regex_pretokenizer(text, removed ? Gaps::remove : Gaps::keep));
    } catch (const UserError& error) {
      user_error("{}: {}", description.source, error.what());
    }
  }
};

}  // namespace

void read_normalizer(const json& node, BpeDescription& description) {
  if (node.is_null()) return;
  const std::string type = node.at("type").get<std::string>();
  if (type == "NFC") {
    description.nfc = true;
  } else if (type == "Sequence") {
    for (const json& part : node.at("normalizers")) read_normalizer(part, description);
  } else {
    user_error("{}: the normalizer '{}' is not supported; only NFC is", description.source, type);
  }
}

void read_pretokenizer(const json& node, BpeDescription& description) {
  Stages stages{description};
  if (!node.is_null()) stages.add(node);
  if (!stages.byte_level)
    user_error("{}: the pre-tokenizer has no ByteLevel stage: this is not a byte-level tokenizer",
               description.source);
  description.pretokenizer = chain(std::move(stages.list));
}

}  // namespace tern::text::detail
