"""The deck's optimizer in PyTorch: AdamW, or Muon for the blocks' matrices with AdamW for the rest; with the deck's schedule."""
import math
import torch, torch.nn as nn


def learning_rate(o, step, max_steps, elapsed=None):
    """As lib/optimizer/schedule.cpp. elapsed: shares of the run's time that are over, and that the warmup took."""
    if step <= o.warmup_steps:
        return o.lr * step / o.warmup_steps
    now, warmup, whole = (*elapsed, 1) if elapsed else (step, o.warmup_steps, max_steps)
    rest = max(1e-9 if elapsed else 1, whole - warmup)
    progress, decay = min(1, (now - warmup) / rest), min(1, o.decay_fraction * whole / rest)
    share = {
        "cosine": lambda: 0.5 * (1 - math.cos(math.pi * progress)), "linear": lambda: progress, "constant": lambda: 0,
        "wsd": lambda: max(0, progress - (1 - decay)) / decay if decay else 0
    }[o.schedule]()
    return o.lr + (o.min_lr - o.lr) * share


def orthogonal_float32(grad, coefficients, steps, eps):
    """Newton-Schulz iteration of torch.optim.Muon, which computes its products in bf16, in float32."""
    a, b, c = coefficients
    x = grad.T if grad.size(0) > grad.size(1) else grad
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.T if grad.size(0) > grad.size(1) else x


def set_rate(optimizer, rate):
    for group in optimizer.param_groups:
        group["lr"] = rate


class Optimizer:
    """Clips, then updates, at the rates of the deck's step 1, 2, ..."""
    def __init__(self, deck, model, dtype):
        self.o, self.max_steps, self.model = deck.optimizer, deck.campaign.max_steps, model
        o, muon = deck.optimizer, deck.optimizer.kind == "muon"
        fused = [item for block in model.blocks for item in block.projections()] if muon else []
        others = [p for p in model.parameters() if not any(p is matrix for matrix, _ in fused)]
        decay = [{
            "params": [p for p in others
                       if (p.dim() > 1) == matrices], "weight_decay": o.weight_decay if matrices else 0
        } for matrices in (True, False)]
        self.adamw = torch.optim.AdamW(decay, lr=o.lr, betas=tuple(o.betas), eps=o.eps, fused=True)
        # The model multiplies by q, k and v in one product; Muon orthogonalizes each separately, as views of the one.
        self.views = [(matrix, list(rows.values()),
                       [nn.Parameter(view) for view in matrix.detach().split(list(rows.values()))])
                      for matrix, rows in fused]
        self.muon = None
        if not muon:
            return
        # Tern's products are in the storage type: bf16, as PyTorch's always are, or float32, which PyTorch's then must use.
        if dtype == torch.float32:
            torch.optim._muon._zeropower_via_newtonschulz = orthogonal_float32
        self.muon = torch.optim.Muon([view for *_, views in self.views for view in views], lr=o.lr,
                                     weight_decay=o.weight_decay, momentum=o.momentum, nesterov=True,
                                     adjust_lr_fn=o.muon_scale)

    def step(self, step, elapsed=None):
        o, rate = self.o, learning_rate(self.o, step, self.max_steps, elapsed)
        if o.grad_clip:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), o.grad_clip)
        if self.muon:
            for matrix, rows, views in self.views:
                for view, gradient in zip(views, matrix.grad.split(rows)):
                    view.grad = gradient
            set_rate(self.muon, rate * (o.matrix_lr or o.lr) / o.lr)
            self.muon.step()
        set_rate(self.adamw, rate * (o.embed_lr or o.lr) / o.lr if self.muon else rate)
        self.adamw.step()
        for p in self.model.parameters():
            p.grad = None
        for *_, views in self.views:
            for view in views:
                view.grad = None
