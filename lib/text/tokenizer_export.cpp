#include "text/tokenizer_export.hpp"

#include <ostream>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "text/detail/tokenizer_files.hpp"

namespace tern::text {
namespace {

namespace fs = std::filesystem;

constexpr const char* plain_template =
    "{%- for message in messages %}\n"
    "    {{- message.content }}\n"
    "    {{- eos_token if message.role == 'assistant' else '\\n' }}\n"
    "{%- endfor %}\n";

constexpr const char* chatml_template =
    "{%- for message in messages %}\n"
    "    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}\n"
    "{%- endfor %}\n"
    "{%- if add_generation_prompt %}\n"
    "    {{- '<|im_start|>assistant\\n' }}\n"
    "{%- endif %}\n";

// Answers after the last question keep their thoughts, earlier ones lose them.
constexpr const char* qwen3_template = R"({%- set ns = namespace(question=messages | length) %}
{%- for message in messages %}
    {%- if message.role == 'user' and not (message.content.startswith('<tool_response>')
                                           and message.content.endswith('</tool_response>')) %}
        {%- set ns.question = loop.index0 %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- set content = message.content %}
    {%- if message.role == 'assistant' %}
        {%- set thoughts = '' %}
        {%- if message.reasoning_content is string %}
            {%- set thoughts = message.reasoning_content %}
        {%- elif '</think>' in content %}
            {%- set thoughts = content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}
            {%- set content = content.split('</think>')[-1].lstrip('\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.question and (loop.last or thoughts) %}
            {%- set content = '<think>\n' + thoughts.strip('\n') + '\n</think>\n\n' + content.lstrip('\n') %}
        {%- endif %}
    {%- endif %}
    {{- '<|im_start|>' + message.role + '\n' + content + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if not (enable_thinking if enable_thinking is defined else THINKING) %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}
)";

void write(const fs::path& file, const std::string& text) {
  write_file(file, [&](std::ostream& out) { out << text; });
}

bool copy_if_there(const fs::path& from, const fs::path& to) {
  if (!fs::is_regular_file(from)) return false;
  if (leads_out(from.parent_path(), from.filename()))
    user_error(
        "{} is a link out of its folder and is not exported; replace it with a copy of the file",
        from.string());
  fs::copy_file(from, to, fs::copy_options::overwrite_existing);
  return true;
}

/// One token per byte, and the end of text.
void write_bytes(const fs::path& file) {
  std::vector<std::string> tokens;
  for (int byte = 0; byte < 256; ++byte) tokens.emplace_back(1, static_cast<char>(byte));
  detail::write_tokenizer_json(file, tokens, {}, PiecePattern::gpt2, {{"<|endoftext|>", 256}});
}

/// From GPT-2's two files.
void write_gpt2(const fs::path& folder, const fs::path& file) {
  const auto first_of = [&](const char* a, const char* b) {
    return fs::exists(folder / a) ? folder / a : folder / b;
  };
  const auto bpe = detail::read_gpt2_files(first_of("encoder.json", "vocab.json"),
                                           first_of("vocab.bpe", "merges.txt"));
  detail::write_tokenizer_json(file, bpe.tokens, bpe.merges, PiecePattern::gpt2, bpe.added);
}

/// Name of the token that ends a text of the model; empty if there is none.
std::string end_name(const Tokenizer& tokenizer, const TextFormat& format) {
  if (format.chat && format.chat->form != ChatTemplate::plain) return "<|im_end|>";
  return tokenizer.end_of_text() < 0 ? "" : tokenizer.decode({tokenizer.end_of_text()});
}

void write_config(const Tokenizer& tokenizer, std::int64_t longest, const fs::path& directory) {
  nlohmann::ordered_json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                   {"model_max_length", longest},
                                   {"clean_up_tokenization_spaces", false},
                                   {"add_prefix_space", false}};
  const std::string end = end_name(tokenizer, {});
  if (!end.empty()) config["bos_token"] = config["eos_token"] = config["pad_token"] = end;
  write(directory / "tokenizer_config.json", json_text(config, 2) + '\n');
}

/// Sets the end token of a JSON file that may be there, and removes a template in it.
void correct(const fs::path& file, const std::string& end) {
  auto config = try_ordered_json(read_text_or_empty(file));
  if (!config.is_object()) return;
  const auto before = config;
  config.erase("chat_template");
  if (!end.empty()) config["eos_token"] = end;
  if (config != before) write(file, json_text(config, 2) + '\n');
}

/// A string of Jinja's.
std::string quoted(const std::string& text) {
  std::string all = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') all += '\\';
    all += c;
  }
  return all + "'";
}

}  // namespace

std::string jinja_of(const ChatRules& rules, const std::string& prefix) {
  if (rules.form == ChatTemplate::plain)
    return (prefix.empty() ? "" : fmt::format("{{{{- {} }}}}\n", quoted(prefix))) + plain_template;
  if (rules.form == ChatTemplate::chatml) return chatml_template;
  std::string text = qwen3_template;
  const std::string_view place = "THINKING";
  return text.replace(text.find(place), place.size(), rules.thinking ? "true" : "false");
}

void write_format(const Tokenizer& tokenizer, const TextFormat& format, const fs::path& directory) {
  if (!format.chat && format.tokenizers_own) return;
  const std::string end = end_name(tokenizer, format);
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"})
    correct(directory / name, end);
  for (const char* name : {"chat_template.jinja", "chat_template.json"})
    fs::remove(directory / name);
  if (format.chat)
    write(directory / "chat_template.jinja",
          jinja_of(*format.chat, tokenizer.decode(tokenizer.affixes().before)));
}

void export_tokenizer(const std::string& where, const std::vector<fs::path>& search,
                      const TextFormat& format, std::int64_t longest, const fs::path& directory) {
  const auto tokenizer = open_tokenizer(where, search);
  const fs::path from = find_tokenizer(where, search);
  const fs::path folder = fs::is_directory(from) ? from : from.parent_path();
  const fs::path file = fs::is_directory(from) ? from / "tokenizer.json" : from;
  try {
    // Transformers would read leftover files of another tokenizer instead.
    for (const char* name :
         {"vocab.json", "merges.txt", "encoder.json", "vocab.bpe", "added_tokens.json",
          "special_tokens_map.json", "tokenizer.model", "chat_template.jinja"})
      fs::remove(directory / name);
    if (from.empty())
      write_bytes(directory / "tokenizer.json");
    else if (!copy_if_there(file, directory / "tokenizer.json"))
      write_gpt2(folder, directory / "tokenizer.json");
    const auto copied = [&](const char* name) {
      return !from.empty() && copy_if_there(folder / name, directory / name);
    };
    if (!copied("tokenizer_config.json")) write_config(*tokenizer, longest, directory);
    copied("chat_template.jinja");
    write_format(*tokenizer, format, directory);
  } catch (const fs::filesystem_error& error) {
    user_error("cannot export the tokenizer to {}: {}", directory.string(), error.what());
  }
}

}  // namespace tern::text
