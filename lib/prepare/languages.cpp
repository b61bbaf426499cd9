#include "prepare/languages.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <numeric>
#include <set>
#include <unordered_set>

#include "base/draw.hpp"
#include "base/error.hpp"
#include "base/files.hpp"
#include "base/json.hpp"
#include "prepare/detail/language_words.hpp"
#include "prepare/detail/output_folder.hpp"
#include "text/bpe_training.hpp"
#include "text/chat.hpp"
#include "text/tokenizer.hpp"

namespace tern::prepare {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

enum Series : std::uint64_t { sentence_series = 100, code_series, table_series, length_series };
constexpr std::size_t tries = 20;        // per requested sentence, to find new ones
constexpr std::size_t valid_share = 20;  // one in this many conversations is for validation

constexpr const char instructions_before[] =
    "Tell which language a sentence is written in. Answer with the name of the language and its "
    "code, and with nothing else. The codes are those of table {}:\n";
constexpr const char* instructions_after =
    "Other tables do not count. Decide by all words of the sentence.\n\nSentence: {text}";
constexpr const char* whole_table = "All codes by name?";
constexpr std::string_view consonants = "BDFGKLMNPRSTVZCH", vowels = "AOU";
constexpr std::size_t least_consonants = 8;

/// Twice as many codes as languages or more, so that a table leaves some out.
Codes all_codes(std::size_t languages) {
  const std::size_t needed = (2 * languages + vowels.size() - 1) / vowels.size();
  Codes codes;
  for (const char consonant : consonants.substr(0, std::max(least_consonants, needed)))
    for (const char vowel : vowels) codes.push_back({consonant, vowel});
  return codes;
}

/// Sentences that these languages have.
std::size_t possible_sentences(std::size_t languages) {
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (std::size_t i = 0; i < languages; ++i) {
    const detail::Language& language = detail::languages()[i];
    std::size_t count = 1;
    for (const auto list : {language.subjects, language.verbs, language.objects, language.places})
      count *= detail::phrases(list).size();
    least = std::min(least, count);
  }
  return languages * least;  // they take turns
}

std::string draw_sentence(const detail::Language& language, Draw& draw) {
  const auto pick = [&](std::string_view list) {
    const auto all = detail::phrases(list);
    return all[static_cast<std::size_t>(draw.below(static_cast<int>(all.size())))];
  };
  std::string text;
  for (const char part : language.order) {
    const std::string_view list = part == 's'   ? language.subjects
                                  : part == 'v' ? language.verbs
                                  : part == 'o' ? language.objects
                                                : language.places;
    text += fmt::format("{}{}", text.empty() ? "" : " ", pick(list));
  }
  return text + '.';
}

void write_requests(const fs::path& file, const std::vector<LabeledSentence>& sentences,
                    const Codes& codes) {
  write_file(file, [&](std::ostream& out) {
    for (std::size_t i = 0; i < sentences.size(); ++i)
      out << json_text(ordered_json{{"text", sentences[i].text},
                                    {"id", fmt::format("{}_{}", file.stem().string(), i)},
                                    {"label", codes[sentences[i].language]}})
          << '\n';
  });
}

std::string table_line(std::size_t language, const Codes& codes) {
  return fmt::format("{} {}", detail::languages()[language].name, codes[language]);
}

/// Languages of a table in the order of its lines.
std::vector<std::size_t> table_order(std::size_t languages, std::uint64_t seed,
                                     std::uint32_t table) {
  std::vector<std::size_t> order(languages);
  std::iota(order.begin(), order.end(), std::size_t{0});
  Draw draw(seed, table_series, table);
  shuffle(order, draw);
  return order;
}

/// Leaves a random number of lines, at least those of the conversation's sentences.
void shorten(std::vector<std::size_t>& order, const LabeledSentence* sentences,
             const LanguagesOptions& options, std::uint32_t table) {
  std::set<std::size_t> asked;
  for (std::size_t i = 0; i < options.questions; ++i) asked.insert(sentences[i].language);
  Draw draw(options.seed, length_series, table);
  const auto lines = static_cast<std::size_t>(
      draw.between(static_cast<int>(options.least_languages), static_cast<int>(options.languages)));
  std::size_t others = std::max(lines, asked.size()) - asked.size();
  std::erase_if(order, [&](std::size_t language) {
    if (asked.contains(language)) return false;
    if (others == 0) return true;
    --others;
    return false;
  });
}

std::string prompt_of(const Codes& codes, const std::vector<std::size_t>& order,
                      std::uint32_t table) {
  std::string prompt = fmt::format(instructions_before, table);
  for (const std::size_t language : order) prompt += table_line(language, codes) + '\n';
  return prompt + instructions_after;
}

/// The table sorted by name.
std::string sorted_table(const Codes& codes, const std::vector<std::size_t>& order) {
  std::vector<std::string> lines;
  for (const std::size_t language : order) lines.push_back(table_line(language, codes));
  std::sort(lines.begin(), lines.end());
  return fmt::format("{}", fmt::join(lines, "\n"));
}

/// Successive questions under one table; the prompt encloses the first. One asks for the whole
/// table: its many answers teach the lookup of codes.
ordered_json conversation(const LabeledSentence* sentences, const LanguagesOptions& options,
                          std::uint32_t table) {
  const Codes codes = language_codes(options.seed, table, options.languages);
  std::vector<std::size_t> order = table_order(options.languages, options.seed, table);
  if (options.least_languages > 0) shorten(order, sentences, options, table);
  std::string prompt = prompt_of(codes, order, table);
  prompt.replace(prompt.find("{text}"), 6, sentences[0].text);
  ordered_json messages = ordered_json::array();
  const auto add = [&](const std::string& question, const std::string& answer) {
    messages.push_back({{"role", "user"}, {"content", question}});
    messages.push_back({{"role", "assistant"}, {"content", answer}});
  };
  for (std::size_t i = 0; i < options.questions; ++i) {
    if (i == 1) add(whole_table, sorted_table(codes, order));
    add(i == 0 ? prompt : sentences[i].text, table_line(sentences[i].language, codes));
  }
  return {{"messages", std::move(messages)}};
}

/// Table of a conversation. Where each has its own, table 0 is not among them: a teacher can answer
/// under the campaign's prompt only if it reads it.
std::uint32_t table_of(std::size_t conversation, const LanguagesOptions& options) {
  return static_cast<std::uint32_t>(
      options.tables == options.conversations ? conversation + 1 : conversation % options.tables);
}

void write_conversations(const fs::path& folder, const LanguagesOptions& options,
                         std::vector<LabeledSentence> sentences) {
  Draw draw(options.seed, sentence_series, 0xffffffffu);
  shuffle(sentences, draw);
  const auto write = [&](const char* name, bool valid) {
    write_file(folder / name, [&](std::ostream& out) {
      for (std::size_t i = 0; i < options.conversations; ++i)
        if ((i % valid_share == 0) == valid)
          out << json_text(conversation(sentences.data() + i * options.questions, options,
                                        table_of(i, options)))
              << '\n';
    });
  };
  write("teacher_train.jsonl", false);
  write("teacher_valid.jsonl", true);
}

/// Codes are repeated so often that each becomes a token, both at the start of an answer and after
/// a name.
void train_bpe(const LanguagesOptions& options, const fs::path& folder) {
  const std::string codes = fmt::format("{}\n", fmt::join(all_codes(options.languages), "\n"));
  std::vector<std::string> texts;
  for (const text::Conversation& chat :
       text::read_conversations({(folder / "teacher_*.jsonl").string()})) {
    for (const text::Message& message : chat.messages)
      texts.push_back(fmt::format("{}\n{}", text::name_of(message.role), message.content));
    texts.push_back(codes);
  }
  text::BpeTrainer trainer({options.vocabulary,
                            text::PiecePattern::gpt4,
                            options.threads,
                            {"<|im_start|>", "<|im_end|>", "<|endoftext|>"}});
  trainer.add({texts.begin(), texts.end()});
  trainer.train(folder);
}

/// Codes of the campaign's table and of the teacher's.
std::set<std::string> used_codes(const LanguagesOptions& options) {
  const Codes campaign = language_codes(options.seed, 0, options.languages);
  std::set<std::string> used(campaign.begin(), campaign.end());
  const std::size_t most = all_codes(options.languages).size();
  for (std::size_t i = 0; i < options.conversations && used.size() < most; ++i)
    for (std::string& code : language_codes(options.seed, table_of(i, options), options.languages))
      used.insert(std::move(code));
  return used;
}

void require_codes(const text::Tokenizer& tokenizer, const LanguagesOptions& options) {
  for (const std::string& code : used_codes(options))
    if (tokenizer.id(code) < 0 || tokenizer.id(" " + code) < 0)
      user_error("a vocabulary of {} has no room for the code {}; give a larger --vocabulary",
                 tokenizer.vocabulary(), code);
}

/// Tokens in the longest conversation and in the prompt.
std::pair<std::size_t, std::size_t> lengths(const fs::path& folder,
                                            const text::Tokenizer& tokenizer) {
  const text::ChatRules rules{text::ChatTemplate::chatml, false};
  std::size_t longest = 0;
  for (const text::Conversation& chat :
       text::read_conversations({(folder / "teacher_*.jsonl").string()}))
    longest =
        std::max(longest, text::tokens_of(text::written(chat, rules), tokenizer).tokens.size());
  const std::string prompt = read_text(folder / "prompt.txt");
  std::vector<std::int32_t> tokens;
  tokenizer.encode(prompt, tokens);
  return {longest, tokens.size()};
}

void check(const LanguagesOptions& o) {
  if (o.output.empty()) user_error("no output folder is named; give --output data/NAME");
  TERN_REQUIRE(o.conversations >= valid_share && o.questions > 0 && o.tables > 0 &&
               o.sentences > 0 && o.test > 0);
  if (const std::size_t most = detail::languages().size(); o.languages < 2 || o.languages > most)
    user_error("--languages {}: out of range; pass 2 to {}", o.languages, most);
  if (o.least_languages > o.languages)
    user_error("--least-languages {}: too many; pass at most {}, all --languages",
               o.least_languages, o.languages);
  if (o.tables > o.conversations)
    user_error("--tables {}: too many; pass at most {}, a table for each of --conversations",
               o.tables, o.conversations);
  if (constexpr std::size_t most = std::numeric_limits<int>::max();
      o.conversations > most / o.questions)
    user_error("--conversations {}: too many; pass at most {}", o.conversations,
               most / o.questions);
  const std::size_t possible = possible_sentences(o.languages);
  if (o.sentences > possible || o.test > possible || o.sentences + o.test > possible / 2)
    user_error(
        "--sentences {} and --test-sentences {}: {} languages have {} different sentences, half of "
        "them for the teacher's conversations; ask for at most {} in all, or for more --languages",
        o.sentences, o.test, o.languages, possible, possible / 2);
}

}  // namespace

