#!/usr/bin/env python3
"""Golden values of block diffusion: BD3-LM and HDP on tiny models. Run by hand; needs torch, numpy, h5py.

    python3 tests/golden/make_block_diffusion.py

A second implementation, as plain as possible: every sample is a row of its own, [prefix | x_0 | x_t], under a
dense boolean mask, in float64 from float32 weights. Writes block_diffusion.h5 next to this script; for each case

    samples (S, 6)   row, prefix, length of plan and execution, block of plan and execution
    tokens           of all samples, one after the other
    parameters/NAME, gradients/NAME     by Tern's parameter names
    times            of all blocks in order; masked (S', 2): sample and place of each masked token
    loss, parts      of the step; parts: mean loss of plan and execution (hdp)
    case/...         everything else that defines the case

Tern packs the samples into rows, and draws its noise by row and position in the row; so the noise is drawn here
in the same way, with Philox4x32-10 (Salmon et al., SC'11) and the keys of lib/base/random.hpp.
"""
import pathlib

import h5py
import numpy as np
import torch
import torch.nn.functional as F

HERE = pathlib.Path(__file__).parent
TIME, MASK, ORDER = 5, 6, 2  # streams
WORD = 0xFFFFFFFF

BASE = dict(layers=2, hidden=12, heads=2, kv_heads=1, head_dim=6, ffn_hidden=14, vocabulary=23, rope_base=10000.0,
            norm_eps=1e-5, levels=0, seed=1234, step=5, first_row=40, rows=2, positions=48, before=(3, 2), after=(1, 4),
            plan_weight=1.0, execution_weight=1.0, clip=((1e-3, 1.0), (1e-3, 1.0)))
CASES = {
    "bd3lm": dict(BASE, llama=False, kv_heads=2, samples=[(0, 0, 0, 9, 0, 4), (0, 0, 0, 12, 0, 4),
                                                          (1, 0, 0, 14, 0, 4)]),
    "bd3lm_question": dict(BASE, llama=False, kv_heads=2, clip=((1e-3, 1.0), (0.3, 0.8)), samples=[(0, 4, 0, 8, 0, 4),
                                                                                                   (0, 3, 0, 10, 0, 4),
                                                                                                   (1, 6, 0, 12, 0, 4),
                                                                                                   (1, 2, 0, 1, 0, 4)]),
    "hdp": dict(BASE, llama=True, levels=3, plan_weight=0.7, execution_weight=1.3, clip=((1e-3, 1.0), (0.2, 0.9)),
                samples=[(0, 4, 5, 6, 5, 2), (0, 3, 4, 4, 4, 2), (1, 5, 6, 9, 6, 4)]),
    "hdp_late_clip": dict(BASE, llama=True, levels=3, clip=((0.55, 1.0), (0.1, 0.6)), samples=[(0, 2, 7, 5, 3, 1),
                                                                                               (1, 5, 6, 9, 2, 9)]),
}


# ---- noise
def philox(counter, key):
    c, k = list(counter), list(key)
    for r in range(10):
        if r:
            k = [(k[0] + 0x9E3779B9) & WORD, (k[1] + 0xBB67AE85) & WORD]
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & WORD, (p0 >> 32) ^ c[3] ^ k[1], p0 & WORD]
    return c


def words(seed, stream, step, sample, position):
    return philox((position, sample, step & WORD, (step >> 32) ^ (stream << 16)), (seed & WORD, seed >> 32))


