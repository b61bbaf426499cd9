#include <gtest/gtest.h>

#include "base/error.hpp"
#include "memory/arena.hpp"

namespace tern {
namespace {

struct Requests {
  explicit Requests(Arena& arena)
      : a(arena.vector<float>("a", Term::parameters, 3)),
        b(arena.matrix<bf16>("b", Term::activations, 5, 7)),
        c(arena.tensor3<double>("c", Term::activations, 2, 3, 4)),
        empty(arena.vector<float>("empty", Term::workspace, 0)) {}
  Vector<float> a;
  Matrix<bf16> b;
  Tensor3<double> c;
  Vector<float> empty;
};

TEST(Arena, MeasuresWhatItAllocates) {
  Arena measure;
  const Requests planned(measure);
  EXPECT_TRUE(measure.measuring());
  EXPECT_EQ(planned.a.data(), nullptr);
  EXPECT_EQ(measure.bytes(), 3 * Arena::alignment);
  EXPECT_EQ(measure.bytes(Term::activations), 2 * Arena::alignment);

  Arena arena(measure.bytes());
  const Requests real(arena);
  EXPECT_EQ(arena.bytes(), measure.bytes());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(real.b.data()) % Arena::alignment, 0u);
  EXPECT_EQ(real.b.extent(0), 5u);
  EXPECT_EQ(real.b.extent(1), 7u);
  EXPECT_GE(reinterpret_cast<char*>(real.c.data()), reinterpret_cast<char*>(real.b.data() + 35));
}

TEST(Arena, StartsWithZeros) {
  Arena arena(4096);
  const auto view = arena.vector<float>("x", Term::data, 1000);
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, view);
  for (std::size_t i = 0; i < host.extent(0); ++i) EXPECT_EQ(host(i), 0.0f);
}

TEST(Arena, RefusesMoreThanThePlan) {
  Arena arena(Arena::alignment);
  arena.vector<float>("first", Term::data, 64);
  EXPECT_THROW(arena.vector<float>("second", Term::data, 1), InternalError);
}

TEST(Arena, SaysSoWhenTheDeviceHasLess) {
  try {
    Arena arena(std::size_t{1} << 60);
    FAIL() << "an exbibyte was allocated";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("per_rank"), std::string::npos) << e.what();
  }
}

TEST(Arena, AlignsToItsLine) {
  EXPECT_EQ(aligned(0), 0u);
  EXPECT_EQ(aligned(1), Arena::alignment);
  EXPECT_EQ(aligned(Arena::alignment), Arena::alignment);
}

}  // namespace
}  // namespace tern
