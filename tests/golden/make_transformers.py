#!/usr/bin/env python3
"""Golden values of tiny Hugging Face Transformers models. Run by hand; needs torch, transformers, h5py.

    python3 tests/golden/make_transformers.py

For each model below, writes next to this script

    NAME/config.json, NAME/model.safetensors, NAME/generation_config.json    as save_pretrained does
    NAME.h5   tokens, targets (B, T; -1: ignored), logits (B, T, V), loss (mean over targets),
              gradients/<Tern's parameter name> in Tern's shapes, all computed in float64 from the float32
              weights; prompt_I, greedy_I: prompts and their greedy continuation by Transformers' generate()
              in float32; fp32_logits, bf16_logits, bf16_gradients, ...: relative errors of Transformers'
              own float32, bfloat16 and float16 against its float64, all gradients taken as one vector.

Transformers computes norms, rotary tables and softmax in float32 whatever the model's type. For the
float64 reference they are replaced here by float64 versions with the same formulas.
"""
import pathlib

import h5py
import numpy as np
import torch
import torch.nn.functional as F
from transformers import (GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM)

HERE = pathlib.Path(__file__).parent
B, T, NEW = 2, 24, 60
COMMON = dict(vocab_size=80, bos_token_id=None, eos_token_id=None)
LLAMA = dict(COMMON, hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=96)


def models():
    yield "llama_tied", LlamaForCausalLM, LlamaConfig(**LLAMA, tie_word_embeddings=True, rms_norm_eps=1e-5,
                                                      rope_theta=10000.0)
    yield "llama_untied", LlamaForCausalLM, LlamaConfig(**LLAMA, tie_word_embeddings=False, rms_norm_eps=1e-5,
                                                        rope_theta=500.0, attention_bias=True, mlp_bias=True)
    yield "qwen3", Qwen3ForCausalLM, Qwen3Config(**LLAMA, head_dim=16, tie_word_embeddings=True, rms_norm_eps=1e-6,
                                                 rope_theta=1e6)
    yield "gpt2", GPT2LMHeadModel, GPT2Config(**COMMON, n_embd=32, n_inner=128, n_layer=2, n_head=4, n_positions=96,
                                              resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)


def randomize(model, generator):
    """Weights large enough that every term matters."""
    for name, p in model.named_parameters():
        noise = torch.randn(p.shape, generator=generator)
        if p.dim() > 1:
            p.data = noise * (0.25 if "embed" in name or "wte" in name else 0.3)
        elif name.endswith("bias"):
            p.data = noise * 0.1
        else:
            p.data = 1 + noise * 0.2


class RMSNorm64(torch.nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.weight, self.eps = norm.weight, norm.variance_epsilon

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


class Rotary64(torch.nn.Module):
    def __init__(self, base, size):
        super().__init__()
        self.frequencies = base**-(torch.arange(0, size, 2, dtype=torch.float64) / size)

    def forward(self, x, position_ids):
        angles = position_ids[..., None].double() * self.frequencies
        angles = torch.cat([angles, angles], -1)
        return angles.cos(), angles.sin()


def in_float64(kind, config, model):
    result = kind(config)
    result.load_state_dict(model.state_dict())
    result = result.double().eval()
    for parent in list(result.modules()):
        for name, child in list(parent.named_children()):
            if child.__class__.__name__.endswith("RMSNorm"):
                setattr(parent, name, RMSNorm64(child))
    if kind is not GPT2LMHeadModel:
        result.model.rotary_emb = Rotary64(config.rope_parameters["rope_theta"], config.head_dim)
    return result


def tern_tensors(kind, named):
    """{Tern's name: array} from {Transformers' name: array}."""
    if kind is not GPT2LMHeadModel:
        return {name.replace(".", "/"): value for name, value in named.items()}
    top = {
        "transformer.wte": "model/embed_tokens", "transformer.wpe": "model/embed_positions",
        "transformer.ln_f": "model/norm"
    }
    inner = {
        "ln_1": "input_layernorm", "ln_2": "post_attention_layernorm", "attn.c_proj": "self_attn/o_proj",
        "mlp.c_fc": "mlp/up_proj", "mlp.c_proj": "mlp/down_proj"
    }
    result = {}
    for name, value in named.items():
        module, leaf = name.rsplit(".", 1)
        if module in top:
            result[f"{top[module]}/{leaf}"] = value
            continue
        _, _, layer, rest = module.split(".", 3)
        at = f"model/layers/{layer}/"
        if leaf == "weight" and value.ndim == 2:
            value = value.T  # Conv1D keeps (inputs, outputs)
        if rest == "attn.c_attn":
            for part, piece in zip("qkv", np.split(value, 3, axis=0)):
                result[f"{at}self_attn/{part}_proj/{leaf}"] = piece
        else:
            result[f"{at}{inner[rest]}/{leaf}"] = value
    return result


def evaluate(model, tokens, targets):
    """Logits, loss, and gradients by Transformers' names, as numpy arrays."""
    model.zero_grad()
    logits = model(tokens).logits
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)
    loss.backward()
    return (logits.detach().double().numpy(), loss.item(),
            {name: p.grad.double().numpy() for name, p in model.named_parameters()})


