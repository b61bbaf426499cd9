"""Linear layers whose three products run in fp8 by torch._scaled_mm: E4M3 forward, gradients in E5M2, one scale per matrix
from its largest magnitude (tensorwise dynamic scaling). torch.compile fuses the rounding with what is around it.
"""
import torch, torch.nn as nn

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


def rounded(x, kind):
    """x in fp8, and the scale that takes it back."""
    most = torch.finfo(kind).max
    scale = most / x.abs().amax().float().clamp(min=1e-12)
    return (x.float() * scale).clamp(-most, most).to(kind), scale.reciprocal()


def product(a, b, kinds, fast):
    """a (M, K) b (N, K)^T in bf16."""
    (x, of_x), (y, of_y) = rounded(a, kinds[0]), rounded(b, kinds[1])
    return torch._scaled_mm(x.contiguous(),
                            y.contiguous().t(), scale_a=of_x, scale_b=of_y, out_dtype=torch.bfloat16,
                            use_fast_accum=fast)


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return product(x, weight, (E4M3, E4M3), True)

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        return product(dy, weight.t(), (E5M2, E4M3), False), product(dy.t(), x.t(), (E5M2, E4M3), False)


class Linear(nn.Linear):
    """nn.Linear without bias; input in bf16, weight in float32."""
    def forward(self, x):
        y = Product.apply(x.reshape(-1, x.shape[-1]).to(torch.bfloat16), self.weight.to(torch.bfloat16))
        return y.view(*x.shape[:-1], -1)
