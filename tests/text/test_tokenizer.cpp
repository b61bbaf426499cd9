#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "scratch.hpp"
#include "text/bpe_training.hpp"
#include "text/chat.hpp"
#include "text/detail/merges.hpp"
#include "text/detail/nfc.hpp"
#include "text/texts.hpp"
#include "text/tokenizer.hpp"

namespace tern::text {
namespace {

using nlohmann::json;
using test::expect_user_error;
using test::Scratch;
using test::write_file;
using Tokens = std::vector<std::int32_t>;

Tokens encode(const Tokenizer& tokenizer, std::string_view text) {
  Tokens tokens;
  tokenizer.encode(text, tokens);
  return tokens;
}

Tokens encode_marked(const Tokenizer& tokenizer, std::string_view text) {
  Tokens tokens;
  tokenizer.encode_marked(text, tokens);
  return tokens;
}

std::unique_ptr<Tokenizer> trained(const Scratch& scratch, PiecePattern pattern,
                                   std::size_t vocabulary) {
  BpeTrainer trainer({vocabulary, pattern, 2});
  const std::string text = test::small_corpus();
  trainer.add({text});
  trainer.train(scratch.path());
  return open_tokenizer(scratch.path().string());
}

/// A tokenizer.json whose vocabulary is the 256 bytes (in the order of their characters), "he",
/// "ll", "hell" and "o!".
json small_json() {
  json root =
      json::parse(R"({"model": {"type": "BPE", "merges": ["h e", "l l", ["he", "ll"], "o !"]},
      "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
      "decoder": {"type": "ByteLevel"}, "normalizer": null, "added_tokens": []})");
  std::string character;
  for (std::uint32_t c = 0, id = 0; c < 324; ++c) {
    if (c < 33 || (c > 126 && c < 161) || c == 173) continue;
    character.clear();
    append_utf8(c, character);
    root["model"]["vocab"][character] = id++;
  }
  for (const char* token : {"he", "ll", "hell", "o!"}) {
    const std::size_t next = root["model"]["vocab"].size();
    root["model"]["vocab"][token] = next;
  }
  return root;
}

std::unique_ptr<Tokenizer> open_json(const Scratch& scratch, const json& root) {
  return open_tokenizer(write_file(scratch / "tokenizer.json", root.dump()).string());
}

TEST(ByteTokenizer, TokensAreBytes) {
  const auto bytes = open_tokenizer("bytes");
  EXPECT_EQ(bytes->vocabulary(), 257u);
  EXPECT_EQ(bytes->end_of_text(), 256);
  EXPECT_EQ(encode(*bytes, std::string_view("a\0\xff", 3)), (Tokens{97, 0, 255}));
  EXPECT_EQ(bytes->decode({97, 0, 255, 256}), std::string("a\0\xff<|endoftext|>", 16));
  EXPECT_EQ(bytes->id("a"), 97);
  EXPECT_EQ(bytes->id("ab"), -1);
  EXPECT_EQ(bytes->id("<|endoftext|>"), 256);
  EXPECT_EQ(encode_marked(*bytes, "a<|endoftext|><|endoftext|>b"), (Tokens{97, 256, 256, 98}));
  EXPECT_EQ(encode(*bytes, "<|endoftext|>").size(), 13u);
  expect_user_error([&] { bytes->decode({257}); }, {"257"});
  expect_user_error([&] { bytes->decode({-1}); }, {"-1"});
}

TEST(Gpt2Files, AreReadUnderBothPairsOfNames) {
  for (const auto& [vocabulary, merges] :
       {std::pair{"encoder.json", "vocab.bpe"}, {"vocab.json", "merges.txt"}}) {
    const Scratch scratch;
    json tokens = small_json()["model"]["vocab"];
    tokens["<|endoftext|>"] = 260;
    write_file(scratch / vocabulary, tokens.dump());
    write_file(scratch / merges, "#version: 0.2\nh e\nl l\nhe ll\no !\n");
    const auto tokenizer = open_tokenizer(scratch.path().string());
    EXPECT_EQ(tokenizer->vocabulary(), 261u);
    EXPECT_EQ(tokenizer->end_of_text(), 260);
    EXPECT_EQ(tokenizer->id("hell"), 258);
    EXPECT_EQ(encode(*tokenizer, "hello!"),
              (Tokens{258, 'o' - 33, '!' - 33}));  // "o" and "!" are two pieces
    EXPECT_EQ(tokenizer->decode({258, 259, 260}), "hello!<|endoftext|>");
    // In a text, the name of a special token is text.
    const Tokens plain = encode(*tokenizer, "<|endoftext|>");
    EXPECT_EQ(std::count(plain.begin(), plain.end(), 260), 0);
    EXPECT_EQ(tokenizer->decode(plain), "<|endoftext|>");
  }
}

TEST(Gpt2Files, MistakesInThemAreNamed) {
  const Scratch scratch;
  write_file(scratch / "encoder.json", "{\"a\": ");
  write_file(scratch / "vocab.bpe", "");
  const auto open = [&] { open_tokenizer(scratch.path().string()); };
  expect_user_error(open, {"encoder.json", "is not JSON"});
  write_file(scratch / "encoder.json", R"({"a": 0})");
  expect_user_error(open, {"encoder.json", "byte 0x00 has no token"});
  write_file(scratch / "encoder.json", R"({"a": -1})");
  expect_user_error(open, {"\"a\" has no valid id"});
  write_file(scratch / "encoder.json", small_json()["model"]["vocab"].dump());
  write_file(scratch / "vocab.bpe", "#version\nh e\nnospace\n");
  expect_user_error(open, {"vocab.bpe:3", "nospace"});
  write_file(scratch / "vocab.bpe", "q z\n");
  expect_user_error(open, {"'q z'", "'qz'"});
}

json with_special_tokens(const json& post_processor) {
  json root = small_json();
  for (const auto& [name, id] : {std::pair{"<s>", 260}, {"</s>", 261}})
    root["added_tokens"].push_back({{"id", id}, {"content", name}, {"special", true}});
  root["post_processor"] = post_processor;
  return root;
}

json template_of(const std::vector<std::string>& single) {
  json parts = json::array();
  for (const std::string& name : single) {
    const char* kind = name.starts_with("<") ? "SpecialToken" : "Sequence";
    parts.push_back({{kind, {{"id", name}, {"type_id", 0}}}});
  }
  const auto special = [](const char* name, int id) -> json {
    return {{"id", name}, {"ids", {id}}, {"tokens", {name}}};
  };
  return {{"type", "TemplateProcessing"},
          {"single", parts},
          {"special_tokens", {{"<s>", special("<s>", 260)}, {"</s>", special("</s>", 261)}}}};
}

/// Llama 3 has a Sequence of ByteLevel and a template with its beginning of text.
TEST(PostProcessor, SaysWhatStandsAroundAText) {
  const Scratch scratch;
  const json byte_level = {{"type", "ByteLevel"}, {"trim_offsets", true}};
  const auto sequence = [](const json& parts) -> json {
    return {{"type", "Sequence"}, {"processors", parts}};
  };
  const struct {
    json node;
    Tokens before, after;
  } cases[] = {{nullptr, {}, {}},
               {byte_level, {}, {}},
               {template_of({"<s>", "A"}), {260}, {}},
               {template_of({"<s>", "A", "</s>", "</s>"}), {260}, {261, 261}},
               {sequence({byte_level, template_of({"<s>", "A"})}), {260}, {}}};
  for (const auto& each : cases) {
    const auto tokenizer = open_json(scratch, with_special_tokens(each.node));
    EXPECT_EQ(tokenizer->affixes().before, each.before) << each.node;
    EXPECT_EQ(tokenizer->affixes().after, each.after) << each.node;
    EXPECT_EQ(encode(*tokenizer, "he").size(), 1u);
  }
}

TEST(PostProcessor, APlainConversationBeginsAsATextDoes) {
  const Scratch scratch;
  const auto tokenizer = open_json(scratch, with_special_tokens(template_of({"<s>", "A"})));
  const ChatRules plain{ChatTemplate::plain, false};
  const Conversation chat{{{Role::user, "he", {}}, {Role::assistant, "ll", {}}}, "here"};
  const ChatTokens tokens =
      tokens_of(generation_prompt({chat.messages.front()}, plain), *tokenizer);
  EXPECT_EQ(tokens.tokens.size(), 3u);
  EXPECT_EQ(tokens.tokens.front(), 260);
  EXPECT_EQ(text_of(written(chat, plain)).substr(0, 3), "he\n");
}

TEST(PostProcessor, OthersAreNamed) {
  const Scratch scratch;
  const auto refused = [&](const json& node, const std::string& words) {
    expect_user_error([&] { open_json(scratch, with_special_tokens(node)); },
                      {"tokenizer.json", words});
  };
  refused({{"type", "RobertaProcessing"}, {"sep", {"</s>", 261}}, {"cls", {"<s>", 260}}},
          "'RobertaProcessing' is not supported");
  const json one = template_of({"<s>", "A"});
  refused({{"type", "Sequence"}, {"processors", {one, one}}}, "two templates");
  refused(template_of({"<s>"}), "has 0 texts");
  refused(template_of({"A", "<s>", "A"}), "has 2 texts");
  refused(template_of({"<x>", "A"}), "<x>");
  json wrong = template_of({"<s>", "A"});
  wrong["special_tokens"]["<s>"]["ids"] = {999};
  refused(wrong, "999");
  refused({{"type", "TemplateProcessing"}}, "is not a tokenizer.json");
}

TEST(OpenTokenizer, SaysWhichFilesToPlaceWhere) {
  const Scratch scratch;
  expect_user_error([&] { open_tokenizer("gpt2", {scratch.path()}); },
                    {(scratch / "gpt2").string(), "encoder.json and vocab.bpe", "bytes"});
  expect_user_error([&] { open_tokenizer(scratch.path().string()); },
                    {scratch.path().string(), "tokenizer.json", "encoder.json", "vocab.bpe"});
  expect_user_error([] { open_tokenizer(""); }, {"no tokenizer"});
  write_file(scratch / "vocab.json", "{}");
  write_file(scratch / "merges.txt", "");
  write_file(scratch / "tokenizer_config.json", R"({"tokenizer_class": "Qwen2Tokenizer"})");
  expect_user_error([&] { open_tokenizer(scratch.path().string()); },
                    {"Qwen2Tokenizer", "tokenizer.json"});
}

TEST(OpenTokenizer, LooksUpNamesInTheSearchFolders) {
  const Scratch scratch;
  std::filesystem::create_directories(scratch / "b/mine");
  write_file(scratch / "b/mine/tokenizer.json", small_json().dump());
  EXPECT_EQ(open_tokenizer("mine", {scratch / "a", scratch / "b"})->vocabulary(), 260u);
}

TEST(TokenizerJson, MergesInTheOrderOfRanks) {
  const Scratch scratch;
  const auto tokenizer = open_json(scratch, small_json());
  EXPECT_EQ(tokenizer->vocabulary(), 260u);
  EXPECT_EQ(tokenizer->end_of_text(), -1);
  EXPECT_EQ(tokenizer->decode(encode(*tokenizer, "hello hell helle")), "hello hell helle");
  EXPECT_EQ(encode(*tokenizer, "hell"), Tokens{258});
  EXPECT_EQ(encode(*tokenizer, "helle"), (Tokens{258, 'e' - 33}));
  EXPECT_EQ(encode(*tokenizer, "hlle"), (Tokens{'h' - 33, 257, 'e' - 33}));
  EXPECT_EQ(encode(*tokenizer, "lll"), (Tokens{257, 'l' - 33}));
  expect_user_error([&] { tokenizer->decode({260}); }, {"token 260", "260 tokens"});
  expect_user_error([&] { tokenizer->decode({-1}); }, {"token -1"});
}

TEST(TokenizerJson, WhatIsNotSupportedIsRefusedByName) {
  const struct {
    const char *patch, *complaint;
  } cases[] = {
      {R"({"model": {"type": "WordPiece"}})", "'WordPiece'"},
      {R"({"model": {"byte_fallback": true}})", "byte_fallback"},
      {R"({"model": {"dropout": 0.1}})", "dropout"},
      {R"({"model": {"end_of_word_suffix": "</w>"}})", "end_of_word_suffix"},
      {R"({"model": {"merges": ["h"]}})", "does not have two tokens"},
      {R"({"model": {"merges": ["h e l"]}})", "'h e l'"},
      {R"({"normalizer": {"type": "Lowercase"}})", "'Lowercase'"},
      {R"({"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKC"}]}})", "'NFKC'"},
      {R"({"pre_tokenizer": {"type": "Metaspace"}})", "'Metaspace'"},
      {R"({"pre_tokenizer": null})", "ByteLevel"},
      {R"({"pre_tokenizer": {"type": "Split", "pattern": {"String": "x"}, "behavior": "MergedWithNext"}})",
       "'MergedWithNext'"},
      {R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(x"}, "behavior": "Isolated"}})",
       "(x"},
      {R"({"pre_tokenizer": {"type": "Sequence", "pretokenizers":
           [{"type": "Digits"}, {"type": "ByteLevel", "add_prefix_space": true}]}})",
       "add_prefix_space"},
      {R"({"decoder": {"type": "WordPiece"}})", "'WordPiece'"},
      {R"({"added_tokens": [{"id": 260, "content": "<x>", "special": false, "lstrip": true}]})",
       "lstrip"},
      {R"({"added_tokens": [{"id": 260, "content": ""}]})", "no content"},
      {R"({"added_tokens": [{"id": 2000000000000, "content": "x"}]})", "no valid id"},
      {R"({"model": {"vocab": null}})", "model.vocab"},
      {R"({"added_tokens": [{"id": 260}]})", "is not a tokenizer.json"},
  };
  for (const auto& each : cases) {
    const Scratch scratch;
    json root = small_json();
    const json patch = json::parse(each.patch);
    for (const auto& [name, value] : patch.items()) {
      if (name == "model")
        root[name].update(value);
      else
        root[name] = value;
    }
    expect_user_error([&] { open_json(scratch, root); }, {"tokenizer.json", each.complaint});
  }
}

