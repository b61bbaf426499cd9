#include "block/dimensions.hpp"

#include <algorithm>

#include "deck/choices.hpp"

namespace tern::model {
namespace {

std::size_t size_of(std::int64_t value) { return static_cast<std::size_t>(value); }

}  // namespace

Dimensions::Dimensions(const deck::Model& m, const ModelShard& share)
    : D(size_of(m.hidden)),
      H(size_of(m.heads) / share.tensors),
      K(size_of(m.kv_heads) * kv_replicas(m, share.tensors) / share.tensors),
      E(size_of(m.head_dim)),
      F(size_of(m.experts > 0 ? m.expert_hidden : m.ffn_hidden) / share.tensors),
      V(size_of(m.vocabulary)),
      W(V / share.tensors),
      X(size_of(m.experts)),
      k(m.experts > 0 ? size_of(m.experts_per_token) : 1),
      qkv((H + 2 * K) * E),
      up(gated(deck::activation_of(m)) ? 2 * F : F) {}

}  // namespace tern::model
