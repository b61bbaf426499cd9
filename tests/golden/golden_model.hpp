/// The model described by the `config` group of a golden file.
#pragma once
#include "deck/deck.hpp"
#include "golden/golden.hpp"

namespace tern::test {

inline deck::Model golden_model(const Golden& golden) {
  const auto number = [&](const char* name) {
    return golden.number(std::string("config/") + name);
  };
  const auto integer = [&](const char* name) { return static_cast<std::int64_t>(number(name)); };
  deck::Model m;
  m.layers = integer("layers"), m.hidden = integer("hidden");
  m.heads = integer("heads"), m.kv_heads = integer("kv_heads"), m.head_dim = integer("head_dim");
  m.ffn_hidden = integer("ffn_hidden"), m.expert_hidden = integer("expert_hidden");
  m.experts = integer("experts"), m.experts_per_token = integer("experts_per_token");
  m.renormalize_experts = number("renormalize_experts") != 0;
  m.router_loss = number("router_loss");
  m.context = integer("context"), m.vocabulary = integer("vocabulary");
  m.norm_eps = number("norm_eps"), m.rope_base = number("rope_base");
  m.tie_embeddings = number("tie_embeddings") != 0;
  m.qk_norm = true;
  return m;
}

}  // namespace tern::test
