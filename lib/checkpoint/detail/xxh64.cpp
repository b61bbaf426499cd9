#include "checkpoint/detail/xxh64.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tern::checkpoint::detail {
namespace {

static_assert(std::endian::native == std::endian::little, "XXH64 reads little-endian words");

constexpr std::uint64_t prime1 = 0x9E3779B185EBCA87u, prime2 = 0xC2B2AE3D27D4EB4Fu,
                        prime3 = 0x165667B19E3779F9u, prime4 = 0x85EBCA77C2B2AE63u,
                        prime5 = 0x27D4EB2F165667C5u;

template <class Word>
std::uint64_t load(const unsigned char* from) {
  Word word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

std::uint64_t round(std::uint64_t lane, std::uint64_t word) {
  return std::rotl(lane + word * prime2, 31) * prime1;
}

std::uint64_t merge(std::uint64_t hash, std::uint64_t lane) {
  return (hash ^ round(0, lane)) * prime1 + prime4;
}

// The last bytes (at most 31), then the avalanche.
std::uint64_t finish(std::uint64_t hash, const unsigned char* rest, std::size_t bytes) {
  for (; bytes >= 8; rest += 8, bytes -= 8)
    hash = std::rotl(hash ^ round(0, load<std::uint64_t>(rest)), 27) * prime1 + prime4;
  if (bytes >= 4) {
    hash = std::rotl(hash ^ (load<std::uint32_t>(rest) * prime1), 23) * prime2 + prime3;
    rest += 4;
    bytes -= 4;
  }
  for (; bytes > 0; ++rest, --bytes) hash = std::rotl(hash ^ (*rest * prime5), 11) * prime1;
  hash = (hash ^ (hash >> 33)) * prime2;
  hash = (hash ^ (hash >> 29)) * prime3;
  return hash ^ (hash >> 32);
}

}  // namespace

Xxh64::Xxh64(std::uint64_t seed)
    : lane_{seed + prime1 + prime2, seed + prime2, seed, seed - prime1}, seed_(seed) {}

void Xxh64::stripe(const unsigned char* data) {
  for (int i = 0; i < 4; ++i) lane_[i] = round(lane_[i], load<std::uint64_t>(data + 8 * i));
}

void Xxh64::add(const void* data, std::size_t bytes) {
  auto from = static_cast<const unsigned char*>(data);
  total_ += bytes;
  if (pending_bytes_ > 0) {
    const std::size_t taken = std::min(bytes, sizeof pending_ - pending_bytes_);
    std::memcpy(pending_ + pending_bytes_, from, taken);
    pending_bytes_ += taken;
    from += taken;
    bytes -= taken;
    if (pending_bytes_ < sizeof pending_) return;
    stripe(pending_);
    pending_bytes_ = 0;
  }
  for (; bytes >= sizeof pending_; from += sizeof pending_, bytes -= sizeof pending_) stripe(from);
  if (bytes > 0) std::memcpy(pending_, from, bytes);
  pending_bytes_ = bytes;
}

std::uint64_t Xxh64::value() const {
  std::uint64_t hash = seed_ + prime5;
  if (total_ >= sizeof pending_) {
    hash = std::rotl(lane_[0], 1) + std::rotl(lane_[1], 7) + std::rotl(lane_[2], 12) +
           std::rotl(lane_[3], 18);
    for (const std::uint64_t lane : lane_) hash = merge(hash, lane);
  }
  return finish(hash + total_, pending_, pending_bytes_);
}

}  // namespace tern::checkpoint::detail
