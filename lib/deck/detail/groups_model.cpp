#include "deck/choices.hpp"
#include "deck/detail/table.hpp"

namespace tern::deck::detail {

void describe(Group& group, Model& m) {
  group.add("layers", m.layers, "number of transformer blocks").at_least(1).at_most(10000);
  group.add("hidden", m.hidden, "width of the residual stream").at_least(1).at_most(1 << 20);
  group.add("heads", m.heads, "query heads; 0: hidden / head_dim, or hidden / 64")
      .at_least(0)
      .at_most(1 << 16);
  group.add("kv_heads", m.kv_heads, "key and value heads; 0: same as heads")
      .at_least(0)
      .at_most(1 << 16);
  group.add("head_dim", m.head_dim, "head size; 0: hidden / heads").at_least(0).at_most(1 << 16);
  group
      .add("ffn_hidden", m.ffn_hidden,
           "width of the MLP; 0: 8/3 hidden rounded up to 64 for swiglu, else 4 hidden")
      .at_least(0)
      .at_most(1 << 24);
  group.add("context", m.context, "sequence length").unit("tokens").at_least(1).at_most(1 << 24);
  group.add("vocabulary", m.vocabulary, "rows of the embedding, including padding")
      .unit("tokens")
      .at_least(2)
      .at_most(1 << 24);
  group.add("activation", m.activation, "activation of the MLP").one_of(activation_kinds);
  group.add("experts", m.experts, "experts of each MoE layer (Qwen3-MoE); 0: dense MLP")
      .at_least(0)
      .at_most(1 << 16);
  group.add("experts_per_token", m.experts_per_token, "MoE: experts chosen per token")
      .at_least(0)
      .at_most(1 << 10);
  group.add("expert_hidden", m.expert_hidden, "MoE: width of each expert")
      .at_least(0)
      .at_most(1 << 24);
  group.add("renormalize_experts", m.renormalize_experts,
            "MoE: scale the weights of the chosen experts to sum to 1");
  group
      .add("router_loss", m.router_loss,
           "MoE: weight of the load-balancing loss (Switch Transformer, section 2.2); 0: off")
      .at_least(0)
      .for_training();
  group
      .add("inner_steps", m.inner_steps,
           "n, latent passes of a recursive model before each answer; 0: not recursive")
      .at_least(0)
      .at_most(64);
  group
      .add("recursion", m.recursion,
           "recursive: stack: each pass runs all blocks; block: each block runs all its passes in "
           "turn")
      .one_of({"stack", "block"});
  group
      .add("initial_states", m.initial_states,
           "recursive: learned: learned vectors; input: answer from the embedded tokens, latent "
           "state from 0")
      .one_of({"learned", "input"});
  group.add("norm", m.norm, "normalization before attention, MLP and head").one_of(norms);
  group.add("norm_eps", m.norm_eps, "added to the variance in normalization").above(0).below(1);
  group.add("qk_norm", m.qk_norm, "RMSNorm of each query and key head, as in Qwen3");
  group.add("attention_bias", m.attention_bias, "biases in the attention projections");
  group.add("ffn_bias", m.ffn_bias, "biases in the MLP");
  group.add("position", m.position, "position encoding").one_of(positions);
  group.add("rope_base", m.rope_base, "base of the rotary frequencies (RoPE theta)").above(1);
  group.add("tie_embeddings", m.tie_embeddings, "the head shares the embedding's matrix");
  group.add(
      "skip_connections", m.skip_connections,
      "add the output of block i to the input of block L - 1 - i, times a learned scalar (U-net)");
  group.add("input_shortcut", m.input_shortcut,
            "feed a x + b x0 instead of x to every block after the first, with learned scalars and "
            "the embedded tokens x0");
  group
      .add("value_embeddings", m.value_embeddings,
           "embedding tables added, times learned scalars, to the values of as many first and last "
           "layers")
      .at_least(0)
      .at_most(1 << 10);
  group
      .add("window", m.window,
           "causal: attention window, the position itself and those before it; 0: no limit")
      .unit("tokens")
      .at_least(0)
      .at_most(1 << 24);
  group
      .add("window_start", m.window_start,
           "causal: window of the first training step, from which it grows in multiples of 64; 0: "
           "no growth")
      .unit("tokens")
      .at_least(0)
      .at_most(1 << 24)
      .for_training();
  group
      .add("window_steps", m.window_steps,
           "steps over which the window grows to window, or to context if that is 0")
      .unit("steps")
      .at_least(0)
      .for_training();
  group.add("levels", m.levels, "rows of a learned level embedding; 0: none (hdp always has 3)")
      .at_least(0)
      .at_most(1 << 16);
  group
      .add("logit_cap", m.logit_cap,
           "logits become cap tanh(logit / cap), as in Gemma 2; 0: no cap")
      .at_least(0);
  group.add("init_std", m.init_std, "standard deviation of initial matrices")
      .above(0)
      .at_most(10)
      .for_training();
  group.add("embed_std", m.embed_std, "standard deviation of the initial embedding; 0: init_std")
      .at_least(0)
      .at_most(10)
      .for_training();
  group.add("head_std", m.head_std, "standard deviation of an initial untied head; 0: init_std")
      .at_least(0)
      .at_most(10)
      .for_training();
  group
      .add("init_scaled_residual", m.init_scaled_residual,
           "initialize projections into the residual stream with init_std / sqrt(2 layers)")
      .for_training();
  group
      .add("init_zero_residual", m.init_zero_residual,
           "initialize these projections with 0, so that every block starts as the identity")
      .for_training();
  group
      .add("dropout", m.dropout,
           "fraction dropped in training, as in GPT-2; never taken from a loaded config.json")
      .at_least(0)
      .below(1)
      .for_training();
  group.add("attention", m.attention, "attention implementation; auto: the fastest available")
      .one_of({"auto", "portable", "cudnn"})
      .for_training();
  group
      .add("load", m.load,
           "initial weights: a Transformers directory (sets what is omitted here) or a "
           "checkpoint; empty: none")
      .for_training();
  group
      .add("load_rule", m.load_rule,
           "same: the architecture must match exactly; matching: load tensors whose names and "
           "shapes match")
      .one_of(load_rules)
      .for_training();
}

}  // namespace tern::deck::detail