TEST(TokenizerJson, DamagedFilesAreErrorsOfTheUser) {
  json root = small_json();
  root["added_tokens"] = json::parse(R"([{"id": 260, "content": "<t>", "special": false}])");
  const std::string whole = root.dump();
  std::mt19937_64 random(4);
  std::size_t refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = whole;
    for (std::uint64_t n = random() % 3 + 1; n > 0; --n) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0)
        text[at] = "0123456789{}[]\",: -aZ"[random() % 22];
      else
        text.erase(at, random() % 30);
    }
    const Scratch scratch;
    const auto file = write_file(scratch / "tokenizer.json", text);
    try {
      const auto tokenizer = open_tokenizer(file.string());
      const Tokens tokens = encode(*tokenizer, "hello <t> world");
      EXPECT_FALSE(tokenizer->decode(tokens).empty());
    } catch (const UserError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 500u);
  EXPECT_LT(refused, 2000u);
}

TEST(TokenizerJson, AddedTokensThatAreNotSpecialAreFoundInTheText) {
  const Scratch scratch;
  json root = small_json();
  root["added_tokens"] = json::parse(R"([{"id": 260, "content": "<t>", "special": false},
      {"id": 261, "content": "<t>>", "special": false}, {"id": 270, "content": "<end>", "special": true}])");
  const auto tokenizer = open_json(scratch, root);
  EXPECT_EQ(tokenizer->vocabulary(), 271u);
  EXPECT_EQ(tokenizer->id("<t>>"), 261);
  EXPECT_EQ(encode(*tokenizer, "hell<t>hell"), (Tokens{258, 260, 258}));
  EXPECT_EQ(encode(*tokenizer, "<t>><t>"), (Tokens{261, 260}));  // the longest that starts first
  EXPECT_EQ(encode(*tokenizer, "<end>").size(), 5u);
  EXPECT_EQ(encode_marked(*tokenizer, "<end>hell<t><end>"), (Tokens{270, 258, 260, 270}));
  EXPECT_EQ(tokenizer->decode({260, 270}), "<t><end>");
  expect_user_error([&] { tokenizer->decode({265}); }, {"token 265"});  // between the ids in use
}

