#pragma once
#include <cstdint>
#include <string_view>

namespace tern {

/// CRC-32C (Castagnoli), as in RFC 3720 appendix B.4.
std::uint32_t crc32c(std::string_view bytes);

}  // namespace tern
