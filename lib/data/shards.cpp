#include <algorithm>
#include <cstring>
#include <filesystem>

#include "base/error.hpp"
#include "base/mapped_file.hpp"
#include "base/parallel.hpp"
#include "base/wildcards.hpp"
#include "data/detail/shard_format.hpp"
#include "data/shards.hpp"

namespace tern::data {
namespace {

constexpr std::size_t scan_chunk = std::size_t{1} << 22;  // tokens checked per thread at a time

/// One open shard: offset (bytes), width (bytes per token) and number of its tokens.
struct Shard {
  MappedFile file;
  std::size_t offset = 0, width = 2, count = 0;

  std::size_t windows(std::size_t length) const { return count == 0 ? 0 : (count - 1) / length; }

  template <class Token>
  const Token* tokens() const {
    return reinterpret_cast<const Token*>(file.data() + offset);
  }
};

/// The width follows from the header; a file without the magic number is plain uint16.
Shard open_shard(const std::filesystem::path& path) {
  Shard shard{MappedFile(path)};
  const std::string name = path.string();
  const std::size_t size = shard.file.size();
  if (size == 0) user_error("{}: the shard is empty; make it again with ./prepare", name);
  std::int32_t header[3] = {};
  std::memcpy(header, shard.file.data(), std::min(size, sizeof header));
  if (header[0] != detail::shard_magic) {
    if (size % 2 != 0) {
      user_error("{}: {} bytes is not a whole number of uint16 tokens: truncated, or not a shard",
                 name, size);
    }
    shard.count = size / 2;
    return shard;
  }
  if (size < detail::shard_header_bytes)
    user_error("{}: truncated within its header ({} of {} bytes); copy or make it again", name,
               size, detail::shard_header_bytes);
  if (header[1] != detail::shard_version_16 && header[1] != detail::shard_version_32)
    user_error("{}: shard version {} is unknown; only 1 (uint16) and 2 (uint32) are supported",
               name, header[1]);
  shard.offset = detail::shard_header_bytes;
  shard.width = header[1] == detail::shard_version_32 ? 4 : 2;
  shard.count = static_cast<std::uint32_t>(header[2]);
  const std::size_t expected = shard.offset + shard.count * shard.width;
  if (shard.count == 0) user_error("{}: the shard contains no tokens; make it again", name);
  if (size < expected)
    user_error(
        "{}: truncated: its header counts {} tokens ({} bytes), the file has {} bytes; copy "
        "or make it again",
        name, shard.count, expected, size);
  if (size > expected)
    user_error("{}: {} bytes follow the {} tokens that its header counts; copy or make it again",
               name, size - expected, shard.count);
  return shard;
}

/// Largest token of a part of a shard. Throws UserError if it is outside the vocabulary.
template <class Token>
std::size_t check_vocabulary(const Shard& shard, std::size_t first, std::size_t last,
                             std::size_t vocabulary) {
  const Token* tokens = shard.tokens<Token>();
  Token largest = 0;
  for (std::size_t i = first; i < last; ++i) largest = std::max(largest, tokens[i]);
  if (largest < vocabulary) return largest;
  const Token* bad =
      std::find_if(tokens + first, tokens + last, [&](Token t) { return t >= vocabulary; });
  user_error(
      "{}: token {} at position {} is outside the vocabulary of {}: the shard was made with "
      "another tokenizer, or is not a shard",
      shard.file.path().string(), *bad, bad - tokens, vocabulary);
}

/// Largest token of all shards, scanned in chunks; the error names the first bad token of some
/// chunk.
std::size_t check_vocabulary(const std::vector<Shard>& shards, std::size_t vocabulary,
                             std::size_t threads) {
  struct Chunk {
    const Shard* shard;
    std::size_t first, last;
  };
  std::vector<Chunk> chunks;
  for (const Shard& shard : shards) {
    for (std::size_t first = 0; first < shard.count; first += scan_chunk)
      chunks.push_back({&shard, first, std::min(shard.count, first + scan_chunk)});
  }
  std::vector<std::size_t> largest(chunks.size(), 0);
  parallel_for(chunks.size(), threads, [&](std::size_t i) {
    const Chunk& c = chunks[i];
    largest[i] = c.shard->width == 2
                     ? check_vocabulary<std::uint16_t>(*c.shard, c.first, c.last, vocabulary)
                     : check_vocabulary<std::uint32_t>(*c.shard, c.first, c.last, vocabulary);
  });
  return largest.empty() ? 0 : *std::max_element(largest.begin(), largest.end());
}

}  // namespace

struct Shards::Impl {
  std::vector<Shard> shards;
  std::size_t largest = 0;
};

Shards::Shards(const std::vector<std::string>& patterns, std::size_t vocabulary,
               std::size_t threads)
    : impl_(std::make_unique<Impl>()) {
  TERN_REQUIRE(vocabulary > 0);
  for (const auto& path :
       expand_wildcards(patterns, "token shard", "make shards with ./prepare text"))
    impl_->shards.push_back(open_shard(path));
  impl_->largest = check_vocabulary(impl_->shards, vocabulary, threads);
}

Shards::~Shards() = default;
Shards::Shards(Shards&&) noexcept = default;

std::size_t Shards::tokens() const {
  std::size_t sum = 0;
  for (const Shard& shard : impl_->shards) sum += shard.count;
  return sum;
}

std::size_t Shards::largest_token() const { return impl_->largest; }

std::size_t Shards::windows(std::size_t length) const {
  TERN_REQUIRE(length > 0);
  std::size_t sum = 0;
  for (const Shard& shard : impl_->shards) sum += shard.windows(length);
  return sum;
}

void Shards::read(std::size_t window, std::size_t length, std::int32_t* tokens) const {
  std::size_t within = window;
  for (const Shard& shard : impl_->shards) {
    const std::size_t windows = shard.windows(length);
    if (within >= windows) {
      within -= windows;
      continue;
    }
    shard.file.require_whole();
    const std::size_t first = within * length;
    if (shard.width == 2)
      std::copy_n(shard.tokens<std::uint16_t>() + first, length + 1, tokens);
    else
      std::copy_n(shard.tokens<std::uint32_t>() + first, length + 1, tokens);
    return;
  }
  TERN_REQUIRE(false, "window {} of {}", window, windows(length));
}

}  // namespace tern::data
