#include "prepare/command.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <sstream>
#include <thread>

#include "base/error.hpp"
#include "base/makers.hpp"
#include "prepare/choices.hpp"

namespace tern::prepare {
namespace {

namespace options = boost::program_options;

constexpr const char* introduction = R"(Makes the data that ./trainer reads.

  ./prepare quickstart
      Makes data/quickstart: word problems of one or two steps, and a BPE for them. No download; seconds.

  ./prepare cpp-headers
      Makes data/cpp_headers from text that is already on this machine, the headers of the C++ standard
      library, with a BPE of 1,024 tokens trained on it: for input/laptop_gpt.in. Seconds.

  ./prepare text --input FILES... --output data/NAME (--tokenizer WHERE | --train-bpe N)
      Makes data/NAME/train_*.bin, valid_*.bin and meta.json from text files (a file is a document, or
      several with <|endoftext|> between them), or from JSON lines (one object per line).

  ./prepare arithmetic
      Makes data/arithmetic: word problems of one to four steps in GSM8K's format (train.jsonl, test.jsonl) and
      with sub-questions (train_socratic.jsonl, test_socratic.jsonl), and a BPE for them. No download; seconds.
      With --chats also as conversations (train_chat.jsonl, test_chat.jsonl, and with a plan before each execution
      train_plan_chat.jsonl, test_plan_chat.jsonl) and as labelled requests (test_requests.jsonl).

  ./prepare languages
      Makes data/languages: sentences of a dozen languages, a prompt that gives each language a code, conversations
      for a teacher that reads such prompts, and a BPE: for input/distill_small_*.in. No download; seconds.
      With --tables as many as --conversations, each conversation has a table of codes of its own, and the teacher
      must read it: for input/distill_languages_*.in, with the options that jobs/distill_languages.sh gives.

  ./prepare gsm8k [FOLDER]
      Makes data/gsm8k_variants from FOLDER (data/gsm8k), which holds GSM8K's train.jsonl and test.jsonl: its training
      problems, and variants of them with other numbers and every calculation redone, for input/h200_hdp.in, say.
      With --vocabulary N also a BPE of N tokens for them; with --chats also as conversations (train_chat.jsonl,
      test_chat.jsonl) and as labelled requests (test_requests.jsonl).

  ./prepare sentences --input FILE --output data/NAME
      Splits a file of texts (one per line, or JSON lines with "text" and, say, "label") into sentences.jsonl, for a
      teacher to answer, and test.jsonl. No text is in both; each label has its share in the test.

