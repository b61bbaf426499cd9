/// Storage type of &precision compute.
#pragma once
#include "base/types.hpp"
#include "deck/choices.hpp"

namespace tern::workload {

/// Calls work(T()) with the type of stored weights and activations: float for 'fp32' and 'tf32',
/// which applies only to products; bf16 for 'bf16' and for 'fp8', which applies only to products of
/// the blocks' linear maps; fp16 for 'fp16'.
template <class Work>
decltype(auto) with_storage(const deck::Deck& deck, const Work& work) {
  switch (deck::compute_of(deck.precision)) {
    case deck::Compute::bf16:
    case deck::Compute::fp8:
      return work(bf16());
    case deck::Compute::fp16:
      return work(fp16());
    case deck::Compute::fp32:
    case deck::Compute::tf32:
      break;
  }
  return work(float());
}

}  // namespace tern::workload
