/// Whether a model can be divided over ranks.
#pragma once
#include "deck/deck.hpp"

namespace tern::workload {

/// Throws UserError, naming the values that work, if a model cannot be divided so.
void check_division(const deck::Model& model, std::int64_t tensor, std::int64_t pipeline);

}  // namespace tern::workload
