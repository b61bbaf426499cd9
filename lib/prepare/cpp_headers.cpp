#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/error.hpp"
#include "base/files.hpp"
#include "base/utf8.hpp"
#include "prepare/prepare.hpp"

namespace tern::prepare {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t corpus_bytes = 8'000'000, bpe_vocabulary = 1024;
constexpr double corpus_valid_fraction = 0.05;

bool holds_headers(const fs::path& folder) { return fs::is_regular_file(folder / "vector"); }

/// Debian, Ubuntu, Fedora, SUSE: /usr/include/c++/VERSION, last complete one in sorted order.
void add_system_folders(std::vector<fs::path>& folders) {
  std::error_code error;
  std::vector<fs::path> versions;
  for (fs::directory_iterator entry("/usr/include/c++", error), end; entry != end;
       entry.increment(error))
    versions.push_back(entry->path());
  std::sort(versions.rbegin(), versions.rend());
  folders.insert(folders.end(), versions.begin(), versions.end());
}

/// Elsewhere: the compiler's include search path.
void add_compiler_folders(std::vector<fs::path>& folders) {
  const auto close = [](std::FILE* pipe) { ::pclose(pipe); };
  const std::unique_ptr<std::FILE, decltype(close)> pipe(
      ::popen("LC_ALL=C ${CXX:-c++} -E -x c++ -v /dev/null 2>&1", "r"), close);
  if (!pipe) return;
  char line[4096];
  while (std::fgets(line, sizeof line, pipe.get()) != nullptr) {
    std::string text(line);
    text.erase(text.find_last_not_of(" \n") + 1);
    if (text.starts_with(" /")) folders.emplace_back(text.substr(1));
  }
}

/// Non-empty UTF-8 without null characters.
bool is_text(const fs::path& file) {
  const std::string text = read_text_or_empty(file);
  return !text.empty() && text.find('\0') == std::string::npos &&
         valid_utf8_prefix(text) == text.size();
}

std::vector<fs::path> sorted_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::vector<fs::path> standard_library_headers(std::size_t max_bytes) {
  std::vector<fs::path> folders;
  add_system_folders(folders);
  if (std::none_of(folders.begin(), folders.end(), holds_headers)) add_compiler_folders(folders);
  const auto folder = std::find_if(folders.begin(), folders.end(), holds_headers);
  if (folder == folders.end())
    user_error(
        "the headers of the C++ standard library are not found: neither in /usr/include/c++/* "
        "nor where the compiler (CXX, else c++) says that it looks; install a C++ compiler, or "
        "make data of your own with ./prepare text");
  std::vector<fs::path> files;
  std::size_t bytes = 0;
  for (const fs::path& file : sorted_files(*folder)) {
    if (!is_text(file)) continue;
    bytes += fs::file_size(file);
    if (bytes > max_bytes) break;
    files.push_back(file);
  }
  return files;
}

void set_cpp_headers(PrepareOptions& options) {
  options.inputs = standard_library_headers(corpus_bytes);
  options.format = InputFormat::text;
  options.train_bpe = bpe_vocabulary;
  options.valid_fraction = corpus_valid_fraction;
  if (options.output.empty()) options.output = "data/cpp_headers";
}

}  // namespace tern::prepare
