#include "prepare/command.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "base/data_recipes.hpp"
#include "base/error.hpp"
#include "base/version.hpp"
#include "prepare/choices.hpp"
#include "prepare/detail/command_options.hpp"
#include "words/suggestion.hpp"

namespace tern::prepare {
namespace {

using detail::CommandText, detail::Words;

constexpr const char* exit_codes =
    "\nexit codes: 0 made, or made earlier; 1 a mistake in options or input, or output that could "
    "not\n"
    "be written.\n";

const CommandText* find(const std::string& command) {
  const auto texts = detail::command_texts();
  const auto found = std::find_if(texts.begin(), texts.end(),
                                  [&](const CommandText& text) { return text.name == command; });
  return found == texts.end() ? nullptr : &*found;
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const CommandText& text : detail::command_texts()) names.emplace_back(text.name);
  return names;
}

std::string version_text() { return fmt::format("tern {} ({})\n", version(), commit()); }

std::string help() {
  std::string text =
      "usage: prepare COMMAND [options]\n"
      "       prepare COMMAND --help      options of a command\n\n"
      "Makes the data that ./trainer reads.\n\ncommands:\n";
  for (const CommandText& command : detail::command_texts())
    text += fmt::format("  {:<13}{}\n", command.name, command.summary);
  return text + "\noptions:\n  -h [ --help ]   show this text and end\n" +
         "  --version       show version and commit and end\n" + exit_codes;
}

std::string help(const CommandText& command, const cli::po::options_description& options) {
  std::ostringstream text;
  text << "usage: prepare " << command.name << ' ' << command.arguments << "\n\n" << command.text;
  if (*command.examples) text << "\nexamples:\n" << command.examples;
  text << '\n' << options << exit_codes;
  return text.str();
}

/// UserError if a word is an option of other commands.
void require_own(const std::vector<std::string>& words, const std::string& command,
                 const cli::po::options_description& own) {
  for (const std::string& word : words) {
    if (!word.starts_with("--")) continue;
    const std::string name = word.substr(2, word.find('=') - 2);
    if (own.find_nothrow(name, false)) continue;
    std::vector<std::string> others;
    for (const std::string& other : command_names()) {
      Words unused;
      if (detail::options_of(other, unused).find_nothrow(name, false)) others.push_back(other);
    }
    if (!others.empty())
      user_error("--{} is an option of ./prepare {}, not {}; see ./prepare {} --help", name,
                 fmt::join(others, ", "), command, command);
  }
}

void take_numbers(Words& line) {
  PrepareOptions& p = line.made.text;
  p.format = input_format("--format", line.format);
  p.pattern = piece_pattern("--pattern", line.pattern);
  if (!(line.shard_tokens >= 1 && line.shard_tokens < 0x1p31 && line.train_bytes >= 1 &&
        line.train_bytes < 0x1p53))
    user_error("--shard-tokens must be from 1 to 2^31 - 1, --train-bytes at least 1");
  if (p.threads > 1024) user_error("--threads {}: set 1 to 1024", p.threads);
  p.shard_tokens = static_cast<std::size_t>(line.shard_tokens);
  p.train_bytes = static_cast<std::size_t>(line.train_bytes);
}

/// Copies what all commands have: output folder, threads, --force.
void share(PrepareCommand& made) {
  const PrepareOptions& p = made.text;
  std::filesystem::path output = p.output;
  for (const DataRecipe& recipe : data_recipes)
    if (output.empty() && made.command == recipe.command) output = recipe.folder;
  made.text.output = made.arithmetic.output = made.languages.output = output;
  made.gsm8k.output = made.sentences.output = made.plans.output = output;
  made.arithmetic.threads = made.languages.threads = made.gsm8k.threads = p.threads;
  made.arithmetic.force = made.languages.force = made.gsm8k.force = p.force;
  made.sentences.force = made.plans.force = p.force;
  if (made.command != "sentences" && made.command != "plans") return;
  if (p.inputs.size() != 1)
    user_error("./prepare {} reads one file, not {}; give --input FILE", made.command,
               p.inputs.size());
  made.sentences.input = made.plans.input = p.inputs.front();
}

/// What --version, --help or no word at all shows; empty if `words` begin with something else.
std::string shown_without_command(const std::vector<std::string>& words) {
  if (words.empty() || words.front() == "--help" || words.front() == "-h") return help();
  if (words.front() == "--version") return version_text();
  return "";
}

}  // namespace

PrepareCommand parse_prepare_command(int count, const char* const* arguments) {
  std::vector<std::string> words = cli::words_of(count, arguments);
  Words line;
  PrepareCommand& made = line.made;
  made.shown = shown_without_command(words);
  if (!made.shown.empty()) return made;
  const std::string command = words.front();
  const CommandText* text = find(command);
  if (!text) {
    const std::string near = nearest(command, command_names());
    user_error("'{}' is not a command{}; the commands are {}; see ./prepare --help", command,
               near.empty() ? "" : fmt::format("; did you mean {}?", near),
               fmt::join(command_names(), ", "));
  }
  words.erase(words.begin());
  const cli::po::options_description options = detail::options_of(command, line);
  require_own(words, command, options);
  const std::vector<std::string> named =
      command == "gsm8k" ? std::vector<std::string>{"FOLDER"} : std::vector<std::string>{};
  const auto values =
      cli::parse({fmt::format("./prepare {} --help", command), options, named}, words);
  if (values.count("help")) made.shown = help(*text, options);
  if (values.count("version")) made.shown = version_text();
  if (!made.shown.empty()) return made;
  made.command = command;
  if (values.count("FOLDER")) made.gsm8k.folder = values["FOLDER"].as<std::string>();
  take_numbers(line);
  share(made);
  return made;
}

}  // namespace tern::prepare
