/// Storage type of &precision compute.
#pragma once
#include "base/error.hpp"
#include "base/types.hpp"
#include "deck/rules.hpp"

namespace tern::workload {

/// Calls work(T()) with the type of stored weights and activations: float for 'fp32' and 'tf32',
/// which applies only to products; bf16 for 'bf16' and for 'fp8', which applies only to products of
/// the blocks' linear maps; fp16 for 'fp16'.
template <class Work>
decltype(auto) with_storage(const deck::Deck& deck, const Work& work) {
  const std::string& compute = deck.precision.compute;
  if (compute == "bf16" || compute == "fp8") return work(bf16());
  if (compute == "fp16") return work(fp16());
  TERN_REQUIRE(deck::stores_fp32(deck.precision), "precision '{}'", compute);
  return work(float());
}

}  // namespace tern::workload
