"""Linear layers in fp8 for the peer; torch.compile fuses the rounding with what is around it.

own: the three products by torch._scaled_mm, E4M3 forward, gradients in E5M2, one scale per matrix from its largest magnitude
(tensorwise dynamic scaling). The others are recipes of torchao (0.17 for torch 2.11): tensorwise; rowwise, one scale per row of
each operand; rowwise_with_gw_hp, the same with weight gradients in bf16. As torchao advises, embedding and head stay in bf16.
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


RECIPES = ["own", "tensorwise", "rowwise", "rowwise_with_gw_hp"]


def make_fp8(blocks, recipe, device):
    """Replaces the blocks' linear layers; weights stay the same parameters."""
    if recipe == "own":
        for block in blocks:
            for name, layer in list(block.named_children()):
                if isinstance(layer, nn.Linear):
                    layer.__class__ = Linear
        return
    from torchao.float8 import convert_to_float8_training, Float8LinearConfig
    config = Float8LinearConfig.from_recipe_name(recipe)
    if device == "cpu":
        object.__setattr__(config, "emulate", True)  # no fp8 products there
    convert_to_float8_training(blocks, config=config)