TEST(TokenizerJson, SpecialTokensThatTakeSpacesAlongAreRefusedWhereTheyAreRead) {
  const Scratch scratch;
  json root = small_json();
  root["added_tokens"] =
      json::parse(R"([{"id": 260, "content": "<mask>", "special": true, "lstrip": true}])");
  const auto tokenizer = open_json(scratch, root);
  EXPECT_EQ(encode(*tokenizer, "a <mask>").size(), 8u);
  expect_user_error([&] { encode_marked(*tokenizer, "a <mask>"); }, {"'<mask>'", "lstrip"});
}

TEST(TokenizerJson, OptionsOfTheModelAndThePreTokenizer) {
  const Scratch scratch;
  json root = small_json();
  root["pre_tokenizer"]["add_prefix_space"] = true;
  auto tokenizer = open_json(scratch, root);
  EXPECT_EQ(tokenizer->decode(encode(*tokenizer, "hell")), " hell");
  EXPECT_EQ(tokenizer->decode(encode(*tokenizer, " hell")), " hell");
  root = small_json();
  root["model"]["merges"] = {"h e"};
  EXPECT_EQ(encode(*open_json(scratch, root), "hell").size(), 3u);
  root["model"]["ignore_merges"] = true;
  EXPECT_EQ(encode(*open_json(scratch, root), "hell"), Tokens{258});
  root = small_json();
  root["pre_tokenizer"]["use_regex"] = false;
  EXPECT_EQ(encode(*open_json(scratch, root), "hello!"), (Tokens{258, 259}));
}

