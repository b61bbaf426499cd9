#include "text/detail/tokenizer_files.hpp"

#include <ostream>
#include <unordered_map>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/lines.hpp"
#include "base/mapped_file.hpp"
#include "text/detail/byte_alphabet.hpp"
#include "text/detail/postprocessor_json.hpp"
#include "text/detail/pretokenizer_json.hpp"

namespace tern::text::detail {
namespace {

using nlohmann::json;

constexpr std::int64_t max_tokens = std::int64_t{1} << 24;  // larger ids mean a damaged file

json read_json(const std::filesystem::path& file) {
  const MappedFile mapped(file);
  try {
    return parse_json(mapped.text());
  } catch (const json::exception& error) {
    user_error("{}: is not JSON: {}", file.string(), reason(error));
  }
}

/// Collects vocabulary and merges from either file format.
class Builder {
 public:
  explicit Builder(const std::filesystem::path& file) { what_.source = file.string(); }

  void add_token(const std::string& name, const json& id) {
    if (!id.is_number_unsigned() ||
        id.get<std::uint64_t>() >= static_cast<std::uint64_t>(max_tokens))
      user_error("{}: token {} has no valid id", what_.source, json_text(json(name)));
    const auto index = id.get<std::size_t>();
    if (index >= what_.tokens.size()) what_.tokens.resize(index + 1);
    ids_[name] = static_cast<std::int32_t>(index);
    what_.tokens[index] = from_byte_alphabet(name).value_or(name);
  }

  void add_added(AddedToken token) {
    if (static_cast<std::size_t>(token.id) >= what_.tokens.size())
      what_.tokens.resize(static_cast<std::size_t>(token.id) + 1);
    what_.tokens[token.id] = token.content;
    what_.added.push_back(std::move(token));
  }

  void add_merge(const std::string& left, const std::string& right) {
    what_.merges.push_back(
        {id(left, right, left), id(left, right, right), id(left, right, left + right)});
  }

  BpeDescription finish() {
    what_.end_of_text = find_end_of_text(what_.added);
    return std::move(what_);
  }

  BpeDescription& description() { return what_; }

 private:
  std::int32_t id(const std::string& left, const std::string& right, const std::string& token) {
    const auto found = ids_.find(token);
    if (found == ids_.end())
      user_error("{}: the merge '{} {}' uses the token '{}', which is not in the vocabulary",
                 what_.source, left, right, token);
    return found->second;
  }

