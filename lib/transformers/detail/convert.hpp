/// Conversion of stored numbers to float or bf16.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/types.hpp"

namespace tern::transformers::detail {

/// IEEE half precision: 5 exponent bits, 10 mantissa bits.
struct Half {
  std::uint16_t bits;
  operator float() const {  // NOLINT
    const std::uint32_t exponent = bits >> 10 & 0x1f, mantissa = bits & 0x3ff;
    float value;
    if (exponent == 0) {
      value = std::ldexp(static_cast<float>(mantissa), -24);
    } else {
      const std::uint32_t wide =
          exponent == 31 ? 0x7f800000u | mantissa << 13 : (exponent + 112) << 23 | mantissa << 13;
      std::memcpy(&value, &wide, sizeof value);
    }
    return bits & 0x8000 ? -value : value;
  }
};

/// Calls body(Stored()) with the type named `dtype`; false if it is unknown.
template <class Body>
bool with_stored_type(std::string_view dtype, const Body& body) {
  if (dtype == "F32") return body(float()), true;
  if (dtype == "BF16") return body(bf16()), true;
  if (dtype == "F16") return body(Half()), true;
  if (dtype == "F64") return body(double()), true;
  return false;
}

/// `from`: `count` values of type Stored, unaligned.
template <class Stored, class V>
void convert(const unsigned char* from, std::size_t count, V* to) {
  if constexpr (std::is_same_v<Stored, V>) {
    std::memcpy(to, from, count * sizeof(V));
  } else {
    for (std::size_t i = 0; i < count; ++i) {
      Stored stored;
      std::memcpy(&stored, from + i * sizeof stored, sizeof stored);
      to[i] = static_cast<V>(static_cast<float>(stored));
    }
  }
}

}  // namespace tern::transformers::detail
