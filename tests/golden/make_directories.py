#!/usr/bin/env python3
"""Tiny Qwen3 directories as Transformers writes them. Run by hand; needs torch, transformers, tokenizers.

    python3 tests/golden/make_directories.py

Writes next to this script, with random weights, what save_pretrained of model and tokenizer write:

    qwen3_bf16       dense, tied, bfloat16, one file, with a tokenizer, chat template and generation config
    moe_shards         mixture of experts, untied, bfloat16, in shards of 20 kB with an index
    moe_fused        the same weights as one file with each layer's experts in two tensors, as Transformers 5
                     keeps them in memory
"""
import json
import pathlib
import shutil

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import (GenerationConfig, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM, Qwen3MoeConfig,
                          Qwen3MoeForCausalLM)

from make_transformers import randomize

HERE = pathlib.Path(__file__).parent
QWEN = (r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"""
        r"""|\s*[\r\n]+|\s+(?!\S)|\s+""")
COMMON = dict(vocab_size=288, hidden_size=32, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4,
              num_key_value_heads=2, head_dim=16, max_position_embeddings=96, rms_norm_eps=1e-6, rope_theta=1e6,
              bos_token_id=None, eos_token_id=None)
TEMPLATE = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
            "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


def tokenizer():
    made = Tokenizer(models.BPE())
    made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    ])
    made.decoder = decoders.ByteLevel()
    text = ["the theme of the other theories there is the same as that of the others"] * 3
    made.train_from_iterator(
        text,
        trainers.BpeTrainer(vocab_size=272, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    made.add_special_tokens(
        [AddedToken(t, special=True, normalized=False) for t in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")])
    made.add_tokens([AddedToken(t, special=False, normalized=False) for t in ("<think>", "</think>")])
    fast = PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    fast.chat_template = TEMPLATE
    return fast


def fuse(folder, target):
    """Fuses the experts of a layer."""
    from safetensors.torch import load_file
    tensors = {}
    for file in sorted(folder.glob("*.safetensors")):
        tensors.update(load_file(file))
    config = json.loads((folder / "config.json").read_text())
    experts = config.get("num_experts", config.get("num_local_experts"))
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}.mlp.experts."
        take = lambda kind: [tensors.pop(f"{at}{e}.{kind}_proj.weight") for e in range(experts)]
        gate, up, down = take("gate"), take("up"), take("down")
        tensors[at + "gate_up_proj"] = torch.stack([torch.cat(pair) for pair in zip(gate, up)])
        tensors[at + "down_proj"] = torch.stack(down)
    target.mkdir(exist_ok=True)
    shutil.copy(folder / "config.json", target)
    save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})


def main():
    generator = torch.Generator().manual_seed(7)
    dense = Qwen3ForCausalLM(Qwen3Config(**COMMON, tie_word_embeddings=True))
    randomize(dense, generator)
    dense.generation_config = GenerationConfig(do_sample=True, temperature=0.6, top_k=20, top_p=0.95,
                                               eos_token_id=[274, 272], pad_token_id=272)
    dense.bfloat16().save_pretrained(HERE / "qwen3_bf16")
    tokenizer().save_pretrained(HERE / "qwen3_bf16")
    moe = Qwen3MoeForCausalLM(
        Qwen3MoeConfig(**{**COMMON, "vocab_size": 80}, tie_word_embeddings=False, num_experts=5, num_experts_per_tok=2,
                       moe_intermediate_size=24, norm_topk_prob=True, router_aux_loss_coef=0.01))
    randomize(moe, generator)
    moe.bfloat16().save_pretrained(HERE / "moe_shards", max_shard_size="20KB")
    fuse(HERE / "moe_shards", HERE / "moe_fused")


if __name__ == "__main__":
    main()
