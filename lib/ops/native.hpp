/// Dispatch of an operation to its native twin.
///
/// An operation is its portable definition (portable/, for every Kokkos backend). After checking
/// shapes it offers the work to the twin of its storage type:
///
///     if (native<&add<T>>(context, x, y)) return;
///
/// The family's header declares the twin,
///
///     template <class T>
///     bool native_add(const Context&, Matrix<const T> x, Matrix<T> y);
///     template <>
///     inline constexpr auto twin<&add<bf16>> = native_twin("tern::add", native_add<bf16>);
///     template <>
///     inline constexpr auto twin<&add<fp16>> = native_twin("tern::add", native_add<fp16>);
///
/// and a source in cuda/ defines it:
///
///     template <class T>
///     bool native_add(const Context& context, Matrix<const T> x, Matrix<T> y) {...}
///
/// A twin declines by returning false before it launches anything: a width that is not a multiple
/// of 8, a misaligned view, a shape that a library refuses. The portable definition then runs, so
/// every valid call is served. A twin never calls its own portable definition.
#pragma once
#include "ops/context.hpp"
#include "ops/recorder.hpp"

namespace tern::ops {

#if defined(TERN_NATIVE_OPERATIONS)
constexpr bool native_build = true;  // has twins
#else
constexpr bool native_build = false;
#endif

template <auto operation>
struct TwinOf;
template <class... A, void (*operation)(const Context&, A...)>
struct TwinOf<operation> {
  using Function = bool(const Context&, A...);
};
/// Type of an operation's twin: same arguments; returns whether it did the work.
template <auto operation>
using Twin = typename TwinOf<operation>::Function;

template <class Function>
struct Native {
  const char* label = nullptr;  // profiler region around the twin
  Function* run = nullptr;      // null: no twin
};
template <class Function>
constexpr Native<Function> native_twin(const char* label, Function* run) {
  if (!native_build) return {};
  return {label, run};
}
template <auto operation>
inline constexpr Native<Twin<operation>> twin = {};

/// Runs the operation's twin; returns whether it did the work. A context without libraries has no
/// twins.
template <auto operation, class... A>
bool native([[maybe_unused]] const Context& context, [[maybe_unused]] const A&... arguments) {
  if constexpr (twin<operation>.run != nullptr) {
    if (!context.library) return false;
    const Region region(twin<operation>.label, [&] {
      return Work{Flops<operation>{}(arguments...), Traffic<operation>{}(arguments...)};
    });
    return twin<operation>.run(context, arguments...);
  } else {
    return false;
  }
}

}  // namespace tern::ops