std::vector<std::string> language_names(std::size_t languages) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < languages; ++i) names.emplace_back(detail::languages().at(i).name);
  return names;
}

std::vector<std::vector<LabeledSentence>> language_sentences(const std::vector<std::size_t>& counts,
                                                             std::uint64_t seed,
                                                             std::size_t languages) {
  const std::size_t possible = possible_sentences(languages);
  std::unordered_set<std::string> known;
  std::vector<std::vector<LabeledSentence>> sets;
  std::uint32_t number = 0;
  for (const std::size_t count : counts) {
    const bool repeats = sets.size() + 1 == counts.size() && count > (possible - known.size()) / 2;
    std::vector<LabeledSentence>& set = sets.emplace_back();
    for (std::size_t tried = 0; set.size() < count; ++tried) {
      if (tried == tries * count)
        user_error("only {} of {} different sentences are found; ask for fewer", set.size(), count);
      Draw draw(seed, sentence_series, number++);
      const std::size_t language = set.size() % languages;
      std::string text = draw_sentence(detail::languages()[language], draw);
      if (repeats ? !known.contains(text) : known.insert(text).second)
        set.push_back({std::move(text), language});
    }
  }
  return sets;
}

Codes language_codes(std::uint64_t seed, std::uint32_t table, std::size_t languages) {
  Codes codes = all_codes(languages);
  Draw draw(seed, code_series, table);
  shuffle(codes, draw);
  codes.resize(languages);
  return codes;
}

