#include "weights/identity.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <vector>

#include "base/error.hpp"
#include "base/hashes.hpp"

namespace tern::weights {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t piece = 16 << 10, pieces = 256;

bool holds_weights(const fs::path& path) {
  return path.extension() == ".safetensors" || path.extension() == ".h5" ||
         path.filename() == "config.json";
}

}  // namespace

std::string sampled_hash(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::error_code unknown;
  const std::uint64_t size = fs::file_size(file, unknown);
  if (!in || unknown) user_error("{}: cannot be read", file.string());
  Fnv hash;
  hash.add({reinterpret_cast<const char*>(&size), sizeof size});
  std::vector<char> bytes(piece);
  const bool whole = size <= piece * pieces;
  const std::uint64_t count = whole ? (size + piece - 1) / piece : pieces;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t spread = (size - piece) / (pieces - 1);
    const std::uint64_t first = whole ? i * piece : i + 1 == count ? size - piece : i * spread;
    const std::uint64_t n = std::min(piece, size - first);
    in.seekg(static_cast<std::streamoff>(first));
    if (!in.read(bytes.data(), static_cast<std::streamsize>(n)))
      user_error("{}: cannot be read", file.string());
    hash.add({bytes.data(), n});
  }
  return fmt::format("{:016x}", hash.value());
}

std::string weights_identity(const fs::path& source) {
  std::vector<std::string> files;
  const auto add = [&](const fs::path& path, const fs::path& name) {
    files.push_back(
        fmt::format("{} ({} bytes, {})", name.string(), fs::file_size(path), sampled_hash(path)));
  };
  if (fs::is_regular_file(source)) add(source, source.filename());
  if (fs::is_directory(source))
    for (const auto& entry : fs::recursive_directory_iterator(source))
      if (entry.is_regular_file() && holds_weights(entry.path()))
        add(entry.path(), fs::relative(entry.path(), source));
  std::sort(files.begin(), files.end());
  return fmt::format("{}", fmt::join(files, ", "));
}

}  // namespace tern::weights
