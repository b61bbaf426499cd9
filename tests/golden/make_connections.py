#!/usr/bin/env python3
"""Golden values of skip connections, the input shortcut and value embeddings. Run by hand; needs torch, numpy, h5py.

    python3 tests/golden/make_connections.py

A GPT with rmsnorm, q/k norm, relu2 and rope, a second implementation, as plain as possible, in float64 from float32
weights: block l > 0 of L takes a x + b x0 + c s, with x the output of block l - 1, x0 the embedded tokens, s the output
of block L - 1 - l where that comes before block l - 1; table i of n is added, times a scalar, to the values of layers i
and L - n + i. Writes connections.h5 next to this script; for each case

    tokens, targets (B, T)              every target is scored
    parameters/NAME, gradients/NAME     by Tern's parameter names
    loss, logits (B, T, V)
    case/...                            everything else that defines the case; window 0: all tokens
"""
import pathlib

import h5py
import numpy as np
import torch
import torch.nn.functional as F

from plain import rms_norm, rotate

HERE = pathlib.Path(__file__).parent

BASE = dict(sequences=2, positions=9, layers=6, hidden=12, heads=4, kv_heads=2, head_dim=4, ffn_hidden=14,
            vocabulary=17, rope_base=10000.0, norm_eps=1e-5, skip_connections=1, input_shortcut=1, value_embeddings=2,
            window=0)
CASES = {
    "all": dict(BASE, layers=6),
    "odd": dict(BASE, layers=5, value_embeddings=1, hidden=8, ffn_hidden=10),
    "skips": dict(BASE, layers=3, input_shortcut=0, value_embeddings=0),
    "shortcut": dict(BASE, layers=2, skip_connections=0, value_embeddings=0, kv_heads=1),
    "values": dict(BASE, layers=2, skip_connections=0, input_shortcut=0, value_embeddings=1),
    "window": dict(BASE, layers=2, skip_connections=0, input_shortcut=0, value_embeddings=0, positions=23, window=5),
}


def partner(case, layer):
    """The block whose output block `layer` also takes; None: none."""
    other = case["layers"] - 1 - layer
    return other if case["skip_connections"] and other + 1 < layer else None


def table(case, layer):
    n, L = case["value_embeddings"], case["layers"]
    return layer if layer < n else layer - (L - n) if layer >= L - n else None


def make_parameters(case, generator):
    D, E, V = case["hidden"], case["head_dim"], case["vocabulary"]
    H, K = case["heads"], case["kv_heads"]
    normal = lambda *shape: torch.randn(shape, generator=generator)
    p = {
        "model/embed_tokens/weight": 0.5 * normal(V, D), "lm_head/weight": 0.3 * normal(V, D),
        "model/norm/weight": 1 + 0.2 * normal(D)
    }
    for i in range(case["value_embeddings"]):
        p[f"model/value_embeddings/{i}/weight"] = 0.5 * normal(V, K * E)
    for i in range(case["layers"]):
        at = f"model/layers/{i}/"
        for name in ("input_layernorm", "post_attention_layernorm"):
            p[f"{at}{name}/weight"] = 1 + 0.2 * normal(D)
        for name, rows, columns in (("self_attn/q_proj", H * E, D), ("self_attn/k_proj", K * E, D),
                                    ("self_attn/v_proj", K * E, D), ("self_attn/o_proj", D, H * E),
                                    ("mlp/up_proj", case["ffn_hidden"], D), ("mlp/down_proj", D, case["ffn_hidden"])):
            p[f"{at}{name}/weight"] = 0.3 * normal(rows, columns)
        for name in ("q_norm", "k_norm"):
            p[f"{at}self_attn/{name}/weight"] = 1 + 0.2 * normal(E)
        if case["input_shortcut"] and i > 0:
            p[at + "stream_scale"], p[at + "input_scale"] = 1 + 0.3 * normal(1), 0.3 * normal(1)
        if partner(case, i) is not None:
            p[at + "skip_scale"] = 1 + 0.3 * normal(1)
        if table(case, i) is not None:
            p[at + "self_attn/value_scale"] = 0.5 + 0.3 * normal(1)
    return {name: value.double().requires_grad_() for name, value in p.items()}


def attention(p, case, layer, tokens, h):
    B, T, _ = h.shape
    E, at = case["head_dim"], f"model/layers/{layer}/self_attn/"
    q, k, v = (h @ p[f"{at}{n}_proj/weight"].T for n in "qkv")
    if table(case, layer) is not None:
        v = v + p[at + "value_scale"] * p[f"model/value_embeddings/{table(case, layer)}/weight"][tokens]
    q, k, v = (t.view(B, T, -1, E).transpose(1, 2) for t in (q, k, v))
    q = rotate(rms_norm(q, p[at + "q_norm/weight"], case["norm_eps"]), case["rope_base"])
    k = rotate(rms_norm(k, p[at + "k_norm/weight"], case["norm_eps"]), case["rope_base"])
    k, v = (t.repeat_interleave(case["heads"] // case["kv_heads"], 1) for t in (k, v))
    query, key = torch.arange(T)[:, None], torch.arange(T)[None]
    hidden = (key > query) | (key <= query - (case["window"] or T))
    scores = (q @ k.transpose(2, 3) / E**0.5).masked_fill(hidden, -torch.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, -1) @ p[at + "o_proj/weight"].T


def logits_of(p, case, tokens):
    x = x0 = p["model/embed_tokens/weight"][tokens]
    outputs = []
    for i in range(case["layers"]):
        at = f"model/layers/{i}/"
        if case["input_shortcut"] and i > 0:
            x = p[at + "stream_scale"] * x + p[at + "input_scale"] * x0
        if partner(case, i) is not None:
            x = x + p[at + "skip_scale"] * outputs[partner(case, i)]
        x = x + attention(p, case, i, tokens, rms_norm(x, p[at + "input_layernorm/weight"], case["norm_eps"]))
        h = rms_norm(x, p[at + "post_attention_layernorm/weight"], case["norm_eps"])
        x = x + F.relu(h @ p[at + "mlp/up_proj/weight"].T)**2 @ p[at + "mlp/down_proj/weight"].T
        outputs.append(x)
    return rms_norm(x, p["model/norm/weight"], case["norm_eps"]) @ p["lm_head/weight"].T


def main():
    with h5py.File(HERE / "connections.h5", "w", libver="latest") as f:
        for seed, (name, case) in enumerate(CASES.items()):
            generator = torch.Generator().manual_seed(900 + seed)
            p = make_parameters(case, generator)
            text = torch.randint(case["vocabulary"], (case["sequences"], case["positions"] + 1), generator=generator)
            tokens, targets = text[:, :-1], text[:, 1:]
            logits = logits_of(p, case, tokens)
            loss = F.cross_entropy(logits.transpose(1, 2), targets)
            loss.backward()
            group = f.create_group(name)
            for key, value in case.items():
                group[f"case/{key}"] = np.array(value, np.float64)
            group["tokens"], group["targets"] = tokens.int().numpy(), targets.int().numpy()
            group["loss"], group["logits"] = loss.item(), logits.detach().numpy()
            for tensor, value in p.items():
                group[f"parameters/{tensor}"] = value.detach().float().numpy()
                group[f"gradients/{tensor}"] = value.grad.numpy()
            print(f"{name}: loss {loss.item():.6f}, {len(p)} parameters")


if __name__ == "__main__":
    main()
