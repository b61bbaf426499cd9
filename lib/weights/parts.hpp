/// Mapping between a rank's part of a parameter and the whole parameter in files.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "parameters/parameters.hpp"

namespace tern::weights {

/// Elements of the part that are contiguous in the whole: all of it, or one row.
std::size_t run_length(const model::Parameter& parameter);

/// Flat index in the whole of the part's `element`.
std::size_t place_in_whole(const model::Parameter& parameter, std::size_t element);

/// Calls body(first in the whole, count, offset from `begin`) for each flat range of the whole that
/// the part's elements [begin, begin + count) map to.
template <class Body>
void for_each_run(const model::Parameter& parameter, std::size_t begin, std::size_t count,
                  const Body& body) {
  const std::size_t length = run_length(parameter), end = begin + count;
  for (std::size_t at = begin; at < end;) {
    const std::size_t next = std::min(end, (at / length + 1) * length);
    body(place_in_whole(parameter, at), next - at, at - begin);
    at = next;
  }
}

/// Reads elements [begin, begin + count) of the part from the dataset of the whole.
void read_part(const checkpoint::Reader& reader, const std::string& path,
               const model::Parameter& parameter, std::size_t begin, std::size_t count, float* to);

/// Union of the tensors of all pipeline stages, each once, identical on all stages. Collective over
/// the replica.
std::vector<checkpoint::Tensor> of_all_stages(const std::vector<checkpoint::Tensor>& tensors,
                                              const model::ModelShard& share);

}  // namespace tern::weights
