#include "objective/causal.hpp"

#include "objective/kind.hpp"

namespace tern::objective {

extern const Kind causal{.name = "causal", .make = makers<Causal>};

}  // namespace tern::objective
