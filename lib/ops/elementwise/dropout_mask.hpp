/// The numbers that a dropout keeps: of eight neighboring ones by the 16 bits of each in one draw.
#pragma once
#include "ops/elementwise/dropout.hpp"

namespace tern::ops {

class DropoutMask {
 public:
  static constexpr int width = 8;

  /// A number is dropped if its bits are below it; the probability is rounded to 2^-16.
  static std::uint32_t threshold(const DropoutKey& key) {
    return static_cast<std::uint32_t>(key.probability * 65536 + 0.5);
  }
  /// Of columns [8 group, 8 group + 8) of a row.
  TERN_FUNCTION DropoutMask(const DropoutKey& key, std::size_t row, std::size_t group)
      : draw_(dropout_draw(key, row, group)) {}
  TERN_FUNCTION bool keeps(int i, std::uint32_t threshold) const {
    return (draw_.word[i / 2] >> i % 2 * 16 & 0xffffu) >= threshold;
  }

 private:
  Random4 draw_;
};

}  // namespace tern::ops