TEST(TokenizerJson, NormalizationFormCComposesFirst) {
  const Scratch scratch;
  json root = small_json();
  root["normalizer"] = {{"type", "NFC"}};
  const auto tokenizer = open_json(scratch, root);
  EXPECT_EQ(tokenizer->decode(encode(*tokenizer, "cafe\xcc\x81")), "caf\xc3\xa9");
}

TEST(Nfc, ComposesReordersAndLeavesExclusionsApart) {
  using detail::to_nfc;
  EXPECT_EQ(to_nfc("e\xcc\x81"), "\xc3\xa9");
  EXPECT_EQ(to_nfc("a\xcc\x81\xcc\xa3"), "\xe1\xba\xa1\xcc\x81");  // dot below goes first
  EXPECT_EQ(to_nfc("\xe2\x84\xab"), "\xc3\x85");                   // angstrom sign
  EXPECT_EQ(to_nfc("\xe0\xa5\x98"), "\xe0\xa4\x95\xe0\xa4\xbc");   // excluded from composition
  EXPECT_EQ(to_nfc("\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab"), "\xed\x95\x9c");  // Hangul
  EXPECT_EQ(to_nfc("\xed\x95\x98\xe1\x86\xab"), "\xed\x95\x9c");
  EXPECT_EQ(to_nfc("\xcc\x81"
                   "e"),
            "\xcc\x81"
            "e");
  EXPECT_TRUE(detail::is_surely_nfc("caf\xc3\xa9 \xcb\xbf"));
  EXPECT_FALSE(detail::is_surely_nfc("\xcc\x80"));
}

