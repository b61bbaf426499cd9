#include "text/tokenizer.hpp"

#include <algorithm>
#include <optional>

#include "base/data_recipes.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "base/utf8.hpp"
#include "text/detail/bpe_tokenizer.hpp"
#include "text/detail/tokenizer_files.hpp"

namespace tern::text {
namespace {

namespace fs = std::filesystem;

/// Token b is byte b; token 256 is the end of text.
class ByteTokenizer final : public Tokenizer {
 public:
  void encode(std::string_view text, std::vector<std::int32_t>& tokens) const override {
    tokens.reserve(tokens.size() + text.size());
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  }

  void encode_marked(std::string_view text, std::vector<std::int32_t>& tokens) const override {
    for (std::size_t at; (at = text.find(end_name)) != text.npos;) {
      encode(text.substr(0, at), tokens);
      tokens.push_back(end);
      text.remove_prefix(at + end_name.size());
    }
    encode(text, tokens);
  }

  std::string decode(const std::vector<std::int32_t>& tokens) const override {
    std::string text;
    for (const std::int32_t token : tokens) {
      if (token < 0 || token > end)
        user_error("token {} is not in the vocabulary of 'bytes' ({} tokens)", token, end + 1);
      if (token == end)
        text += end_name;
      else
        text += static_cast<char>(token);
    }
    return text;
  }

  std::size_t vocabulary() const override { return end + 1; }
  std::int32_t end_of_text() const override { return end; }
  const Affixes& affixes() const override { return none_; }
  std::int32_t id(std::string_view token) const override {
    if (token == end_name) return end;
    return token.size() == 1 ? static_cast<unsigned char>(token[0]) : -1;
  }

 private:
  static constexpr std::int32_t end = 256;
  static constexpr std::string_view end_name = "<|endoftext|>";
  const Affixes none_;
};

std::unique_ptr<Tokenizer> make(detail::BpeDescription description) {
  return std::make_unique<detail::BpeTokenizer>(std::move(description));
}

/// vocab.json and merges.txt do not name a pre-tokenizer. Assumes GPT-2's, unless the
/// tokenizer_config.json next to them names another class: then UserError.
void require_gpt2_class(const fs::path& folder) {
  const fs::path file = folder / "tokenizer_config.json";
  nlohmann::json config;
  try {
    const std::string text = read_text_if_there(file);
    if (text.empty()) return;
    config = parse_json(text);
  } catch (const FileError& error) {
    user_error("{}", error.what());
  } catch (const nlohmann::json::exception& error) {
    user_error("{}: is not JSON: {}", file.string(), reason(error));
  }
  const auto found = config.find("tokenizer_class");
  if (found == config.end() || found->is_null()) return;
  if (!found->is_string())
    user_error("{}: tokenizer_class is {}, not a string", file.string(),
               excerpt(json_text(*found)));
  const std::string name = *found;
  if (!name.starts_with("GPT2"))
    user_error(
        "{}: tokenizer_class is {}, whose pre-tokenizer only a tokenizer.json defines; put that "
        "file in the folder as well",
        folder.string(), excerpt(name));
}

std::unique_ptr<Tokenizer> open_folder(const fs::path& folder) {
  if (fs::exists(folder / "tokenizer.json"))
    return make(detail::read_tokenizer_json(folder / "tokenizer.json"));
  const auto first_of = [&](const char* a, const char* b) {
    return fs::exists(folder / a) ? folder / a : folder / b;
  };
  const fs::path vocabulary = first_of("encoder.json", "vocab.json");
  const fs::path merges = first_of("vocab.bpe", "merges.txt");
  if (!fs::exists(vocabulary) || !fs::exists(merges))
    user_error(
        "{}: contains no tokenizer; put tokenizer.json there, or the two files encoder.json and "
        "vocab.bpe of GPT-2 (vocab.json and merges.txt on the Hugging Face hub)",
        folder.string());
  require_gpt2_class(folder);
  return make(detail::read_gpt2_files(vocabulary, merges));
}

[[noreturn]] void not_found(const std::string& where, const std::vector<fs::path>& tried) {
  if (fs::path(where).has_parent_path())  // a path, not a name to search for next to the data
    user_error("tokenizer '{}' not found (from {}); {}", where, fs::current_path().string(),
               how_to_make(where, "put tokenizer.json there, or correct &data tokenizer"));
  std::string places;
  for (std::size_t i = 0; i < tried.size(); ++i)
    if (std::find(tried.begin(), tried.begin() + static_cast<std::ptrdiff_t>(i), tried[i]) ==
        tried.begin() + static_cast<std::ptrdiff_t>(i))
      places += (places.empty() ? "" : ", ") + tried[i].string();
  user_error(
      "tokenizer '{}' not found (looked for {}); make a folder {} with tokenizer.json, or with the "
      "two files of GPT-2, encoder.json and vocab.bpe (vocab.json and merges.txt on the Hugging "
      "Face hub), or set tokenizer = 'bytes', which needs no file",
      where, places, tried.back().string());
}

}  // namespace

fs::path find_tokenizer(const std::string& where, const std::vector<fs::path>& search) {
  if (where.empty()) user_error("no tokenizer given; set &data tokenizer (e.g. 'bytes')");
  if (where == "bytes") return {};
  std::vector<fs::path> places = {fs::path(where)};
  for (const fs::path& folder : search) places.push_back(folder / where);
  if (search.empty()) places.push_back(fs::path("data") / where);
  for (const fs::path& place : places)
    if (fs::is_directory(place) || fs::is_regular_file(place)) return place;
  not_found(where, places);
}

std::unique_ptr<Tokenizer> open_tokenizer(const std::string& where,
                                          const std::vector<fs::path>& search) {
  const fs::path place = find_tokenizer(where, search);
  if (place.empty()) return std::make_unique<ByteTokenizer>();
  if (fs::is_directory(place)) return open_folder(place);
  return make(detail::read_tokenizer_json(place));
}

}  // namespace tern::text
