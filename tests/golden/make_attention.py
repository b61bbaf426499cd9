"""Golden values of attention.h5 from PyTorch and Transformers, in float64: attention with its gradients,
rotary embedding (Llama's), per-head RMSNorm (Qwen3's), and the token sets that temperature, top-k and
top-p keep. Run again only to change them: python make_attention.py (torch 2.11, transformers 5.17)."""
import pathlib

import h5py
import numpy as np
import torch
from torch.nn.attention.bias import causal_lower_right
from torch.nn.functional import scaled_dot_product_attention
from transformers import LlamaConfig
from transformers.generation.logits_process import (TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper)
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb
from transformers.models.qwen3.modeling_qwen3 import Qwen3RMSNorm

torch.manual_seed(3)


def random(*shape):
    """Numbers that float32 represents exactly."""
    return torch.randn(*shape, dtype=torch.float32).double().requires_grad_()


def attention(group, batch, queries, keys, heads, kv_heads, size, causal):
    q, dout = random(batch, queries, heads, size), random(batch, queries, heads, size)
    k, v = random(batch, keys, kv_heads, size), random(batch, keys, kv_heads, size)
    mask = causal_lower_right(queries, keys) if causal and queries != keys else None
    out = scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2),
                                       attn_mask=None if mask is None else mask._materialize(torch.device("cpu")),
                                       is_causal=causal and mask is None, enable_gqa=True).transpose(1, 2)
    out.backward(dout)
    values = dict(q=q, k=k, v=v, dout=dout, out=out, dq=q.grad, dk=k.grad, dv=v.grad)
    for name, value in values.items():
        group[name] = value.detach().numpy()
    group["causal"] = int(causal)


def rotary(group, base, batch, tokens, heads, size, first):
    config = LlamaConfig(hidden_size=size * heads, num_attention_heads=heads, head_dim=size,
                         max_position_embeddings=4096, rope_parameters={"rope_type": "default", "rope_theta": base})
    embedding = LlamaRotaryEmbedding(config)
    x, dy = random(batch, tokens, heads, size), random(batch, tokens, heads, size)
    positions = torch.arange(first, first + tokens)[None].expand(batch, -1)
    # Transformers computes its tables in float32; the formula in float64 is the reference.
    cos32, sin32 = embedding(x.float(), positions)
    angle = positions[..., None].double() * base**(-torch.arange(0, size, 2).double() / size)
    cos, sin = torch.cat([angle.cos()] * 2, -1), torch.cat([angle.sin()] * 2, -1)
    assert (cos32 - cos).abs().max() < 1e-3 and (sin32 - sin).abs().max() < 1e-3
    y, _ = apply_rotary_pos_emb(x.transpose(1, 2), x.transpose(1, 2), cos, sin)
    y = y.transpose(1, 2)
    y.backward(dy)
    group["x"], group["dy"] = x.detach().numpy(), dy.detach().numpy()
    group["y"], group["dx"] = y.detach().numpy(), x.grad.numpy()
    group["base"], group["first"] = base, first


def head_norm(group, batch, tokens, heads, size, eps):
    class Norm(Qwen3RMSNorm):
        """Transformers computes in float32; here everything stays in float64."""
        def forward(self, hidden):
            variance = hidden.pow(2).mean(-1, keepdim=True)
            return self.weight * (hidden * torch.rsqrt(variance + self.variance_epsilon))

    norm = Norm(size, eps=eps).double()
    norm.weight.data = 1 + 0.3 * random(size).detach()
    norm.weight.data = norm.weight.data.float().double()
    x, dy = random(batch, tokens, heads, size), random(batch, tokens, heads, size)
    y = norm(x)
    assert (Qwen3RMSNorm.forward(norm, x) - y).abs().max() < 1e-5
    y.backward(dy)
    group["x"], group["dy"], group["gain"] = (v.detach().numpy() for v in (x, dy, norm.weight))
    group["y"], group["dx"], group["dgain"] = (v.detach().numpy() for v in (y, x.grad, norm.weight.grad))
    group["eps"] = eps


def kept(group, temperature, top_k, top_p, rows, vocabulary):
    logits = 3 * torch.randn(rows, vocabulary, dtype=torch.float32)
    scores = TemperatureLogitsWarper(temperature)(None, logits.double())
    if top_k:
        scores = TopKLogitsWarper(top_k)(None, scores)
    scores = TopPLogitsWarper(top_p)(None, scores) if top_p < 1 else scores
    group["logits"], group["probabilities"] = logits.numpy(), scores.softmax(-1).numpy()
    group["temperature"], group["top_k"], group["top_p"] = temperature, top_k, top_p


with h5py.File(pathlib.Path(__file__).with_name("attention.h5"), "w") as file:
    shapes = [(2, 11, 11, 4, 2, 6, True), (1, 70, 70, 2, 1, 3, True), (2, 9, 13, 2, 2, 5, False),
              (2, 1, 17, 4, 1, 16, True), (1, 5, 12, 2, 1, 7, True)]
    for i, shape in enumerate(shapes):
        attention(file.create_group(f"attention/{i}"), *shape)
    rotary(file.create_group("rotary/0"), 10000.0, 2, 7, 3, 16, 0)
    rotary(file.create_group("rotary/1"), 1000000.0, 1, 5, 2, 6, 2000)
    head_norm(file.create_group("head_norm/0"), 2, 5, 3, 16, 1e-6)
    head_norm(file.create_group("head_norm/1"), 1, 3, 2, 7, 1e-5)
    for i, case in enumerate([(1.0, 0, 1.0), (0.7, 5, 1.0), (1.3, 0, 0.9), (1.0, 20, 0.5), (1.0, 0, 0.01)]):
        kept(file.create_group(f"sampling/{i}"), *case, 4, 67)
