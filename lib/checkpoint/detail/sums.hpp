/// checkpoint.sum: size and XXH64 of every file of a checkpoint. Detects any flipped bit (HDF5's
/// Fletcher32 covers data but not metadata) and missing or swapped shards. One line per file,
/// "HASH SIZE NAME"; the last line is the hash of the lines before it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tern::checkpoint::detail {

struct Sum {
  std::string file;  // name inside the folder
  std::uint64_t size = 0, hash = 0;
};

/// XXH64 of a text; `xxhsum -H64` prints the same.
std::uint64_t hash_of(std::string_view text);
/// Reads the file once, in chunks. Throws FileError.
Sum sum_of(const std::filesystem::path& file);
std::string to_text(const std::vector<Sum>& sums);
/// Throws UserError if the text is truncated or altered, or lists other files than a checkpoint has,
/// or not its checkpoint.h5.
std::vector<Sum> parse_sums(const std::string& text);

constexpr const char* sum_file = "checkpoint.sum";
/// Checks every file listed in FOLDER/checkpoint.sum. Throws UserError naming the damaged file.
void verify_folder(const std::filesystem::path& folder);

}  // namespace tern::checkpoint::detail
