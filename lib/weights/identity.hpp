/// What weights are, told by their contents alone: files may be copied, moved and touched.
#pragma once
#include <filesystem>
#include <string>

namespace tern::weights {

/// The files of weights at `source` (a file, or a folder with files in and below it: .safetensors,
/// .h5, config.json), each with its size and a hash. UserError for one that cannot be read.
std::string weights_identity(const std::filesystem::path& source);

/// 64-bit FNV-1a of a file's size, its first and last 16 KiB, and as much at 254 places spread
/// evenly between them; of all of a file up to 4 MiB. Training changes all weights, and tens of GB
/// need not be read to see it.
std::string sampled_hash(const std::filesystem::path& file);

}  // namespace tern::weights
