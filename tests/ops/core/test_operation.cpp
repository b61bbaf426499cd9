// An operation whose native kernel serves only even numbers: the kernel is tried where the context
// has libraries, and where it declines the portable version runs. In a build without native kernels
// the portable version always runs.
#include "ops/core/operation.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace tern::ops {
namespace {

constexpr int portable_result = -1;

struct Halve {
  static constexpr Traits traits{.name = "tern::halve", .native = true};
  int* x;

  void check() const { TERN_REQUIRE(x != nullptr, "no number"); }
  double flops() const { return 1; }
  static void portable(const Context&, const Halve& call) { *call.x = portable_result; }
  static bool native(const Context&, const Halve& call) {
    if (*call.x % 2 != 0) return false;
    *call.x /= 2;
    return true;
  }
};

struct Forget {
  static constexpr Traits traits{.name = "tern::forget"};
  int* x;

  static void portable(const Context&, const Forget& call) { *call.x = portable_result; }
};

template <class Operation>
int result_of(const Context& context, int x) {
  run(context, Operation{&x});
  return x;
}

/// Any library will do: the kernels here do not look at it.
Context with_libraries() {
  const auto owner = std::make_shared<int>();
  Context context;
  context.library = {owner, reinterpret_cast<NativeLibrary*>(owner.get())};
  return context;
}

TEST(Operation, NativeKernelServesOrDeclines) {
  EXPECT_EQ(result_of<Halve>(with_libraries(), 8), native_build ? 4 : portable_result);
  EXPECT_EQ(result_of<Halve>(with_libraries(), 7), portable_result);
}

TEST(Operation, HasNoNativeKernelWithoutLibraries) {
  EXPECT_EQ(result_of<Halve>(Context(), 8), portable_result);
  EXPECT_EQ(result_of<Halve>(with_libraries().portable(), 8), portable_result);
}

TEST(Operation, WithoutNativeKernelRunsItsPortableVersion) {
  EXPECT_FALSE(has_native<Forget>());
  EXPECT_EQ(result_of<Forget>(with_libraries(), 8), portable_result);
}

TEST(Operation, IsCheckedFirst) { EXPECT_THROW(run(Context(), Halve{nullptr}), InternalError); }

TEST(Operation, StatesItsWork) {
  int x = 0;
  EXPECT_EQ(work_of(Halve{&x}).flops, 1);
  EXPECT_EQ(work_of(Halve{&x}).bytes, 0);
  EXPECT_EQ(work_of(Forget{&x}).flops, 0);
}

}  // namespace
}  // namespace tern::ops
