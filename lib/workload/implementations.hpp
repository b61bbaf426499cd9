/// What a run computes with, for the head of its log.
#pragma once
#include <string>

#include "workload/workload.hpp"

namespace tern::workload {

/// A line each for attention, products and precision. The workload's arena allocates.
template <class T>
std::string implementations_text(const deck::Deck& deck, const Layout& layout,
                                 const Workload<T>& workload);

}  // namespace tern::workload
