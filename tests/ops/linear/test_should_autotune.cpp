// Products whose algorithms are timed.
#include <gtest/gtest.h>

#include "ops/linear/cuda/detail/should_autotune.hpp"

namespace tern::ops::cuda {
namespace {

TEST(WorthTiming, LayersOfLargeModelsAre) {
  constexpr std::size_t rows = 32768;
  for (const auto& [in, out] : {std::pair<std::size_t, std::size_t>{1024, 3072},
                                {1024, 5504},
                                {2752, 1024},
                                {1024, 50304},
                                {2560, 151936}}) {
    EXPECT_TRUE(should_autotune(rows, out, in)) << in << " -> " << out;
    EXPECT_TRUE(should_autotune(rows, in, out)) << "gradient of the input";
    EXPECT_TRUE(should_autotune(out, in, rows)) << "gradient of the weight";
  }
  EXPECT_TRUE(should_autotune(1024, 1024, 1024, 24));  // Muon's, together
}

TEST(WorthTiming, SmallOnesAndThoseOfARandomNumberOfRowsAreNot) {
  EXPECT_FALSE(should_autotune(256, 1024, 1024));
  int timed = 0;
  for (std::size_t rows = 2048; rows < 4096; ++rows) timed += should_autotune(rows, 50304, 768);
  EXPECT_EQ(timed, 32);
  EXPECT_FALSE(should_autotune(50304, 768, 2049));
}

}  // namespace
}  // namespace tern::ops::cuda
