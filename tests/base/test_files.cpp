// Files that others may have placed: pipes, devices and links are refused, and nothing is written through a link.
#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>
#include <ostream>

#include "base/append_file.hpp"
#include "base/log.hpp"
#include "base/mapped_file.hpp"
#include "scratch.hpp"

namespace tern {
namespace {

namespace fs = std::filesystem;
using test::names_in;
using test::Scratch;

std::string fault(const std::function<void()>& action) {
  try {
    action();
  } catch (const FileError& error) {
    return error.what();
  } catch (const UserError& error) {
    return error.what();
  }
  return "taken";
}

void expect_fault(const std::function<void()>& action, const std::string& path,
                  const std::string& why) {
  const std::string text = fault(action);
  EXPECT_NE(text.find(path), std::string::npos) << text;
  EXPECT_NE(text.find(why), std::string::npos) << text;
}

TEST(Files, PipesAndDevicesAreRefusedAtOnce) {
  const Scratch scratch;
  const fs::path pipe = scratch / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const fs::path& path : {pipe, fs::path("/dev/zero")}) {
    const std::string kind = path == pipe ? "is a pipe" : "is a device";
    expect_fault([&] { read_text(path); }, path.string(), kind);
    expect_fault([&] { read_text_if_there(path); }, path.string(), kind);
    expect_fault([&] { File(path, O_WRONLY); }, path.string(), kind);
    expect_fault([&] { File(path, O_RDWR); }, path.string(), kind);
    expect_fault([&] { write_file(path, [](std::ostream& out) { out << "x"; }); }, path.string(),
                 kind);
    expect_fault([&] { AppendFile{path}; }, path.string(), kind);
    expect_fault([&] { Log().open(path); }, path.string(), kind);
    EXPECT_EQ(read_text_or_empty(path), "");
  }
  expect_fault([&] { MappedFile{pipe}; }, pipe.string(), "a pipe");
}

TEST(Files, NothingIsWrittenThroughALink) {
  const Scratch scratch;
  scratch.write("kept", "the user's");
  for (const char* target : {"kept", "absent"}) {
    const fs::path link = scratch / "link";
    fs::create_symlink(scratch / target, link);
    expect_fault([&] { File(link, O_WRONLY); }, link.string(), "symbolic link");
    expect_fault([&] { File(link, O_RDWR | O_CREAT | O_TRUNC); }, link.string(), "symbolic link");
    expect_fault([&] { AppendFile{link}; }, link.string(), "symbolic link");
    expect_fault([&] { Log().open(link); }, link.string(), "symbolic link");
    expect_fault([&] { write_file(link, [](std::ostream& out) { out << "x"; }); }, link.string(),
                 "symbolic link");
    EXPECT_EQ(scratch.read("kept"), "the user's");
    EXPECT_FALSE(fs::exists(scratch / "absent"));
    fs::remove(link);
  }
  // Renamed over, and temporary files have a name that nobody can place a link at.
  for (const char* name : {"a", "a.new", "a.tmp"})
    fs::create_symlink(scratch / "kept", scratch / name);
  EXPECT_TRUE(replace_file(scratch / "a", "one"));
  EXPECT_EQ(scratch.read("a"), "one");
  write_durably(scratch / "a", "two");
  EXPECT_EQ(scratch.read("a"), "two");
  EXPECT_EQ(scratch.read("kept"), "the user's");
  EXPECT_EQ(names_in(scratch), (std::vector<std::string>{"a", "a.new", "a.tmp", "kept"}));
}

TEST(Files, AFolderMayBeReachedThroughALink) {
  const Scratch scratch;
  fs::create_directory(scratch / "disk");
  fs::create_symlink(scratch / "disk", scratch / "run");
  EXPECT_TRUE(replace_file(scratch / "run/a", "one"));
  write_durably(scratch / "run/b", "two");
  write_file(scratch / "run/c", [](std::ostream& out) { out << "three"; });
  EXPECT_TRUE(AppendFile(scratch / "run/d").append("four"));
  EXPECT_EQ(names_in(scratch / "disk"), (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_EQ(scratch.read("disk/c"), "three");
  expect_fault([&] { make_own_folder(scratch / "run"); }, (scratch / "run").string(),
               "symbolic link");
  make_own_folder(scratch / "run/deep/er");
  make_own_folder(scratch / "run/deep/er");
  EXPECT_TRUE(fs::is_directory(scratch / "disk/deep/er"));
}

TEST(Files, AreReadWhateverSizeTheyState) {
  EXPECT_NE(read_text("/proc/self/status").find("Name:"), std::string::npos);
  const Scratch scratch;
  const std::string large(300'000, 'x');
  write_file(scratch / "large", [&](std::ostream& out) { out << large << '\n' << 7; });
  EXPECT_EQ(read_text(scratch / "large"), large + "\n7");
  EXPECT_EQ(read_text_if_there(scratch / "absent"), "");
  EXPECT_THROW(read_text_if_there(scratch.path()), FileError);  // a folder is not an empty file
  EXPECT_THROW(write_file("/dev/full/x", [](std::ostream&) {}), UserError);
}

TEST(Files, LeftoversOfAKilledProcessAreRemovedAndNothingElse) {
  const Scratch scratch;
  scratch.write("outside", "x");
  for (const char* name : {"a.new-0123456789abcdef", "b.tmp-0123456789abcdef", "c.new",
                           "d.new-0123", "e-0123456789abcdef", "folder.tmp-0123456789abcdef/x"})
    scratch.write(std::string("run/") + name, "x");
  fs::create_symlink(scratch / "outside", scratch / "run/f.new-0123456789abcdef");
  remove_leftovers(scratch / "run");
  EXPECT_EQ(names_in(scratch / "run"),
            (std::vector<std::string>{"c.new", "d.new-0123", "e-0123456789abcdef",
                                      "folder.tmp-0123456789abcdef"}));
  EXPECT_EQ(scratch.read("outside"), "x");
}

TEST(Files, LinksOutOfAFolderAreTold) {
  const Scratch scratch;
  scratch.write("model/a", "x");
  scratch.write("secret", "x");
  scratch.write("hub/blobs/123", "x");
  scratch.write("hub/snapshots/abc/b", "x");
  fs::create_symlink("a", scratch / "model/inside");
  fs::create_symlink("../secret", scratch / "model/outside");
  fs::create_symlink("../../blobs/123", scratch / "hub/snapshots/abc/config.json");
  fs::create_symlink("../../../secret", scratch / "hub/snapshots/abc/LICENSE");
  fs::create_symlink(scratch / "model", scratch / "same");
  for (const char* name : {"a", "inside", "absent"}) {
    EXPECT_FALSE(leads_out(scratch / "model", name)) << name;
    EXPECT_FALSE(leads_out(scratch / "same", name)) << name;
  }
  EXPECT_TRUE(leads_out(scratch / "model", "outside"));
  EXPECT_TRUE(leads_out(scratch / "model", "../secret"));
  EXPECT_FALSE(leads_out(scratch / "hub/snapshots/abc", "config.json"));
  EXPECT_TRUE(leads_out(scratch / "hub/snapshots/abc", "LICENSE"));
}

}  // namespace
}  // namespace tern
