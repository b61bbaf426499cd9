/// The data sets that ./prepare makes from nothing, and where it puts them.
#pragma once
#include <filesystem>
#include <string>

namespace tern {

struct Maker {
  const char* command;  // of ./prepare
  const char* folder;
};
constexpr Maker makers[] = {{"quickstart", "data/quickstart"},
                            {"cpp-headers", "data/cpp_headers"},
                            {"arithmetic", "data/arithmetic"},
                            {"languages", "data/languages"}};

/// How to get a path that is missing: the command whose folder holds it, "run ./prepare quickstart,
/// which makes it"; else `otherwise`.
std::string how_to_make(const std::filesystem::path& path, const std::string& otherwise);

}  // namespace tern
