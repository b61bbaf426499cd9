/// checkpoint.sum: size and XXH64 of every file of a checkpoint, so that a flipped bit anywhere
/// (HDF5's own Fletcher32 covers the data, not the metadata) and a lost or exchanged shard are
/// found. One line a file, "HASH SIZE NAME", the last line the hash of the lines before it.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace tern::checkpoint::detail {

struct Sum {
  std::string file;  // name inside the folder
  std::uint64_t size = 0, hash = 0;
};

/// Reads the file once, in pieces. Throws FileError.
Sum sum_of(const std::filesystem::path& file);
std::string to_text(const std::vector<Sum>& sums);
/// Throws UserError if the text is not whole.
std::vector<Sum> parse_sums(const std::string& text);

constexpr const char* sum_file = "checkpoint.sum";
/// Checks every file named in FOLDER/checkpoint.sum. Throws UserError naming the damaged file.
void verify_folder(const std::filesystem::path& folder);

}  // namespace tern::checkpoint::detail
