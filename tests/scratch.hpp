/// A test's own folder, removed at its end, and operations on the files in it.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/files.hpp"

namespace tern::test {

inline std::filesystem::path write_file(const std::filesystem::path& file, std::string_view text) {
  std::ofstream(file, std::ios::binary) << text;
  return file;
}

inline std::string read_file(const std::filesystem::path& file) { return read_text_or_empty(file); }

class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "tern_test_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw InternalError("no scratch folder");
    path_ = name;
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }
  operator const std::filesystem::path&() const { return path_; }  // NOLINT: used as one

  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    write_file(path_ / name, text);
  }
  std::string read(const std::string& name) const { return read_file(path_ / name); }

 private:
  std::filesystem::path path_;
};

/// Sorted.
inline std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// Expects a UserError whose text holds every one of `parts`.
template <class Action>
void expect_user_error(const Action& action, std::initializer_list<std::string> parts) {
  try {
    action();
    ADD_FAILURE() << "no error; expected one that names " << *parts.begin();
  } catch (const UserError& error) {
    for (const std::string& part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << "'" << part << "' is missing in: " << error.what();
  }
}

}  // namespace tern::test
