// Recorded work on the device gives what running it gives, from the memory's contents at the time.
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "ops/core/replay.hpp"
#include "ops/ops.hpp"

namespace tern::ops {
namespace {

#if defined(TERN_NATIVE_OPERATIONS)
using Storage = bf16;
#else
using Storage = float;
#endif
constexpr bool records = comm::gpu::built;

struct Fixture {
  Arena arena;
  Context context;
  Matrix<Storage> x, y;

  static constexpr std::size_t rows = 3, columns = 64;
  explicit Fixture(std::size_t bytes = planned())
      : arena(bytes), context(make_context(arena, true, "auto")) {
    x = arena.matrix<Storage>("x", Term::workspace, rows, columns);
    y = arena.matrix<Storage>("y", Term::workspace, rows, columns);
  }
  static std::size_t planned() {
    Arena measuring;
    make_context(measuring, true, "auto");
    for (const char* name : {"x", "y"})
      measuring.matrix<Storage>(name, Term::workspace, rows, columns);
    return measuring.bytes();
  }
  void fill(float value) { Kokkos::deep_copy(context.space, x, Storage(value)); }
  float first() {
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), x);
    return static_cast<float>(host(0, 0));
  }
  /// x = x^4, if positive.
  void change() {
    run(context, ActivationForward<Storage>{.kind = Activation::relu2, .x = x, .y = y});
    run(context, ActivationForward<Storage>{.kind = Activation::relu2, .x = y, .y = x});
  }
};

TEST(Replay, GivesWhatRunningGives) {
  Fixture f;
  Replay replay;
  std::size_t runs = 0;  // of the host's side
  for (std::size_t i = 0; i < 2 * Replay::runs_before; ++i) {
    const float value = static_cast<float>(1 + i % 4);
    f.fill(value);
    replay.run(f.context, {1, 0, 0}, [&] { f.change(), ++runs; });
    f.context.fence("replay");
    EXPECT_EQ(f.first(), value * value * value * value) << i;
  }
  EXPECT_EQ(replay.recorded(), records ? 1u : 0u);
  EXPECT_EQ(runs, records ? Replay::runs_before + 1 : 2 * Replay::runs_before);
}

TEST(Replay, KeepsThoseUsedLast) {
  Fixture f;
  Replay replay;
  f.fill(1);
  for (std::size_t key = 0; key < Replay::most + 3; ++key)
    for (std::size_t i = 0; i <= Replay::runs_before; ++i)
      replay.run(f.context, {key, 0, 0}, [&] { f.change(); });
  EXPECT_EQ(replay.recorded(), records ? Replay::most : 0u);
  std::size_t runs = 0;
  replay.run(f.context, {Replay::most + 2, 0, 0}, [&] { ++runs; });
  EXPECT_EQ(runs, records ? 0u : 1u);
  replay.run(f.context, {0, 0, 0}, [&] { ++runs; });
  EXPECT_EQ(runs, records ? 1u : 2u);
  replay.forget();
  EXPECT_EQ(replay.recorded(), 0u);
  f.context.fence("replay");
}

TEST(Replay, WorkThatFailsLeavesTheStreamUsable) {
  Fixture f;
  Replay replay;
  const auto fail = [&] {
    f.change();
    throw InternalError("on purpose");
  };
  f.fill(2);
  for (std::size_t i = 0; i < Replay::runs_before; ++i) replay.run(f.context, {1, 0, 0}, [] {});
  EXPECT_THROW(replay.run(f.context, {1, 0, 0}, fail), InternalError);
  f.fill(3);
  f.change();
  f.context.fence("replay");
  EXPECT_EQ(f.first(), 81);
}

}  // namespace
}  // namespace tern::ops