  ./prepare plans --input FILE --output data/NAME [--answers ANSWERS]
      Makes requests for plans of the problems in FILE (requests.jsonl, prompt.txt), for input/gsm8k_plans.in; with the
      model's answers to them, samples.jsonl: the problems with the plans, for input/h200_hdp.in.

Examples:
  ./prepare arithmetic --steps 2 --seed 7 --output data/two_steps
  ./prepare arithmetic --least-steps 4 --steps 8 --problems 200e3 --chats --output data/long_arithmetic
  ./prepare text --input corpus.jsonl --tokenizer gpt2 --output data/corpus
  ./prepare gsm8k --variants 100 --copies 5 --chats --vocabulary 4096
  ./prepare text --input code.txt --tokenizer bytes --valid-fraction 0.1 --output data/code
)";

constexpr std::uint64_t max_number = std::uint64_t{1} << 53;

/// The parsed command, and raw values converted after parsing.
struct Words {
  PrepareCommand made;
  std::string format, pattern;
  double shard_tokens = 0, train_bytes = 0;
};

/// Unsigned integer that may be written as 20e3.
struct Whole {
  std::uint64_t value = 0;
};

std::istream& operator>>(std::istream& in, Whole& whole) {
  std::string text;
  in >> text;
  double value = -1;
  const char* end = text.data() + text.size();
  const auto exact = std::from_chars(text.data(), end, whole.value);
  if (exact.ec == std::errc() && exact.ptr == end) return in;
  const auto power = std::from_chars(text.data(), end, value);
  if (power.ec != std::errc() || power.ptr != end || !(value >= 0 && value < 0x1p53) ||
      value != std::floor(value))
    in.setstate(std::ios::failbit);
  else
    whole.value = static_cast<std::uint64_t>(value);
  return in;
}

std::ostream& operator<<(std::ostream& out, const Whole& whole) { return out << whole.value; }

/// Notifier that stores a number in `target`; UserError if it is out of range.
template <class Target>
auto into(const char* name, Target& target, std::uint64_t least) {
  return [=, &target](Whole given) {
    if (given.value < least || given.value > max_number)
      user_error("--{} {}: write a whole number from {} to {}", name, given.value, least,
                 max_number);
    target = static_cast<Target>(given.value);
  };
}

/// Option with an integer of at least `least`; the default is the value of `target`.
template <class Target>
auto* whole(const char* name, Target& target, std::uint64_t least = 1) {
  return options::value<Whole>()->default_value(Whole{target})->notifier(into(name, target, least));
}

/// Notifier of --vocabulary, which has a default for each command.
auto vocabulary(PrepareCommand& made) {
  return [&made](Whole given) {
    into("vocabulary", made.arithmetic.vocabulary, 1)(given);
    made.languages.vocabulary = made.gsm8k.vocabulary = made.arithmetic.vocabulary;
  };
}

options::options_description describe(Words& line) {
  PrepareOptions& p = line.made.text;
  ArithmeticOptions& a = line.made.arithmetic;
  LanguagesOptions& l = line.made.languages;
  p.threads = std::max(1u, std::thread::hardware_concurrency());
  options::options_description all("Options", 100, 60);
  // clang-format off
  all.add_options()
    ("help,h", "this text")
    ("input,i", options::value(&p.inputs)->multitoken(), "files of text or JSON lines, in this order")
    ("output,o", options::value(&p.output), "folder to make; it appears when it is complete")
    ("tokenizer,t", options::value(&p.tokenizer), "gpt2 (needs its two files in data/gpt2), bytes, a tokenizer.json, or a folder that holds one")
    ("train-bpe", options::value<Whole>()->notifier(into("train-bpe", p.train_bpe, 1)), "train a byte-level BPE of this many tokens on the input instead, and write its tokenizer.json to the output")
    ("pattern", options::value(&line.pattern)->default_value("gpt2"), "how --train-bpe splits text: gpt2 or gpt4")
    ("train-bytes", options::value(&line.train_bytes)->default_value(500e6, "500e6"), "--train-bpe learns from this much of the input, from its beginning")
    ("format", options::value(&line.format)->default_value("auto"), "text, lines (each line is a document), jsonl, or auto: jsonl for .jsonl and .ndjson, else text")
    ("field", options::value(&p.field)->default_value(p.field), "the field of a JSON line that holds the text")
    ("valid-fraction", options::value(&p.valid_fraction)->default_value(p.valid_fraction, "0.01"), "fraction of the documents for validation; of a single document, its end")
    ("test-fraction", options::value(&line.made.sentences.test_fraction)->default_value(0.2, "0.2"), "sentences: fraction of each label's texts for the test")
    ("shard-tokens", options::value(&line.shard_tokens)->default_value(100e6, "100e6"), "tokens per shard")
    ("problems", whole("problems", a.problems), "arithmetic: problems to train on")
    ("test-problems", whole("test-problems", a.test_problems), "arithmetic: other problems, to test with")
    ("steps", whole("steps", a.steps.most), "arithmetic: steps of the longest problems, 1 to 8")
    ("least-steps", whole("least-steps", a.steps.least), "arithmetic: steps of the shortest problems")
    ("vocabulary", options::value<Whole>()->notifier(vocabulary(line.made)), fmt::format("tokens of the BPE: arithmetic ({}), languages ({}); gsm8k makes one only if this is given", a.vocabulary, l.vocabulary).c_str())
    ("chats", options::bool_switch(&a.chats), "arithmetic, gsm8k: also write conversations, for supervised training, and requests")
    ("languages", whole("languages", l.languages, 2), "languages: how many, at most 24")
    ("least-languages", whole("least-languages", l.least_languages, 0), "languages: in a table of the teacher's conversations, drawn from this number on; 0: all")
    ("tables", whole("tables", l.tables), "languages: different tables of codes; as many as --conversations: one each, not the campaign's")
    ("conversations", whole("conversations", l.conversations, 20), "languages: for the teacher, one in 20 for its validation")
    ("questions", whole("questions", l.questions), "languages: sentences of a conversation")
    ("sentences", whole("sentences", l.sentences), "languages: answered by the teacher for the student")
    ("test-sentences", whole("test-sentences", l.test), "languages: other sentences, to test with")
    ("variants", whole("variants", line.made.gsm8k.variants, 0), "gsm8k: variants of a problem, at most")
    ("copies", whole("copies", line.made.gsm8k.copies), "gsm8k: how often a problem that gets no variants is written")
    ("answers", options::value(&line.made.plans.answers), "plans: answers.jsonl of the model that wrote them; without it: make the requests")
    ("seed", whole("seed", a.seed, 0), "arithmetic, languages, gsm8k, sentences: other seeds give other problems and sentences")
    ("threads", whole("threads", p.threads)->default_value(Whole{p.threads}, "all"), "threads; all: one per processor")
    ("force", options::bool_switch(&p.force), "replace the output folder if ./prepare made it before");
  // clang-format on
  return all;
}

/// UserError if options `names` are given to a command other than `commands`.
void require_command(const Words& line, const options::variables_map& values,
                     const std::vector<std::string>& commands,
                     std::initializer_list<const char*> names) {
  if (std::find(commands.begin(), commands.end(), line.made.command) != commands.end()) return;
  for (const char* name : names)
    if (values.count(name) > 0 && !values[name].defaulted())
      user_error("--{} is for ./prepare {}, not {}; see ./prepare --help", name,
                 fmt::join(commands, ", "), line.made.command);
}

void take_numbers(Words& line) {
  PrepareOptions& p = line.made.text;
  p.format = input_format("--format", line.format);
  p.pattern = piece_pattern("--pattern", line.pattern);
  if (!(line.shard_tokens >= 1 && line.shard_tokens < 0x1p31 && line.train_bytes >= 1 &&
        line.train_bytes < 0x1p53))
    user_error("--shard-tokens must be from 1 to 2^31 - 1, --train-bytes at least 1");
  if (p.threads > 1024) user_error("--threads {}: write 1 to 1024", p.threads);
  p.shard_tokens = static_cast<std::size_t>(line.shard_tokens);
  p.train_bytes = static_cast<std::size_t>(line.train_bytes);
}

/// Copies options common to all commands: output folder, threads, --force.
void share(PrepareCommand& made) {
  const PrepareOptions& p = made.text;
  std::filesystem::path output = p.output;
  for (const Maker& maker : makers)
    if (output.empty() && made.command == maker.command) output = maker.folder;
  made.arithmetic.output = made.languages.output = made.gsm8k.output = output;
  if (made.command != "text") made.text.output = output;
  made.arithmetic.threads = made.languages.threads = made.gsm8k.threads = p.threads;
  made.arithmetic.force = made.languages.force = made.gsm8k.force = p.force;
  made.languages.seed = made.gsm8k.seed = made.sentences.seed = made.arithmetic.seed;
  made.sentences.output = output;
  made.sentences.force = p.force;
  made.plans.output = output;
  made.plans.force = p.force;
  if (made.command != "sentences" && made.command != "plans") return;
  if (p.inputs.size() != 1)
    user_error("./prepare {} reads one file, not {}; give --input FILE", made.command,
               p.inputs.size());
  made.sentences.input = made.plans.input = p.inputs.front();
}

}  // namespace

