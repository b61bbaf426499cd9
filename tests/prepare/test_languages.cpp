#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "answer/requests.hpp"
#include "prepare/detail/language_words.hpp"
#include "prepare/languages.hpp"
#include "refusal.hpp"
#include "scratch.hpp"
#include "text/chat.hpp"

namespace tern::prepare {
namespace {

using test::read_file;
using test::refusal;
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

/// Every conversation of the teacher has a table of its own.
LanguagesOptions own_tables(const Scratch& folder, const std::string& name) {
  LanguagesOptions options = small(folder, name);
  options.languages = 24;
  options.tables = options.conversations;
  options.vocabulary = 1'024;
  return options;
}

std::vector<std::string_view> lists_of(const detail::Language& language) {
  return {language.subjects, language.verbs, language.objects, language.places};
}

TEST(Languages, AreTwoDozenOfWholeSentences) {
  const auto names = language_names(24);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 24u);
  for (const detail::Language& language : detail::languages())
    for (const std::string_view list : lists_of(language)) {
      const auto all = detail::phrases(list);
      EXPECT_GE(all.size(), 8u) << language.name;
      EXPECT_EQ(std::set<std::string_view>(all.begin(), all.end()).size(), all.size());
      for (const std::string_view phrase : all) EXPECT_FALSE(phrase.empty()) << language.name;
    }
}

/// No two languages share phrases of all lists, so no sentence is of two languages.
TEST(Languages, SentencesTellTheirLanguage) {
  const auto share = [](std::string_view a, std::string_view b) {
    const auto of_a = detail::phrases(a), of_b = detail::phrases(b);
    return std::find_first_of(of_a.begin(), of_a.end(), of_b.begin(), of_b.end()) != of_a.end();
  };
  const auto& all = detail::languages();
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const auto a = lists_of(all[i]), b = lists_of(all[j]);
      EXPECT_FALSE(std::equal(a.begin(), a.end(), b.begin(), share))
          << all[i].name << ", " << all[j].name;
    }
}

TEST(Languages, SentencesDifferAndTakeTurns) {
  const auto sets = language_sentences({120, 240}, 3, 12);
  std::set<std::string> texts;
  for (const auto& set : sets)
    for (std::size_t i = 0; i < set.size(); ++i) {
      EXPECT_EQ(set[i].language, i % 12);
      EXPECT_TRUE(texts.insert(set[i].text).second) << set[i].text;
    }
  EXPECT_EQ(texts.size(), 360u);
  EXPECT_NE(language_sentences({1}, 4, 12)[0][0].text, sets[0][0].text);
}

