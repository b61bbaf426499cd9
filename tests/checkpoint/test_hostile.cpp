// Checkpoints of a stranger: whatever HDF5 can store, they are refused with a message, or hold the
// right values; no other file is read, nothing hangs, no memory is overwritten.
#include <fmt/format.h>
#include <sys/stat.h>

#include <sstream>

#include "checkpoint/detail/sums.hpp"
#include "checkpoint/fixture.hpp"
#include "python.hpp"

namespace tern::checkpoint::testing {
namespace {

/// What a model that has small_tensors() does with a checkpoint: "" if it is whole, else the error.
std::string loaded(const fs::path& path) {
  try {
    const Reader reader(path);
    const std::vector<Tensor> all = small_tensors();
    for (const Tensor& wanted : all) {
      const auto& stored = reader.tensors();
      const auto found = std::find_if(stored.begin(), stored.end(),
                                      [&](const Tensor& t) { return t.path == wanted.path; });
      if (found == stored.end()) reader.require_own(wanted.path);
      if (found == stored.end() || found->shape != wanted.shape)
        user_error("{}: another model", reader.path().string());
    }
    for (const Tensor& stored : reader.tensors())
      if (!stored.path.starts_with("/optimizer/") &&
          std::none_of(all.begin(), all.end(),
                       [&](const Tensor& t) { return t.path == stored.path; }))
        user_error("{}: another model: {}", reader.path().string(), stored.path);
    const auto values = consistent(reader, all);
    return values ? "" : fmt::format("{}: {}", reader.path().string(), values.message());
  } catch (const UserError& error) {
    return error.what();
  }
}

/// Step folders written by one and by two ranks, as `name`.
void write_step(const fs::path& folder, int ranks) {
  Log log(false);
  std::vector<std::unique_ptr<Store>> stores;
  const auto values = values_of(small_tensors(), 10);
  for (int rank = 0; rank < ranks; ++rank) {
    stores.push_back(std::make_unique<Store>(folder, rank, ranks, 2, log, 30.0));
    save(*stores.back(), header_of(10), small_tensors(), pieces_of(values, rank, ranks));
  }
  for (auto& store : stores) ASSERT_TRUE(store->wait());
}

TEST(Hostile, CheckpointsAreRefusedOrWhole) {
  const Scratch scratch;
  for (const int ranks : {1, 2}) write_step(scratch / fmt::format("of_{}", ranks), ranks);
  fs::create_directory(scratch / "cases");
  const test::Outcome made = test::run_python(
      "checkpoint/make_hostile.py",
      {scratch / "of_1/step_00000010", scratch / "of_2/step_00000010", scratch / "cases"});
  ASSERT_EQ(made.status, 0) << made.text;
  std::istringstream lines(scratch.read("cases/cases.txt"));
  std::size_t refused = 0, whole = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string name, outcome, text;
    std::getline(fields, name, '\t'), std::getline(fields, outcome, '\t'),
        std::getline(fields, text);
    SCOPED_TRACE(name);
    const fs::path file = scratch / "cases" / name / "checkpoint.h5";
    const std::string error = loaded(file);
    if (outcome == "whole") {
      EXPECT_EQ(error, "");
      ++whole;
      continue;
    }
    ++refused;
    EXPECT_NE(error.find(file.string()), std::string::npos) << error;
    EXPECT_NE(error.find(text), std::string::npos) << error;
    EXPECT_EQ(error.find('\x1b'), std::string::npos);
    EXPECT_EQ(error.find("\nerror:"), std::string::npos) << error;
  }
  fmt::print("{} checkpoints refused, {} whole\n", refused, whole);
  EXPECT_GT(refused, 140u);
  EXPECT_GE(whole, 15u);
}

TEST(Hostile, ThePathItselfIsARegularFile) {
  const Scratch scratch;
  fs::create_directory(scratch / "step_00000010");
  ASSERT_EQ(::mkfifo((scratch / "step_00000010/checkpoint.h5").c_str(), 0600), 0);
  EXPECT_NE(loaded(scratch / "step_00000010/checkpoint.h5").find("is a pipe"), std::string::npos);
  EXPECT_NE(loaded("/dev/zero").find("is a device"), std::string::npos);
}

std::string sealed(const std::string& lines) {
  return lines + fmt::format("{:016x} end\n", detail::hash_of(lines));
}

TEST(Hostile, SumsListTheFilesOfACheckpointAndNoOthers) {
  const Scratch scratch;
  write_step(scratch.path(), 2);
  const fs::path folder = scratch / "step_00000010";
  EXPECT_EQ(loaded(folder), "");
  const std::string whole = read_file(folder / "checkpoint.sum");
  const std::string lines = whole.substr(0, whole.rfind('\n', whole.size() - 2) + 1);
  ASSERT_EQ(sealed(lines), whole);
  const std::string first = lines.substr(0, lines.find('\n') + 1);
  ASSERT_NE(first.find("checkpoint.h5"), std::string::npos);
  for (const auto& [text, why] : std::initializer_list<std::pair<std::string, std::string>>{
           {"", "truncated or altered"},
           {lines.substr(first.size()), "does not list checkpoint.h5"},
           {first + "0000000000000000 7 /etc/passwd\n", "/etc/passwd"},
           {first + "0000000000000000 7 ../other\n", "../other"},
           {first + "nonsense\n" + lines.substr(first.size()), "not a hash"}}) {
    write_file(folder / "checkpoint.sum", sealed(text));
    const std::string error = loaded(folder);
    EXPECT_NE(error.find("checkpoint.sum"), std::string::npos) << error;
    EXPECT_NE(error.find(why), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace tern::checkpoint::testing
