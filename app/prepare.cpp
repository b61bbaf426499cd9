/// ./prepare: data to train on.
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <iostream>
#include <thread>

#include "base/error.hpp"
#include "base/log.hpp"
#include "data/arithmetic.hpp"
#include "data/choices.hpp"
#include "data/languages.hpp"
#include "data/prepare.hpp"

namespace {

namespace options = boost::program_options;
using namespace tern;

constexpr const char* introduction = R"(Makes the data that ./trainer reads.

  ./prepare quickstart
      Makes data/quickstart: word problems of one or two steps, and a BPE for them. No download; seconds.

  ./prepare cpp-headers
      Makes data/cpp_headers from text that is already on this machine, the headers of the C++ standard
      library, with a BPE of 1,024 tokens trained on it: for input/laptop_gpt.in. Seconds.

  ./prepare text --input FILES... --output data/NAME (--tokenizer WHERE | --train-bpe N)
      Makes data/NAME/train_*.bin, valid_*.bin and meta.json from text files (a file is a document, or
      several with <|endoftext|> between them), or from JSON lines (an object a line).

  ./prepare arithmetic
      Makes data/arithmetic: word problems of one to four steps in GSM8K's format (train.jsonl, test.jsonl) and
      with sub-questions (train_socratic.jsonl, test_socratic.jsonl), and a BPE for them. No download; seconds.

  ./prepare languages
      Makes data/languages: sentences of a dozen languages, a prompt that gives each language a code, conversations
      for a teacher that reads such prompts, and a BPE: for input/distill_small_*.in. No download; seconds.

Examples:
  ./prepare arithmetic --steps 2 --seed 7 --output data/two_steps
  ./prepare text --input corpus.jsonl --tokenizer gpt2 --output data/corpus
  ./prepare text --input code.txt --tokenizer bytes --valid-fraction 0.1 --output data/code
)";

struct CommandLine {
  std::string command, format, pattern;
  double shard_tokens = 0, train_bytes = 0;
  data::PrepareOptions prepare;
  data::ArithmeticOptions arithmetic;
  data::LanguagesOptions languages;
};

options::options_description describe(CommandLine& line) {
  data::PrepareOptions& p = line.prepare;
  data::ArithmeticOptions& a = line.arithmetic;
  const std::size_t threads = std::max(1u, std::thread::hardware_concurrency());
  options::options_description all("Options", 100, 60);
  // clang-format off
  all.add_options()
    ("help,h", "this text")
    ("input,i", options::value(&p.inputs)->multitoken(), "files of text or JSON lines, in this order")
    ("output,o", options::value(&p.output), "folder to make; it appears when it is complete")
    ("tokenizer,t", options::value(&p.tokenizer), "gpt2 (needs its two files in data/gpt2), bytes, a tokenizer.json, or a folder that holds one")
    ("train-bpe", options::value(&p.train_bpe), "train a byte-level BPE of this many tokens on the input instead, and write its tokenizer.json to the output")
    ("pattern", options::value(&line.pattern)->default_value("gpt2"), "how --train-bpe cuts text: gpt2 or gpt4")
    ("train-bytes", options::value(&line.train_bytes)->default_value(500e6, "500e6"), "--train-bpe learns from this much of the input, from its beginning")
    ("format", options::value(&line.format)->default_value("auto"), "text, lines (each line is a document), jsonl, or auto: jsonl for .jsonl and .ndjson, else text")
    ("field", options::value(&p.field)->default_value(p.field), "the field of a JSON line that holds the text")
    ("valid-fraction", options::value(&p.valid_fraction)->default_value(p.valid_fraction, "0.01"), "share of the documents for validation; of a single document, its end")
    ("shard-tokens", options::value(&line.shard_tokens)->default_value(100e6, "100e6"), "tokens a shard")
    ("problems", options::value(&a.problems)->default_value(a.problems), "arithmetic: problems to train on")
    ("test-problems", options::value(&a.test_problems)->default_value(a.test_problems), "arithmetic: other problems, to test with")
    ("steps", options::value(&a.steps)->default_value(a.steps), "arithmetic: steps of the longest problems, 1 to 4")
    ("vocabulary", options::value(&a.vocabulary)->default_value(a.vocabulary), "arithmetic: tokens of the BPE")
    ("seed", options::value(&a.seed)->default_value(a.seed), "arithmetic, languages: other seeds give other problems and sentences")
    ("threads", options::value(&p.threads)->default_value(threads), "threads")
    ("force", options::bool_switch(&p.force), "replace the output folder if ./prepare made it before");
  // clang-format on
  return all;
}