TEST(Bpe, AnyBytesAreKept) {
  for (const PiecePattern pattern : {PiecePattern::gpt2, PiecePattern::gpt4}) {
    const Scratch scratch;
    const auto tokenizer = trained(scratch, pattern, 400);
    std::mt19937_64 random(2);
    for (int i = 0; i < 3000; ++i) {
      std::string text = test::random_bytes(random, random() % 100);
      if (i % 3 == 0)
        text = test::random_unicode(random, 20) + text + test::random_unicode(random, 20);
      if (i % 3 == 1) text = test::random_unicode(random, 40);
      ASSERT_EQ(tokenizer->decode(encode(*tokenizer, text)), text);
    }
    const std::string corpus = test::small_corpus();
    EXPECT_EQ(tokenizer->decode(encode(*tokenizer, corpus)), corpus);
  }
}

TEST(Bpe, BytesOutsideUtf8AreAPieceOfTheirOwn) {
  const Scratch scratch;
  const auto tokenizer = trained(scratch, PiecePattern::gpt2, 400);
  Tokens expected = encode(*tokenizer, "the end  ");
  expected.push_back(tokenizer->id("\xff"));
  expected.push_back(tokenizer->id("\xc3"));
  tokenizer->encode(" the", expected);
  EXPECT_EQ(encode(*tokenizer, "the end  \xff\xc3 the"), expected);
}

TEST(Bpe, ThreadsShareATokenizer) {
  const Scratch a, b;
  const auto first = trained(a, PiecePattern::gpt2, 300),
             second = trained(b, PiecePattern::gpt2, 380);
  const std::string text = test::small_corpus();
  const Tokens expected[] = {encode(*first, text), encode(*second, text)};
  std::vector<Tokens> results(8);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < results.size(); ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 4; ++i) results[t] = encode((t + i) % 2 == 0 ? *first : *second, text);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 0; t < results.size(); ++t) EXPECT_EQ(results[t], expected[(t + 3) % 2]);
}

TEST(Merges, ScanAndHeapAgree) {
  std::mt19937_64 random(3);
  std::vector<detail::Merge> merges;
  for (std::int32_t result = 6; result < 60; ++result)
    merges.push_back({static_cast<std::int32_t>(random() % result),
                      static_cast<std::int32_t>(random() % result), result});
  const detail::Merges table(merges);
  for (int i = 0; i < 20000; ++i) {
    Tokens symbols(random() % 65);
    for (auto& symbol : symbols) symbol = static_cast<std::int32_t>(random() % 6);
    Tokens by_heap = symbols;
    symbols.resize(table.apply_by_scan(symbols.data(), symbols.size()));
    by_heap.resize(table.apply_by_heap(by_heap.data(), by_heap.size()));
    ASSERT_EQ(symbols, by_heap);
  }
}

/// Two million bytes without a place to cut: quadratic work would take hours.
TEST(Merges, LongRunsAreMergedInReasonableTime) {
  const Scratch scratch;
  const auto tokenizer = trained(scratch, PiecePattern::gpt2, 400);
  std::string text;
  while (text.size() < 2'000'000) text += "thethereisthetheme";
  EXPECT_EQ(tokenizer->decode(encode(*tokenizer, text)), text);
}

}  // namespace
}  // namespace tern::text
