#include "base/error.hpp"
#include "base/random.hpp"
#include "data/reader.hpp"

namespace tern::data {
namespace {

constexpr std::uint32_t feistel_rounds = 6;

/// A permutation of [0, 4^half_bits): a balanced Feistel network (Luby and Rackoff 1988) with
/// Philox as round function.
std::uint64_t feistel(std::uint64_t value, unsigned half_bits, std::uint64_t seed,
                      std::uint64_t epoch) {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
  std::uint64_t left = value >> half_bits, right = value & mask;
  for (std::uint32_t round = 0; round < feistel_rounds; ++round) {
    const Random4 random =
        philox(seed, Stream::data_order, epoch, round, static_cast<std::uint32_t>(right));
    const std::uint64_t mixed = (left ^ random.word[0]) & mask;
    left = right;
    right = mixed;
  }
  return left << half_bits | right;
}

}  // namespace

std::size_t shuffled_row(std::uint64_t number, std::size_t rows, std::uint64_t seed) {
  TERN_REQUIRE(rows > 0);
  unsigned half_bits = 1;
  while (half_bits < 32 && std::uint64_t{1} << 2 * half_bits < rows) ++half_bits;
  const std::uint64_t epoch = number / rows;
  // Cycle walking: iterating the permutation until it lands in [0, rows) permutes that range.
  std::uint64_t value = number % rows;
  do value = feistel(value, half_bits, seed, epoch);
  while (value >= rows);
  return value;
}

}  // namespace tern::data
