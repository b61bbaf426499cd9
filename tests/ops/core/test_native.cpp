// An operation whose native kernel serves only even numbers: the kernel is tried where the context
// has libraries, and where it declines the portable version runs.
#include "ops/core/native.hpp"

#include <gtest/gtest.h>

namespace tern::ops {

void halve(const Context&, int* x);
void forget(const Context&, int* x);  // has no native kernel

NativeKernel<&halve> native_halve;
template <>
inline constexpr Native<NativeKernel<&halve>> native_kernel<&halve> = {"tern::halve", native_halve};

bool native_halve(const Context&, int* x) {
  if (*x % 2 != 0) return false;
  *x /= 2;
  return true;
}

constexpr int portable_result = -1;
void halve(const Context& context, int* x) {
  if (native<&halve>(context, x)) return;
  *x = portable_result;
}
void forget(const Context& context, int* x) {
  if (native<&forget>(context, x)) return;
  *x = portable_result;
}

namespace {

int result_of(void (*operation)(const Context&, int*), const Context& context, int x) {
  operation(context, &x);
  return x;
}

/// Any library will do: the kernels here do not look at it.
Context with_libraries() {
  const auto owner = std::make_shared<int>();
  Context context;
  context.library = {owner, reinterpret_cast<NativeLibrary*>(owner.get())};
  return context;
}

TEST(Native, KernelServesOrDeclines) {
  EXPECT_EQ(result_of(halve, with_libraries(), 8), 4);
  EXPECT_EQ(result_of(halve, with_libraries(), 7), portable_result);
}

TEST(Native, NoKernelWithoutLibraries) {
  EXPECT_EQ(result_of(halve, Context(), 8), portable_result);
  EXPECT_EQ(result_of(halve, with_libraries().portable(), 8), portable_result);
}

TEST(Native, OperationWithoutKernelRunsItsPortableVersion) {
  EXPECT_EQ(result_of(forget, with_libraries(), 8), portable_result);
}

}  // namespace
}  // namespace tern::ops
