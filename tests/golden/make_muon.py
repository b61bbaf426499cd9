#!/usr/bin/env python3
"""Writes muon.h5: steps of Muon on the matrices of one block, for test_muon.

Run from anywhere: python3 tests/golden/make_muon.py. Needs torch and h5py. torch.optim.Muon computes its products in
bfloat16, so that its results bound an error from above only; the same formulas are written out here in float64
(`exact`), and torch's own function is run on them in float64 to show that they are the same (`torch64`).
"""

import math
import pathlib

import h5py
import torch
import torch.optim._muon as torch_muon

STEPS, LR, DECAY, MOMENTUM = 4, 0.02, 0.1, 0.95
SHAPES = {
    "self_attn/q_proj": (16, 8), "self_attn/k_proj": (8, 8), "self_attn/v_proj": (8, 8), "self_attn/o_proj": (8, 16),
    "mlp/gate_proj": (20, 8), "mlp/up_proj": (20, 8), "mlp/down_proj": (8, 20)
}


def drawn(*shape, scale=1.0):
    # Values that float32 represents exactly, so that both precisions start from the same inputs.
    return (scale * torch.randn(*shape)).double()


def orthogonal(matrix):
    x = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    x = x / max(float(x.norm()), 1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x.T if matrix.shape[0] > matrix.shape[1] else x


def exact(start, gradients, scale):
    """The parameters after each step, in float64, from the formulas of torch.optim.Muon's documentation."""
    rows, columns = start.shape
    factor = math.sqrt(max(1, rows / columns)) if scale == "original" else 0.2 * math.sqrt(max(rows, columns))
    w, buffer, results = start.clone(), torch.zeros_like(start), []
    for g in gradients:
        buffer = MOMENTUM * buffer + (1 - MOMENTUM) * g
        w = w - LR * DECAY * w - LR * factor * orthogonal((1 - MOMENTUM) * g + MOMENTUM * buffer)
        results.append(w)
    return torch.stack(results), buffer


def with_torch(start, gradients, scale, kind):
    parameter = torch.nn.Parameter(start.to(kind).clone())
    optimizer = torch.optim.Muon([parameter], lr=LR, weight_decay=DECAY, momentum=MOMENTUM, adjust_lr_fn=scale)
    results = []
    for g in gradients:
        parameter.grad = g.to(kind).clone()
        optimizer.step()
        results.append(parameter.detach().clone().double())
    return torch.stack(results)


def with_torch64(start, gradients, scale):
    """torch.optim.Muon itself, without its rounding to bfloat16."""
    kept = torch.Tensor.bfloat16
    torch.Tensor.bfloat16 = lambda tensor: tensor.clone()
    try:
        return with_torch(start, gradients, scale, torch.float64)
    finally:
        torch.Tensor.bfloat16 = kept


if __name__ == "__main__":
    torch.manual_seed(20241204)
    path = pathlib.Path(__file__).parent / "muon.h5"
    same = rounded = 0.0
    with h5py.File(path, "w") as output:
        output.attrs["torch"] = str(torch.__version__)
        for name, value in dict(lr=LR, weight_decay=DECAY, momentum=MOMENTUM).items():
            output.create_dataset(name, data=value)
        for name, shape in SHAPES.items():
            start = drawn(*shape, scale=0.1)
            gradients = drawn(STEPS, *shape, scale=1e-2)
            group = output.create_group(name)
            group.create_dataset("start", data=start.numpy().astype("f4"))
            group.create_dataset("gradients", data=gradients.numpy().astype("f4"))
            for scale in ("original", "match_rms_adamw"):
                results, buffer = exact(start, gradients, scale)
                torch64 = with_torch64(start, gradients, scale)
                torch16 = with_torch(start, gradients, scale, torch.float32)
                same = max(same, float((results - torch64).abs().max()))
                rounded = max(rounded, float((results - torch16).abs().max()))
                group.create_dataset(f"{scale}/exact", data=results.numpy())
                group.create_dataset(f"{scale}/torch", data=torch16.numpy().astype("f4"))
            group.create_dataset("momentum_buffer", data=buffer.numpy())
    print(f"torch {torch.__version__}: largest difference of a parameter from float64 after {STEPS} steps of {LR}: "
          f"torch without its rounding to bfloat16 {same:.1e}, torch unchanged {rounded:.1e}")
    print(f"{path}: {path.stat().st_size} bytes")
    assert same < 1e-13