def relative_error(a, b):
    return float(np.linalg.norm(np.ravel(a) - np.ravel(b)) / np.linalg.norm(np.ravel(b)))


def joined(named):
    return np.concatenate([named[name].ravel() for name in sorted(named)])


def own_errors(kind, config, model, tokens, targets, reference):
    """Errors of Transformers itself in lower precision."""
    errors = {}
    for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16), ("fp16", torch.float16)):
        lower = kind(config)
        lower.load_state_dict(model.state_dict())
        logits, _, gradients = evaluate(lower.to(dtype).eval(), tokens, targets)
        errors[f"{name}_logits"] = relative_error(logits, reference[0])
        errors[f"{name}_gradients"] = relative_error(joined(gradients), joined(reference[2]))
    return errors


def greedy(model, prompt):
    out = model.generate(torch.tensor([prompt]), do_sample=False, max_new_tokens=NEW,
                         attention_mask=torch.ones(1, len(prompt), dtype=torch.long))
    return out[0, len(prompt):].numpy()


def main():
    for seed, (name, kind, config) in enumerate(models()):
        generator = torch.Generator().manual_seed(100 + seed)
        config._attn_implementation = "sdpa"
        model = kind(config).eval()
        randomize(model, generator)
        model.save_pretrained(HERE / name)
        vocabulary = config.vocab_size
        tokens = torch.randint(vocabulary, (B, T), generator=generator)
        targets = torch.randint(vocabulary, (B, T), generator=generator)
        targets[torch.rand(B, T, generator=generator) < 0.2] = -1
        reference = evaluate(in_float64(kind, config, model), tokens, targets)
        logits, loss, gradients = reference
        errors = own_errors(kind, config, model, tokens, targets, reference)
        with h5py.File(HERE / f"{name}.h5", "w") as f:
            f["tokens"], f["targets"] = tokens.int().numpy(), targets.int().numpy()
            f["logits"], f["loss"] = logits, np.array([loss])
            for tensor, value in tern_tensors(kind, gradients).items():
                f[f"gradients/{tensor}"] = value
            for i, length in enumerate((5, 9, 5)):
                prompt = torch.randint(vocabulary, (length,), generator=generator).tolist()
                f[f"prompt_{i}"] = np.array(prompt, np.int32)
                f[f"greedy_{i}"] = greedy(model, prompt).astype(np.int32)
            for error, value in errors.items():
                f[error] = value
            distinct = [len(set(f[f"greedy_{i}"][:])) for i in range(3)]
        print(f"{name}: loss {loss:.6f}, distinct greedy tokens {distinct}, Transformers' own errors: " +
              ", ".join(f"{error} {value:.1e}" for error, value in errors.items()))


if __name__ == "__main__":
    main()