  BpeDescription what_;
  std::unordered_map<std::string, std::int32_t> ids_;
};

void require_absent(const json& model, const char* name, const std::string& file) {
  const auto found = model.find(name);
  if (found == model.end() || found->is_null() || *found == false || *found == "") return;
  user_error("{}: model.{} = {} is not supported (byte-level BPE has none)", file, name,
             found->dump());
}

/// A merge is "left right" or, in newer files, ["left", "right"].
void read_merge(Builder& builder, const json& merge, const std::string& file) {
  if (merge.is_array() && merge.size() == 2)
    return builder.add_merge(merge[0].get<std::string>(), merge[1].get<std::string>());
  const std::string line = merge.is_string() ? merge.get<std::string>() : "";
  const std::size_t space = line.find(' ');
  if (space == std::string::npos)
    user_error("{}: the merge {} does not have two tokens", file, json_text(merge));
  builder.add_merge(line.substr(0, space), line.substr(space + 1));
}

void read_model(Builder& builder, const json& model, const std::string& file) {
  const std::string type = model.value("type", std::string("BPE"));
  if (type != "BPE")
    user_error("{}: a model of type '{}' is not supported; only BPE is", file, type);
  for (const char* name :
       {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"})
    require_absent(model, name, file);
  builder.description().ignore_merges = model.value("ignore_merges", false);
  if (!model.at("vocab").is_object())
    user_error("{}: model.vocab is not an object of tokens and ids", file);
  for (const auto& [token, id] : model.at("vocab").items()) builder.add_token(token, id);
  for (const json& merge : model.at("merges")) read_merge(builder, merge, file);
}

void read_added_tokens(Builder& builder, const json& tokens, const std::string& file) {
  for (const json& entry : tokens) {
    const auto id = entry.at("id").get<std::int64_t>();
    AddedToken token{entry.at("content").get<std::string>(), static_cast<std::int32_t>(id),
                     entry.value("special", false)};
    if (token.content.empty() || id < 0 || id >= max_tokens)
      user_error("{}: the added token {} has no content or no valid id", file, json_text(entry));
    for (const char* option : {"single_word", "lstrip", "rstrip"}) {
      if (!entry.value(option, false)) continue;
      if (!token.special)
        user_error("{}: the added token '{}' has {} = true, which is not supported", file,
                   token.content, option);
      token.option = option;
    }
    builder.add_added(std::move(token));
  }
}

void check_decoder(const json& root, const std::string& file) {
  const json decoder = root.value("decoder", json());
  if (decoder.is_null()) return;
  const std::string type = decoder.value("type", std::string("without a type"));
  if (type != "ByteLevel")
    user_error("{}: the decoder '{}' is not supported; only ByteLevel is", file, type);
}

}  // namespace

std::int32_t find_end_of_text(const std::vector<AddedToken>& added) {
  for (const char* name : {"<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|eot_id|>"}) {
    for (const AddedToken& token : added)
      if (token.content == name) return token.id;
  }
  return -1;
}

BpeDescription read_tokenizer_json(const std::filesystem::path& file) {
  const std::string name = file.string();
  const json root = read_json(file);
  Builder builder(file);
  try {
    read_model(builder, root.at("model"), name);
    read_added_tokens(builder, root.value("added_tokens", json::array()), name);
    check_decoder(root, name);
    read_normalizer(root.value("normalizer", json()), builder.description());
    read_pretokenizer(root.value("pre_tokenizer", json()), builder.description());
    read_postprocessor(root.value("post_processor", json()), builder.description());
  } catch (const json::exception& error) {
    user_error("{}: is not a tokenizer.json: {}", name, reason(error));
  }
  return builder.finish();
}

BpeDescription read_gpt2_files(const std::filesystem::path& vocabulary,
                               const std::filesystem::path& merges) {
  Builder builder(vocabulary);
  const json tokens = read_json(vocabulary);
  if (!tokens.is_object())
    user_error("{}: is not a JSON object of tokens and ids", vocabulary.string());
  for (const auto& [token, id] : tokens.items()) builder.add_token(token, id);
  if (const auto end = tokens.find("<|endoftext|>"); end != tokens.end())
    builder.add_added({"<|endoftext|>", end->get<std::int32_t>(), true});

  LineReader lines(merges);
  for (const Line& line : lines) {
    const std::string merge(line.text);
    if (merge.empty() || (line.number == 1 && merge.starts_with("#version"))) continue;
    const std::size_t space = merge.find(' ');
    if (space == merge.npos)
      user_error("{}: '{}' is not a merge of two tokens", lines.place(line), merge);
    builder.add_merge(merge.substr(0, space), merge.substr(space + 1));
  }
  builder.description().pretokenizer = gpt2_pretokenizer();
  return builder.finish();
}

void write_tokenizer_json(const std::filesystem::path& file, const std::vector<std::string>& tokens,
                          const std::vector<Merge>& merges, PiecePattern pattern,
                          const std::vector<AddedToken>& added) {
  json root = {{"version", "1.0"},      {"truncation", nullptr},
               {"padding", nullptr},    {"added_tokens", json::array()},
               {"normalizer", nullptr}, {"post_processor", nullptr}};
  for (const AddedToken& token : added) {
    root["added_tokens"].push_back({{"id", token.id},
                                    {"content", token.content},
                                    {"single_word", false},
                                    {"lstrip", false},
                                    {"rstrip", false},
                                    {"normalized", false},
                                    {"special", token.special}});
  }
  const json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", false},
                           {"trim_offsets", true},
                           {"use_regex", pattern == PiecePattern::gpt2}};
  root["pre_tokenizer"] = byte_level;
  if (pattern == PiecePattern::gpt4) {
    const json split = {{"type", "Split"},
                        {"pattern", {{"Regex", gpt4_pattern}}},
                        {"behavior", "Isolated"},
                        {"invert", false}};
    root["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {split, byte_level}}};
  }
  root["decoder"] = byte_level;
  json& model = root["model"];
  model = {{"type", "BPE"},
           {"dropout", nullptr},
           {"unk_token", nullptr},
           {"fuse_unk", false},
           {"byte_fallback", false},
           {"ignore_merges", false},
           {"continuing_subword_prefix", nullptr},
           {"end_of_word_suffix", nullptr}};
  for (std::size_t id = 0; id < tokens.size(); ++id)
    model["vocab"][to_byte_alphabet(tokens[id])] = id;
  model["merges"] = json::array();
  for (const Merge& merge : merges)
    model["merges"].push_back(to_byte_alphabet(tokens[merge.left]) + " " +
                              to_byte_alphabet(tokens[merge.right]));
  write_file(file, [&](std::ostream& out) { out << json_text(root, 1) << '\n'; });
}

}  // namespace tern::text::detail
