/// Conversion of stored numbers to float, bf16 or fp16.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/types.hpp"

namespace tern::transformers::detail {

/// Calls body(Stored()) with the type named `dtype`; false if it is unknown.
template <class Body>
bool with_stored_type(std::string_view dtype, const Body& body) {
  if (dtype == "F32") return body(float()), true;
  if (dtype == "BF16") return body(bf16()), true;
  if (dtype == "F16") return body(fp16()), true;
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
