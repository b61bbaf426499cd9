// Sentences for a teacher and for a test: nothing is in both, and labels keep their shares.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "prepare/sentences.hpp"
#include "scratch.hpp"

namespace tern::prepare {
namespace {

using nlohmann::json;
using test::expect_user_error;
using test::Scratch;

struct Split {
  SentencesSummary summary;
  std::vector<json> sentences, test;
};

Split split(const Scratch& scratch, const std::string& text, double fraction = 0.25,
            std::uint64_t seed = 1) {
  scratch.write("in", text);
  SentencesOptions options;
  options.input = scratch / "in";
  options.output = scratch / "out";
  options.test_fraction = fraction;
  options.seed = seed;
  options.force = true;
  Log silent(false);
  Split made;
  made.summary = prepare_sentences(options, silent);
  for (const auto& [name, to] : {std::pair("out/sentences.jsonl", &made.sentences),
                                 std::pair("out/test.jsonl", &made.test)}) {
    std::istringstream lines(scratch.read(name));
    for (std::string line; std::getline(lines, line);) to->push_back(json::parse(line));
  }
  return made;
}

TEST(Sentences, LabelsKeepTheirSharesAndFieldsStay) {
  std::string text;
  for (int i = 0; i < 80; ++i)
    text += json{{"text", "sentence " + std::to_string(i)},
                 {"label", i % 4 == 0 ? "de" : "en"},
                 {"source", i}}
                .dump() +
            '\n';
  const Scratch scratch;
  const Split made = split(scratch, text);
  EXPECT_EQ(made.summary.sentences, 60u);
  EXPECT_EQ(made.summary.test, 20u);
  EXPECT_EQ(made.summary.labels, 2u);
  std::map<std::string, int> labels;
  for (const json& record : made.test) {
    ++labels[record.at("label")];
    const int source = record.at("source");
    EXPECT_EQ(record.at("text"), "sentence " + std::to_string(source));
    EXPECT_EQ(record.at("id"), source + 1);
  }
  EXPECT_EQ(labels["de"], 5);
  EXPECT_EQ(labels["en"], 15);
  EXPECT_EQ(split(scratch, text).test, made.test);
  EXPECT_NE(split(scratch, text, 0.25, 2).test, made.test);
}

TEST(Sentences, NothingIsOnBothSides) {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    text += json{{"text", "Hello, number " + std::to_string(i) + "!"}}.dump() + '\n';
    text += "hello   NUMBER " + std::to_string(i) + '\n';  // the same, in other dress
  }
  const Scratch scratch;
  const Split made = split(scratch, text, 0.5);
  EXPECT_EQ(made.summary.repeated, 40u);
  EXPECT_EQ(made.sentences.size(), 20u);
  EXPECT_EQ(made.test.size(), 20u);
  text.clear();
  for (int i = 0; i < 60; ++i)
    text += json{{"text", "text " + std::to_string(i)}, {"group", i / 3}, {"label", i % 3}}.dump() +
            '\n';
  const Split grouped = split(scratch, text, 0.3);
  std::set<int> groups;
  for (const json& record : grouped.test) groups.insert(record.at("group").get<int>());
  EXPECT_EQ(grouped.test.size(), 3 * groups.size());
  EXPECT_EQ(grouped.test.size(), 18u);
}

TEST(Sentences, MistakesAreNamed) {
  const Scratch scratch;
  const auto fails = [&](const std::string& text, std::initializer_list<std::string> parts) {
    expect_user_error([&] { split(scratch, text); }, parts);
    EXPECT_FALSE(std::filesystem::exists(scratch / "out"));
  };
  fails("{\"text\": \"a\", \"label\": 1}\n\n{\"text\": \"A.\", \"label\": 2}\n",
        {"in:3", "line 1", "'2' instead of '1'"});
  fails("a\n{\"label\": 1}\n", {"in:2", "\"text\""});
  fails("{broken\n", {"in:1"});
  fails("one\n", {"1 different texts"});
  fails("", {"0 different texts"});
  SentencesOptions options;
  options.input = scratch / "none";
  options.output = scratch / "out";
  Log silent(false);
  expect_user_error([&] { prepare_sentences(options, silent); }, {"none", "--input"});
  options.test_fraction = 1;
  expect_user_error([&] { prepare_sentences(options, silent); }, {"--test-fraction 1"});
}

}  // namespace
}  // namespace tern::prepare
