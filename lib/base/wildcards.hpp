/// Wildcard expansion.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace tern {

/// Files that match any of the patterns, sorted, without duplicates. Throws UserError if there are
/// no patterns or one matches nothing: `what` names the kind of file, `remedy` what to do if no
/// command of ./prepare makes it.
std::vector<std::filesystem::path> expand_wildcards(const std::vector<std::string>& patterns,
                                                    const char* what, const char* remedy);

}  // namespace tern
