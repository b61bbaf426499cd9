// Decks whose &model load names a directory that describes its model.
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "deck/loaded_model.hpp"

namespace tern::test {
namespace {

deck::Model stored() {
  deck::Model m;
  m.layers = 3, m.hidden = 96, m.heads = 4, m.kv_heads = 2, m.head_dim = 32, m.ffn_hidden = 200;
  m.context = 512, m.vocabulary = 1000, m.norm_eps = 1e-6, m.qk_norm = true, m.rope_base = 5e6;
  m.tie_embeddings = false;
  return m;
}

deck::Deck read_with(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return deck::parse(text, "d", overrides, [](const std::string& load) {
    using Loaded = std::optional<deck::LoadedModel>;
    return load == "here"     ? Loaded({stored(), ""})
           : load == "spoken" ? Loaded({stored(), "spoken/words"})
                              : std::nullopt;
  });
}

std::string error_of(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    read_with(text, overrides);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

const std::string load = "&data tokenizer = 'data/x' / &model load = 'here' ";

TEST(LoadedModel, GivesWhatTheDeckLeavesOut) {
  deck::Model wanted = stored();
  wanted.load = "here";
  EXPECT_EQ(read_with(load + "/").model, wanted);
  wanted.dropout = 0.1, wanted.context = 64, wanted.attention = "portable", wanted.init_std = 0.5;
  EXPECT_EQ(read_with(load + "dropout = 0.1 context = 64 attention = 'portable' init_std = 0.5 "
                             "hidden = 96 rope_base = 5e6 head_dim = 0 kv_heads = 0 /")
                .model,
            wanted);
}

TEST(LoadedModel, MayBeNamedByAnOverride) {
  const deck::Deck deck = read_with("&data tokenizer = 'data/x' /", {"model.load=here"});
  EXPECT_EQ(deck.model.layers, 3);
}

TEST(LoadedModel, IsRepeatedByThePrintedDeck) {
  const deck::Deck deck = read_with(load + "context = 100 /");
  EXPECT_EQ(deck::parse(deck::print(deck, true), "d"), deck);
  EXPECT_EQ(read_with(deck::print(deck, false)), deck);
}

TEST(LoadedModel, IsNotLookedForElsewhere) {
  EXPECT_EQ(read_with("&model load = 'there' layers = 5 hidden = 48 /").model.layers, 5);
  EXPECT_EQ(deck::parse("&model load = 'here' layers = 5 /", "d").model.layers, 5);
}

TEST(LoadedModel, ContradictsADeckThatGivesAnotherOne) {
  const std::string text =
      error_of(load + "hidden = 64 qk_norm = .false. context = 513 rope_base = 1e6 /");
  for (const char* part :
       {"d:1:51: model.hidden: 64, but here/config.json has 96; set that, or remove the line",
        "model.qk_norm: .false., but here/config.json has .true.",
        "model.context: 513, but here/config.json has at most 512", "model.rope_base: "})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in: " << text;
  EXPECT_NE(error_of(load + "/", {"model.kv_heads=4"}).find("model.kv_heads: 4, but"),
            std::string::npos);
}

TEST(LoadedModel, LearnedPositionsAreAllOrNone) {
  const auto learned = [](const std::string&) {
    deck::Model m = stored();
    m.position = "learned";
    return std::optional(deck::LoadedModel{m, ""});
  };
  EXPECT_EQ(deck::parse(load + "context = 512 /", "d", {}, learned).model.context, 512);
  EXPECT_THROW(deck::parse(load + "context = 256 /", "d", {}, learned), UserError);
}

TEST(LoadedModel, GivesTheTokenizerThatTheDeckLeavesOut) {
  const deck::Deck deck = read_with("&model load = 'spoken' /");
  EXPECT_EQ(deck.data.tokenizer, "spoken/words");
  EXPECT_EQ(deck::parse(deck::print(deck, true), "d"), deck);
  EXPECT_EQ(read_with("&data tokenizer = 'bytes' / &model load = 'spoken' /").data.tokenizer,
            "bytes");
  EXPECT_EQ(read_with("&model load = 'spoken' /", {"data.tokenizer=bytes"}).data.tokenizer,
            "bytes");
  // The default, written explicitly, is a choice like any other.
  EXPECT_NE(error_of("&model load = 'spoken' / &data tokenizer = 'gpt2' /")
                .find("1000 is less than the 50257 tokens of tokenizer 'gpt2'"),
            std::string::npos);
  EXPECT_NE(error_of("&model load = 'here' /").find("tokenizer 'gpt2'"), std::string::npos);
}

TEST(LoadedModel, MistakesOfTheDeckAreNotConcludedFrom) {
  EXPECT_EQ(error_of(load + "hidden = 'x' /").find("config.json"), std::string::npos);
}

}  // namespace
}  // namespace tern::test