def uniform(seed, stream, row, place):
    """In [0, 1), 24 bits."""
    return (words(seed, stream, row, 0, place // 4)[place % 4] >> 8) / 2**24


def permuted(number, n, seed):
    """Where a Feistel network puts number % n in the permutation of [0, n) of epoch number // n."""
    half = 1
    while 4**half < n:
        half += 1
    mask, epoch, value = (1 << half) - 1, number // n, number % n
    while True:
        left, right = value >> half, value & mask
        for r in range(6):
            left, right = right, (left ^ words(seed, ORDER, epoch, r, right)[0]) & mask
        value = left << half | right
        if value < n:
            return value


def blocks_of(sample):
    """(level, first token, tokens) of each block; tokens counted from the prefix's end."""
    _, _, plan, execution, plan_block, execution_block = sample
    for level, begin, length, block in ((0, 0, plan, plan_block), (1, plan, execution, execution_block)):
        for first in range(0, length, block or 1):
            yield level, begin + first, min(block, length - first)


def draw(case):
    """Times of all blocks in order, and for each sample the masked tokens with the weights of their losses."""
    cells = list(case["before"])
    in_step = [
        sum(level == l for s in case["samples"] for level, _, _ in blocks_of(s)) + case["before"][l] + case["after"][l]
        for l in (0, 1)
    ]
    times, masked, used = [], [], {}
    for sample in case["samples"]:
        row, prefix, plan, execution, *block_lengths = sample
        number, start = case["first_row"] + row, used.get(row, 0) + prefix
        used[row] = start + plan + execution
        masked.append([])
        for level, first, count in blocks_of(sample):
            low, high = (1, 1) if block_lengths[level] == 1 else case["clip"][level]
            part = permuted(case["step"] * in_step[level] + cells[level], in_step[level], ~case["seed"] % 2**64)
            cells[level] += 1
            u = (part + uniform(case["seed"], TIME, number, start + first)) / in_step[level]
            t = low + (high - low) * u
            times.append(t)
            masked[-1] += [(first + i, level, 1.0 if low > 0.5 else 1 / t) for i in range(count)
                           if uniform(case["seed"], MASK, number, start + first + i) < t]
    return times, masked


# ---- model
def make_parameters(case, generator):
    D, E, F_, V = case["hidden"], case["head_dim"], case["ffn_hidden"], case["vocabulary"]
    gains, matrices = ["model/norm/"], {"model/embed_tokens/weight": (V, D)}
    if case["levels"]:
        matrices["model/embed_levels/weight"] = (case["levels"], D)
    for i in range(case["layers"]):
        at = f"model/layers/{i}/"
        matrices[at + "self_attn/q_proj/weight"] = (case["heads"] * E, D)
        matrices[at + "self_attn/k_proj/weight"] = (case["kv_heads"] * E, D)
        matrices[at + "self_attn/v_proj/weight"] = (case["kv_heads"] * E, D)
        matrices[at + "self_attn/o_proj/weight"] = (D, case["heads"] * E)
        if case["llama"]:
            matrices[at + "mlp/gate_proj/weight"] = (F_, D)
        matrices[at + "mlp/up_proj/weight"] = (F_, D)
        matrices[at + "mlp/down_proj/weight"] = (D, F_)
        gains += [at + "input_layernorm/", at + "post_attention_layernorm/"]
    normal = lambda *shape: torch.randn(shape, generator=generator)
    p = {name: 0.3 * normal(*shape) for name, shape in matrices.items()}
    for name in gains:
        p[name + "weight"] = 1 + 0.2 * normal(D)
        if not case["llama"]:
            p[name + "bias"] = 0.1 * normal(D)
    return {name: value.double().requires_grad_() for name, value in p.items()}


def rotate(x, positions, base):
    size = x.shape[-1]
    angles = positions[:, None] * base**-(torch.arange(0, size, 2, dtype=torch.float64) / size)
    cos, sin = angles.cos(), angles.sin()  # (T, E/2)
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def logits_of(p, case, tokens, positions, levels, sees):
    def norm(x, name):
        weight = p[name + "/weight"]
        if case["llama"]:
            return weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + case["norm_eps"])
        return F.layer_norm(x, x.shape[-1:], weight, p[name + "/bias"], case["norm_eps"])

    T, E = len(tokens), case["head_dim"]
    x = p["model/embed_tokens/weight"][tokens]
    if case["levels"]:
        x = x + p["model/embed_levels/weight"][levels]
    for i in range(case["layers"]):
        at = f"model/layers/{i}/"
        h = norm(x, at + "input_layernorm")
        q, k, v = ((h @ p[f"{at}self_attn/{n}_proj/weight"].T).view(T, -1, E).transpose(0, 1) for n in "qkv")
        q, k = rotate(q, positions, case["rope_base"]), rotate(k, positions, case["rope_base"])
        k, v = (t.repeat_interleave(case["heads"] // case["kv_heads"], 0) for t in (k, v))
        scores = (q @ k.transpose(1, 2) / E**0.5).masked_fill(~sees, -torch.inf)
        x = x + (scores.softmax(-1) @ v).transpose(0, 1).reshape(T, -1) @ p[at + "self_attn/o_proj/weight"].T
        h = norm(x, at + "post_attention_layernorm")
        up = h @ p[at + "mlp/up_proj/weight"].T
        up = F.silu(h @ p[at + "mlp/gate_proj/weight"].T) * up if case["llama"] else F.gelu(up, approximate="tanh")
        x = x + up @ p[at + "mlp/down_proj/weight"].T
    return norm(x, "model/norm") @ p["model/embed_tokens/weight"].T


# ---- objective
def sample_losses(p, case, sample, tokens, masked):
    """Loss of each masked token."""
    _, prefix, plan, execution, _, _ = sample
    body = plan + execution
    place = torch.arange(body)
    block = torch.zeros(body, dtype=torch.long)
    for number, (_, first, count) in enumerate(blocks_of(sample)):
        block[first:first + count] = number
    noisy = tokens[prefix:].clone()
    at = torch.tensor([i for i, _, _ in masked], dtype=torch.long)
    noisy[at] = case["vocabulary"] - 1
    # For each position: kind (0 prefix, 1 clean, 2 noisy), block, position number, level.
    kind = torch.tensor([0] * prefix + [1] * body + [2] * body)
    of_block = torch.cat([torch.full((prefix,), -1), block, block])
    positions = torch.cat([torch.arange(prefix), prefix + place, prefix + place])
    level = torch.where(place < plan, 1, 2)
    levels = torch.cat([torch.zeros(prefix, dtype=torch.long), level, level])
    query, key = kind[:, None], kind[None, :]
    earlier, same = of_block[None, :] < of_block[:, None], of_block[None, :] == of_block[:, None]
    sees = (key < 2) & earlier | (key == query) & same
    logits = logits_of(p, case, torch.cat([tokens, noisy]), positions, levels, sees)
    logits = logits[prefix + body + at][:, :-1]  # the mask token is never predicted
    return F.cross_entropy(logits, tokens[prefix + at], reduction="none")


def evaluate(case, p, tokens, masked):
    counts = [sum(s[2] for s in case["samples"]), sum(s[3] for s in case["samples"])]
    parts, first = [torch.zeros((), dtype=torch.float64) for _ in counts], 0
    for sample, of_sample in zip(case["samples"], masked):
        length = sum(sample[1:4])
        losses = sample_losses(p, case, sample, tokens[first:first + length], of_sample)
        first += length
        for loss, (_, level, weight) in zip(losses, of_sample):
            parts[level] = parts[level] + weight * loss / counts[level]
    total = case["plan_weight"] * parts[0] + case["execution_weight"] * parts[1]
    total.backward()
    return total.item(), [part.item() for part in parts]


def main():
    with h5py.File(HERE / "block_diffusion.h5", "w", libver="latest") as f:
        for seed, (name, case) in enumerate(CASES.items()):
            generator = torch.Generator().manual_seed(300 + seed)
            p = make_parameters(case, generator)
            count = sum(sum(s[1:4]) for s in case["samples"])
            tokens = torch.randint(case["vocabulary"] - 1, (count,), generator=generator)
            times, masked = draw(case)
            loss, parts = evaluate(case, p, tokens, masked)
            group = f.create_group(name)
            for key, value in case.items():
                group[f"case/{key}"] = np.array(value, np.float64)
            group["tokens"], group["times"] = tokens.int().numpy(), np.array(times)
            group["masked"] = np.array([(s, m[0]) for s, of in enumerate(masked) for m in of], np.int32)
            group["loss"], group["parts"] = loss, parts
            for tensor, value in p.items():
                group[f"parameters/{tensor}"] = value.detach().float().numpy()
                group[f"gradients/{tensor}"] = value.grad.numpy()
            print(f"{name}: loss {loss:.6f}, parts {parts}, {len(group['masked'])} masked of "
                  f"{sum(s[2] + s[3] for s in case['samples'])}, {len(times)} blocks")


if __name__ == "__main__":
    main()
