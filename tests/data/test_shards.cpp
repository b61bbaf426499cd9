#include <cstring>
#include <numeric>

#include "data/shard_writer.hpp"
#include "data/shards.hpp"
#include "scratch.hpp"

namespace tern::data {
namespace {

using test::expect_user_error;
using test::Scratch;
using test::write_file;

std::vector<std::int32_t> count_up(std::size_t count, std::int32_t first = 0) {
  std::vector<std::int32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

void write_shards(const Scratch& scratch, const std::vector<std::int32_t>& tokens,
                  std::size_t vocabulary, std::size_t shard_tokens) {
  ShardWriter writer(scratch.path(), "train", vocabulary, shard_tokens);
  writer.append(tokens);
  writer.finish();
}

Shards open(const Scratch& scratch, std::size_t vocabulary,
            const std::string& name = "train_*.bin") {
  return Shards({(scratch / name).string()}, vocabulary, 2);
}

std::vector<std::int32_t> read(const Shards& shards, std::size_t window, std::size_t length) {
  std::vector<std::int32_t> tokens(length + 1, -7);
  shards.read(window, length, tokens.data());
  return tokens;
}

std::string bytes_of(const std::vector<std::int32_t>& words) {
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof(std::int32_t)};
}

/// A header, and `bytes` bytes after it.
std::string shard_bytes(std::int32_t version, std::int32_t count, std::size_t bytes) {
  std::vector<std::int32_t> header(256, 0);
  header[0] = 20240520;
  header[1] = version;
  header[2] = count;
  return bytes_of(header) + std::string(bytes, '\1');
}

TEST(Shards, WindowsOverlapByOneTokenAndStayWithinAShard) {
  const Scratch scratch;
  write_shards(scratch, count_up(25), 25, 11);  // shards of 11, 11 and 3 tokens
  const Shards shards = open(scratch, 25);
  EXPECT_EQ(shards.tokens(), 25u);
  EXPECT_EQ(shards.windows(4), 2u + 2u + 0u);
  EXPECT_EQ(read(shards, 0, 4), count_up(5, 0));
  EXPECT_EQ(read(shards, 1, 4), count_up(5, 4));
  EXPECT_EQ(read(shards, 2, 4), count_up(5, 11));
  EXPECT_EQ(read(shards, 3, 4), count_up(5, 15));
  EXPECT_EQ(shards.windows(10), 2u);
  EXPECT_EQ(read(shards, 1, 10), count_up(11, 11));
  EXPECT_THROW(read(shards, 2, 10), InternalError);
}

TEST(Shards, VocabulariesBeyond16BitsAreStoredIn32) {
  const Scratch scratch;
  const std::vector<std::int32_t> tokens = {0, 65535, 65536, 151935, 3};
  write_shards(scratch, tokens, 151936, 100);
  EXPECT_EQ(std::filesystem::file_size(scratch / "train_00000.bin"), 1024u + 5 * 4);
  EXPECT_EQ(read(open(scratch, 151936), 0, 4), tokens);
  write_shards(scratch, {65535, 7}, 65536, 100);
  EXPECT_EQ(std::filesystem::file_size(scratch / "train_00000.bin"), 1024u + 2 * 2);
  EXPECT_EQ(read(open(scratch, 65536), 0, 1), (std::vector<std::int32_t>{65535, 7}));
}

TEST(Shards, HeaderIsThatOfLlmC) {
  const Scratch scratch;
  write_shards(scratch, {5, 6, 7}, 300, 100);
  const std::string file = test::read_file(scratch / "train_00000.bin");
  ASSERT_EQ(file.size(), 1024u + 6);
  std::int32_t header[3];
  std::memcpy(header, file.data(), sizeof header);
  EXPECT_EQ(header[0], 20240520);
  EXPECT_EQ(header[1], 1);
  EXPECT_EQ(header[2], 3);
  EXPECT_EQ(file.substr(1024), std::string("\5\0\6\0\7\0", 6));
}

TEST(Shards, PlainBinHasNoHeader) {
  const Scratch scratch;
  write_file(scratch / "valid.bin", std::string("\1\0\2\0\xff\1", 6));
  EXPECT_EQ(read(open(scratch, 512, "valid.bin"), 0, 2), (std::vector<std::int32_t>{1, 2, 511}));
}

TEST(Shards, SeveralPatternsAreOneSetInOrderOfPaths) {
  const Scratch scratch;
  write_file(scratch / "b.bin", std::string("\3\0\4\0", 4));
  write_file(scratch / "a.bin", std::string("\1\0\2\0", 4));
  const Shards shards({(scratch / "b*.bin").string(), (scratch / "*.bin").string()}, 10, 1);
  EXPECT_EQ(shards.tokens(), 4u);
  EXPECT_EQ(read(shards, 0, 1), (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(read(shards, 1, 1), (std::vector<std::int32_t>{3, 4}));
}

TEST(Shards, MissingFilesAreNamed) {
  const Scratch scratch;
  expect_user_error([&] { open(scratch, 10, "none_*.bin"); }, {"none_*.bin", "./prepare"});
  expect_user_error([] { Shards({}, 10, 1); }, {"no token shard given"});
  std::filesystem::create_directory(scratch / "folder.bin");
  expect_user_error([&] { open(scratch, 10, "folder.bin"); }, {"folder.bin", "regular file"});
}

TEST(Shards, DamagedFilesAreNamed) {
  const struct {
    std::string content, complaint;
  } cases[] = {
      {"", "empty"},
      {"abc", "uint16"},
      {shard_bytes(1, 4, 8).substr(0, 600), "truncated within its header"},
      {shard_bytes(1, 4, 7), "counts 4 tokens (1032 bytes), the file has 1031"},
      {shard_bytes(2, 4, 8), "truncated"},
      {shard_bytes(1, 4, 10), "2 bytes follow the 4 tokens"},
      {shard_bytes(1, 0, 0), "no tokens"},
      {shard_bytes(3, 4, 8), "version 3"},
  };
  for (const auto& each : cases) {
    const Scratch scratch;
    write_file(scratch / "bad.bin", each.content);
    expect_user_error([&] { open(scratch, 70000, "bad.bin"); }, {"bad.bin", each.complaint});
  }
}

TEST(Shards, TokensOutsideTheVocabularyAreFoundWhereverTheyStand) {
  const std::size_t count = 5'000'000;  // more than one thread's chunk
  for (const std::size_t place : {std::size_t{0}, std::size_t{4'194'304}, count - 1}) {
    const Scratch scratch;
    std::vector<std::int32_t> tokens(count, 99);
    tokens[place] = 100;
    write_shards(scratch, tokens, 1000, count);
    EXPECT_EQ(open(scratch, 101).tokens(), count);
    expect_user_error(
        [&] { open(scratch, 100); },
        {"train_00000.bin", "token 100", fmt::format("position {} ", place), "vocabulary of 100"});
  }
}

TEST(ShardWriter, NothingIsSeenBeforeItIsFinished) {
  const Scratch scratch;
  {
    ShardWriter writer(scratch.path(), "train", 100, 3);
    writer.append(count_up(8));
    EXPECT_EQ(writer.shards(), 3u);
    expect_user_error([&] { open(scratch, 100, "*.bin"); }, {"no token shard matches"});
  }
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
}

TEST(ShardWriter, RefusesWhatAReaderWouldRefuse) {
  const Scratch scratch;
  expect_user_error([&] { ShardWriter(scratch.path(), "train", 100, 0); }, {"shard of 0"});
  expect_user_error([&] { ShardWriter(scratch / "nowhere", "a", 100, 9).append({1}); },
                    {"nowhere"});
  ShardWriter writer(scratch.path(), "train", 100, 10);
  EXPECT_THROW(writer.append({100}), InternalError);
  EXPECT_THROW(writer.append({-1}), InternalError);
}

}  // namespace
}  // namespace tern::data
