/// Several runs next to each other, for `trainer --compare RUN RUN...`.
#pragma once
#include <string>
#include <vector>

namespace tern::report {

/// Writes compare.html into the first run's directory: the curves of all runs over each other, their
/// last values and the values in which their decks differ. Returns the tables as text, whose last
/// line says where the page is. Throws UserError for fewer than two runs, for a directory that is no
/// run, and if the page cannot be written.
std::string compare(const std::vector<std::string>& directories);

}  // namespace tern::report