/// Two languages have 12,800 sentences. The last list repeats some of its own, never others'.
TEST(Languages, OnlyTheLastSentencesRepeat) {
  const auto sets = language_sentences({200, 5'000, 12'000}, 3, 2);
  std::set<std::string> test, learned, repeated;
  for (const auto& [text, language] : sets[0]) EXPECT_TRUE(test.insert(text).second);
  for (const auto& [text, language] : sets[1]) EXPECT_TRUE(learned.insert(text).second);
  for (const auto& [text, language] : sets[2]) {
    EXPECT_FALSE(test.contains(text) || learned.contains(text)) << text;
    repeated.insert(text);
  }
  EXPECT_EQ(sets[2].size(), 12'000u);
  EXPECT_LE(repeated.size(), 7'600u);
  EXPECT_GT(repeated.size(), 5'000u);
}

TEST(Languages, TablesGiveEachLanguageACodeOfItsOwn) {
  for (const std::size_t languages : {2u, 12u, 13u, 24u}) {
    std::set<Codes> tables;
    std::set<std::string> seen;
    for (std::uint32_t table = 0; table < 8; ++table) {
      const Codes codes = language_codes(1, table, languages);
      const std::set<std::string> different(codes.begin(), codes.end());
      EXPECT_EQ(different.size(), languages);
      seen.insert(codes.begin(), codes.end());
      tables.insert(codes);
      const std::string prompt = language_prompt(codes, 1, table);
      EXPECT_NE(prompt.find("{text}"), std::string::npos);
      for (std::size_t i = 0; i < codes.size(); ++i)
        EXPECT_NE(prompt.find(language_names(languages)[i] + " " + codes[i] + "\n"),
                  std::string::npos);
    }
    EXPECT_EQ(tables.size(), 8u);
    EXPECT_GT(seen.size(), languages);  // a table has only some of the codes
  }
}

TEST(Languages, AreRefusedWithARemedy) {
  const Scratch folder;
  Log log(false);
  const auto refused = [&](auto change) {
    LanguagesOptions options = small(folder, "refused");
    change(options);
    return refusal([&] { prepare_languages(options, log); });
  };
  const auto says = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is missing in: " << text;
  };
  says(refused([](LanguagesOptions& o) { o.languages = 25; }),
       "--languages 25: out of range; pass 2 to 24");
  says(refused([](LanguagesOptions& o) { o.least_languages = 13; }), "at most 12");
  says(refused([](LanguagesOptions& o) { o.tables = 201; }),
       "--tables 201: too many; pass at most 200");
  says(refused([](LanguagesOptions& o) { o.conversations = 1u << 30; }),
       "--conversations 1073741824");
  says(refused([](LanguagesOptions& o) { o.sentences = 38'350; }), "at most 38400 in all");
  says(refused([](LanguagesOptions& o) { o.languages = 24, o.vocabulary = 400; }), "--vocabulary");
  EXPECT_FALSE(std::filesystem::exists(folder / "refused"));
}

/// Tables of 3 to 24 lines have those of their sentences; the campaign's has all.
TEST(Languages, SomeTablesAreShort) {
  const Scratch folder;
  Log log(false);
  LanguagesOptions options = own_tables(folder, "made");
  options.least_languages = 3;
  prepare_languages(options, log);
  const std::string made = (folder / "made").string();
  const auto lines = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '\n');
  };
  const auto all = lines(read_file(folder / "made" / "prompt.txt"));
  std::set<std::ptrdiff_t> lengths;
  for (const text::Conversation& chat : text::read_conversations({made + "/teacher_*.jsonl"})) {
    const std::string& prompt = chat.messages[0].content;
    const std::ptrdiff_t length = lines(chat.messages[3].content) + 1;
    EXPECT_EQ(lines(prompt) + 1, all - 24 + length);
    for (const std::size_t answer : {1, 5, 7})
      EXPECT_NE(prompt.find(chat.messages.at(answer).content + "\n"), std::string::npos);
    lengths.insert(length);
  }
  EXPECT_EQ(*lengths.begin(), 3);
  EXPECT_EQ(*lengths.rbegin(), 24);
  EXPECT_GT(lengths.size(), 15u);
}

/// Codes that no table has need no place in the vocabulary.
TEST(Languages, AFewTablesHaveOnlySomeOfTheCodes) {
  const Scratch folder;
  Log log(false);
  LanguagesOptions options = own_tables(folder, "made");
  options.tables = 2;
  prepare_languages(options, log);
  const auto tokenizer = text::open_tokenizer((folder / "made").string());
  const auto count = [&](const std::string& before) {
    std::size_t known = 0;
    for (const char consonant : std::string("BDFGKLMNPRSTVZCH"))
      for (const char vowel : std::string("AOU"))
        known += tokenizer->id(before + consonant + vowel) >= 0;
    return known;
  };
  EXPECT_EQ(count(""), 48u);
  EXPECT_GE(count(" "), 24u);
  EXPECT_LT(count(" "), 48u);
}

/// Where each conversation has a table of its own, the campaign's prompt is new to the teacher.
TEST(Languages, OwnTablesAreNotTheCampaigns) {
  const Scratch folder;
  Log log(false);
  prepare_languages(own_tables(folder, "made"), log);
  const std::string made = (folder / "made").string();
  const auto table_in = [](const std::string& prompt) {
    const std::size_t begin = prompt.find(":\n");
    return prompt.substr(begin, prompt.find("Other tables") - begin);
  };
  std::set<std::string> tables{table_in(read_file(folder / "made" / "prompt.txt"))};
  for (const text::Conversation& chat : text::read_conversations({made + "/teacher_*.jsonl"}))
    EXPECT_TRUE(tables.insert(table_in(chat.messages[0].content)).second);
  EXPECT_EQ(tables.size(), 201u);
  std::set<std::string> labels;
  for (const auto& request : answer::read_requests(folder / "made" / "test.jsonl"))
    labels.insert(answer::plain_text(request.label));
  EXPECT_EQ(labels.size(), 24u);
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
      EXPECT_NE(prompt.find(language_names(12)[i % 12] + " " +
                            answer::plain_text(requests[i].label) + "\n"),
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
