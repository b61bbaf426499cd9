#!/usr/bin/env python3
"""Directories that the trainer exported, opened by Transformers. Run by hand; needs torch, transformers.

    python3 tests/golden/check_directories.py BUILD/trainer

Exports each golden directory of Qwen3 untrained, opens original and copy, and ends with 1 if a logit differs,
Transformers reports missing or unexpected weights, or the exported tokenizer gives other ids.
"""
import pathlib
import subprocess
import sys
import tempfile

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

HERE = pathlib.Path(__file__).parent
DECK = "&model load = '{}' context = 16 /\n&data train = 'x' valid = 'x' tokenizer = '{}' /\n&output directory = 'none' /\n"


def logits(folder, tokens):
    model, report = AutoModelForCausalLM.from_pretrained(folder, dtype="auto", output_loading_info=True)
    with torch.no_grad():
        return model.eval()(tokens).logits, {key: sorted(found) for key, found in report.items() if found}


def check(trainer, name, folder):
    (folder / "x.in").write_text(DECK.format(HERE / name, HERE / "qwen3_bf16"))
    options = [] if name == "qwen3_bf16" else ["--set", "data.tokenizer=nowhere"]
    subprocess.run([trainer, "x.in", "--export", name, *options], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    tokens = torch.randint(80, (2, 24), generator=torch.Generator().manual_seed(1))
    (before, _), (after, strange) = logits(HERE / name, tokens), logits(folder / name, tokens)
    equal = torch.equal(before, after)
    if name == "qwen3_bf16":
        text = "<|im_start|>user\nthe theme<|im_end|>\n<think>"
        one, two = (AutoTokenizer.from_pretrained(f)(text).input_ids for f in (HERE / name, folder / name))
        equal &= one == two
    print(f"{name}: {before.dtype}, logits {'equal' if equal else 'differ'}", strange or "")
    return equal and not strange


def main():
    trainer = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        results = [
            check(trainer, model, pathlib.Path(name)) for model in ("qwen3", "qwen3_bf16", "moe_shards", "moe_fused")
        ]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
