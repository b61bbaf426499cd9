/// An operation is a struct of its operands, which states what is done with them:
///
///     /// y += x.
///     template <class T>
///     struct Add {
///       static constexpr Traits traits{.name = "tern::add", .native = is_half<T>};
///       Matrix<const T> x;  // (N, D)
///       Matrix<T> y;        // (N, D)
///
///       void check() const;                                  // of shapes; may be left out
///       double flops() const {...}                           // of products; left out: none
///       double bytes() const { return bytes_of(x) + 2 * bytes_of(y); }  // left out: not known
///       static void portable(const Context&, const Add&);    // in portable/
///       static bool native(const Context&, const Add&);      // in cuda/
///     };
///
/// run(context, Add<T>{.x = x, .y = y}) does it. The portable version (Kokkos, every backend) is the
/// reference. A native kernel declines by returning false before it launches anything: a width that
/// is not a multiple of 8, a misaligned view, a shape that a library refuses. The portable version
/// then runs, so every valid call is served. A native kernel never calls its own portable version.
///
/// The sources of both end with the types that they are compiled for:
///
///     TERN_INSTANTIATE_PORTABLE(Add)
///     TERN_INSTANTIATE_NATIVE(Add)
#pragma once
#include "ops/core/context.hpp"
#include "ops/core/recorder.hpp"

#define TERN_INSTANTIATE_PORTABLE(Operation) \
  template struct Operation<float>;          \
  template struct Operation<double>;         \
  template struct Operation<bf16>;           \
  template struct Operation<fp16>;
/// Operations on sums, which are not stored in 16 bits.
#define TERN_INSTANTIATE_SUMS(Operation) \
  template struct Operation<float>;      \
  template struct Operation<double>;
#define TERN_INSTANTIATE_NATIVE(Operation)                                       \
  template bool Operation<bf16>::native(const Context&, const Operation<bf16>&); \
  template bool Operation<fp16>::native(const Context&, const Operation<fp16>&);

namespace tern::ops {

#if defined(TERN_NATIVE_OPERATIONS)
constexpr bool native_build = true;  // has native kernels
#else
constexpr bool native_build = false;
#endif

struct Traits {
  const char* name;     // in profiles
  bool native = false;  // whether it has a native kernel
};
template <class Operation>
constexpr bool has_native() {
  return native_build && Operation::traits.native;
}

template <class Operation>
Work work_of(const Operation& call) {
  Work work;
  if constexpr (requires { call.flops(); }) work.flops = call.flops();
  if constexpr (requires { call.bytes(); }) work.bytes = call.bytes();
  return work;
}

/// Checks the call, offers it to the native kernel, else runs the portable version. A context
/// without libraries has no native kernels.
template <class Operation>
void run(const Context& context, const Operation& call) {
  if constexpr (requires { call.check(); }) call.check();
  if constexpr (has_native<Operation>()) {
    if (context.library) {
      const Region region(Operation::traits.name, [&] { return work_of(call); });
      if (Operation::native(context, call)) return;
    }
  }
  Operation::portable(context, call);
}

}  // namespace tern::ops
