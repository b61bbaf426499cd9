#!/usr/bin/env python3
"""Golden values of tiny Qwen3-MoE models of Hugging Face Transformers. Run by hand; needs torch, transformers, h5py.

    python3 tests/golden/make_qwen3_moe.py

Writes qwen3_moe.h5 (weights of the chosen experts renormalized, untied head) and qwen3_moe_plain.h5 (neither)
next to this script, each with

    config/*                    the model, by the names of Tern's deck
    tokens, targets (B, T; -1: ignored)
    parameters/NAME             float32, with Tern's names and shapes
    logits (B, T, V), loss      mean over targets, without the auxiliary loss
    router_loss                 load_balancing_loss_func of all layers' router logits
    gradients/NAME              of loss + config/router_loss times router_loss
    prompt_I, greedy_I          prompts and their greedy continuation by generate() in float32
    fp32_*, bf16_*, fp16_*      relative errors of Transformers' own float32, bfloat16 and float16 against its float64

all but the greedy tokens computed in float64 from the float32 weights. Transformers takes the router's softmax
and the sums of the auxiliary loss in float32 whatever the model's type; for float64 both are replaced here by
double, with the same formulas, as make_transformers.py does for norms and rotary tables.
"""
import h5py
import numpy as np
import torch
import torch.nn.functional as F
from transformers import Qwen3MoeConfig, Qwen3MoeForCausalLM
from transformers.models.qwen3_moe.modeling_qwen3_moe import load_balancing_loss_func

from make_transformers import COMMON, HERE, greedy, in_float64, joined, randomize, relative_error

B, T = 2, 24
MOE = dict(COMMON, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
           num_key_value_heads=2, head_dim=8, max_position_embeddings=96, rms_norm_eps=1e-6, rope_theta=1e6,
           moe_intermediate_size=16, output_router_logits=True)


def models():
    yield "qwen3_moe", Qwen3MoeConfig(**MOE, num_experts=8, num_experts_per_tok=3, norm_topk_prob=True,
                                      tie_word_embeddings=False, router_aux_loss_coef=0.05)
    yield "qwen3_moe_plain", Qwen3MoeConfig(**MOE, num_experts=6, num_experts_per_tok=2, norm_topk_prob=False,
                                            tie_word_embeddings=True, router_aux_loss_coef=0.2)


class Router64(torch.nn.Module):
    def __init__(self, router):
        super().__init__()
        self.weight, self.k, self.renormalize = router.weight, router.top_k, router.norm_topk_prob

    def forward(self, x):
        logits = F.linear(x.reshape(-1, x.shape[-1]), self.weight)
        weights, experts = torch.topk(F.softmax(logits, dim=-1), self.k, dim=-1)
        if self.renormalize:
            weights = weights / weights.sum(dim=-1, keepdim=True)
        return logits, weights, experts


def router_loss_64(router_logits, experts, k):
    """load_balancing_loss_func in double: X sum over experts of (pairs / rows)(mean probability)."""
    probabilities = F.softmax(torch.cat(router_logits), dim=-1)
    chosen = torch.topk(probabilities, k, dim=-1).indices
    pairs = torch.bincount(chosen.flatten(), minlength=experts).double() / len(probabilities)
    return experts * (pairs * probabilities.mean(0)).sum()


def moe_in_float64(config, model):
    result = in_float64(Qwen3MoeForCausalLM, config, model)
    logits = []
    for layer in result.model.layers:
        layer.mlp.gate = Router64(layer.mlp.gate)
        layer.mlp.gate.register_forward_hook(lambda _, __, out: logits.append(out[0]))
    return result, logits


def tern_tensors(named):
    """{Tern's name: array}: the fused matrices of the experts split into single ones."""
    result = {}
    for name, value in named.items():
        at = name.replace(".", "/")
        if at.endswith("experts/gate_up_proj"):
            for e, matrix in enumerate(value):
                gate, up = np.split(matrix, 2)
                result[f"{at[:-13]}/{e}/gate_proj/weight"] = gate
                result[f"{at[:-13]}/{e}/up_proj/weight"] = up
        elif at.endswith("experts/down_proj"):
            for e, matrix in enumerate(value):
                result[f"{at[:-10]}/{e}/down_proj/weight"] = matrix
        else:
            result[at] = value
    return result


