#include "base/data_recipes.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace tern {
namespace {

namespace fs = std::filesystem;

bool holds(const fs::path& folder, const fs::path& path) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first ==
         folder.end();
}

}  // namespace

std::string how_to_make(const fs::path& path, const std::string& otherwise) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error).lexically_normal();
  for (const DataRecipe& recipe : data_recipes)
    if (holds(fs::absolute(recipe.folder, error).lexically_normal(), whole))
      return fmt::format("make it with ./prepare {}", recipe.command);
  return otherwise;
}

}  // namespace tern
