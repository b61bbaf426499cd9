#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "scratch.hpp"
#include "text/bpe_training.hpp"
#include "text/detail/byte_alphabet.hpp"
#include "text/detail/pretokenizer.hpp"
#include "text/texts.hpp"
#include "text/tokenizer.hpp"

namespace tern::text {
namespace {

using nlohmann::json;
using test::Scratch;

json train(const std::vector<std::string>& texts, const BpeTrainingOptions& options) {
  const Scratch scratch;
  BpeTrainer trainer(options);
  for (const std::string& text : texts) trainer.add({text});
  trainer.train(scratch.path());
  return json::parse(test::read_file(scratch / "tokenizer.json"));
}

/// The same, recounting everything for each merge.
std::vector<std::string> merges_by_recounting(const std::string& text, std::size_t count) {
  std::vector<std::string_view> pieces;
  detail::gpt2_pretokenizer()->split(text, pieces);
  std::vector<std::vector<int>> words;
  for (const std::string_view piece : pieces) {
    words.emplace_back();
    for (const char c : piece) words.back().push_back(static_cast<unsigned char>(c));
  }
  std::vector<std::string> tokens, merges;
  for (int b = 0; b < 256; ++b) tokens.push_back(std::string(1, static_cast<char>(b)));
  while (merges.size() < count) {
    std::map<std::pair<int, int>, int> pairs;
    for (const auto& word : words)
      for (std::size_t i = 0; i + 1 < word.size(); ++i) ++pairs[{word[i], word[i + 1]}];
    const auto best =
        std::max_element(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) {
          return a.second < b.second;  // among equals, max_element keeps the first
        });
    const auto [left, right] = best->first;
    merges.push_back(detail::to_byte_alphabet(tokens[left]) + " " +
                     detail::to_byte_alphabet(tokens[right]));
    tokens.push_back(tokens[left] + tokens[right]);
    for (auto& word : words) {
      std::vector<int> merged;
      for (std::size_t i = 0; i < word.size(); ++i) {
        const bool here = i + 1 < word.size() && word[i] == left && word[i + 1] == right;
        merged.push_back(here ? static_cast<int>(tokens.size()) - 1 : word[i]);
        i += here ? 1 : 0;
      }
      word = merged;
    }
  }
  return merges;
}

TEST(BpeTrainer, LearnsWhatCountingAnewLearns) {
  const std::string text = test::small_corpus() + "aaaaaaa aaaa aaa banana bananas anananan\n";
  const json model = train({text}, {257 + 130, PiecePattern::gpt2, 2})["model"];
  EXPECT_EQ(model["merges"].get<std::vector<std::string>>(), merges_by_recounting(text, 130));
}

TEST(BpeTrainer, VocabularyIsBytesMergesAndEndOfText) {
  const json root = train({"low low low lower lowest newer newer\n"}, {260, PiecePattern::gpt2, 1});
  const auto merges = root["model"]["merges"].get<std::vector<std::string>>();
  // "lo" and "ow" occur five times, then "lo" + "w"; between "we" and " " + "low" (four) bytes
  // decide.
  EXPECT_EQ(merges, (std::vector<std::string>{"l o", "lo w", "\xc4\xa0 low"}));
  EXPECT_EQ(root["model"]["vocab"].size(), 259u);
  EXPECT_EQ(root["model"]["vocab"]["low"], 257);
  EXPECT_EQ(root["added_tokens"][0]["content"], "<|endoftext|>");
  EXPECT_EQ(root["added_tokens"][0]["id"], 259);
}

TEST(BpeTrainer, OrderOfTextsAndThreadsDoNotMatter) {
  const std::string text = test::small_corpus();
  const std::string a = text.substr(0, text.find('\n', 3000) + 1), b = text.substr(a.size());
  for (const PiecePattern pattern : {PiecePattern::gpt2, PiecePattern::gpt4}) {
    const json one = train({a, b}, {380, pattern, 1});
    EXPECT_EQ(one, train({b, a}, {380, pattern, 1}));
    EXPECT_EQ(one, train({a, b}, {380, pattern, 4}));
  }
}

TEST(BpeTrainer, TheTokenizerItWritesIsReadBack) {
  for (const PiecePattern pattern : {PiecePattern::gpt2, PiecePattern::gpt4}) {
    const Scratch scratch;
    BpeTrainer trainer({350, pattern, 2});
    const std::string text = test::small_corpus();
    trainer.add({text});
    trainer.train(scratch.path());
    const auto tokenizer = open_tokenizer(scratch.path().string());
    EXPECT_EQ(tokenizer->vocabulary(), 350u);
    EXPECT_EQ(tokenizer->end_of_text(), 349);
    std::vector<std::int32_t> tokens;
    tokenizer->encode(text, tokens);
    EXPECT_LT(tokens.size(), text.size() / 2);
    EXPECT_EQ(tokenizer->decode(tokens), text);
  }
}

TEST(BpeTrainer, AVocabularyThatCannotBeIsRefused) {
  test::expect_user_error([] { BpeTrainer({256, PiecePattern::gpt2, 1}); }, {"256", "257"});
  const auto too_little = [] { train({"abab abab"}, {300, PiecePattern::gpt2, 1}); };
  test::expect_user_error(too_little, {"vocabulary of 300", "259 tokens"});
  // Bytes outside UTF-8 do not stop training, and nothing is learned from them.
  test::expect_user_error(
      [] {
        train({"\xff\xff\xff\xff ab\xff"
               "ab"},
              {300, PiecePattern::gpt2, 1});
      },
      {"258 tokens"});
}

}  // namespace
}  // namespace tern::text
