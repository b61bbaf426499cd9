#include "checkpoint/detail/best.hpp"

#include <fmt/format.h>

#include "base/files.hpp"
#include "checkpoint/detail/folder.hpp"

namespace tern::checkpoint {

using namespace detail;

namespace {

/// What evaluations have found so far.
struct Evaluations {
  std::int64_t last = -1;  // step of the last one; -1: none
  std::int64_t best = 0;   // step of the best one; 0: none
};

/// By the newest checkpoint that can be read and states them: each states those before it.
Evaluations evaluations(const std::vector<Candidate>& all) {
  for (const Candidate& candidate : all) {
    const auto header = peek(candidate.path);
    if (!header) continue;
    const auto& numbers = header->numbers;
    const auto last = numbers.find("evaluated_step"), best = numbers.find("best_step");
    if (last != numbers.end() && best != numbers.end())
      return {static_cast<std::int64_t>(last->second), static_cast<std::int64_t>(best->second)};
  }
  return {};
}

}  // namespace

BestCheckpoint best_checkpoint(const std::filesystem::path& directory) {
  const std::filesystem::path file = directory / "best.txt";
  std::error_code ignored;
  const bool missing = !std::filesystem::exists(file, ignored);
  std::string trouble;
  std::optional<std::int64_t> named;
  try {
    named = best_step(directory);
    if (!named)
      trouble = missing ? fmt::format("{} is missing", file.string())
                        : fmt::format("{} is damaged: it names no checkpoint", file.string());
  } catch (const FileError& error) {
    trouble = error.what();
  }
  const std::vector<Candidate> all = candidates(directory);
  const auto path_of = [&](std::int64_t step) -> std::optional<std::filesystem::path> {
    for (const Candidate& candidate : all)
      if (candidate.step == step) return candidate.path;
    return std::nullopt;
  };
  const auto marked = named ? path_of(*named) : std::nullopt;
  if (named && !marked)
    trouble = fmt::format("{} names step {}, which does not exist", file.string(), *named);
  const Evaluations found = evaluations(all);
  // A kill between best.txt and evaluation.json leaves best.txt ahead of the attributes.
  if (marked && (*named == found.best || *named > found.last)) return {marked, ""};
  const auto best = found.best > 0 ? path_of(found.best) : std::nullopt;
  if (best && marked)
    trouble = fmt::format("{} names step {} and is out of date", file.string(), *named);
  if (best && missing) return {best, ""};  // as with &checkpoint keep_best = F
  if (best)
    return {best,
            fmt::format("{}; by the attributes of the checkpoints the best is that of step {}",
                        trouble, found.best)};
  if (marked) return {marked, ""};
  if (found.last > 0 && found.best > 0)
    trouble += fmt::format("; the best checkpoint, of step {}, does not exist", found.best);
  else
    trouble += "; no evaluation has marked a checkpoint as the best";
  return {std::nullopt, trouble};
}

}  // namespace tern::checkpoint
