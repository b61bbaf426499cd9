#include "checkpoint/detail/folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/files.hpp"

namespace tern::checkpoint::detail {
namespace {

namespace fs = std::filesystem;

struct Entry {
  fs::path path;
  std::int64_t step;
  std::string state;  // "", "tmp", "old" or "del"
};

std::optional<std::int64_t> parse_step(std::string_view name) {
  constexpr std::string_view prefix = "step_";
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size() || step < 0) return std::nullopt;
  return step;
}

std::optional<Entry> parse_entry(const fs::path& path) {
  const std::string name = path.filename().string();
  const std::size_t dot = name.find('.');
  const auto step = parse_step(std::string_view(name).substr(0, dot));
  if (!step) return std::nullopt;
  if (dot == std::string::npos) return Entry{path, *step, ""};
  const std::size_t dash = name.find('-', dot);
  if (dash == std::string::npos) return std::nullopt;
  return Entry{path, *step, name.substr(dot + 1, dash - dot - 1)};
}

/// Empty if the folder does not exist; throws FileError if it cannot be read.
std::vector<Entry> entries(const fs::path& directory) {
  std::vector<Entry> result;
  std::error_code error;
  fs::directory_iterator it(directory, error);
  for (; !error && it != fs::directory_iterator(); it.increment(error))
    if (const auto entry = parse_entry(it->path())) result.push_back(*entry);
  if (error && error != std::errc::no_such_file_or_directory)
    throw FileError("read the folder", directory, error.value());
  return result;
}

bool visible(const std::vector<Entry>& all, std::int64_t step) {
  return std::any_of(all.begin(), all.end(),
                     [&](const Entry& e) { return e.step == step && e.state.empty(); });
}

fs::path aside(const fs::path& directory, std::int64_t step, std::string_view state) {
  return directory / fmt::format("{}.{}-{}", step_name(step), state, unique_token());
}

// A kill between the two calls leaves garbage under a name that readers ignore.
void remove_checkpoint(const fs::path& directory, const Entry& entry) {
  const fs::path garbage = aside(directory, entry.step, "del");
  rename_path(entry.path, garbage);
  remove_quietly(garbage);
}

}  // namespace

std::string step_name(std::int64_t step) { return fmt::format("step_{:08d}", step); }

std::vector<Candidate> candidates(const fs::path& directory) {
  const auto all = entries(directory);
  std::vector<Candidate> result;
  for (const Entry& entry : all)
    if (entry.state.empty() || (entry.state == "old" && !visible(all, entry.step)))
      result.push_back({entry.step, entry.path});
  std::sort(result.begin(), result.end(),
            [](const Candidate& a, const Candidate& b) { return a.step > b.step; });
  return result;
}

void recover(const fs::path& directory) {
  for (const Candidate& candidate : candidates(directory))
    if (candidate.path.has_extension()) {
      rename_path(candidate.path, directory / step_name(candidate.step));
      sync_path(directory);
    }
  for (const Entry& entry : entries(directory)) {
    if (entry.state == "old") remove_checkpoint(directory, entry);
    if (entry.state == "tmp" || entry.state == "del") remove_quietly(entry.path);
  }
  std::error_code ignored;
  for (const auto& file : fs::directory_iterator(directory, ignored))
    if (file.path().filename().string().starts_with("best.txt.tmp-")) remove_quietly(file.path());
}

void publish(const fs::path& directory, const fs::path& temporary, std::int64_t step) {
  const fs::path final = directory / step_name(step);
  fs::path replaced;
  if (fs::exists(final)) {
    replaced = aside(directory, step, "old");
    rename_path(final, replaced);
  }
  try {
    rename_path(temporary, final);
    sync_path(directory);
  } catch (...) {
    std::error_code ignored;
    if (!replaced.empty() && !fs::exists(final)) fs::rename(replaced, final, ignored);
    throw;
  }
  if (!replaced.empty()) remove_checkpoint(directory, {replaced, step, "old"});
}

void retain(const fs::path& directory, std::int64_t newest, int keep,
            std::optional<std::int64_t> best) {
  auto all = entries(directory);
  std::erase_if(all, [&](const Entry& e) { return !e.state.empty() || e.step > newest; });
  std::sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) { return a.step > b.step; });
  const auto named = best_step(directory);
  for (std::size_t i = static_cast<std::size_t>(keep); i < all.size(); ++i)
    if (all[i].step != named && all[i].step != best) remove_checkpoint(directory, all[i]);
}

std::optional<std::int64_t> best_step(const fs::path& directory) {
  std::error_code error;
  if (!fs::exists(directory / "best.txt", error)) return std::nullopt;
  const std::string text = read_text(directory / "best.txt");
  return parse_step(std::string_view(text).substr(0, text.find('\n')));
}

void write_best(const fs::path& directory, std::int64_t step) {
  write_durably(directory / "best.txt", step_name(step) + "\n");
}

}  // namespace tern::checkpoint::detail
