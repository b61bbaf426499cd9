/// Dispatch of an operation to its native kernel.
///
/// The portable version of an operation (portable/, for every Kokkos backend) is the reference.
/// After checking shapes it offers the work to the native kernel of its storage type:
///
///     if (native<&add<T>>(context, x, y)) return;
///
/// The family's header declares that kernel,
///
///     template <class T>
///     bool native_add(const Context&, Matrix<const T> x, Matrix<T> y);
///     template <>
///     inline constexpr auto native_kernel<&add<bf16>> =
///         native_entry("tern::add", native_add<bf16>);
///     template <>
///     inline constexpr auto native_kernel<&add<fp16>> =
///         native_entry("tern::add", native_add<fp16>);
///
/// and a source in cuda/ defines it:
///
///     template <class T>
///     bool native_add(const Context& context, Matrix<const T> x, Matrix<T> y) {...}
///
/// A native kernel declines by returning false before it launches anything: a width that is not a
/// multiple of 8, a misaligned view, a shape that a library refuses. The portable version then runs,
/// so every valid call is served. A native kernel never calls its own portable version.
#pragma once
#include "ops/core/context.hpp"
#include "ops/core/recorder.hpp"

namespace tern::ops {

#if defined(TERN_NATIVE_OPERATIONS)
constexpr bool native_build = true;  // has native kernels
#else
constexpr bool native_build = false;
#endif

template <auto operation>
struct NativeKernelOf;
template <class... A, void (*operation)(const Context&, A...)>
struct NativeKernelOf<operation> {
  using Function = bool(const Context&, A...);
};
/// Type of an operation's native kernel: same arguments; returns whether it did the work.
template <auto operation>
using NativeKernel = typename NativeKernelOf<operation>::Function;

template <class Function>
struct Native {
  const char* label = nullptr;  // profiler region around the kernel
  Function* run = nullptr;      // null: no native kernel
};
template <class Function>
constexpr Native<Function> native_entry(const char* label, Function* run) {
  if (!native_build) return {};
  return {label, run};
}
template <auto operation>
inline constexpr Native<NativeKernel<operation>> native_kernel = {};

/// Runs the operation's native kernel; returns whether it did the work. A context without libraries
/// has no native kernels.
template <auto operation, class... A>
bool native([[maybe_unused]] const Context& context, [[maybe_unused]] const A&... arguments) {
  if constexpr (native_kernel<operation>.run != nullptr) {
    if (!context.library) return false;
    const Region region(native_kernel<operation>.label, [&] {
      return Work{Flops<operation>{}(arguments...), Traffic<operation>{}(arguments...)};
    });
    return native_kernel<operation>.run(context, arguments...);
  } else {
    return false;
  }
}

}  // namespace tern::ops
