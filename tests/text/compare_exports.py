"""Tokenizers as --export writes them, read by Hugging Face's tokenizers, and chat templates by Jinja as Transformers runs it.

    compare_exports.py TOKENIZE_TOOL EXPORT_TOOL PREPARE GOLDEN        GOLDEN: the folder tests/golden

Needs the Python packages tokenizers, tiktoken and jinja2 (tests/requirements.txt).
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import tokenizers
from jinja2.sandbox import ImmutableSandboxedEnvironment

from compare_tokenizers import compare, make_texts, tern

TOKENIZE, EXPORT, PREPARE, GOLDEN = sys.argv[1:5]
END = "<|endoftext|>"


def export(where, template, folder):
    subprocess.run([EXPORT, str(where), template, str(folder)], check=True)
    config = json.loads((folder / "tokenizer_config.json").read_text())
    return tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json")), config


def check(name, where, folder, texts):
    theirs, config = export(where, "none", folder)
    assert config["eos_token"] == END and theirs.token_to_id(END) is not None, config
    assert config["tokenizer_class"] == "PreTrainedTokenizerFast" and config["model_max_length"] == 1024, config
    ours = tern(TOKENIZE, where, [t.encode() for t in texts])
    compare(name, texts, ours, [e.ids for e in theirs.encode_batch(texts, add_special_tokens=False)])
    for text, (tokens, _) in zip(texts, ours):
        assert theirs.decode(tokens, skip_special_tokens=False) == text, text


def two_files(source, folder):
    """encoder.json and vocab.bpe of a tokenizer.json."""
    model = json.loads(source.read_text())["model"]
    folder.mkdir()
    vocabulary = dict(model["vocab"])
    vocabulary[END] = len(vocabulary)
    (folder / "encoder.json").write_text(json.dumps(vocabulary))
    merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
    (folder / "vocab.bpe").write_text("#version: 0.2\n" + "\n".join(merges) + "\n")


def check_own_template(environment, folder):
    """A tokenizer in the form of Llama 3 with a template and an end token of its own, which training may not have used."""
    names = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"]
    theirs = tokenizers.Tokenizer.from_file(str(folder / "bytes/tokenizer.json"))
    theirs.add_special_tokens([tokenizers.AddedToken(name, special=True, normalized=False) for name in names])
    begin = theirs.token_to_id(names[0])
    theirs.post_processor = tokenizers.processors.TemplateProcessing(single="<|begin_of_text|> $A",
                                                                     special_tokens=[(names[0], begin)])
    own = folder / "llama"
    own.mkdir()
    text = theirs.to_str().replace(END, "<|not_it|>")  # else the end of documents
    (own / "tokenizer.json").write_text(text)
    given = {
        "eos_token": {"content": "<|eot_id|>"}, "chat_template": "inline", "model_max_length": 77, "bos_token": names[0]
    }
    (own / "tokenizer_config.json").write_text(json.dumps(given))
    (own / "chat_template.jinja").write_text("theirs")
    _, config = export(own, "own", folder / "own")
    assert config == given and (folder / "own/chat_template.jinja").read_text() == "theirs", config
    _, config = export(own, "none", folder / "base")
    assert config == {"eos_token": "<|end_of_text|>", "model_max_length": 77, "bos_token": names[0]}, config
    assert not (folder / "base/chat_template.jinja").exists()
    _, config = export(own, "plain", folder / "llama_plain")
    assert config == {"eos_token": "<|end_of_text|>", "model_max_length": 77, "bos_token": names[0]}, config
    template = environment.from_string((folder / "llama_plain/chat_template.jinja").read_text())
    messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
    whole = template.render(messages=messages, eos_token=config["eos_token"])
    assert whole == "<|begin_of_text|>q\na<|end_of_text|>", whole
    prompt = template.render(messages=messages[:1], add_generation_prompt=True, eos_token=config["eos_token"])
    assert prompt == "<|begin_of_text|>q\n", prompt
    print("plain, of a tokenizer with a template of its own: as trained")


def check_templates(folder):
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    lines = [json.loads(line) for line in open(f"{GOLDEN}/chat.jsonl")]
    for form, whole, prompt in (("chatml", "chatml", "chatml_prompt"), ("qwen3", "qwen3", "qwen3_prompt"),
                                ("qwen3_thinking", "qwen3", "qwen3_thinking_prompt")):
        export("bytes", form, folder / form)
        template = environment.from_string((folder / form / "chat_template.jinja").read_text())
        for line in lines:
            for generates in (False, True):
                text = template.render(messages=line["messages"], add_generation_prompt=generates, eos_token=END)
                expected = line["expected"][whole] + (line["expected"][prompt] if generates else "")
                assert text == expected, f"{form}: {line['messages']}\n{text!r}\n{expected!r}"
        print(f"{form}: {len(lines)} conversations, equal")
    # The caller's setting overrides the deck's.
    messages = [{"role": "user", "content": "hi"}]
    for form in ("qwen3", "qwen3_thinking"):
        template = environment.from_string((folder / form / "chat_template.jinja").read_text())
        for thinking in (False, True):
            text = template.render(messages=messages, add_generation_prompt=True, enable_thinking=thinking)
            assert text.endswith("<|im_start|>assistant\n" if thinking else "</think>\n\n"), text
    check_own_template(environment, folder)
    _, config = export("bytes", "plain", folder / "plain")
    template = environment.from_string((folder / "plain/chat_template.jinja").read_text())
    messages = [
        {"role": r, "content": c} for r, c in (("system", "s"), ("user", "q"), ("assistant", "a"), ("user", "r"))
    ]
    assert template.render(messages=messages, add_generation_prompt=True,
                           eos_token=config["eos_token"]) == f"s\nq\na{END}r\n"


def main():
    texts = make_texts(random.Random(7), 2000)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        corpus = folder / "corpus.jsonl"
        corpus.write_text("".join(json.dumps({"text": t}) + "\n" for t in texts if t.strip()))
        check("bytes", "bytes", folder / "bytes", texts)
        for pattern in ("gpt2", "gpt4"):
            out = folder / pattern
            subprocess.run(
                [PREPARE, "text", "--input", corpus, "--output", out, "--train-bpe", "1000", "--pattern", pattern],
                check=True, stdout=subprocess.DEVNULL)
            check(f"trained {pattern}", out, folder / f"{pattern}_out", texts)
        two_files(folder / "gpt2/tokenizer.json", folder / "files")
        check("GPT-2's two files", folder / "files", folder / "files_out", texts)
        check_templates(folder)


main()
