/// Data sets that ./prepare generates, and their directories.
#pragma once
#include <filesystem>
#include <string>

namespace tern {

struct DataRecipe {
  const char* command;  // of ./prepare
  const char* folder;
};
constexpr DataRecipe data_recipes[] = {{"quickstart", "data/quickstart"},
                                       {"cpp-headers", "data/cpp_headers"},
                                       {"arithmetic", "data/arithmetic"},
                                       {"languages", "data/languages"},
                                       {"gsm8k", "data/gsm8k_variants"}};

/// Remedy for a missing path: "make it with ./prepare quickstart" if a maker's folder holds it, else
/// `otherwise`.
std::string how_to_make(const std::filesystem::path& path, const std::string& otherwise);

}  // namespace tern
