// Every accelerated operation on the device against the portable one in double: fresh random
// inputs, odd sizes, poisoned outputs, two runs alike. The bar: no worse than twice the error of
// the portable operation in bf16. In a build without CUDA the portable operations in float stand in
// their place.
#include <gtest/gtest.h>

#include <limits>

#include "base/error.hpp"
#include "ops/checks.hpp"

namespace tern::ops {
namespace {

#if defined(KOKKOS_ENABLE_CUDA)
using Storage = bf16;
#else
using Storage = float;
#endif

std::size_t planned_bytes() {
  Arena measuring;
  make_context(measuring, true, "auto");
  return measuring.bytes();
}

void expect_all(const char* attention, std::uint64_t seed) {
  Arena arena(planned_bytes());
  const Context context = make_context(arena, true, attention);
  const auto results = check_operations<Storage>(context, seed);
  ASSERT_GT(results.size(), 50u);
  for (const CheckResult& r : results)
    EXPECT_TRUE(r.passed()) << r.operation << " (" << r.shape << "): error " << r.error << ", bar "
                            << r.bar << ", complete " << r.complete << ", repeats " << r.repeats;
}

TEST(Operations, agree_with_double) { expect_all("auto", 1); }

#if defined(KOKKOS_ENABLE_CUDA)
TEST(Operations, agree_with_double_without_cudnn) { expect_all("portable", 2); }
#endif

TEST(CheckResult, needs_all_three) {
  const CheckResult good{"add", "N 1", 1e-3, 1e-3, 2e-3, true, true};
  EXPECT_TRUE(good.passed());
  CheckResult worse = good, partial = good, unsteady = good, broken = good;
  worse.error = 2.1e-3, partial.complete = false, unsteady.repeats = false;
  broken.error = std::numeric_limits<double>::infinity();
  for (const CheckResult& bad : {worse, partial, unsteady, broken}) EXPECT_FALSE(bad.passed());
}

TEST(Library, takes_what_was_planned) {
  Arena arena(planned_bytes());
  make_context(arena, true, "auto");
  EXPECT_EQ(arena.bytes(), planned_bytes());
}

TEST(Library, unknown_attention_is_an_error) {
  Arena measuring;
  EXPECT_THROW(make_context(measuring, true, "fastest"), UserError);
}

}  // namespace
}  // namespace tern::ops
