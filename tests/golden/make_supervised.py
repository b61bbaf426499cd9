#!/usr/bin/env python3
"""Golden values of supervised training on a tiny Qwen3. Run by hand; needs torch, transformers, h5py.

    python3 tests/golden/make_supervised.py

The model is qwen3/ next to this script (make_transformers.py). Each conversation goes through Transformers separately, in
float64, with labels that are -100 where nothing is learned; the loss is the mean over all learned tokens. Writes
supervised.h5: lengths (C), tokens and learned of all conversations one after the other, loss, gradients/NAME by Tern's
parameter names. It also checks that Transformers' own loss of the padded batch, labels given, is the same to
float32's rounding.
"""
import pathlib

import h5py
import numpy as np
import torch
import torch.nn.functional as F
from transformers import Qwen3ForCausalLM

from make_transformers import in_float64, tern_tensors

HERE = pathlib.Path(__file__).parent
LENGTHS = (9, 17, 5, 24, 12, 2, 20)


def conversations(vocabulary, generator):
    """(tokens, learned): answers at the end, and in the longer ones a first answer before another question."""
    for length in LENGTHS:
        learned = torch.zeros(length, dtype=torch.bool)
        learned[-max(1, length // 3):] = True
        if length > 15:
            learned[3:6] = True
        yield torch.randint(vocabulary, (length,), generator=generator), learned


def main():
    model = Qwen3ForCausalLM.from_pretrained(HERE / "qwen3", attn_implementation="sdpa").eval()
    exact = in_float64(Qwen3ForCausalLM, model.config, model)
    chats = list(conversations(model.config.vocab_size, torch.Generator().manual_seed(11)))
    count = sum(int(learned.sum()) for _, learned in chats)
    loss = 0
    for tokens, learned in chats:
        labels = torch.where(learned, tokens, -100)
        logits = exact(tokens[None]).logits[0]
        loss = loss + F.cross_entropy(logits[:-1], labels[1:], ignore_index=-100, reduction="sum") / count
    loss.backward()

    longest = max(LENGTHS)
    pad = lambda values, filler: torch.stack([F.pad(v, (0, longest - len(v)), value=filler) for v in values])
    theirs = model(pad([t for t, _ in chats], 0), attention_mask=pad([torch.ones_like(t) for t, _ in chats], 0),
                   labels=pad([torch.where(l, t, -100) for t, l in chats], -100)).loss.item()
    assert abs(theirs - loss.item()) < 2e-6 * loss.item(), (theirs, loss.item())

    gradients = {name: p.grad.numpy() for name, p in exact.named_parameters()}
    with h5py.File(HERE / "supervised.h5", "w") as f:
        f["lengths"] = np.array(LENGTHS, np.int32)
        f["tokens"] = torch.cat([t for t, _ in chats]).int().numpy()
        f["learned"] = torch.cat([l for _, l in chats]).to(torch.int8).numpy()
        f["loss"] = loss.item()
        for name, value in tern_tensors(Qwen3ForCausalLM, gradients).items():
            f[f"gradients/{name}"] = value
    print(f"{len(chats)} conversations, {count} learned of {sum(LENGTHS)} tokens: loss {loss.item():.9f}, "
          f"Transformers' own in float32 {theirs:.9f}")


if __name__ == "__main__":
    main()
