#pragma once
#include <string_view>

namespace tern {
/// Release number, as "0.1.0".
std::string_view version();
/// Commit the program was built from, with "-dirty" if the tree had changes.
std::string_view commit();
}  // namespace tern
