#!/usr/bin/env python3
"""Golden values of recursive refinement on tiny models. Run by hand; needs torch, numpy, h5py.

    python3 tests/golden/make_refinement.py

TRM (arXiv 2510.04871) on a causal GPT, a second implementation, as plain as possible, in float64 from float32
weights, and the gradients from one backward pass through all steps. Writes refinement.h5 next to this script;
for each case

    tokens, targets (B, T)      every target is scored
    parameters/NAME, gradients/NAME     by Tern's parameter names
    loss             the total: weighted steps minus the reward
    step_losses (S), sequence_losses (S, B)     mean cross entropy
    logits (B, T, V) of the last step, capped
    case/...         everything else that defines the case; layernorm, swiglu, qk_norm, tied, by_block, from_input,
                     reward_sum: 0 or 1 (else rmsnorm, relu2, none, lm_head, by stack, learned, mean)
"""
import pathlib

import h5py
import numpy as np
import torch
import torch.nn.functional as F

from plain import rms_norm, rotate

HERE = pathlib.Path(__file__).parent

BASE = dict(sequences=2, positions=9, layers=2, hidden=16, heads=4, kv_heads=2, head_dim=4, ffn_hidden=22,
            vocabulary=29, rope_base=10000.0, norm_eps=1e-5, layernorm=0, swiglu=1, qk_norm=0, tied=1, head_std=0.3,
            logit_cap=0.0, supervision_steps=3, inner_steps=1, weight_base=5.0, reward=1.0, detach_from=0, by_block=0,
            from_input=0, reward_sum=0)
CASES = {
    "llama": dict(BASE),
    "nanochat": dict(BASE, positions=8, hidden=24, heads=3, kv_heads=3, head_dim=8, ffn_hidden=40, vocabulary=31,
                     norm_eps=1e-6, swiglu=0, qk_norm=1, tied=0, head_std=1.5, logit_cap=15.0, supervision_steps=4,
                     inner_steps=2),
    "extreme": dict(BASE, positions=7, hidden=12, heads=2, kv_heads=1, head_dim=6, vocabulary=23, rope_base=500.0,
                    layernorm=1, supervision_steps=2, inner_steps=3, weight_base=10.0, reward=2.0),
    # Gradients between steps: of some of them, and of all.
    "connected": dict(BASE, supervision_steps=5, inner_steps=2, detach_from=2, reward_sum=1),
    "from_input": dict(BASE, supervision_steps=3, detach_from=9, from_input=1),
    # Recursion within each block.
    "blocks": dict(BASE, by_block=1, inner_steps=2),
    "blocks_connected": dict(BASE, layers=3, hidden=24, heads=3, kv_heads=3, head_dim=8, swiglu=0, qk_norm=1, tied=0,
                             logit_cap=15.0, supervision_steps=5, inner_steps=2, weight_base=2.5, reward=1.5,
                             detach_from=2, by_block=1, from_input=1, reward_sum=1),
    "blocks_learned": dict(BASE, layernorm=1, detach_from=1, by_block=1, supervision_steps=4),
}


def make_parameters(case, generator):
    D, E, F_, V = case["hidden"], case["head_dim"], case["ffn_hidden"], case["vocabulary"]
    H, K = case["heads"], case["kv_heads"]
    normal = lambda *shape: torch.randn(shape, generator=generator)
    p = {}

    def matrix(name, rows, columns, std=0.3):
        p[name + "/weight"] = std * normal(rows, columns)

    def norm(name, size=D, bias=case["layernorm"]):
        p[name + "/weight"] = 1 + 0.2 * normal(size)
        if bias:
            p[name + "/bias"] = 0.1 * normal(size)

    matrix("model/embed_tokens", V, D)
    if not case["from_input"]:
        p["model/initial_answer"], p["model/initial_latent"] = 0.5 * normal(D), 0.5 * normal(D)
    for i in range(case["layers"]):
        at = f"model/layers/{i}/"
        if case["by_block"]:
            norm(at + "recursion_layernorm")
        norm(at + "input_layernorm")
        matrix(at + "self_attn/q_proj", H * E, D)
        matrix(at + "self_attn/k_proj", K * E, D)
        matrix(at + "self_attn/v_proj", K * E, D)
        matrix(at + "self_attn/o_proj", D, H * E)
        if case["qk_norm"]:
            norm(at + "self_attn/q_norm", E, False)
            norm(at + "self_attn/k_norm", E, False)
        norm(at + "post_attention_layernorm")
        if case["swiglu"]:
            matrix(at + "mlp/gate_proj", F_, D)
        matrix(at + "mlp/up_proj", F_, D)
        matrix(at + "mlp/down_proj", D, F_)
    norm("model/norm")
    if not case["tied"]:
        matrix("lm_head", V, D, case["head_std"])
    return {name: value.double().requires_grad_() for name, value in p.items()}


