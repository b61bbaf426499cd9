/// Relative rounding error of storage types, for the bars of tests.
#pragma once
#include <limits>

#include "base/types.hpp"

namespace tern::test {

/// Largest relative error of rounding a number to T.
template <class T>
constexpr double roundoff() {
  if constexpr (std::is_same_v<T, bf16>)
    return 0x1p-8;
  else if constexpr (std::is_same_v<T, fp16>)
    return 0x1p-11;
  else
    return std::numeric_limits<T>::epsilon() / 2;
}

}  // namespace tern::test
