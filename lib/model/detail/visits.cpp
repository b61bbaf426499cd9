#include "model/detail/visits.hpp"

#include "model/detail/connections.hpp"
#include "model/detail/recursion.hpp"

namespace tern::model {

std::size_t passes_of(const deck::Model& model) {
  return static_cast<std::size_t>(model.inner_steps) + 1;
}

namespace detail {
namespace {

std::vector<Visit> stack_visits(const deck::Model& model, std::size_t layers) {
  const bool connected = connects_blocks(model);
  std::vector<Visit> visits;
  for (std::size_t pass = 0; pass < passes_of(model); ++pass)
    for (std::size_t layer = 0; layer < layers; ++layer) {
      Visit visit{layer, pass, pass * layers + layer, VisitIn::stream, VisitOut::stream};
      if (connected) visit.in = VisitIn::connections, visit.out = VisitOut::connections;
      if (layer == 0 && passes_of(model) > 1) visit.in = VisitIn::states;
      if (layer + 1 == layers) visit.out = VisitOut::result, visit.result = pass;
      visits.push_back(visit);
    }
  return visits;
}

std::vector<Visit> block_visits(std::size_t passes, std::size_t layers) {
  std::vector<Visit> visits;
  for (std::size_t layer = 0; layer < layers; ++layer)
    for (std::size_t pass = 0; pass < passes; ++pass)
      visits.push_back(
          {layer, pass, pass * layers + layer, VisitIn::normed_states, VisitOut::state});
  visits.back().result = 0;
  return visits;
}

}  // namespace

std::vector<Visit> visits_of(const deck::Model& model, std::size_t layers) {
  return recurs_by_block(model) ? block_visits(passes_of(model), layers)
                                : stack_visits(model, layers);
}

}  // namespace detail
}  // namespace tern::model
