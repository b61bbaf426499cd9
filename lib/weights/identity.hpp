/// Identity of weights by content only: files may be copied, moved and touched.
#pragma once
#include <filesystem>
#include <string>

namespace tern::weights {

/// Lists the weight files at `source` (a file, or recursively the .safetensors, .h5 and config.json
/// of a folder), each with size and hash. Throws UserError if one cannot be read.
std::string weights_identity(const std::filesystem::path& source);

/// 64-bit FNV-1a of a file's size and 256 evenly spread pieces of 16 KiB, first and last included;
/// of the whole file up to 4 MiB. Training changes all weights, so that a sample detects it without
/// reading tens of GB.
std::string sampled_hash(const std::filesystem::path& file);

}  // namespace tern::weights
