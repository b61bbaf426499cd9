/// Random choices for data sets, identical on every machine.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "base/random.hpp"

namespace tern {

/// Sequence of random numbers, a function of (seed, series, number), identical on every machine.
class Draw {
 public:
  Draw(std::uint64_t seed, std::uint64_t series, std::uint32_t number)
      : seed_(seed), series_(series), number_(number) {}
  /// Uniform in [0, n), n > 0.
  int below(int n) {
    const std::uint64_t word =
        philox(seed_, Stream::sampling, series_, number_, position_++).word[0];
    return static_cast<int>(word * static_cast<std::uint64_t>(n) >> 32);
  }
  /// Uniform in [low, high].
  int between(int low, int high) { return low + below(high - low + 1); }

 private:
  std::uint64_t seed_, series_;
  std::uint32_t number_, position_ = 0;
};

/// Fisher-Yates.
template <class Value>
void shuffle(std::vector<Value>& values, Draw& draw) {
  for (std::size_t i = values.size(); i > 1; --i)
    std::swap(values[i - 1], values[static_cast<std::size_t>(draw.below(static_cast<int>(i)))]);
}

}  // namespace tern
