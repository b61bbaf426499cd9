/// ./prepare: text to token shards.
#include <boost/program_options.hpp>
#include <iostream>
#include <thread>

#include "base/error.hpp"
#include "base/log.hpp"
#include "data/prepare.hpp"

namespace {

namespace options = boost::program_options;
using namespace tern;

constexpr const char* introduction = R"(Makes the token shards that ./trainer reads.

  ./prepare quickstart
      Makes data/quickstart from text that is already on this machine, the headers of the C++ standard
      library, with a BPE of 1,024 tokens trained on it. No download; some seconds.

  ./prepare text --input FILES... --output data/NAME (--tokenizer WHERE | --train-bpe N)
      Makes data/NAME/train_*.bin, valid_*.bin and meta.json from text files (a file is a document, or
      several with <|endoftext|> between them), or from JSON lines (an object a line).

Examples:
  ./prepare text --input corpus.jsonl --tokenizer gpt2 --output data/corpus
  ./prepare text --input books/*.txt --train-bpe 8192 --output data/books
  ./prepare text --input code.txt --tokenizer bytes --valid-fraction 0.1 --output data/code
)";

/// Words of the command line to enumerators.
template <class Value>
Value choice(const std::string& option, const std::string& word,
             const std::vector<std::pair<std::string, Value>>& values) {
  std::string known;
  for (const auto& [name, value] : values) {
    if (name == word) return value;
    known += (known.empty() ? "" : ", ") + name;
  }
  user_error("{} '{}' is none of {}; see ./prepare --help", option, word, known);
}

struct CommandLine {
  std::string command, format, pattern;
  double shard_tokens = 0, train_bytes = 0;
  data::PrepareOptions prepare;
};

options::options_description describe(CommandLine& line) {
  data::PrepareOptions& p = line.prepare;
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
    ("threads", options::value(&p.threads)->default_value(threads), "threads")
    ("force", options::bool_switch(&p.force), "replace the output folder if ./prepare made it before");
  // clang-format on
  return all;
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
  choice<int>("command", line.command, {{"text", 0}, {"quickstart", 0}});
  data::PrepareOptions& p = line.prepare;
  p.format = choice<data::InputFormat>("--format", line.format,
                                       {{"auto", data::InputFormat::automatic},
                                        {"text", data::InputFormat::text},
                                        {"lines", data::InputFormat::lines},
                                        {"jsonl", data::InputFormat::jsonl}});
  p.pattern = choice<data::PiecePattern>(
      "--pattern", line.pattern,
      {{"gpt2", data::PiecePattern::gpt2}, {"gpt4", data::PiecePattern::gpt4}});
  if (!(line.shard_tokens >= 1 && line.shard_tokens < 0x1p31 && line.train_bytes >= 1 &&
        line.train_bytes < 0x1p53) ||
      p.threads < 1)
    user_error("--shard-tokens must be from 1 to 2^31 - 1, --train-bytes and --threads at least 1");
  p.shard_tokens = static_cast<std::size_t>(line.shard_tokens);
  p.train_bytes = static_cast<std::size_t>(line.train_bytes);
  return true;
}

/// So that scripts may ask for the quickstart again and again.
bool is_ready(const data::PrepareOptions& p) {
  if (p.force || !std::filesystem::exists(p.output / "meta.json")) return false;
  std::cout << p.output.string() << " is ready, made earlier (--force makes it again)\n";
  return true;
}

void run(const data::PrepareOptions& p) {
  Log log;
  const data::PrepareSummary made = data::prepare_text(p, log);
  for (const auto& [name, split] : {std::pair{"train", made.train}, std::pair{"valid", made.valid}})
    log.line("{}: {} documents, {:.2f} MB, {} tokens, {} shard(s)", name, split.documents,
             static_cast<double>(split.bytes) * 1e-6, split.tokens, split.shards);
  log.line("{} is ready: vocabulary {}, {:.1f} s, {:.1f} MB/s", p.output.string(), made.vocabulary,
           made.seconds,
           static_cast<double>(made.train.bytes + made.valid.bytes) * 1e-6 / made.seconds);
}

}  // namespace

int main(int count, char** words) {
  try {
    CommandLine line;
    if (!parse(count, words, line)) return 0;
    if (line.command == "quickstart") data::set_quickstart(line.prepare);
    if (line.command == "quickstart" && is_ready(line.prepare)) return 0;
    run(line.prepare);
  } catch (const std::exception& error) {
    std::cerr << "prepare: " << error.what() << '\n';
    return 1;
  }
}