/// Options of some commands given to another are mistakes.
void require_command(const CommandLine& line, const options::variables_map& values,
                     const std::vector<std::string>& commands,
                     std::initializer_list<const char*> names) {
  if (std::find(commands.begin(), commands.end(), line.command) != commands.end()) return;
  for (const char* name : names)
    if (values.count(name) > 0 && !values[name].defaulted())
      user_error("--{} is for ./prepare {}, not {}; see ./prepare --help", name,
                 fmt::join(commands, " and "), line.command);
}

/// False if there is nothing to do but to show the help.
bool parse(int count, char** words, CommandLine& line) {
  const options::options_description shown = describe(line);
  options::options_description all;
  all.add(shown).add_options()("command", options::value(&line.command), "");
  options::variables_map values;
  try {
    options::store(options::command_line_parser(count, words)
                       .options(all)
                       .positional(options::positional_options_description().add("command", 1))
                       .run(),
                   values);
    options::notify(values);
  } catch (const options::error& error) {
    user_error("{}; see ./prepare --help", error.what());
  }
  if (values.count("help") > 0 || line.command.empty()) {
    std::cout << introduction << '\n' << shown;
    return false;
  }
  data::enumerator<int>(
      "command", line.command,
      {{"text", 0}, {"arithmetic", 0}, {"quickstart", 0}, {"cpp-headers", 0}, {"languages", 0}});
  require_command(line, values, {"text"}, {"input", "tokenizer", "train-bpe"});
  require_command(line, values, {"arithmetic"},
                  {"problems", "test-problems", "steps", "vocabulary"});
  require_command(line, values, {"arithmetic", "languages"}, {"seed"});
  data::PrepareOptions& p = line.prepare;
  p.format = data::input_format("--format", line.format);
  p.pattern = data::piece_pattern("--pattern", line.pattern);
  if (!(line.shard_tokens >= 1 && line.shard_tokens < 0x1p31 && line.train_bytes >= 1 &&
        line.train_bytes < 0x1p53) ||
      p.threads < 1)
    user_error("--shard-tokens must be from 1 to 2^31 - 1, --train-bytes and --threads at least 1");
  p.shard_tokens = static_cast<std::size_t>(line.shard_tokens);
  p.train_bytes = static_cast<std::size_t>(line.train_bytes);
  line.arithmetic.output = p.output.empty() ? "data/" + line.command : p.output.string();
  line.arithmetic.threads = line.languages.threads = p.threads;
  line.arithmetic.force = line.languages.force = p.force;
  line.languages.output = line.arithmetic.output;
  line.languages.seed = line.arithmetic.seed;
  return true;
}

void run(CommandLine& line) {
  Log log;
  const bool text = line.command == "text" || line.command == "cpp-headers";
  if (line.command == "quickstart") data::set_quickstart(line.arithmetic);
  if (line.command == "cpp-headers") data::set_cpp_headers(line.prepare);
  const bool once = line.command != "text" && line.command != "arithmetic";
  const auto& output = text ? line.prepare.output : line.arithmetic.output;
  if (once && !line.prepare.force && data::is_made(output, log))
    return;  // scripts ask again and again
  if (text)
    data::prepare_text(line.prepare, log);
  else if (line.command == "languages")
    data::prepare_languages(line.languages, log);
  else
    data::prepare_arithmetic(line.arithmetic, log);
}

}  // namespace

int main(int count, char** words) {
  try {
    CommandLine line;
    if (parse(count, words, line)) run(line);
  } catch (const std::exception& error) {
    std::cerr << "prepare: " << error.what() << '\n';
    return 1;
  }
}
