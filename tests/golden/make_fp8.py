#!/usr/bin/env python3
"""Writes fp8.h5: PyTorch's 8-bit formats, its rounding to them, a linear map of operands rounded so, and the gradients of
a head whose operands are rounded so, for test_fp8.

Run from anywhere: python3 tests/golden/make_fp8.py. Needs torch and h5py. The scale of an operand is the largest power
of two that keeps its largest magnitude within the format's; products are computed in float64.
"""

import math
import pathlib

import h5py
import torch

FORMATS = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
MAPS = {"wide": (32, 16, 48), "deep": (80, 64, 16)}  # rows, inputs, outputs


def decoded(kind):
    return torch.arange(256, dtype=torch.uint8).view(kind).float()


def rounded(values, kind):
    limit = torch.finfo(kind).max
    return values.clamp(-limit, limit).to(kind).float()


def samples(kind):
    """Numbers of every binade, the midpoints between neighbors, the numbers next to those, and beyond the largest."""
    codes = decoded(kind)
    codes = codes[codes.isfinite()].unique()
    middles = ((codes[1:].double() + codes[:-1].double()) / 2).float()
    beside = [torch.nextafter(middles, torch.full_like(middles, side)) for side in (-math.inf, math.inf)]
    exponents = torch.randint(-20, 20, (1000,)).float()
    limit = torch.finfo(kind).max
    edges = torch.tensor([0.0, 1e-30, -1e-30, 1e-42, limit * 1.03, limit * 1.2, -limit * 4, 3e38, -math.inf, math.inf])
    return torch.cat([middles, *beside, torch.randn(1000) * 2.0**exponents, edges])


def quantized(operand, kind):
    limit = torch.finfo(kind).max
    scale = 2.0**math.floor(math.log2(limit / float(operand.abs().max())))
    return rounded((operand * scale).float(), kind).double() / scale


def drawn(rows, columns, scale):
    return (scale * torch.randn(rows, columns)).bfloat16().double()


def linear(group, rows, inputs, outputs):
    x, w, dy = drawn(rows, inputs, 3.0), drawn(outputs, inputs, 0.02), drawn(rows, outputs, 1e-5)
    x[0, 0] = 40 * x.abs().max()  # most numbers far below the largest, some below the format's smallest
    x = x.bfloat16().double()
    e4, e5 = FORMATS["e4m3"], FORMATS["e5m2"]
    qx, qw, qdy = quantized(x, e4), quantized(w, e4), quantized(dy, e5)
    for name, value in dict(x=x, w=w, dy=dy).items():
        group.create_dataset(name, data=value.numpy().astype("f4"), compression="gzip")
    for name, value in dict(y=qx @ qw.T, dx=qdy @ qw, dw=qdy.T @ qx, dbias=dy.sum(0)).items():
        group.create_dataset(name, data=value.numpy())
    print(f"{group.name}: y is {float((x @ w.T - qx @ qw.T).norm() / (x @ w.T).norm()):.3f} off in 8 bits, "
          f"dx {float((dy @ w - qdy @ qw).norm() / (dy @ w).norm()):.3f}, "
          f"dw {float((dy.T @ x - qdy.T @ qx).norm() / (dy.T @ x).norm()):.3f}")


def head(group, rows, inputs, vocabulary, chunk):
    """Mean cross entropy; the chunks of rows that are multiples of 16 have their gradients rounded."""
    x, w = drawn(rows, inputs, 1.0), drawn(vocabulary, inputs, 0.3)
    targets = torch.randint(vocabulary, (rows,))
    logits = (x @ w.T).requires_grad_()
    losses = torch.nn.functional.cross_entropy(logits, targets, reduction="none")
    losses.mean().backward()
    dx, dw, exact = [], torch.zeros_like(w), logits.grad
    for first in range(0, rows, chunk):
        part, d = x[first:first + chunk], exact[first:first + chunk]
        in_fp8 = len(part) % 16 == 0
        d = quantized(d, FORMATS["e5m2"]) if in_fp8 else d
        dx.append(d @ (quantized(w, FORMATS["e4m3"]) if in_fp8 else w))
        dw += d.T @ (quantized(part, FORMATS["e4m3"]) if in_fp8 else part)
    for name, value in dict(x=x, w=w).items():
        group.create_dataset(name, data=value.numpy().astype("f4"), compression="gzip")
    group.create_dataset("targets", data=targets.numpy())
    for name, value in dict(losses=losses.detach(), dx=torch.cat(dx), dw=dw).items():
        group.create_dataset(name, data=value.numpy(), compression="gzip")
    print(f"{group.name}: dx is {float((torch.cat(dx) - exact @ w).norm() / (exact @ w).norm()):.3f} off in 8 bits, "
          f"dw {float((dw - exact.T @ x).norm() / (exact.T @ x).norm()):.3f}")


if __name__ == "__main__":
    torch.manual_seed(20220912)
    path = pathlib.Path(__file__).parent / "fp8.h5"
    with h5py.File(path, "w") as output:
        output.attrs["torch"] = str(torch.__version__)
        for name, kind in FORMATS.items():
            group = output.create_group(name)
            values = samples(kind)
            group.create_dataset("codes", data=decoded(kind).numpy())
            group.create_dataset("values", data=values.numpy())
            group.create_dataset("rounded", data=rounded(values, kind).numpy())
        for name, sizes in MAPS.items():
            linear(output.create_group(name), *sizes)
        head(output.create_group("head"), rows=40, inputs=32, vocabulary=48, chunk=16)
    print(f"torch {torch.__version__}; {path}: {path.stat().st_size} bytes")
