#!/usr/bin/env python3
"""Writes chat.jsonl: 50 random conversations, and their text as Transformers renders it, for test_chat.

Run from anywhere: python3 tests/golden/make_chat.py. Needs transformers, tokenizers and jinja2, and trl 1.16 (pip
install --no-deps will do: it is not imported), whose package holds the templates that Qwen3's models were published
with: `qwen3` of the hybrid models, `chatml` of the Instruct ones of July 2025.
"""

import importlib.util
import json
import pathlib
import random

from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

COUNT, SEED = 50, 20260501
WORDS = [
    "the", "river", "ναί", "слово", "言葉", "مرحبا", "🦜", "e\u0301", "x<y", "{text}", "{{ 1 }}", "\"quoted\"",
    "back\\slash", "tab\tbed", "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think", "think>", "a & b", "\u2028",
    "\u00a0", "12,5"
]
EDGES = ["", "", "", "\n", "\n\n", " ", "\r\n", "  \n"]


def text(rng, words=6):
    if rng.random() < 0.08:
        return rng.choice(["", "\n", " "])
    body = rng.choice([" ", " ", "\n"]).join(rng.choice(WORDS) for _ in range(rng.randint(1, words)))
    return rng.choice(EDGES) + body + rng.choice(EDGES)


def answer(rng):
    kind = rng.random()
    if kind < 0.45:
        return {"role": "assistant", "content": text(rng)}
    if kind < 0.65:
        return {"role": "assistant", "content": f"<think>\n{text(rng)}\n</think>\n\n{text(rng)}"}
    if kind < 0.75:
        return {"role": "assistant", "content": f"<think>\n\n</think>\n\n{text(rng)}"}
    if kind < 0.85:  # without its start, or with more than one end
        return {
            "role": "assistant", "content": f"{text(rng)}</think>{text(rng)}{rng.choice(['', '</think>' + text(rng)])}"
        }
    return {"role": "assistant", "content": text(rng), "reasoning_content": text(rng)}


def conversation(rng):
    messages = [{"role": "system", "content": text(rng)}] if rng.random() < 0.5 else []
    for _ in range(rng.randint(1, 4)):
        user = text(rng) if rng.random() < 0.93 else f"<tool_response>{text(rng)}</tool_response>"
        messages.append({"role": "user", "content": user})
        if rng.random() < 0.05:
            messages.append({"role": "system", "content": text(rng)})
        messages += [answer(rng) for _ in range(rng.choice([0, 1, 1, 1, 1, 1, 2]))]
    return messages[rng.random() < 0.04:]


def main():
    folder = pathlib.Path(importlib.util.find_spec("trl").submodule_search_locations[0], "chat_templates")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()))
    templates = {
        "qwen3": (folder / "qwen3.jinja").read_text(), "chatml": (folder / "qwen3_instruct_2507.jinja").read_text()
    }

    def write(messages, name, generate=False, **settings):
        return tokenizer.apply_chat_template(messages, chat_template=templates[name], tokenize=False,
                                             add_generation_prompt=generate, **settings)

    def added(messages, name, **settings):
        """What a generation prompt adds to the conversation."""
        whole, prompt = write(messages, name), write(messages, name, True, **settings)
        assert prompt.startswith(whole)
        return prompt[len(whole):]

    rng = random.Random(SEED)
    with open(pathlib.Path(__file__).with_name("chat.jsonl"), "w", encoding="utf-8", newline="\n") as file:
        for _ in range(COUNT):
            messages = conversation(rng)
            expected = {
                "chatml": write(messages, "chatml"), "qwen3": write(messages, "qwen3"),
                "chatml_prompt": added(messages, "chatml"), "qwen3_prompt": added(messages, "qwen3",
                                                                                  enable_thinking=False),
                "qwen3_thinking_prompt": added(messages, "qwen3", enable_thinking=True)
            }
            file.write(json.dumps({"messages": messages, "expected": expected}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
