#!/usr/bin/env python3
"""Writes ops.h5: inputs, outputs and gradients of PyTorch's operations in float64, for test_ops_core.

Run from anywhere: python3 tests/golden/make_ops.py. Needs torch and h5py. The values change only with the
operations themselves, so the file is kept in the repository.
"""

import pathlib

import h5py
import torch
from torch.nn import functional

torch.manual_seed(20240520)
torch.set_default_dtype(torch.float64)


def leaf(*shape, scale=1.0, shift=0.0):
    # Values that float32 represents exactly, so that both precisions start from the same inputs.
    return (shift + scale * torch.randn(*shape)).float().double().requires_grad_()


def save(group, **values):
    for name, value in values.items():
        data = value.detach().numpy() if torch.is_tensor(value) else value
        group.create_dataset(name, data=data)


def norms(file):
    for kind in ("rmsnorm", "layernorm"):
        x, gain, bias, dy = leaf(6, 33, shift=0.7), leaf(33), leaf(33), leaf(6, 33)
        if kind == "rmsnorm":
            y = functional.rms_norm(x, (33,), gain, 1e-5)
        else:
            y = functional.layer_norm(x, (33,), gain, bias, 1e-5)
        y.backward(dy)
        group = file.create_group(kind)
        save(group, x=x, gain=gain, dy=dy, eps=1e-5, y=y, dx=x.grad, dgain=gain.grad)
        if kind == "layernorm":
            save(group, bias=bias, dbias=bias.grad)


def activations(file):
    functions = {
        "gelu": lambda x: functional.gelu(x, approximate="tanh"),
        "relu2": lambda x: functional.relu(x)**2,
        "swiglu": lambda x: functional.silu(x[:, :21]) * x[:, 21:],
    }
    for kind, function in functions.items():
        x = leaf(5, 42 if kind == "swiglu" else 21, scale=3)
        y = function(x)
        dy = leaf(*y.shape)
        y.backward(dy)
        save(file.create_group(kind), x=x, dy=dy, y=y, dx=x.grad)


def cross_entropy(file):
    for name, z_loss in (("cross_entropy", 0.0), ("z_loss", 1e-2)):
        x, w, weights = leaf(13, 8), leaf(29, 8), leaf(13)
        targets = torch.randint(0, 29, (13,))
        targets[[2, 7, 12]] = -100
        logits = x @ w.T
        losses = functional.cross_entropy(logits, targets, ignore_index=-100, reduction="none")
        losses = losses + z_loss * torch.logsumexp(logits, 1)**2 * (targets >= 0)
        (losses * weights).sum().backward()
        save(file.create_group(name), x=x, w=w, weights=weights, targets=targets, z_loss=z_loss, losses=losses,
             dx=x.grad, dw=w.grad)


def adamw(file):
    parameter = leaf(50)
    options = dict(lr=3e-3, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)
    optimizer = torch.optim.AdamW([parameter], **options)
    start, gradients, results = parameter.detach().clone(), [], []
    for _ in range(6):
        gradient = leaf(50, scale=1e-2).detach()
        parameter.grad = gradient.clone()
        optimizer.step()
        gradients.append(gradient)
        results.append(parameter.detach().clone())
    state = optimizer.state[parameter]
    save(file.create_group("adamw"), start=start, gradients=torch.stack(gradients), parameters=torch.stack(results),
         m=state["exp_avg"], v=state["exp_avg_sq"], lr=3e-3, beta1=0.9, beta2=0.95, eps=1e-8, weight_decay=0.1)


if __name__ == "__main__":
    path = pathlib.Path(__file__).parent / "ops.h5"
    with h5py.File(path, "w") as output:
        output.attrs["torch"] = str(torch.__version__)
        norms(output)
        activations(output)
        cross_entropy(output)
        adamw(output)
    print(f"{path}: {path.stat().st_size} bytes")
