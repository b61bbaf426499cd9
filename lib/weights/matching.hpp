/// Weights that are not all of a model's: &model load_rule = 'matching'.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "checkpoint/checkpoint.hpp"

namespace tern::weights {

/// Paths of the `wanted` tensors that are `stored` with the same shape. Logs the others: those that
/// keep their initial values, and those of `from` that are left there; tensors that differ in the
/// number of their layer or expert share a line. Throws UserError if none matches.
std::set<std::string> matching_tensors(const std::vector<checkpoint::Tensor>& wanted,
                                       const std::vector<checkpoint::Tensor>& stored,
                                       const std::string& from, Log& log);

}  // namespace tern::weights
