/// Header of a token shard in llm.c's format: 256 int32, of which three are used.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tern::data::detail {

inline constexpr std::size_t shard_header_words = 256;
inline constexpr std::size_t shard_header_bytes = shard_header_words * sizeof(std::int32_t);
inline constexpr std::int32_t shard_magic = 20240520;
inline constexpr std::int32_t shard_version_16 = 1;  // uint16 tokens
inline constexpr std::int32_t shard_version_32 = 2;  // uint32 tokens
/// Largest vocabulary whose tokens fit into 16 bits.
inline constexpr std::size_t shard_vocabulary_16 = 65536;

}  // namespace tern::data::detail