# ---- model
def attention(p, case, at, h):
    B, T, _ = h.shape
    E = case["head_dim"]
    q, k, v = ((h @ p[f"{at}{n}_proj/weight"].T).view(B, T, -1, E).transpose(1, 2) for n in "qkv")
    if case["qk_norm"]:
        q = rms_norm(q, p[at + "q_norm/weight"], case["norm_eps"])
        k = rms_norm(k, p[at + "k_norm/weight"], case["norm_eps"])
    q, k = rotate(q, case["rope_base"]), rotate(k, case["rope_base"])
    k, v = (t.repeat_interleave(case["heads"] // case["kv_heads"], 1) for t in (k, v))
    later = torch.ones(T, T).triu(1).bool()
    scores = (q @ k.transpose(2, 3) / E**0.5).masked_fill(later, -torch.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, -1) @ p[at + "o_proj/weight"].T


def feed_forward(p, case, at, h):
    up = h @ p[at + "up_proj/weight"].T
    up = F.silu(h @ p[at + "gate_proj/weight"].T) * up if case["swiglu"] else F.relu(up)**2
    return up @ p[at + "down_proj/weight"].T


def norm_of(p, case, x, name):
    weight = p[name + "/weight"]
    if case["layernorm"]:
        return F.layer_norm(x, x.shape[-1:], weight, p[name + "/bias"], case["norm_eps"])
    return rms_norm(x, weight, case["norm_eps"])


def block(p, case, at, h):
    h = h + attention(p, case, at + "self_attn/", norm_of(p, case, h, at + "input_layernorm"))
    return h + feed_forward(p, case, at + "mlp/", norm_of(p, case, h, at + "post_attention_layernorm"))


def stack(p, case, h):
    """f: all blocks and the final norm, which keeps the states' scale. (B, T, D) to the same."""
    for i in range(case["layers"]):
        h = block(p, case, f"model/layers/{i}/", h)
    return norm_of(p, case, h, "model/norm")


def advance(p, case, x, y, z):
    """One step: the next y and z, and what the head reads."""
    if not case["by_block"]:
        for _ in range(case["inner_steps"]):
            z = stack(p, case, x + y + z)
        y = stack(p, case, y + z)
        return y, z, y
    for i in range(case["layers"]):
        at = f"model/layers/{i}/"
        enter = lambda h: norm_of(p, case, h, at + "recursion_layernorm")
        for _ in range(case["inner_steps"]):
            z = z + block(p, case, at, enter(x + y + z))
        y = y + block(p, case, at, enter(y + z))
    return y, z, norm_of(p, case, y, "model/norm")


def logits_of(p, case, y):
    logits = y @ p["model/embed_tokens/weight" if case["tied"] else "lm_head/weight"].T
    cap = case["logit_cap"]
    return cap * torch.tanh(logits / cap) if cap else logits


# ---- objective
def evaluate(p, case, tokens, targets):
    """Total, losses (S, B) of steps and sequences, logits of the last step. The total's gradients are those of
    the method, since everything that it does not differentiate is detached."""
    S = case["supervision_steps"]
    x = p["model/embed_tokens/weight"][tokens]  # (B, T, D), not detached: every step contributes to it
    y = x if case["from_input"] else p["model/initial_answer"].expand_as(x)
    z = torch.zeros_like(x) if case["from_input"] else p["model/initial_latent"].expand_as(x)
    losses = []
    for step in range(S):
        y, z, finished = advance(p, case, x, y, z)
        if step >= case["detach_from"]:
            y, z = y.detach(), z.detach()
        logits = logits_of(p, case, finished)
        losses.append(F.cross_entropy(logits.transpose(1, 2), targets, reduction="none").mean(1))  # (B)
    powers = [case["weight_base"]**step for step in range(S)]
    total = sum(power / sum(powers) * loss.mean() for power, loss in zip(powers, losses))
    for before, after in zip(losses, losses[1:]):
        before = before.detach()  # a step gains nothing by making the previous one worse
        total = total - case["reward"] * ((before - after) / before).mean() / (1 if case["reward_sum"] else S - 1)
    return total, torch.stack(losses), logits


def main():
    with h5py.File(HERE / "refinement.h5", "w", libver="latest") as f:
        for seed, (name, case) in enumerate(CASES.items()):
            generator = torch.Generator().manual_seed(500 + seed)
            p = make_parameters(case, generator)
            text = torch.randint(case["vocabulary"], (case["sequences"], case["positions"] + 1), generator=generator)
            tokens, targets = text[:, :-1], text[:, 1:]
            total, losses, logits = evaluate(p, case, tokens, targets)
            total.backward()
            group = f.create_group(name)
            for key, value in case.items():
                group[f"case/{key}"] = np.array(value, np.float64)
            group["tokens"], group["targets"] = tokens.int().numpy(), targets.int().numpy()
            group["loss"], group["logits"] = total.item(), logits.detach().numpy()
            group["sequence_losses"] = losses.detach().numpy()
            group["step_losses"] = losses.detach().mean(1).numpy()
            for tensor, value in p.items():
                group[f"parameters/{tensor}"] = value.detach().float().numpy()
                group[f"gradients/{tensor}"] = value.grad.numpy()
            print(f"{name}: loss {total.item():.6f}, steps {losses.detach().mean(1).tolist()}, "
                  f"largest logit {logits.abs().max().item():.2f}")


if __name__ == "__main__":
    main()
