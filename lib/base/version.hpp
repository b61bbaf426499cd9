#pragma once
#include <string_view>

namespace tern {
/// Release number, e.g. "0.1.0".
std::string_view version();
/// Commit of the build, with "-dirty" if the tree had changes.
std::string_view commit();
}  // namespace tern
