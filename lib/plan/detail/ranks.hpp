/// Agreement on bytes that differ between ranks, so that all ranks decide alike.
#pragma once
#include <cstdint>

#include "comm/comm.hpp"

namespace tern::plan::detail {

/// Minimum or maximum over the ranks. Collective.
inline std::size_t over_ranks(std::size_t bytes, comm::Sum which, comm::Group& group) {
  auto agreed = static_cast<std::int64_t>(bytes);
  group.all_reduce(&agreed, 1, which);
  return static_cast<std::size_t>(agreed);
}
inline std::size_t least(std::size_t bytes, comm::Group& group) {
  return over_ranks(bytes, comm::Sum::min, group);
}
inline std::size_t largest(std::size_t bytes, comm::Group& group) {
  return over_ranks(bytes, comm::Sum::max, group);
}

}  // namespace tern::plan::detail
