"""Parts of the plain PyTorch models that golden values are made with."""
import torch


def rms_norm(x, weight, eps):
    return weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


def rotate(x, base):
    """x (B, H, T, E), by halves."""
    T, size = x.shape[-2:]
    angles = torch.arange(T)[:, None] * base**-(torch.arange(0, size, 2, dtype=torch.float64) / size)
    cos, sin = angles.cos(), angles.sin()  # (T, E/2)
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
