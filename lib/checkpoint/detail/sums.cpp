#define XXH_INLINE_ALL
#include "checkpoint/detail/sums.hpp"

#include <fcntl.h>
#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <sstream>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/utf8.hpp"
#include "checkpoint/detail/writer.hpp"

namespace tern::checkpoint::detail {
namespace {

std::string seal(const std::string& text) { return fmt::format("{:016x} end\n", hash_of(text)); }

}  // namespace

std::uint64_t hash_of(std::string_view text) { return XXH64(text.data(), text.size(), 0); }

Sum sum_of(const std::filesystem::path& path) {
  constexpr std::size_t step = std::size_t{4} << 20;
  const File file(path, O_RDONLY);
  ::posix_fadvise(file.descriptor(), 0, 0, POSIX_FADV_SEQUENTIAL);
  const auto buffer = std::make_unique_for_overwrite<unsigned char[]>(step);
  Sum sum{path.filename().string()};
  XXH64_state_t hash;
  XXH64_reset(&hash, 0);
  for (std::size_t n; (n = file.read(buffer.get(), step, sum.size)) > 0; sum.size += n)
    XXH64_update(&hash, buffer.get(), n);
  sum.hash = XXH64_digest(&hash);
  return sum;
}

std::string to_text(const std::vector<Sum>& sums) {
  std::string text;
  for (const Sum& sum : sums) text += fmt::format("{:016x} {} {}\n", sum.hash, sum.size, sum.file);
  return text + seal(text);
}

std::vector<Sum> parse_sums(const std::string& text) {
  const std::size_t last = text.size() < 2 ? std::string::npos : text.rfind('\n', text.size() - 2);
  if (last == std::string::npos || text.substr(last + 1) != seal(text.substr(0, last + 1)))
    throw UserError("it is truncated or altered");
  std::vector<Sum> sums;
  std::istringstream lines(text.substr(0, last + 1));
  for (Sum sum; lines >> std::hex >> sum.hash >> std::dec >> sum.size >> sum.file;) {
    if (sum.file != checkpoint_file && !is_shard_file(sum.file))
      throw UserError(
          fmt::format("it lists '{}', which is not a file of a checkpoint", on_one_line(sum.file)));
    sums.push_back(sum);
  }
  if (!lines.eof()) throw UserError("a line is not a hash, a size and a name");
  if (std::none_of(sums.begin(), sums.end(),
                   [](const Sum& sum) { return sum.file == checkpoint_file; }))
    throw UserError(fmt::format("it does not list {}", checkpoint_file));
  return sums;
}

void verify_folder(const std::filesystem::path& folder) {
  std::vector<Sum> sums;
  try {
    sums = parse_sums(read_text(folder / sum_file));
  } catch (const std::exception& error) {
    user_error("{}: {}", (folder / sum_file).string(), error.what());
  }
  for (const Sum& expected : sums) {
    const auto path = folder / expected.file;
    std::error_code missing;
    const auto size = std::filesystem::file_size(path, missing);
    if (missing) user_error("{}: {}", path.string(), missing.message());
    if (size != expected.size)
      user_error("{}: damaged, {} bytes instead of {}", path.string(), size, expected.size);
    if (sum_of(path).hash != expected.hash)
      user_error("{}: damaged, its XXH64 differs from {}", path.string(), sum_file);
  }
}

}  // namespace tern::checkpoint::detail
