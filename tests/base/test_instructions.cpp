// Instruction sets that a program needs against those of made-up processors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/host.hpp"
#include "base/instructions.hpp"

namespace tern {
namespace {

/// The sets of these names; without `known`, names that the compiler lacks are left out.
Instructions named(std::initializer_list<std::string_view> names, bool known = true) {
#define TERN_ROW(name, macro, level) name,
  static constexpr std::string_view all[] = {TERN_INSTRUCTION_SETS(TERN_ROW)};
#undef TERN_ROW
  Instructions sets = 0;
  for (const std::string_view name : names) {
    const auto* const row = std::find(std::begin(all), std::end(all), name);
    if (known) {
      EXPECT_NE(row, std::end(all)) << name;
    }
    if (row != std::end(all)) sets |= Instructions{1} << (row - std::begin(all));
  }
  return sets;
}

const Instructions v2 = named({"sse3", "ssse3", "sse4.1", "sse4.2", "popcnt"});
const Instructions v3 =
    v2 | named({"avx", "avx2", "bmi", "bmi2", "fma"}) | named({"f16c", "lzcnt", "movbe"}, false);
const Instructions v4 = v3 | named({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"});

/// The message; empty if `available` suffices.
std::string refusal(Instructions needed, Instructions available, const char* arch = "native") {
  char message[1024] = "";
  const bool suffices = instructions_suffice(needed, available, arch, message, sizeof(message));
  EXPECT_EQ(suffices, message[0] == '\0');
  return message;
}

TEST(Instructions, SufficeWhereTheProcessorHasAllOrMore) {
  EXPECT_EQ(refusal(0, 0), "");
  EXPECT_EQ(refusal(v3, v3), "");
  EXPECT_EQ(refusal(v3, v4), "");
  EXPECT_EQ(refusal(named({"avx2"}), ~Instructions{0}), "");
}

TEST(Instructions, RefusalNamesWhatIsMissingAndALevelThatRuns) {
  EXPECT_EQ(refusal(v4 | named({"avx512bf16"}), v4 & ~named({"avx512dq"}), "znver4"),
            "the processor of " + host_name() +
                " lacks avx512dq, avx512bf16, which test_base was built with "
                "(TERN_ARCH=znver4); build with -DTERN_ARCH=x86-64-v3");
}

TEST(Instructions, RemedyIsTheHighestLevelThatTheProcessorCovers) {
  const Instructions needed = v4 | named({"xop"});
  const auto ends = [&](Instructions available, const std::string& level) {
    EXPECT_TRUE(refusal(needed, available).ends_with("build with -DTERN_ARCH=" + level))
        << refusal(needed, available);
  };
  ends(v4, "x86-64-v4");
  ends(v4 & ~named({"avx512vl"}), "x86-64-v3");
  ends(v3 & ~named({"fma"}), "x86-64-v2");
  ends(v4 & ~named({"popcnt"}), "x86-64");
  ends(0, "x86-64");
}

TEST(Instructions, LongRefusalIsCut) {
  char message[32];
  EXPECT_FALSE(instructions_suffice(v4, 0, "native", message, sizeof(message)));
  EXPECT_EQ(std::string(message).size(), sizeof(message) - 1);
}

TEST(Instructions, ThisProcessorHasWhatThisTestWasCompiledWith) {
#define TERN_TEXT(macro) #macro
#define TERN_ROW(name, macro, level) TERN_TEXT(macro)[0] == '1',
  EXPECT_EQ(refusal(instructions({TERN_INSTRUCTION_SETS(TERN_ROW)}), instructions_available()), "");
}

TEST(InstructionsDeathTest, ProgramEndsWithOneLine) {
  if (~instructions_available() == 0) return;  // not an x86
  EXPECT_EXIT(require_instructions(~instructions_available(), "made-up"),
              testing::ExitedWithCode(1), "^error: the processor of .*TERN_ARCH=made-up.*\n$");
  // Of the ranks of a node, one writes it.
  const auto end_as_rank = [](const char* rank) {
    setenv("OMPI_COMM_WORLD_LOCAL_RANK", rank, 1);
    require_instructions(~instructions_available(), "made-up");
  };
  EXPECT_EXIT(end_as_rank("0"), testing::ExitedWithCode(1), "^error: ");
  EXPECT_EXIT(end_as_rank("1"), testing::ExitedWithCode(1), "^$");
}

}  // namespace
}  // namespace tern
