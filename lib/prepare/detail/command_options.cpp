#include "prepare/detail/command_options.hpp"

#include <charconv>
#include <cmath>
#include <thread>

#include "base/error.hpp"

namespace tern::prepare::detail {
namespace {

namespace po = cli::po;

constexpr std::uint64_t max_number = std::uint64_t{1} << 53;

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
      user_error("--{} {}: set a whole number from {} to {}", name, given.value, least, max_number);
    target = static_cast<Target>(given.value);
  };
}

/// Option with an integer of at least `least`; the default is the value of `target`.
template <class Target>
auto* whole(const char* name, Target& target, std::uint64_t least = 1) {
  return po::value<Whole>()
      ->value_name("N")
      ->default_value(Whole{target})
      ->notifier(into(name, target, least));
}

/// The same without a default.
template <class Target>
auto* whole_if_given(const char* name, Target& target) {
  return po::value<Whole>()->value_name("N")->notifier(into(name, target, 1));
}

template <class T>
auto* text(T& target, const char* value_name) {
  return po::value(&target)->value_name(value_name);
}

void add_of_text(po::options_description& all, Words& words) {
  PrepareOptions& p = words.made.text;
  // clang-format off
  all.add_options()
    ("input,i", po::value(&p.inputs)->multitoken()->value_name("FILES"), "files of text or JSON lines, in this order")
    ("tokenizer,t", text(p.tokenizer, "WHERE"), "gpt2 (needs its two files in data/gpt2), bytes, a tokenizer.json, or a folder that holds one")
    ("train-bpe", whole_if_given("train-bpe", p.train_bpe), "train a byte-level BPE of this many tokens on the input instead, and write its tokenizer.json to the output")
    ("pattern", text(words.pattern, "NAME")->default_value(words.pattern), "how --train-bpe splits text: gpt2 or gpt4")
    ("train-bytes", text(words.train_bytes, "N")->default_value(words.train_bytes, "500e6"), "--train-bpe learns from this much of the input, from its beginning")
    ("format", text(words.format, "NAME")->default_value(words.format), "text, lines (each line is a document), jsonl, or auto: jsonl for .jsonl and .ndjson, else text")
    ("field", text(p.field, "NAME")->default_value(p.field), "the field of a JSON line that holds the text")
    ("valid-fraction", text(p.valid_fraction, "X")->default_value(p.valid_fraction, "0.01"), "fraction of the documents for validation; of a single document, its end")
    ("shard-tokens", text(words.shard_tokens, "N")->default_value(words.shard_tokens, "100e6"), "tokens per shard");
  // clang-format on
}

void add_of_arithmetic(po::options_description& all, Words& words) {
  ArithmeticOptions& a = words.made.arithmetic;
  // clang-format off
  all.add_options()
    ("problems", whole("problems", a.problems), "problems to train on")
    ("test-problems", whole("test-problems", a.test_problems), "other problems, to test with")
    ("steps", whole("steps", a.steps.most), "steps of the longest problems, 1 to 8")
    ("least-steps", whole("least-steps", a.steps.least), "steps of the shortest problems")
    ("vocabulary", whole("vocabulary", a.vocabulary), "tokens of the BPE")
    ("chats", po::bool_switch(&a.chats), "also write conversations, for supervised training, and requests")
    ("seed", whole("seed", a.seed, 0), "other seeds give other problems");
  // clang-format on
}

void add_of_languages(po::options_description& all, Words& words) {
  LanguagesOptions& l = words.made.languages;
  // clang-format off
  all.add_options()
    ("languages", whole("languages", l.languages, 2), "how many, at most 24")
    ("least-languages", whole("least-languages", l.least_languages, 0), "in a table of the teacher's conversations, drawn from this number on; 0: all")
    ("tables", whole("tables", l.tables), "different tables of codes; as many as --conversations: one each, not the campaign's")
    ("conversations", whole("conversations", l.conversations, 20), "for the teacher, one in 20 for its validation")
    ("questions", whole("questions", l.questions), "sentences of a conversation")
    ("sentences", whole("sentences", l.sentences), "answered by the teacher for the student")
    ("test-sentences", whole("test-sentences", l.test), "other sentences, to test with")
    ("vocabulary", whole("vocabulary", l.vocabulary), "tokens of the BPE")
    ("seed", whole("seed", l.seed, 0), "other seeds give other sentences");
  // clang-format on
}

void add_of_gsm8k(po::options_description& all, Words& words) {
  Gsm8kOptions& g = words.made.gsm8k;
  // clang-format off
  all.add_options()
    ("variants", whole("variants", g.variants, 0), "of a problem, at most")
    ("copies", whole("copies", g.copies), "how often a problem that gets no variants is written")
    ("vocabulary", whole_if_given("vocabulary", g.vocabulary), "make a BPE of this many tokens as well")
    ("chats", po::bool_switch(&g.chats), "also write conversations, for supervised training, and requests")
    ("seed", whole("seed", g.seed, 0), "other seeds give other variants");
  // clang-format on
}

void add_of_sentences(po::options_description& all, Words& words) {
  SentencesOptions& s = words.made.sentences;
  // clang-format off
  all.add_options()
    ("input,i", po::value(&words.made.text.inputs)->multitoken()->value_name("FILE"), "texts, one per line, or JSON lines")
    ("test-fraction", text(s.test_fraction, "X")->default_value(s.test_fraction, "0.2"), "fraction of each label's texts for the test")
    ("seed", whole("seed", s.seed, 0), "other seeds give other tests");
  // clang-format on
}

void add_of_plans(po::options_description& all, Words& words) {
  // clang-format off
  all.add_options()
    ("input,i", po::value(&words.made.text.inputs)->multitoken()->value_name("FILE"), "problems with solutions")
    ("answers", text(words.made.plans.answers, "FILE"), "answers.jsonl of the model that wrote them; without it: make the requests");
  // clang-format on
}

}  // namespace

po::options_description options_of(const std::string& command, Words& words) {
  PrepareOptions& p = words.made.text;
  p.threads = std::max(1u, std::thread::hardware_concurrency());
  po::options_description all("options", 100, 60);
  all.add_options()("help,h", "show this text and end")("version",
                                                        "show version and commit and end");
  if (command == "text") add_of_text(all, words);
  if (command == "arithmetic") add_of_arithmetic(all, words);
  if (command == "languages") add_of_languages(all, words);
  if (command == "gsm8k") add_of_gsm8k(all, words);
  if (command == "sentences") add_of_sentences(all, words);
  if (command == "plans") add_of_plans(all, words);
  if (command.empty()) return all;
  all.add_options()("output,o", text(p.output, "FOLDER"),
                    "folder to make; it appears when it is complete");
  if (command != "sentences" && command != "plans")
    all.add_options()("threads",
                      whole("threads", p.threads)->default_value(Whole{p.threads}, "all"),
                      "threads; all: one per processor");
  all.add_options()("force", po::bool_switch(&p.force),
                    "replace the output folder if ./prepare made it before");
  return all;
}

}  // namespace tern::prepare::detail
