/// Paths with wildcards.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace tern {

/// The files that match any of the patterns, sorted, each once. Throws UserError if there are no
/// patterns or one matches nothing: `what` names what is looked for, `remedy` what
/// to do, if no command of ./prepare makes it.
std::vector<std::filesystem::path> expand_wildcards(const std::vector<std::string>& patterns,
                                                    const char* what, const char* remedy);

}  // namespace tern
