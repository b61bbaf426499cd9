#include <gtest/gtest.h>
#include <unistd.h>

#include "deck/corpus.hpp"
#include "deck/mistakes.hpp"

namespace tern::test {
namespace {

using deck::parse;

TEST(DeckValues, EveryConstructIsReadToItsValue) {
  const deck::Deck d = parse(every_construct, "d");
  EXPECT_EQ(d.campaign.name, "it's \"one\"");
  EXPECT_EQ(d.campaign.task, "train");
  EXPECT_EQ(d.campaign.seed, 7);
  EXPECT_EQ(d.campaign.max_steps, 100);
  EXPECT_EQ(d.campaign.max_hours, 1.5);
  EXPECT_EQ(d.model.layers, 2);
  EXPECT_TRUE(d.model.qk_norm);
  EXPECT_FALSE(d.model.attention_bias);
  EXPECT_TRUE(d.model.ffn_bias);
  EXPECT_FALSE(d.model.tie_embeddings);
  EXPECT_EQ(d.model.norm_eps, 1e-6);
  EXPECT_EQ(d.model.dropout, 0.5);
  EXPECT_EQ(d.model.rope_base, 1e6);
  EXPECT_EQ(d.objective.z_loss, 1e-4);
  EXPECT_EQ(d.data.train, (Lines{"a.bin", "b/*.bin", "c!d.bin"}));
  EXPECT_EQ(d.data.valid, (Lines{"v.bin", "v.bin"}));
  EXPECT_EQ(d.optimizer.betas, (std::vector<double>{0.9, 0.98}));
  EXPECT_EQ(d.optimizer.lr, 1e-3);
  EXPECT_EQ(d.optimizer.min_lr, 0);
  EXPECT_EQ(d.generation.prompt, "two\nlines, ä");
}

TEST(DeckValues, AnEmptyDeckHasTheDefaults) {
  deck::Deck expected;
  expected.model.kv_heads = 12;
  expected.model.head_dim = 64;
  expected.model.ffn_hidden = 2048;
  expected.output.directory = "runs/run";
  EXPECT_EQ(parse("", "d"), expected);
  EXPECT_EQ(parse("! only a comment", "d"), expected);
  EXPECT_EQ(parse("&model / &data\n/\n", "d"), expected);
}

TEST(DeckValues, LogicalsInAllForms) {
  for (const char* yes : {".true.", ".TRUE.", ".t.", ".T.", "T", "t", "true", "True"})
    EXPECT_TRUE(parse(fmt::format("&model qk_norm = {} /", yes), "d").model.qk_norm) << yes;
  for (const char* no : {".false.", ".FALSE.", ".f.", ".F.", "F", "f", "false", "False"})
    EXPECT_FALSE(parse(fmt::format("&model tie_embeddings={}/", no), "d").model.tie_embeddings)
        << no;
}

TEST(DeckValues, RealsInAllForms) {
  const std::pair<const char*, double> forms[] = {
      {"6e-4", 6e-4}, {"6E-4", 6e-4}, {"6d-4", 6e-4},  {"6D-04", 6e-4}, {".5", 0.5},
      {"5.", 5},      {"+2", 2},      {"1.e1", 10},    {"007", 7},      {"0.1", 0.1},
      {"1d+2", 100},  {"3", 3},       {"1e300", 1e300}};
  for (const auto& [text, value] : forms)
    EXPECT_EQ(parse(fmt::format("&optimizer lr = {} /", text), "d").optimizer.lr, value) << text;
}

TEST(DeckValues, WholeNumbersInAllForms) {
  const std::pair<const char*, std::int64_t> forms[] = {
      {"1000", 1000}, {"+7", 7},       {"1_000", 1000}, {"12_345_678", 12345678},
      {"1e3", 1000},  {"1.5E3", 1500}, {"2d+2", 200},   {"10e-1", 1},
      {"0.5e1", 5}};
  for (const auto& [text, value] : forms)
    EXPECT_EQ(parse(fmt::format("&campaign max_steps = {} /", text), "d").campaign.max_steps, value)
        << text;
}

TEST(DeckValues, LineEndsOfOtherSystemsAreRead) {
  EXPECT_EQ(parse("&model\r\n layers = 3\r\n/\r\n", "d").model.layers, 3);
  EXPECT_EQ(parse("&generation prompt = 'a\r\nb' /", "d").generation.prompt, "a\nb");
}

TEST(DeckValues, ElementsKeepTheOthers) {
  const std::vector<double> second = {0.9, 0.5}, first = {0.5, 0.95}, both = {0.1, 0.2};
  EXPECT_EQ(parse("&optimizer betas(2) = 0.5 /", "d").optimizer.betas, second);
  EXPECT_EQ(parse("&optimizer betas ( 1 ) = 0.5 /", "d").optimizer.betas, first);
  EXPECT_EQ(parse("&optimizer betas(1) = 0.1 betas(2)=0.2 /", "d").optimizer.betas, both);
  EXPECT_EQ(parse("&optimizer betas = 0.1 betas(2)=0.2 /", "d").optimizer.betas, both);
}

TEST(DeckValues, DerivedValuesAreResolved) {
  const auto ffn = [](const char* text) { return parse(text, "d").model.ffn_hidden; };
  EXPECT_EQ(ffn("&model hidden = 1024 heads = 16 /"), 2752);
  EXPECT_EQ(ffn("&model hidden = 24 heads = 2 /"), 64);
  EXPECT_EQ(ffn("&model hidden = 256 heads = 2 activation = 'gelu' /"), 1024);
  EXPECT_EQ(ffn("&model ffn_hidden = 100 /"), 100);
  EXPECT_EQ(parse("&model heads = 6 kv_heads = 2 /", "d").model.kv_heads, 2);
  EXPECT_EQ(parse("&model heads = 6 /", "d").model.kv_heads, 6);
  EXPECT_EQ(parse("&model head_dim = 10 heads = 7 /", "d").model.head_dim, 10);
  EXPECT_EQ(parse("&batch per_rank = 3 / &parallel data = 4 /", "d").batch.global, 12);
  EXPECT_EQ(parse("&batch per_rank = 3 accumulation = 5 / &parallel data = 4 /", "d").batch.global,
            60);
  EXPECT_EQ(parse("&batch per_rank = 3 /", "d").batch.global, 0);
  EXPECT_EQ(parse("&batch per_rank = 3 accumulation = 5 /", "d").batch.global, 0);
  EXPECT_EQ(parse("&batch per_rank = 0 global = 5 /", "d").batch.global, 5);
  EXPECT_EQ(parse("&campaign name = 'x y' /", "d").output.directory, "runs/x y");
  EXPECT_EQ(parse("&output directory = 'o' /", "d").output.directory, "o");
}

TEST(DeckValues, InputDecksAreReadAndEachSaysWhatItIs) {
  const auto decks = input_decks();
  ASSERT_GE(decks.size(), 2u);
  for (const auto& path : decks) {
    const deck::Deck d = deck::read(path.string());
    EXPECT_EQ(d.campaign.name, path.stem().string());
    const std::string text = file_text(path);
    EXPECT_EQ(text[0], '!') << path;
    for (const char* part : {"Problem", "Reference", "Run", "Expect"})
      EXPECT_NE(text.find(part), std::string::npos) << path << " says nothing under " << part;
  }
}

TEST(DeckValues, ReadNamesTheFile) {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("deck_{}.in", getpid());
  std::ofstream(path) << "&model\n  layers = 0\n/\n&campaign task = 'evaluate' /\n";
  try {
    deck::read(path.string());
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_EQ(error.what(), "2 mistakes\n" + path.string() +
                                ":2:3: model.layers: 0 is out of range; it must be 1 to 10000\n" +
                                path.string() +
                                ":4:11: data.valid: task = 'evaluate' needs validation data; set "
                                "valid (e.g. valid = 'data/NAME/valid_*.bin')");
  }
  std::filesystem::remove(path);
}

TEST(DeckValues, UnreadableAndEmptyFilesAreNamed) {
  const auto message = [](const std::string& path) {
    try {
      deck::read(path);
      return std::string();
    } catch (const UserError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(message("no/such.in"),
            "no/such.in: cannot read the deck; check that the file exists and is readable");
  EXPECT_EQ(
      message("/dev/null"),
      "2 mistakes\n/dev/null: data.train: task = 'train' needs training data; set train (e.g. "
      "train "
      "= 'data/NAME/train_*.bin')\n/dev/null: data.valid: task = 'train' needs validation data; "
      "set valid (e.g. valid = 'data/NAME/valid_*.bin')");
  EXPECT_EQ(message("/dev/zero"),
            "/dev/zero: more than 1048576 bytes, which is too long for a deck; check that this is "
            "the right file");
  EXPECT_EQ(message("/"), "/: cannot read the deck; check that the file exists and is readable");
}

}  // namespace
}  // namespace tern::test
