#!/usr/bin/env python3
"""Models exported by Tern, opened by Hugging Face Transformers. Run by hand; needs torch, transformers.

    ninja -C BUILD export_models && python3 tests/golden/check_export.py BUILD/tests/generate/export_models
    ./trainer DECK --export hf && python3 tests/golden/check_export.py --folder hf TEXT

The second form loads a folder with AutoTokenizer and AutoModelForCausalLM, encodes TEXT and decodes it again, and
continues it greedily, to be compared with ./trainer DECK --prompt TEXT --set generation.temperature=0; of a chat
model TEXT is a question, written by the template.

Prints, for each architecture, the relative error of Tern's float32 logits and how many of 60 greedily
generated tokens agree. Ends with 1 if an error is above 1e-5, a token differs, or Transformers reports
missing or unexpected weights.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


def check(folder, name):
    """Returns True if all agree."""
    values = json.loads((folder / f"{name}.json").read_text())
    model, report = AutoModelForCausalLM.from_pretrained(folder / name, dtype=torch.float32, output_loading_info=True)
    model.eval()
    strange = {key: sorted(found) for key, found in report.items() if found}
    tokens = torch.tensor([values["tokens"]])
    with torch.no_grad():
        logits = model(tokens).logits[0].double().numpy()
    ours = np.array(values["logits"]).reshape(logits.shape)
    error = np.linalg.norm(ours - logits) / np.linalg.norm(logits)
    prompt = torch.tensor([values["prompt"]])
    out = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False,
                         max_new_tokens=len(values["greedy"]))[0, prompt.shape[1]:].tolist()
    same = sum(a == b for a, b in zip(out, values["greedy"]))
    print(f"{name}: {model.__class__.__name__}, relative error of logits {error:.1e}, "
          f"{same} of {len(out)} greedy tokens equal ({len(set(out))} distinct)" +
          (f", loading reports {strange}" if strange else ""))
    return error < 1e-5 and out == values["greedy"] and not strange


def check_folder(folder, text):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model, report = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    strange = {key: sorted(found) for key, found in report.items() if found}
    ids = tokenizer(text, add_special_tokens=False).input_ids
    same = tokenizer.decode(ids) == text
    if tokenizer.chat_template:
        text = tokenizer.apply_chat_template([{"role": "user", "content": text}], tokenize=False,
                                             add_generation_prompt=True)
        ids = tokenizer(text, add_special_tokens=False).input_ids
    prompt = torch.tensor([ids])
    out = model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False, max_new_tokens=40)[0]
    print(f"{type(tokenizer).__name__} of {len(tokenizer)} tokens, {type(model).__name__}, text "
          f"{'unchanged' if same else 'CHANGED'}" + (f", loading reports {strange}" if strange else ""))
    print(text + "|" + tokenizer.decode(out[len(ids):]))
    return same and not strange


def main():
    if sys.argv[1] == "--folder":
        sys.exit(0 if check_folder(sys.argv[2], sys.argv[3]) else 1)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([sys.argv[1], folder], check=True)
        results = [check(folder, file.stem) for file in sorted(folder.glob("*.json"))]
    sys.exit(0 if len(results) == 4 and all(results) else 1)


if __name__ == "__main__":
    main()