PrepareCommand parse_prepare_command(int count, const char* const* words) {
  Words line;
  const options::options_description shown = describe(line);
  options::options_description all;
  all.add(shown).add_options()("command", options::value(&line.made.command), "")(
      "folder", options::value(&line.made.gsm8k.folder), "");
  options::variables_map values;
  try {
    options::store(
        options::command_line_parser(count, words)
            .options(all)
            .positional(
                options::positional_options_description().add("command", 1).add("folder", 1))
            .run(),
        values);
    options::notify(values);
  } catch (const options::error& error) {
    user_error("{}; see ./prepare --help", error.what());
  }
  std::ostringstream help;
  help << introduction << '\n' << shown;
  line.made.help = help.str();
  if (values.count("help") > 0) line.made.command.clear();
  if (line.made.command.empty()) return line.made;
  std::vector<std::pair<std::string, int>> commands{{"text", 0}, {"sentences", 0}, {"plans", 0}};
  for (const Maker& maker : makers) commands.emplace_back(maker.command, 0);
  enumerator<int>("command", line.made.command, commands);
  require_command(line, values, {"text", "sentences", "plans"}, {"input"});
  require_command(line, values, {"plans"}, {"answers"});
  require_command(line, values, {"text"}, {"tokenizer", "train-bpe"});
  require_command(line, values, {"sentences"}, {"test-fraction"});
  require_command(line, values, {"arithmetic"},
                  {"problems", "test-problems", "steps", "least-steps"});
  require_command(line, values, {"arithmetic", "gsm8k"}, {"chats"});
  require_command(line, values, {"arithmetic", "languages", "gsm8k"}, {"vocabulary"});
  require_command(line, values, {"languages"},
                  {"languages", "least-languages", "tables", "conversations", "questions",
                   "sentences", "test-sentences"});
  require_command(line, values, {"arithmetic", "languages", "gsm8k", "sentences"}, {"seed"});
  require_command(line, values, {"gsm8k"}, {"variants", "copies"});
  if (line.made.command != "gsm8k" && values.count("folder") > 0)
    user_error("'{}': ./prepare {} reads no folder; see ./prepare --help",
               line.made.gsm8k.folder.string(), line.made.command);
  take_numbers(line);
  share(line.made);
  line.made.gsm8k.chats = line.made.arithmetic.chats;
  return line.made;
}

}  // namespace tern::prepare
