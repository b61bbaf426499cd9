#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/data_recipes.hpp"
#include "data/shard_origin.hpp"
#include "data/shards.hpp"
#include "prepare/prepare.hpp"
#include "scratch.hpp"
#include "text/texts.hpp"
#include "text/tokenizer.hpp"

namespace tern::prepare {
namespace {

namespace fs = std::filesystem;
using test::expect_user_error;
using test::read_file;
using test::Scratch;
using test::write_file;

/// All tokens of the shards that match, decoded.
std::string text_in(const fs::path& pattern, const std::string& tokenizer = "bytes") {
  const auto reader = text::open_tokenizer(tokenizer);
  const data::Shards shards({pattern.string()}, reader->vocabulary(), 1);
  std::vector<std::int32_t> all;
  for (std::size_t w = 0; w < shards.windows(1); ++w) {
    std::int32_t pair[2];
    shards.read(w, 1, pair);
    if (w == 0) all.push_back(pair[0]);
    all.push_back(pair[1]);
  }
  return reader->decode(all);
}

PrepareOptions options(std::vector<fs::path> inputs, const fs::path& output) {
  PrepareOptions p;
  p.inputs = std::move(inputs);
  p.output = output;
  p.tokenizer = "bytes";
  p.valid_fraction = 0;
  p.threads = 2;
  return p;
}

PrepareSummary prepare(const PrepareOptions& p) {
  Log silent(false);
  return prepare_text(p, silent);
}

std::string lines_of_json(std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    text += nlohmann::json{{"id", i}, {"text", fmt::format("document {}\nends", i)}}.dump() + "\n";
  return text;
}

TEST(Documents, TextFilesAreDocumentsOrSeveralBetweenSeparators) {
  const Scratch scratch;
  const auto a = write_file(scratch / "a.txt", "one\n\n");
  const auto b =
      write_file(scratch / "b.md", "two\n<|endoftext|>\n\nthree\n<|endoftext|><|endoftext|>\n");
  const PrepareSummary made = prepare(options({a, b}, scratch / "out"));
  EXPECT_EQ(text_in(scratch / "out/train_*.bin"),
            "one\n\n<|endoftext|>two<|endoftext|>three<|endoftext|>");
  EXPECT_EQ(made.train.documents, 3u);
  EXPECT_EQ(made.train.bytes, 5u + 3 + 5);
  EXPECT_EQ(made.train.tokens, 5u + 3 + 5 + 3);
  EXPECT_EQ(made.valid.tokens, 0u);
}

TEST(Documents, JsonLinesAndLines) {
  const Scratch scratch;
  const auto json = write_file(
      scratch / "a.jsonl",
      "{\"text\": \"x\\ny\", \"n\": 1}\r\n\n  \n{\"text\": \"\"}\n{\"text\": \"\\u00e9\"}");
  prepare(options({json}, scratch / "json"));
  EXPECT_EQ(text_in(scratch / "json/train_*.bin"), "x\ny<|endoftext|>\xc3\xa9<|endoftext|>");
  PrepareOptions lines =
      options({write_file(scratch / "b.txt", "one\r\n\ntwo")}, scratch / "lines");
  lines.format = InputFormat::lines;
  prepare(lines);
  EXPECT_EQ(text_in(scratch / "lines/train_*.bin"), "one<|endoftext|>two<|endoftext|>");
}

TEST(Documents, MistakesNameFileAndLine) {
  const Scratch scratch;
  const auto fails = [&](const std::string& name, const std::string& content,
                         std::initializer_list<std::string> parts) {
    const auto file = write_file(scratch / name, content);
    expect_user_error([&] { prepare(options({file}, scratch / "out")); }, parts);
    EXPECT_FALSE(fs::exists(scratch / "out"));
    EXPECT_FALSE(fs::exists(scratch / ".out.partial"));
  };
  fails("a.jsonl", "{\"text\": \"ok\"}\n{\"text\": ", {"a.jsonl:2", "is not JSON"});
  fails("a.jsonl", "\n[1]\n", {"a.jsonl:2", "not a JSON object"});
  fails("a.jsonl", "{\"body\": \"x\", \"id\": 1}\n",
        {"a.jsonl:1", "'text'", "'body', 'id'", "--field"});
  fails("a.jsonl", "{\"text\": 5}\n", {"a.jsonl:1", "not a string"});
  fails("a.json", "[]", {"a.json", ".jsonl"});
  fails("a.txt.gz", "x", {"a.txt.gz", "unpack"});
  fails("a.txt", "", {"a.txt", "empty"});
  fails("a.txt", "<|endoftext|>\n", {"no text is left"});
  expect_user_error([&] { prepare(options({scratch / "gone"}, scratch / "out")); },
                    {"gone", "no such file"});
  expect_user_error([&] { prepare(options({}, scratch / "out")); }, {"no input"});
}

TEST(Documents, LongTextIsCutWhereTokensAreTheSame) {
  const Scratch scratch;
  std::string text;
  while (text.size() < 13'000'000) text += test::small_corpus();
  const auto file = write_file(scratch / "long.txt", text);
  Documents documents({file}, InputFormat::automatic);
  std::string joined;
  std::size_t parts = 0;
  while (const auto part = documents.next()) {
    joined += part->raw;
    EXPECT_EQ(part->document, 0u);
    EXPECT_EQ(part->last, joined.size() == text.size());
    ++parts;
  }
  EXPECT_EQ(parts, 4u);
  EXPECT_TRUE(joined == text);

  PrepareOptions p = options({file}, scratch / "out");
  p.tokenizer.clear();
  p.train_bpe = 350;
  prepare(p);
  const auto tokenizer = text::open_tokenizer((scratch / "out").string());
  std::vector<std::int32_t> whole;
  tokenizer->encode(text, whole);
  whole.push_back(tokenizer->end_of_text());
  const data::Shards shards({(scratch / "out/train_*.bin").string()}, 350, 1);
  ASSERT_EQ(shards.tokens(), whole.size());
  std::vector<std::int32_t> stored(whole.size());
  shards.read(0, whole.size() - 1, stored.data());
  EXPECT_TRUE(stored == whole);
}

TEST(Prepare, TheSplitDependsOnTheDocumentsNumberAlone) {
  const Scratch scratch;
  const auto prepare_lines = [&](std::size_t count, std::size_t threads) {
    PrepareOptions p =
        options({write_file(scratch / "a.jsonl", lines_of_json(count))}, scratch / "out");
    p.valid_fraction = 0.2;
    p.threads = threads;
    p.force = true;
    const PrepareSummary made = prepare(p);
    EXPECT_EQ(made.train.documents + made.valid.documents, count);
    return std::pair{text_in(scratch / "out/train_*.bin"), text_in(scratch / "out/valid_*.bin")};
  };
  const auto one = prepare_lines(1000, 1), three = prepare_lines(1000, 3),
             half = prepare_lines(500, 2);
  EXPECT_EQ(one, three);
  EXPECT_TRUE(one.first.starts_with(half.first));
  EXPECT_TRUE(one.second.starts_with(half.second));
  const auto valid = static_cast<double>(one.second.size());
  EXPECT_NEAR(valid / (valid + static_cast<double>(one.first.size())), 0.2, 0.05);
}

TEST(Prepare, OfASingleTextTheEndIsForValidation) {
  const Scratch scratch;
  std::string text;
  for (int i = 0; i < 100; ++i) text += fmt::format("line {:02}\n", i);
  PrepareOptions p = options({write_file(scratch / "a.txt", text)}, scratch / "out");
  p.valid_fraction = 0.095;
  prepare(p);
  EXPECT_EQ(text_in(scratch / "out/train_*.bin"), text.substr(0, 8 * 91) + "<|endoftext|>");
  EXPECT_EQ(text_in(scratch / "out/valid_*.bin"), text.substr(8 * 91) + "<|endoftext|>");
}

TEST(Prepare, OfFewDocumentsOneIsForValidationAndOneForTraining) {
  const Scratch scratch;
  PrepareOptions p = options({}, scratch / "out");
  p.force = true;
  for (const std::size_t count : {2u, 3u, 7u})
    for (const double fraction : {1e-9, 0.5, 0.999999}) {
      p.inputs = {write_file(scratch / "a.jsonl", lines_of_json(count))};
      p.valid_fraction = fraction;
      const PrepareSummary made = prepare(p);
      EXPECT_GE(made.train.documents, 1u) << count << " " << fraction;
      EXPECT_GE(made.valid.documents, 1u) << count << " " << fraction;
      EXPECT_EQ(made.train.documents + made.valid.documents, count);
      if (fraction < 0.1) {
        EXPECT_EQ(made.valid.documents, 1u);
      }
    }
}

TEST(Prepare, AnEmptyValidationPartIsAnError) {
  const Scratch scratch;
  PrepareOptions p = options({write_file(scratch / "a.jsonl", lines_of_json(1))}, scratch / "out");
  p.valid_fraction = 0.001;
  expect_user_error([&] { prepare(p); }, {"there are 1 documents", "--valid-fraction 0"});
  EXPECT_FALSE(fs::exists(scratch / "out"));
  p.valid_fraction = 1;
  expect_user_error([&] { prepare(p); }, {"fraction of 1"});
}

TEST(Prepare, ShardsAreOfTheSizeAskedFor) {
  const Scratch scratch;
  PrepareOptions p =
      options({write_file(scratch / "a.txt", std::string(2500, 'a'))}, scratch / "out");
  p.shard_tokens = 1000;
  EXPECT_EQ(prepare(p).train.shards, 3u);
  EXPECT_EQ(fs::file_size(scratch / "out/train_00000.bin"), 1024u + 2000);
  EXPECT_EQ(fs::file_size(scratch / "out/train_00002.bin"), 1024u + 2 * 501);
}

TEST(Prepare, OnlyItsOwnFoldersAreReplaced) {
  const Scratch scratch;
  PrepareOptions p = options({write_file(scratch / "a.txt", "first")}, scratch / "deep/out");
  prepare(p);
  expect_user_error([&] { prepare(p); }, {"deep/out", "--force"});
  p.force = true;
  write_file(scratch / "a.txt", "second");
  prepare(p);
  EXPECT_EQ(text_in(scratch / "deep/out/train_*.bin"), "second<|endoftext|>");
  p.inputs = {write_file(scratch / "bad.jsonl", "{")};
  expect_user_error([&] { prepare(p); }, {"bad.jsonl:1"});
  EXPECT_EQ(text_in(scratch / "deep/out/train_*.bin"), "second<|endoftext|>");  // still there
  fs::create_directory(scratch / "home");
  write_file(scratch / "home/thesis.tex", "x");
  p.output = scratch / "home";
  expect_user_error([&] { prepare(p); }, {"home", "meta.json"});
  EXPECT_TRUE(fs::exists(scratch / "home/thesis.tex"));
}

TEST(Prepare, AnOutputThatHoldsItsInputIsRefused) {
  const Scratch scratch;
  PrepareOptions p = options({write_file(scratch / "a.txt", "first")}, scratch / "out");
  prepare(p);
  p.force = true;
  p.inputs = {write_file(scratch / "out/corpus.txt", "second")};
  expect_user_error([&] { prepare(p); }, {"corpus.txt", "--output"});
  fs::create_symlink(scratch / "out", scratch / "link");
  p.inputs = {scratch / "link/corpus.txt"};
  expect_user_error([&] { prepare(p); }, {"corpus.txt", "--output"});
  EXPECT_EQ(read_file(scratch / "out/corpus.txt"), "second");
}

TEST(Prepare, OfTwoThatMakeOneFolderTheSecondEnds) {
  const Scratch scratch;
  const PrepareOptions p = options({write_file(scratch / "a.txt", "x")}, scratch / "out");
  fs::create_directory(scratch / ".out.partial");
  write_file(scratch / ".out.partial/train_00000.bin", "of the first");
  const int first = ::open((scratch / ".out.partial").c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(first, LOCK_EX), 0);
  expect_user_error([&] { prepare(p); }, {"another ./prepare", "out"});
  EXPECT_EQ(read_file(scratch / ".out.partial/train_00000.bin"), "of the first");
  ::close(first);  // as a kill would
  prepare(p);
  EXPECT_EQ(text_in(scratch / "out/train_*.bin"), "x<|endoftext|>");
  EXPECT_FALSE(fs::exists(scratch / ".out.partial"));
}

TEST(Prepare, MetaTellsWhatWasMade) {
  const Scratch scratch;
  PrepareOptions p =
      options({write_file(scratch / "a.jsonl", lines_of_json(200))}, scratch / "out");
  p.tokenizer.clear();
  p.train_bpe = 280;
  p.valid_fraction = 0.1;
  const PrepareSummary made = prepare(p);
  const auto meta = nlohmann::json::parse(read_file(scratch / "out/meta.json"));
  EXPECT_EQ(meta["tokenizer"], (scratch / "out").string());
  EXPECT_EQ(meta["vocabulary"], 280);
  EXPECT_EQ(meta["end_of_text"], 279);
  EXPECT_EQ(meta["train"]["tokens"], made.train.tokens);
  EXPECT_EQ(meta["valid"]["documents"], made.valid.documents);
  EXPECT_EQ(meta["train"]["documents"].get<int>() + meta["valid"]["documents"].get<int>(), 200);
  std::string both = text_in(scratch / "out/train_*.bin", (scratch / "out").string());
  EXPECT_TRUE(both.starts_with("document ")) << both.substr(0, 40);
}

TEST(Prepare, ShardsTellTheirTokenizer) {
  const Scratch scratch;
  PrepareOptions p =
      options({write_file(scratch / "a.jsonl", lines_of_json(200))}, scratch / "own");
  p.tokenizer.clear();
  p.train_bpe = 280;
  p.valid_fraction = 0.1;
  prepare(p);
  const auto own = data::shard_origins({(scratch / "own/train_*.bin").string()});
  ASSERT_EQ(own.size(), 1u);
  const auto tokenizer = text::open_tokenizer((scratch / "own").string());
  data::require_made_with(own[0], *tokenizer, "whatever it is called");
  expect_user_error(
      [&] { data::require_made_with(own[0], *text::open_tokenizer("bytes"), "bytes"); },
      {"own/meta.json", "own' (280 tokens)", "tokenizer = 'bytes' (257 tokens)"});
  // As many tokens, of other texts.
  p.output = scratch / "other";
  p.valid_fraction = 0;
  p.train_bpe = 280;
  std::string text;
  for (int i = 0; i < 200; ++i) text += fmt::format("{{\"text\": \"zwx {} qpo zwxqpo\"}}\n", i * i);
  p.inputs = {write_file(scratch / "b.jsonl", text)};
  prepare(p);
  const auto other = data::shard_origins({(scratch / "other/train_*.bin").string()});
  ASSERT_EQ(other.size(), 1u);
  EXPECT_EQ(other[0].vocabulary, 280u);
  EXPECT_FALSE(other[0].alike(own[0]));
  expect_user_error([&] { data::require_made_with(other[0], *tokenizer, "own"); },
                    {"other", "own"});
  // Without information there is nothing to compare.
  fs::remove(scratch / "own/meta.json");
  EXPECT_TRUE(data::shard_origins({(scratch / "own/train_*.bin").string()}).empty());
  EXPECT_TRUE(data::shard_origins({(scratch / "nothing/*.bin").string()}).empty());
}

/// Long documents are split into parts: each starts once with what the tokenizer puts before a
/// text.
TEST(Prepare, DocumentsBeginAsTheTokenizerSays) {
  const Scratch scratch;
  PrepareOptions p = options({write_file(scratch / "a.jsonl", lines_of_json(50))}, scratch / "out");
  p.tokenizer.clear();
  p.train_bpe = 265;
  prepare(p);
  auto tokenizer = nlohmann::json::parse(read_file(scratch / "out/tokenizer.json"));
  const std::int32_t begin = 265;
  tokenizer["added_tokens"].push_back({{"id", begin}, {"content", "<s>"}, {"special", true}});
  tokenizer["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", {{{"SpecialToken", {{"id", "<s>"}}}}, {{"Sequence", {{"id", "A"}}}}}},
      {"special_tokens", {{"<s>", {{"ids", {begin}}}}}}};
  write_file(scratch / "tokenizer.json", tokenizer.dump());
  std::string text;
  while (text.size() < 9'000'000) text += test::small_corpus();
  p = options({write_file(scratch / "long.txt", text), scratch / "a.jsonl"}, scratch / "again");
  p.tokenizer = (scratch / "tokenizer.json").string();
  prepare(p);
  const std::string all = text_in(scratch / "again/train_*.bin", p.tokenizer);
  std::size_t begins = 0, ends = 0;
  for (std::size_t at = 0; (at = all.find("<s>", at)) != all.npos; ++at) {
    ++begins;
    EXPECT_TRUE(at == 0 || std::string_view(all).substr(0, at).ends_with("<|endoftext|>")) << at;
  }
  for (std::size_t at = 0; (at = all.find("<|endoftext|>", at)) != all.npos; ++at) ++ends;
  EXPECT_EQ(begins, 51u);
  EXPECT_EQ(begins, ends);
}

TEST(Prepare, NeedsOneTokenizer) {
  const Scratch scratch;
  PrepareOptions p = options({write_file(scratch / "a.txt", "x")}, scratch / "out");
  p.train_bpe = 300;
  expect_user_error([&] { prepare(p); }, {"not both"});
  p.train_bpe = 0;
  p.tokenizer.clear();
  expect_user_error([&] { prepare(p); }, {"--tokenizer"});
  p.tokenizer = "nowhere";
  expect_user_error([&] { prepare(p); }, {"'nowhere'", "encoder.json"});
}

TEST(Makers, AreNamedForWhatTheyMake) {
  EXPECT_EQ(how_to_make("data/quickstart", "x"), "make it with ./prepare quickstart");
  EXPECT_EQ(how_to_make("./data/cpp_headers/train_*.bin", "x"),
            "make it with ./prepare cpp-headers");
  EXPECT_EQ(how_to_make(fs::absolute("data/languages/test.jsonl"), "x"),
            "make it with ./prepare languages");
  EXPECT_EQ(how_to_make("data/quickstart2/train.jsonl", "x"), "x");
  EXPECT_EQ(how_to_make("elsewhere/data/quickstart", "x"), "x");
  expect_user_error(
      [] {
        text::open_tokenizer("data/quickstart", {"data/quickstart", "data"});
      },
      {"'data/quickstart'", "./prepare quickstart"});
}

TEST(StandardLibraryHeaders, AreThereAndSorted) {
  const auto files = standard_library_headers(1'000'000);
  ASSERT_GT(files.size(), 10u);
  EXPECT_TRUE(std::is_sorted(files.begin(), files.end()));
  std::size_t bytes = 0;
  for (const auto& file : files) bytes += fs::file_size(file);
  EXPECT_GT(bytes, 500'000u);
  EXPECT_LE(bytes, 1'000'000u);
}

TEST(CppHeaders, MakeDataToTrainOn) {
  const Scratch scratch;
  PrepareOptions p;
  p.output = scratch / "cpp_headers";
  set_cpp_headers(p);
  const PrepareSummary made = prepare(p);
  EXPECT_EQ(made.vocabulary, 1024u);
  EXPECT_GT(made.train.tokens, 1'000'000u);
  EXPECT_GT(made.valid.tokens, 50'000u);
  EXPECT_NE(text_in(p.output / "valid_*.bin", p.output.string()).find("namespace std"),
            std::string::npos);
}

}  // namespace
}  // namespace tern::prepare
