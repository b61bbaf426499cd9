/// Counter-based random numbers: Philox4x32-10 of Random123 (Salmon et al., SC'11). A number is a
/// pure function of (seed, stream, step, sample, position): no state to store, to restore or to
/// split over ranks.
#pragma once
#include <Random123/philox.h>

#include <cstdint>

#include "base/types.hpp"

namespace tern {

/// One stream per use, so that no two uses share numbers.
enum class Stream : std::uint32_t {
  initialization = 1,
  data_order = 2,
  dropout = 3,
  sampling = 4,
  diffusion_time = 5,
  diffusion_mask = 6,
  evaluation_time = 7,
  evaluation_mask = 8,
  test = 99,
};

struct Random4 {
  std::uint32_t word[4];
};

/// Four independent uniform 32-bit words. `position` may be a token, an element or a draw number.
TERN_FUNCTION Random4 philox(std::uint64_t seed, Stream stream, std::uint64_t step,
                             std::uint32_t sample, std::uint32_t position) {
  // Key: the seed. Counter: position, sample, step, with the stream in the upper word of the step.
  r123::Philox4x32 generator;
  r123::Philox4x32::ctr_type counter{
      {position, sample, static_cast<std::uint32_t>(step),
       static_cast<std::uint32_t>(step >> 32) ^ (static_cast<std::uint32_t>(stream) << 16)}};
  r123::Philox4x32::key_type key{
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
  const auto r = generator(counter, key);
  return {{r[0], r[1], r[2], r[3]}};
}

/// Uniform in [0, 1), 24 bits.
TERN_FUNCTION float uniform(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

/// Two standard normal numbers from two words (Box-Muller).
struct Normal2 {
  float first, second;
};
TERN_FUNCTION Normal2 normal2(std::uint32_t a, std::uint32_t b) {
  const float radius = sqrtf(-2.0f * logf((static_cast<float>(a >> 8) + 1.0f) * 0x1p-24f));
  const float angle = 6.2831853071795864f * uniform(b);
  return {radius * cosf(angle), radius * sinf(angle)};
}

}  // namespace tern
