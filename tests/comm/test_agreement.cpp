// What fails, or differs, on some ranks ends all with the same message.
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "comm/agreement.hpp"
#include "comm/comm.hpp"
#include "refusal.hpp"

namespace tern::comm {
namespace {

using test::refusal;

TEST(Together, AllRanksThrowWhatTheLowestThrew) {
  const auto group = world();
  const int rank = group->rank(), last = group->size() - 1;
  together([] {});
  EXPECT_EQ(refusal([&] { together([&] { user_error("no such file"); }); }), "no such file");
  const std::string one = refusal([&] {
    together([&] {
      if (rank == last) user_error("no such file");
    });
  });
  EXPECT_EQ(one, last == 0 ? "no such file" : fmt::format("rank {}: no such file", last));
  if (last == 0) return;
  EXPECT_EQ(refusal([&] {
              together([&] {
                if (rank > 0) user_error("of rank {}", rank);
              });
            }),
            "rank 1: of rank 1");
  EXPECT_THROW(together([&] {
                 if (rank == 1) throw InternalError("a bug");
                 if (rank > 1) user_error("a mistake");
               }),
               std::runtime_error);
}

TEST(RequireSame, NamesTheFirstDifference) {
  const auto group = world();
  const int rank = group->rank(), last = group->size() - 1;
  const std::vector<std::string> lines{"campaign.seed = 4", "batch.global = 8"};
  EXPECT_EQ(refusal([&] { require_same(lines); }), "taken");
  EXPECT_EQ(refusal([&] { require_same({}); }), "taken");
  if (last == 0) return;
  auto mine = lines;
  if (rank == last) mine[1] = "batch.global = 16";
  EXPECT_EQ(refusal([&] { require_same(mine); }),
            fmt::format(
                "the ranks were started with different decks or options: rank {} has batch.global "
                "= 16, rank 0 has batch.global = 8; start all ranks with the same deck and options",
                last));
  mine = lines;
  if (rank == 0) mine.push_back("another");
  EXPECT_NE(refusal([&] { require_same(mine); }).find("rank 1 has nothing, rank 0 has another"),
            std::string::npos);
}

}  // namespace
}  // namespace tern::comm
