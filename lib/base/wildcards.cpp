#include "base/wildcards.hpp"

#include <glob.h>

#include <algorithm>

#include "base/data_recipes.hpp"
#include "base/error.hpp"

namespace tern {

std::vector<std::filesystem::path> expand_wildcards(const std::vector<std::string>& patterns,
                                                    const char* what, const char* remedy) {
  std::vector<std::filesystem::path> paths;
  for (const std::string& pattern : patterns) {
    glob_t found = {};
    const int status = ::glob(pattern.c_str(), 0, nullptr, &found);
    for (std::size_t i = 0; status == 0 && i < found.gl_pathc; ++i)
      paths.emplace_back(found.gl_pathv[i]);
    ::globfree(&found);
    if (status != 0)
      user_error("no {} matches '{}' (from {}); {}", what, pattern,
                 std::filesystem::current_path().string(), how_to_make(pattern, remedy));
  }
  if (paths.empty()) user_error("no {} given; {}", what, remedy);
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  return paths;
}

}  // namespace tern