def loss_of(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)


def gradients_of(model, total):
    model.zero_grad()
    total.backward()
    return {name: p.grad.double().numpy() for name, p in model.named_parameters()}


def reference(config, model, tokens, targets):
    exact, router_logits = moe_in_float64(config, model)
    logits = exact(tokens, output_router_logits=False).logits
    balance = router_loss_64(router_logits, config.num_experts, config.num_experts_per_tok)
    loss = loss_of(logits, targets)
    gradients = gradients_of(exact, loss + config.router_aux_loss_coef * balance)
    return logits.detach().numpy(), loss.item(), balance.item(), gradients


def own_errors(config, model, tokens, targets, exact):
    errors = {}
    for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)):
        lower = Qwen3MoeForCausalLM(config)
        lower.load_state_dict(model.state_dict())
        lower = lower.to(dtype).eval()
        out = lower(tokens)
        assert torch.equal(out.aux_loss,
                           load_balancing_loss_func(out.router_logits, config.num_experts, config.num_experts_per_tok))
        total = loss_of(out.logits, targets) + config.router_aux_loss_coef * out.aux_loss
        errors[f"{name}_logits"] = relative_error(out.logits.detach().double().numpy(), exact[0])
        errors[f"{name}_router_loss"] = abs(out.aux_loss.item() - exact[2]) / exact[2]
        errors[f"{name}_gradients"] = relative_error(joined(gradients_of(lower, total)), joined(exact[3]))
    return errors


def write_config(f, config):
    values = dict(layers=config.num_hidden_layers, hidden=config.hidden_size, heads=config.num_attention_heads,
                  kv_heads=config.num_key_value_heads, head_dim=config.head_dim, context=config.max_position_embeddings,
                  vocabulary=config.vocab_size, experts=config.num_experts,
                  experts_per_token=config.num_experts_per_tok, expert_hidden=config.moe_intermediate_size,
                  ffn_hidden=config.intermediate_size, renormalize_experts=int(config.norm_topk_prob),
                  tie_embeddings=int(config.tie_word_embeddings), router_loss=config.router_aux_loss_coef,
                  norm_eps=config.rms_norm_eps, rope_base=config.rope_parameters["rope_theta"])
    for name, value in values.items():
        f[f"config/{name}"] = value


def main():
    for seed, (name, config) in enumerate(models()):
        generator = torch.Generator().manual_seed(300 + seed)
        config._attn_implementation, config._experts_implementation = "sdpa", "eager"
        model = Qwen3MoeForCausalLM(config).eval()
        randomize(model, generator)
        vocabulary = config.vocab_size
        tokens = torch.randint(vocabulary, (B, T), generator=generator)
        targets = torch.randint(vocabulary, (B, T), generator=generator)
        targets[torch.rand(B, T, generator=generator) < 0.2] = -1
        exact = reference(config, model, tokens, targets)
        errors = own_errors(config, model, tokens, targets, exact)
        with h5py.File(HERE / f"{name}.h5", "w") as f:
            write_config(f, config)
            f["tokens"], f["targets"] = tokens.int().numpy(), targets.int().numpy()
            f["logits"], f["loss"], f["router_loss"] = exact[0], exact[1], exact[2]
            weights = {n: p.detach().numpy() for n, p in model.named_parameters()}
            for tensor, value in tern_tensors(weights).items():
                f[f"parameters/{tensor}"] = value
            for tensor, value in tern_tensors(exact[3]).items():
                f[f"gradients/{tensor}"] = value
            for i, length in enumerate((5, 9, 5)):
                prompt = torch.randint(vocabulary, (length,), generator=generator).tolist()
                f[f"prompt_{i}"] = np.array(prompt, np.int32)
                f[f"greedy_{i}"] = greedy(model, prompt).astype(np.int32)
            for error, value in errors.items():
                f[error] = value
        print(f"{name}: loss {exact[1]:.6f}, router loss {exact[2]:.6f}, Transformers' own errors: " +
              ", ".join(f"{error} {value:.1e}" for error, value in errors.items()))


if __name__ == "__main__":
    main()
