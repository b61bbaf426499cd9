#include <algorithm>
#include <map>

#include "base/random.hpp"
#include "data/chat_source.hpp"
#include "data/reader.hpp"
#include "scratch.hpp"

namespace tern::data {
namespace {

using test::expect_user_error;
using Tokens = std::vector<std::int32_t>;

constexpr std::int32_t E = 256;  // the end token of 'bytes'

const text::Tokenizer& bytes() {
  static const auto tokenizer = text::open_tokenizer("bytes");
  return *tokenizer;
}

/// A question and an answer in template 'plain', whose question ends with a new line.
text::ChatTokens chat(const std::string& question, const std::string& answer) {
  const text::Conversation conversation{
      {{text::Role::user, question, {}}, {text::Role::assistant, answer, {}}}, "x"};
  return text::tokens_of(text::training_pieces(conversation, {}), bytes());
}

ChatRowRules rules_of(std::size_t positions, bool packing = true, bool cut = false) {
  return {positions, packing, cut, 3};
}

Batch batch_of(const ChatSource& source, std::size_t row, std::size_t at, std::size_t rows) {
  Batch batch;
  batch.sequences = rows;
  batch.tokens_per_sequence = source.positions();
  source.start(batch);
  source.append(row, at, batch);
  return batch;
}

TEST(ChatSource, LearnedAreTheAnswerAndItsEnd) {
  const ChatSource source({chat("ab", "xy")}, rules_of(9));
  const Batch batch = batch_of(source, 0, 1, 2);
  EXPECT_EQ(batch.inputs,
            (Tokens{0, 0, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', '\n', 'x', 'y', E, 0, 0, 0}));
  EXPECT_EQ(batch.targets, (Tokens{-1, -1, -1, -1, -1, -1, -1, -1, -1,  //
                                   -1, -1, 'x', 'y', E, -1, -1, -1, -1}));
  EXPECT_EQ(batch.documents, (std::vector<Document>{{1, 0, 6}}));
  const Counts counts = source.counts(0);
  EXPECT_EQ(counts.tokens, (std::array<std::int64_t, levels>{0, 3}));
  EXPECT_EQ(counts.data_tokens, 6);
  EXPECT_EQ(counts.samples, 1);
  EXPECT_DOUBLE_EQ(source.fill(), 6.0 / 9);
  EXPECT_DOUBLE_EQ(source.learned(), 0.5);
}

TEST(ChatSource, NoConversationPredictsAnother) {
  text::ChatTokens begins_with_answer{
      {'p', 'q'}, {text::Role::assistant, text::Role::assistant}, {1, 1}};
  const ChatSource source({chat("ab", "xy"), begins_with_answer}, rules_of(8));
  ASSERT_EQ(source.rows(), 1u);
  EXPECT_EQ(source.conversations_of(0), (std::vector<std::size_t>{0, 1}));
  const Batch batch = batch_of(source, 0, 0, 1);
  EXPECT_EQ(batch.inputs, (Tokens{'a', 'b', '\n', 'x', 'y', E, 'p', 'q'}));
  EXPECT_EQ(batch.targets, (Tokens{-1, -1, 'x', 'y', E, -1, 'q', -1}));
  EXPECT_EQ(batch.documents, (std::vector<Document>{{0, 0, 6}, {0, 6, 2}}));
  EXPECT_EQ(source.counts(0).tokens[only_level], 4);  // not 'p': nothing predicts it
}

TEST(ChatSource, WhatIsTooLongIsLeftOutOrCut) {
  const std::vector<text::ChatTokens> chats{chat("abcdefgh", "x"), chat("ab", "wxyz"),
                                            chat("a", "b")};
  const ChatSource left(chats, rules_of(6, false));
  EXPECT_EQ(left.rows(), 1u);
  EXPECT_EQ(left.conversations_of(0), std::vector<std::size_t>{2});
  const ChatTruncation& t = left.truncation();
  EXPECT_EQ(std::tuple(t.conversations, t.too_long, t.longest, t.cut, t.without_targets),
            std::tuple(3u, 2u, 11u, 0u, 0u));
  EXPECT_EQ(t.left_out(), 2u);

  const ChatSource cut(chats, rules_of(6, false, true));
  EXPECT_EQ(cut.rows(), 2u);  // the first has lost its whole answer
  EXPECT_EQ(batch_of(cut, 0, 0, 1).inputs, (Tokens{'a', 'b', '\n', 'w', 'x', 'y'}));
  EXPECT_EQ(batch_of(cut, 0, 0, 1).targets, (Tokens{-1, -1, 'w', 'x', 'y', -1}));
  EXPECT_EQ(
      std::tuple(cut.truncation().too_long, cut.truncation().cut, cut.truncation().without_targets),
      std::tuple(2u, 2u, 1u));
  EXPECT_EQ(cut.truncation().left_out(), 1u);
}

TEST(ChatSource, Refusals) {
  expect_user_error([] { ChatSource({}, rules_of(6)); }, {"no conversations"});
  expect_user_error(
      [] { ChatSource({chat("abcdefgh", "x")}, rules_of(6)); },
      {"no conversation is left of 1", "than the 6 tokens", "the longest has 11", "'cut'"});
  expect_user_error([] { ChatSource({chat("abcdefgh", "x")}, rules_of(6, true, true)); },
                    {"1 have nothing to learn"});
}

/// Conversations of many lengths, each with a text of its own.
std::vector<text::ChatTokens> many(std::size_t count) {
  std::vector<text::ChatTokens> chats;
  for (std::size_t i = 0; i < count; ++i) {
    const Random4 r = philox(5, Stream::test, 0, static_cast<std::uint32_t>(i), 0);
    chats.push_back(chat(std::to_string(i) + std::string(r.word[0] % 40, 'q'),
                         std::string(r.word[1] % 20, 'x') + std::to_string(i)));
  }
  return chats;
}

/// In every pass over the rows each conversation stands in the batches once, as it is alone,
/// whatever the micro-batches and ranks; the passes differ in their order.
void check_passes(const ChatSource& source, const std::vector<text::ChatTokens>& chats,
                  std::size_t passes) {
  constexpr std::size_t sequences = 3, ranks = 2;
  std::vector<std::unique_ptr<Reader>> readers;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    readers.push_back(std::make_unique<Reader>(
        source, ReaderOptions{.sequences = sequences, .length = source.positions(), .seed = 7},
        rank, ranks, 0));
  std::vector<std::vector<Tokens>> seen(passes);
  for (std::size_t number = 0; number < passes * source.rows();)
    for (auto& reader : readers) {
      const Batch batch = reader->next();
      for (const Document& document : batch.documents) {
        const std::size_t of_pass = (number + document.row) / source.rows();
        if (of_pass >= passes) continue;
        const auto begin =
            batch.inputs.begin() +
            static_cast<std::ptrdiff_t>(document.row * source.positions() + document.begin);
        seen[of_pass].emplace_back(begin, begin + document.tokens);
      }
      number += sequences;
    }
  std::vector<Tokens> expected;
  for (const text::ChatTokens& each : chats) expected.push_back(each.tokens);
  std::sort(expected.begin(), expected.end());
  EXPECT_NE(seen[0], seen[1]);
  for (std::vector<Tokens>& of_pass : seen) {
    std::sort(of_pass.begin(), of_pass.end());
    EXPECT_EQ(of_pass, expected);
  }
}

TEST(ChatSource, EachPassHasEachConversationOnce) {
  const auto chats = many(200);
  const ChatSource packed(chats, rules_of(96)), alone(chats, rules_of(96, false));
  EXPECT_LT(packed.rows(), 100u);
  EXPECT_GT(packed.fill(), 0.95);
  EXPECT_EQ(alone.rows(), 200u);
  check_passes(packed, chats, 3);
  check_passes(alone, chats, 2);
}

TEST(ChatSource, CountsAreThoseOfTheTargets) {
  const ChatSource source(many(200), rules_of(96));
  for (std::size_t row = 0; row < source.rows(); ++row) {
    const Batch batch = batch_of(source, row, 0, 1);
    const Counts counts = source.counts(row);
    EXPECT_EQ(
        std::count_if(batch.targets.begin(), batch.targets.end(), [](auto t) { return t >= 0; }),
        counts.tokens[only_level]);
    std::int64_t tokens = 0;
    for (const Document& document : batch.documents) tokens += document.tokens;
    EXPECT_EQ(tokens, counts.data_tokens);
    EXPECT_EQ(static_cast<std::int64_t>(batch.documents.size()), counts.samples);
  }
}

TEST(ChatSource, RowsDependOnTheSeedAlone) {
  const auto rows = [](std::uint64_t seed) {
    const ChatSource source(many(200), {96, true, false, seed});
    std::vector<std::vector<std::size_t>> all;
    for (std::size_t row = 0; row < source.rows(); ++row)
      all.push_back(source.conversations_of(row));
    return all;
  };
  EXPECT_EQ(rows(1), rows(1));
  EXPECT_NE(rows(1), rows(2));
}

// ---- the training prefix is the generation prefix

TEST(TrainingTokens, AreLearnedBehindThePromptOfGeneration) {
  std::vector<text::Conversation> conversations;
  for (int i = 0; i < 70; ++i)
    conversations.push_back({{{text::Role::system, "be brief", {}},
                              {text::Role::user, std::string(static_cast<std::size_t>(i), 'q'), {}},
                              {text::Role::assistant, std::to_string(i), {}}},
                             "file:" + std::to_string(i)});
  for (const std::size_t threads : {1, 3}) {
    const auto tokens = training_tokens(conversations, {}, bytes(), threads);
    ASSERT_EQ(tokens.size(), conversations.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const auto& messages = conversations[i].messages;
      Tokens prompt =
          text::tokens_of(text::generation_prompt({messages.begin(), messages.end() - 1}, {}),
                          bytes())
              .tokens;
      EXPECT_TRUE(std::equal(prompt.begin(), prompt.end(), tokens[i].tokens.begin()));
      EXPECT_EQ(tokens[i].learned[prompt.size() - 1], 0);
      EXPECT_EQ(tokens[i].learned[prompt.size()], 1);
    }
  }
  conversations[1].messages.pop_back();
  expect_user_error([&] { training_tokens(conversations, {}, bytes(), 2); }, {"file:1", "last"});
}

/// What an assertion says when it fails.
std::string complaint(const text::ChatTokens& learned, const Tokens& prompt) {
  try {
    require_prefix(learned, prompt, "file:7", bytes());
  } catch (const InternalError& e) {
    return e.what();
  }
  return "nothing";
}

TEST(TrainingTokens, ADifferentPromptIsNamedByItsFirstToken) {
  const text::ChatTokens learned = chat("ab", "xy");
  EXPECT_EQ(complaint(learned, {'a', 'b', '\n'}), "nothing");
  EXPECT_NE(
      complaint(learned, {'a', 'c', '\n'})
          .find("file:7: token 1 of the training row is 98 'b', of generation's prompt 99 'c'"),
      std::string::npos);
  EXPECT_NE(complaint(learned, {'a', 'b'})
                .find("token 2 (10 '\n') follows generation's prompt, and is not learned"),
            std::string::npos);
  EXPECT_NE(complaint(learned, {'a', 'b', '\n', 'x', 'y', E, 'z'})
                .find("token 6 of the training row is nothing, of generation's prompt 122 'z'"),
            std::string::npos);
}

}  // namespace
}  // namespace tern::data
