/// JSON header of a safetensors file, validated against the format's rules (README of the
/// safetensors repository, "Format"): in bounds, no overlaps, no holes, matching sizes, unique
/// names.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"

namespace tern::transformers::detail {

struct StoredArray {
  std::string dtype;  // "F32"
  std::vector<std::size_t> shape;
  std::size_t elements = 0;
  std::size_t begin = 0, end = 0;  // bytes from the start of the file
};

/// Throws UserError naming the fault, but not the file.
std::map<std::string, StoredArray> parse_safetensors(const File& file);

}  // namespace tern::transformers::detail
