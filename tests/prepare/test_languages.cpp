#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "answer/requests.hpp"
#include "prepare/detail/language_words.hpp"
#include "prepare/languages.hpp"
#include "scratch.hpp"
#include "text/chat.hpp"

namespace tern::prepare {
namespace {

using test::read_file;
using test::Scratch;

LanguagesOptions small(const Scratch& folder, const std::string& name, std::uint64_t seed = 1) {
  LanguagesOptions options;
  options.output = folder / name;
  options.conversations = 200;
  options.sentences = 240;
  options.test = 60;
  options.seed = seed;
  options.vocabulary = 700;
  return options;
}

TEST(Languages, AreADozenOfWholeSentences) {
  const auto names = language_names();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 12u);
  for (const detail::Language& language : detail::languages())
    for (const std::string_view list :
         {language.subjects, language.verbs, language.objects, language.places}) {
      const auto all = detail::phrases(list);
      EXPECT_GE(all.size(), 8u) << language.name;
      EXPECT_EQ(std::set<std::string_view>(all.begin(), all.end()).size(), all.size());
      for (const std::string_view phrase : all) EXPECT_FALSE(phrase.empty()) << language.name;
    }
}

TEST(Languages, SentencesDifferAndTakeTurns) {
  const auto sets = language_sentences({120, 240}, 3);
  std::set<std::string> texts;
  for (const auto& set : sets)
    for (std::size_t i = 0; i < set.size(); ++i) {
      EXPECT_EQ(set[i].language, i % 12);
      EXPECT_TRUE(texts.insert(set[i].text).second) << set[i].text;
    }
  EXPECT_EQ(texts.size(), 360u);
  EXPECT_NE(language_sentences({1}, 4)[0][0].text, sets[0][0].text);
}

TEST(Languages, TablesGiveEachLanguageACodeOfItsOwn) {
  std::set<Codes> tables;
  for (std::uint32_t table = 0; table < 8; ++table) {
    const Codes codes = language_codes(1, table);
    EXPECT_EQ(std::set<std::string>(codes.begin(), codes.end()).size(), 12u);
    tables.insert(codes);
    const std::string prompt = language_prompt(codes, 1, table);
    EXPECT_NE(prompt.find("{text}"), std::string::npos);
    for (std::size_t i = 0; i < codes.size(); ++i)
      EXPECT_NE(prompt.find(language_names()[i] + " " + codes[i] + "\n"), std::string::npos);
  }
  EXPECT_EQ(tables.size(), 8u);
}

TEST(Languages, AreTheSameForASeed) {
  const Scratch folder;
  Log log(false);
  for (const char* name : {"one", "two"}) prepare_languages(small(folder, name), log);
  prepare_languages(small(folder, "other", 2), log);
  for (const char* file : {"teacher_train.jsonl", "teacher_valid.jsonl", "sentences.jsonl",
                           "test.jsonl", "prompt.txt", "tokenizer.json"}) {
    const std::string text = read_file(folder / "one" / file);
    EXPECT_FALSE(text.empty()) << file;
    EXPECT_EQ(text, read_file(folder / "two" / file)) << file;
    EXPECT_NE(text, read_file(folder / "other" / file)) << file;
  }
}

/// Teacher, bulk generation and student read what is written: labels follow the prompt.
TEST(Languages, FilesFitTogether) {
  const Scratch folder;
  Log log(false);
  prepare_languages(small(folder, "made"), log);
  const std::string made = (folder / "made").string();
  const std::string prompt = read_file(folder / "made" / "prompt.txt");
  std::set<std::string> texts;
  for (const char* file : {"sentences.jsonl", "test.jsonl"}) {
    const auto requests = answer::read_requests(folder / "made" / file);
    EXPECT_EQ(requests.size(), file[0] == 's' ? 240u : 60u);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      EXPECT_TRUE(texts.insert(requests[i].text).second);
      EXPECT_NE(prompt.find(language_names()[i % 12] + " " + answer::plain_text(requests[i].label) +
                            "\n"),
                std::string::npos);
    }
  }
  const auto tokenizer = text::open_tokenizer(made);
  EXPECT_EQ(tokenizer->vocabulary(), 700u);
  const text::ChatRules rules{text::ChatTemplate::chatml, false};
  const auto chats = text::read_conversations({made + "/teacher_*.jsonl"});
  EXPECT_EQ(chats.size(), 200u);
  std::set<std::string> prompts;
  for (const text::Conversation& chat : chats) {
    const text::ChatTokens tokens = text::tokens_of(text::training_pieces(chat, rules), *tokenizer);
    EXPECT_EQ(std::count(tokens.tokens.begin(), tokens.tokens.end(), tokenizer->id("<|im_start|>")),
              static_cast<std::ptrdiff_t>(chat.messages.size()));
    const std::string& first = chat.messages[0].content;
    prompts.insert(first.substr(0, first.find("Sentence: ")));
    for (const text::Message& message : chat.messages)
      EXPECT_FALSE(texts.contains(message.content));
    EXPECT_NE(first.find(chat.messages[1].content + "\n"), std::string::npos);
  }
  EXPECT_EQ(prompts.size(), 8u);
}

}  // namespace
}  // namespace tern::prepare
