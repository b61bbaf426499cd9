#include "workload/division.hpp"

#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "base/error.hpp"
#include "model/declare.hpp"

namespace tern::workload {
namespace {

using model::Divided;

/// Whether `tensor` ranks can divide the numbers; the reasons against go to `why`, unless null.
bool divides(const std::vector<Divided>& numbers, std::int64_t tensor,
             std::vector<std::string>* why) {
  bool possible = true;
  for (const Divided& d : numbers) {
    if (d.count % tensor == 0 || (d.shared && tensor % d.count == 0)) continue;
    possible = false;
    if (!why) continue;
    if (d.shared)
      why->push_back(
          fmt::format("&model {} = {} is neither a multiple nor a divisor of it", d.name, d.count));
    else
      why->push_back(
          fmt::format("&model {} = {} is not a multiple of it (nearest: {}{})", d.name, d.count,
                      d.count > tensor ? fmt::format("{} or ", d.count / tensor * tensor) : "",
                      (d.count / tensor + 1) * tensor));
  }
  return possible;
}

}  // namespace

void check_division(const deck::Model& description, std::int64_t tensor, std::int64_t pipeline) {
  const std::vector<Divided> numbers = model::divided(description);
  std::vector<std::string> why;
  if (!divides(numbers, tensor, &why)) {
    std::vector<std::int64_t> work;
    for (std::int64_t ranks = 1; ranks <= 64; ranks *= 2)
      if (divides(numbers, ranks, nullptr)) work.push_back(ranks);
    user_error("&parallel tensor = {}: {}; set tensor to one of {}", tensor, fmt::join(why, ", "),
               fmt::join(work, ", "));
  }
  if (description.layers < pipeline)
    user_error(
        "&parallel pipeline = {} is more than the model's {} layers; set pipeline = {} or less",
        pipeline, description.layers, description.layers);
}

}  // namespace tern::workload
