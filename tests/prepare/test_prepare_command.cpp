#include <gtest/gtest.h>

#include "prepare/command.hpp"
#include "refusal.hpp"

namespace tern::prepare {
namespace {

PrepareCommand parse(std::vector<const char*> words) {
  words.insert(words.begin(), "prepare");
  return parse_prepare_command(static_cast<int>(words.size()), words.data());
}

std::string refused(const std::vector<const char*>& words) {
  return test::refusal([&] { parse(words); });
}

void expect_named(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is missing in: " << text;
}

TEST(PrepareCommand, NumbersAreWholeAndInRange) {
  EXPECT_EQ(parse({"text", "--train-bpe", "8192"}).text.train_bpe, 8192u);
  EXPECT_EQ(parse({"arithmetic", "--problems", "2e4"}).arithmetic.problems, 20'000u);
  EXPECT_EQ(parse({"arithmetic", "--seed", "0"}).arithmetic.seed, 0u);
  for (const char* wrong : {"-1", "1.5", "x", "", "8_192", "1e30", "99999999999999999999"}) {
    expect_named(refused({"text", "--train-bpe", wrong}), "train-bpe");
    expect_named(refused({"arithmetic", "--problems", wrong}), "problems");
    expect_named(refused({"text", "--threads", wrong}), "threads");
  }
  expect_named(refused({"text", "--train-bpe", "0"}), "--train-bpe 0");
  expect_named(refused({"text", "--threads", "100000"}), "1024");
}

TEST(PrepareCommand, EachCommandHasItsFolderAndItsOptions) {
  EXPECT_EQ(parse({"arithmetic"}).arithmetic.output, "data/arithmetic");
  EXPECT_EQ(parse({"languages"}).languages.output, "data/languages");
  EXPECT_EQ(parse({"quickstart"}).arithmetic.output, "data/quickstart");
  EXPECT_EQ(parse({"cpp-headers"}).text.output, "data/cpp_headers");
  EXPECT_EQ(parse({"text", "--output", "o"}).text.output, "o");
  EXPECT_EQ(parse({"arithmetic", "--output", "o"}).arithmetic.output, "o");
  EXPECT_EQ(parse({"text"}).text.output, "");
  EXPECT_EQ(parse({"--help"}).command, "");
  EXPECT_EQ(parse({"text", "--help"}).command, "");
  EXPECT_EQ(parse({}).command, "");
  expect_named(refused({"texts"}), "did you mean text?");
  expect_named(refused({"languages", "--steps", "2"}), "./prepare arithmetic");
  expect_named(refused({"quickstart", "--chats"}), "./prepare arithmetic");
  EXPECT_TRUE(parse({"arithmetic", "--chats"}).arithmetic.chats);
  EXPECT_FALSE(parse({"arithmetic"}).arithmetic.chats);
  expect_named(refused({"arithmetic", "--tables", "2"}), "./prepare languages");
  expect_named(refused({"text", "--vocabulary", "512"}), "arithmetic, languages");
  expect_named(refused({"text", "--seed", "2"}), "arithmetic, languages, gsm8k, sentences");
  EXPECT_EQ(parse({"gsm8k"}).gsm8k.output, "data/gsm8k_variants");
  EXPECT_EQ(parse({"gsm8k"}).gsm8k.folder, "data/gsm8k");
  EXPECT_EQ(parse({"gsm8k", "elsewhere", "--variants", "7"}).gsm8k.folder, "elsewhere");
  EXPECT_EQ(parse({"gsm8k", "elsewhere", "--variants", "7"}).gsm8k.variants, 7u);
  expect_named(refused({"arithmetic", "--variants", "2"}), "./prepare gsm8k");
  EXPECT_EQ(parse({"gsm8k", "--variants", "0", "--copies", "5"}).gsm8k.copies, 5u);
  EXPECT_EQ(parse({"gsm8k"}).gsm8k.vocabulary, 0u);
  EXPECT_EQ(parse({"gsm8k", "--vocabulary", "4096"}).gsm8k.vocabulary, 4096u);
  EXPECT_EQ(parse({"arithmetic"}).arithmetic.vocabulary, 600u);
  EXPECT_TRUE(parse({"gsm8k", "--chats"}).gsm8k.chats);
  expect_named(refused({"languages", "elsewhere"}), "'elsewhere' is one word too many");
  EXPECT_EQ(parse({"sentences", "--input", "f", "--output", "o"}).sentences.input, "f");
  expect_named(refused({"sentences", "--input", "f", "g"}), "one file, not 2");
  expect_named(refused({"sentences"}), "--input FILE");
  expect_named(refused({"text", "--test-fraction", "0.5"}), "./prepare sentences");
  const PlansOptions plans = parse({"plans", "--input", "f", "--answers", "a"}).plans;
  EXPECT_EQ(plans.input, "f");
  EXPECT_EQ(plans.answers, "a");
  expect_named(refused({"plans"}), "--input FILE");
  expect_named(refused({"sentences", "--input", "f", "--answers", "a"}), "./prepare plans");
}

TEST(PrepareCommand, LanguagesHaveSizesOfTheirOwn) {
  const LanguagesOptions usual = parse({"languages"}).languages;
  EXPECT_EQ(usual.languages, 12u);
  EXPECT_EQ(usual.tables, 8u);
  EXPECT_EQ(usual.conversations, 4'000u);
  EXPECT_EQ(usual.vocabulary, 1'024u);
  const LanguagesOptions more =
      parse({"languages", "--languages", "24", "--least-languages", "3", "--tables", "6e4",
             "--conversations", "60e3", "--questions", "4", "--sentences", "2e4",
             "--test-sentences", "2400", "--vocabulary", "2048", "--seed", "7"})
          .languages;
  EXPECT_EQ(more.languages, 24u);
  EXPECT_EQ(more.least_languages, 3u);
  EXPECT_EQ(more.tables, 60'000u);
  EXPECT_EQ(more.conversations, 60'000u);
  EXPECT_EQ(more.questions, 4u);
  EXPECT_EQ(more.sentences, 20'000u);
  EXPECT_EQ(more.test, 2'400u);
  EXPECT_EQ(more.vocabulary, 2'048u);
  EXPECT_EQ(more.seed, 7u);
  EXPECT_EQ(parse({"arithmetic", "--vocabulary", "512"}).arithmetic.vocabulary, 512u);
  expect_named(refused({"languages", "--languages", "1"}), "--languages 1: set a whole number");
  expect_named(refused({"languages", "--conversations", "19"}), "from 20");
  expect_named(refused({"languages", "--tables", "0"}), "--tables 0");
}

}  // namespace
}  // namespace tern::prepare
