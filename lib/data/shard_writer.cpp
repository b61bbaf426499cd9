#include "data/shard_writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "base/files.hpp"
#include "data/detail/shard_format.hpp"

namespace tern::data {

ShardWriter::ShardWriter(std::filesystem::path folder, std::string name, std::size_t vocabulary,
                         std::size_t shard_tokens)
    : folder_(std::move(folder)),
      name_(std::move(name)),
      vocabulary_(vocabulary),
      shard_tokens_(shard_tokens) {
  if (shard_tokens_ == 0 || shard_tokens_ > std::numeric_limits<std::int32_t>::max())
    user_error("a shard of {} tokens: the number must be from 1 to {}", shard_tokens_,
               std::numeric_limits<std::int32_t>::max());
}

ShardWriter::~ShardWriter() {
  if (file_ != nullptr) std::fclose(file_);
  if (finished_) return;
  std::error_code ignored;
  for (std::size_t s = 0; s < shards_; ++s) std::filesystem::remove(path(s, true), ignored);
}

std::filesystem::path ShardWriter::path(std::size_t shard, bool partial) const {
  const std::string file = fmt::format("{}_{:05}.bin", name_, shard);
  return folder_ / (partial ? fmt::format(".{}.partial", file) : file);
}

void ShardWriter::write(const void* bytes, std::size_t size) {
  if (size > 0 && std::fwrite(bytes, 1, size, file_) != size) {
    user_error("{}: cannot be written: {}", path(shards_ - 1, true).string(), std::strerror(errno));
  }
}

void ShardWriter::open() {
  const std::filesystem::path file = path(shards_, true);
  try {
    const int descriptor = open_file(file, O_WRONLY | O_CREAT | O_TRUNC);
    file_ = ::fdopen(descriptor, "wb");
    if (file_ == nullptr) ::close(descriptor);
  } catch (const FileError& error) {
    user_error("{}", error.what());
  }
  if (file_ == nullptr) user_error("{}: cannot be made: {}", file.string(), std::strerror(errno));
  ++shards_;
  in_shard_ = 0;
  const std::int32_t header[detail::shard_header_words] = {};
  write(header, sizeof header);
}

/// Writes the header last: until then the file has no valid magic number.
void ShardWriter::close() {
  if (file_ == nullptr) return;
  const bool wide = vocabulary_ > detail::shard_vocabulary_16;
  const std::int32_t header[3] = {detail::shard_magic,
                                  wide ? detail::shard_version_32 : detail::shard_version_16,
                                  static_cast<std::int32_t>(in_shard_)};
  const bool placed = std::fseek(file_, 0, SEEK_SET) == 0;
  if (placed) write(header, sizeof header);
  const bool stored = placed && std::fflush(file_) == 0 && ::fsync(::fileno(file_)) == 0;
  const int error = errno;
  const bool closed = std::fclose(std::exchange(file_, nullptr)) == 0;
  if (!stored || !closed)
    user_error("{}: cannot be written: {}", path(shards_ - 1, true).string(),
               std::strerror(stored ? errno : error));
}

void ShardWriter::append(const std::int32_t* tokens, std::size_t count) {
  TERN_REQUIRE(!finished_);
  std::vector<std::uint16_t> narrow;
  while (count > 0) {
    if (file_ == nullptr) open();
    const std::size_t part = std::min(count, shard_tokens_ - in_shard_);
    for (std::size_t i = 0; i < part; ++i) {
      TERN_REQUIRE(tokens[i] >= 0 && static_cast<std::size_t>(tokens[i]) < vocabulary_,
                   "token {} of a vocabulary of {}", tokens[i], vocabulary_);
    }
    if (vocabulary_ > detail::shard_vocabulary_16) {
      write(tokens, part * sizeof *tokens);
    } else {
      narrow.assign(tokens, tokens + part);
      write(narrow.data(), part * sizeof(std::uint16_t));
    }
    in_shard_ += part;
    total_ += part;
    tokens += part;
    count -= part;
    if (in_shard_ == shard_tokens_) close();
  }
}

void ShardWriter::finish() {
  TERN_REQUIRE(!finished_);
  close();
  for (std::size_t s = 0; s < shards_; ++s) std::filesystem::rename(path(s, true), path(s, false));
  finished_ = true;
}

}  // namespace tern::data
