#include "deck/choices.hpp"
#include "deck/detail/table.hpp"

namespace tern::deck::detail {

void describe(Group& group, Model& m) {
  group.add("layers", m.layers, "transformer blocks").at_least(1).at_most(10000);
  group.add("hidden", m.hidden, "width of the residual stream").at_least(1).at_most(1 << 20);
  group.add("heads", m.heads, "query heads; 0: hidden / head_dim, or hidden / 64")
      .at_least(0)
      .at_most(1 << 16);
  group.add("kv_heads", m.kv_heads, "key and value heads; 0: as heads")
      .at_least(0)
      .at_most(1 << 16);
  group.add("head_dim", m.head_dim, "size of a head; 0: hidden / heads")
      .at_least(0)
      .at_most(1 << 16);
  group
      .add("ffn_hidden", m.ffn_hidden,
           "width of the feed-forward layer; 0: 8/3 hidden rounded up to 64 for swiglu, else 4 "
           "hidden")
      .at_least(0)
      .at_most(1 << 24);
  group.add("context", m.context, "length of a sequence")
      .unit("tokens")
      .at_least(1)
      .at_most(1 << 24);
  group.add("vocabulary", m.vocabulary, "rows of the embedding, padding included")
      .unit("tokens")
      .at_least(2)
      .at_most(1 << 24);
  group.add("activation", m.activation, "of the feed-forward layer").one_of(activation_kinds);
  group
      .add("experts", m.experts,
           "experts of each MoE layer (Qwen3-MoE); 0: one MLP, for all tokens")
      .at_least(0)
      .at_most(1 << 16);
  group.add("experts_per_token", m.experts_per_token, "experts: chosen per token")
      .at_least(0)
      .at_most(1 << 10);
  group.add("expert_hidden", m.expert_hidden, "experts: width of each")
      .at_least(0)
      .at_most(1 << 24);
  group.add("renormalise_experts", m.renormalise_experts,
            "experts: the weights of those chosen sum to 1");
  group
      .add("router_loss", m.router_loss,
           "experts: weight of the load-balancing loss (Switch Transformer, section 2.2); 0: off")
      .at_least(0);
  group
      .add("inner_steps", m.inner_steps,
           "n, latent passes of a recursive model before each answer; 0: blocks run once")
      .at_least(0)
      .at_most(64);
  group
      .add("recursion", m.recursion,
           "recursive: a pass runs the stack of blocks, or each block makes all of its passes "
           "in turn")
      .one_of({"stack", "block"});
  group
      .add("initial_states", m.initial_states,
           "recursive: learned vectors, or the answer from the embedded tokens and a latent "
           "state of 0")
      .one_of({"learned", "input"});
  group.add("norm", m.norm, "normalization before attention, feed-forward layer and head")
      .one_of(norms);
  group.add("norm_eps", m.norm_eps, "added to the variance in norms").above(0).below(1);
  group.add("qk_norm", m.qk_norm, "RMSNorm of each query and key head, as in Qwen3");
  group.add("attention_bias", m.attention_bias, "biases in the attention's projections");
  group.add("ffn_bias", m.ffn_bias, "biases in the feed-forward layer");
  group.add("position", m.position, "how the order of tokens enters").one_of(positions);
  group.add("rope_base", m.rope_base, "base of the rotary frequencies").above(1);
  group.add("tie_embeddings", m.tie_embeddings, "the head uses the embedding's matrix");
  group.add("skip_connections", m.skip_connections,
            "block L - 1 - i also takes the output of block i, times a learned scalar (U-net)");
  group.add("input_shortcut", m.input_shortcut,
            "every block after the first takes a x + b x0 instead of x, with learned scalars and "
            "the embedded tokens x0");
  group
      .add("value_embeddings", m.value_embeddings,
           "tables by token, added times learned scalars to the values of as many first and again "
           "of last layers")
      .at_least(0)
      .at_most(1 << 10);
  group
      .add("window", m.window,
           "causal: tokens that a position attends to, itself and those before; 0: all")
      .unit("tokens")
      .at_least(0)
      .at_most(1 << 24);
  group
      .add("window_start", m.window_start,
           "the same of training's first step, from which it grows by multiples of 64; 0: no "
           "growth")
      .unit("tokens")
      .at_least(0)
      .at_most(1 << 24);
  group.add("window_steps", m.window_steps, "steps over which it grows to window, or to context")
      .unit("steps")
      .at_least(0);
  group.add("levels", m.levels, "rows of a learned level embedding; 0: none; hdp has 3")
      .at_least(0)
      .at_most(1 << 16);
  group
      .add("logit_cap", m.logit_cap,
           "logits become cap tanh(logit / cap), as in Gemma 2; 0: no cap")
      .at_least(0);
  group.add("init_std", m.init_std, "standard deviation of initial matrices").above(0).at_most(10);
  group.add("embed_std", m.embed_std, "the same of the embedding; 0: init_std")
      .at_least(0)
      .at_most(10);
  group.add("head_std", m.head_std, "the same of a head that is not tied; 0: init_std")
      .at_least(0)
      .at_most(10);
  group.add("init_scaled_residual", m.init_scaled_residual,
            "projections into the residual stream start at init_std / sqrt(2 layers)");
  group.add("init_zero_residual", m.init_zero_residual,
            "they start at 0, so that every block begins as the identity");
  group
      .add("dropout", m.dropout,
           "fraction dropped in training, as in GPT-2; a loaded config.json's is not read")
      .at_least(0)
      .below(1);
  group.add("attention", m.attention, "implementation; auto: the fastest available")
      .one_of({"auto", "portable", "cudnn"});
  group.add("load", m.load,
            "a Transformers directory (its config.json gives what is left out here) or a "
            "checkpoint; empty: none");
  group
      .add("load_rule", m.load_rule,
           "same: load has this very model; matching: training starts from what has its name and "
           "shape")
      .one_of({"same", "matching"});
}

}  // namespace tern::deck::detail
