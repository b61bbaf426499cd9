/// What follows from a diagnosis: deck lines, and what is wrong with the machine. Local.
#pragma once
#include "checks/diagnosis.hpp"

namespace tern::checks {

/// Lines of &precision, &model, &parallel and &batch with measured reasons; none without rates.
std::vector<DeckLine> recommend(const Diagnosis& found);

/// Ranks away from their GPU, ranks slower than others, rates far below what should be.
std::vector<std::string> warnings(const Diagnosis& found);

}  // namespace tern::checks