std::string language_prompt(const Codes& codes, std::uint64_t seed, std::uint32_t table) {
  return prompt_of(codes, table_order(codes.size(), seed, table), table);
}

void prepare_languages(const LanguagesOptions& options, Log& log) {
  check(options);
  const Codes codes = language_codes(options.seed, 0, options.languages);
  auto sets = language_sentences(
      {options.test, options.sentences, options.conversations * options.questions}, options.seed,
      options.languages);
  detail::OutputFolder folder(options.output, options.force);
  write_requests(folder.path() / "test.jsonl", sets[0], codes);
  write_requests(folder.path() / "sentences.jsonl", sets[1], codes);
  write_conversations(folder.path(), options, std::move(sets[2]));
  write_file(folder.path() / "prompt.txt",
             [&](std::ostream& out) { out << language_prompt(codes, options.seed, 0) << '\n'; });
  train_bpe(options, folder.path());
  const auto tokenizer = text::open_tokenizer(folder.path().string());
  require_codes(*tokenizer, options);
  const auto [conversation, prompt] = lengths(folder.path(), *tokenizer);
  folder.publish({{"tokenizer", options.output.string()},
                  {"vocabulary", tokenizer->vocabulary()},
                  {"end_of_text", tokenizer->end_of_text()},
                  {"languages", language_names(options.languages)},
                  {"tables", options.tables},
                  {"conversations", options.conversations},
                  {"sentences", options.sentences},
                  {"test", options.test},
                  {"seed", options.seed},
                  {"longest_in_tokens", {{"conversation", conversation}, {"prompt", prompt}}}});
  log.line(
      "{} is ready: {} conversations of at most {} tokens for a teacher, {} + {} sentences; prompt "
      "of {} tokens, vocabulary {}",
      options.output.string(), options.conversations, conversation, options.sentences, options.test,
      prompt, tokenizer->vocabulary());
}

}  // namespace tern::prepare
