"""Tern's tokenizers against tiktoken and Hugging Face's tokenizers.

    compare_tokenizers.py TOKENIZE_TOOL PREPARE            on text and vocabularies generated here
    compare_tokenizers.py TOKENIZE_TOOL --gpt2 FOLDER FILES...   GPT-2's files in FOLDER, on real text

Needs the Python packages tiktoken and tokenizers (tests/requirements.txt).
"""
import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import unicodedata

import tiktoken
import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers

GPT2 = r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
GPT4 = (r"""(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"""
        r"""|\s*[\r\n]+|\s+(?!\S)|\s+""")
QWEN = GPT4.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = "|".join([
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"
])


def stable_characters():
    """Characters whose category has been the same since Unicode 3.2: every library here knows them."""
    old = unicodedata.ucd_3_2_0
    return [
        c for c in map(chr, range(0x110000))
        if old.category(c) not in ("Cn", "Cs") and old.category(c) == unicodedata.category(c)
    ]


def make_texts(rng, count):
    characters = stable_characters()
    marks = [c for c in characters if unicodedata.combining(c)]
    common = [
        " ", "  ", "\n", "\r\n", "\t", "'s", "'LL", "'re", "'", "the ", "The", "theme", "12", "3456", "!?", "\u00a0",
        "\u3000", "\u2028", "caf\u00e9", "\u4f60\u597d", "\U0001f600", "e\u0301", "()", "//\n"
    ]
    texts = ["", " ", "  ", "\n", "a", "'", "a" * 5000, " " * 300, "ab" * 700, "\u00e9" * 200]
    for i in range(count):
        pool = [common, characters[:200], characters, marks]
        texts.append("".join(
            rng.choice(pool[rng.choice((0, 0, 0, 1, 1, 2, 2 if i % 2 else 3))]) for _ in range(rng.randrange(60))))
    return texts


def tern(tool, tokenizer, texts, *options):
    data = b"".join(struct.pack("<Q", len(t)) + t for t in texts)
    done = subprocess.run([tool, str(tokenizer), *options], input=data, stdout=subprocess.PIPE, check=True)
    results, at, out = [], 0, done.stdout
    for _ in texts:
        (count,) = struct.unpack_from("<Q", out, at)
        tokens = list(struct.unpack_from(f"<{count}i", out, at + 8))
        at += 8 + 4 * count
        (length,) = struct.unpack_from("<Q", out, at)
        results.append((tokens, out[at + 8:at + 8 + length]))
        at += 8 + length
    assert at == len(out), "the tool wrote more than was asked"
    return results


def compare(name, texts, ours, expected, decoded=lambda text: text.encode()):
    for text, (tokens, back), theirs in zip(texts, ours, expected, strict=True):
        if tokens != theirs:
            sys.exit(f"{name}: tokens differ for {text[:300]!r}:\n  ours   {tokens[:50]}\n  theirs {theirs[:50]}")
        if back != decoded(text):
            sys.exit(f"{name}: {text[:300]!r} is decoded as {back[:300]!r}")
    print(f"{name}: {len(texts)} texts, {sum(map(len, expected))} tokens, equal")


def byte_of_character():
    """GPT-2's alphabet, inverted."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in printable]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(others)}


def as_tiktoken(vocabulary, pattern):
    alphabet = byte_of_character()
    ranks = {bytes(alphabet[c] for c in token): rank for token, rank in vocabulary.items()}
    return tiktoken.Encoding("test", pat_str=pattern, mergeable_ranks=ranks, special_tokens={})


def check(tool, name, tokenizer_json, texts, nfc=False):
    """A tokenizer.json in both programs."""
    theirs = tokenizers.Tokenizer.from_file(str(tokenizer_json))
    expected = [e.ids for e in theirs.encode_batch(texts, add_special_tokens=False)]
    ours = tern(tool, tokenizer_json, [t.encode() for t in texts])
    normal = (lambda t: unicodedata.normalize("NFC", t).encode()) if nfc else (lambda t: t.encode())
    compare(name, texts, ours, expected, normal)
    return ours


def check_trained_here(tool, prepare, folder, texts, corpus):
    """Vocabularies that ./prepare trains."""
    for pattern, regex in (("gpt2", GPT2), ("gpt4", GPT4)):
        out = folder / pattern
        subprocess.run(
            [prepare, "text", "--input", corpus, "--output", out, "--train-bpe", "1500", "--pattern", pattern],
            check=True, stdout=subprocess.DEVNULL)
        ours = check(tool, f"trained {pattern}, tokenizers", out / "tokenizer.json", texts)
        vocabulary = json.loads((out / "tokenizer.json").read_text())["model"]["vocab"]
        assert len(vocabulary) == 1499
        reference = as_tiktoken(vocabulary, regex)
        compare(f"trained {pattern}, tiktoken", texts, ours, [reference.encode_ordinary(t) for t in texts])


def check_trained_there(tool, folder, texts):
    """Vocabularies that Hugging Face's trainer makes, in the forms of published tokenizers."""
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    split = lambda regex: pre_tokenizers.Split(Regex(regex), behavior="isolated")
    forms = {
        "gpt2 form": pre_tokenizers.ByteLevel(add_prefix_space=False),
        "qwen form": pre_tokenizers.Sequence([split(QWEN), byte_level]),
        "o200k form": pre_tokenizers.Sequence([split(O200K), byte_level]),
        "cl100k form": pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(GPT4), behavior="removed", invert=True), byte_level]),
        "lines form": pre_tokenizers.Sequence([split(r"^\w{,2}|\s\w+$|'$|[^\n']"), byte_level]),
        "hexadecimal form": pre_tokenizers.Sequence([split(r"\h++|\H\v?|(?m:a.)|[\h\u4f60]"), byte_level]),
        "properties form": pre_tokenizers.Sequence(
            [split(r"\p{Han}+|\x{6e}+|[\p{Lu}\x{e9}]+|[^\P{Ll}]+|\p{P}{1,2}|[\P{S}\S]+|\P{L}"), byte_level]),
        "digits form": pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True),
             pre_tokenizers.ByteLevel(add_prefix_space=False)]),
    }
    for name, form in forms.items():
        theirs = tokenizers.Tokenizer(models.BPE())
        theirs.pre_tokenizer, theirs.decoder = form, decoders.ByteLevel()
        if name == "qwen form":
            theirs.normalizer = normalizers.NFC()
        theirs.train_from_iterator(
            texts,
            trainers.BpeTrainer(vocab_size=2000, show_progress=False, special_tokens=["<|endoftext|>"],
                                initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
        theirs.add_tokens([
            tokenizers.AddedToken("<think>", special=False, normalized=False),
            tokenizers.AddedToken("</think>", special=False, normalized=False)
        ])
        file = folder / (name.replace(" ", "_") + ".json")
        theirs.save(str(file))
        tagged = texts + ["<think>the theme</think>\n\nthe <think", "a<think><think> </think>"]
        check(tool, name, file, tagged, nfc=name == "qwen form")


def check_special_tokens(tool, file, texts, rng):
    """Qwen's added tokens: special ones are found where requested, and are plain text otherwise."""
    theirs = tokenizers.Tokenizer.from_file(str(file))
    special = ["<|im_start|>", "<|im_end|>", "<|im", "<|endoftext|>"]
    theirs.add_special_tokens([tokenizers.AddedToken(t, special=True, normalized=False) for t in special])
    file = file.with_name("special.json")
    theirs.save(str(file))
    pool = special + ["<think>", "</think>", "<|", "|>", "im_start", "\n", " ", "user\n", "e\u0301", "a\u0327\u0301"]
    marked = ["".join(rng.choice(pool) for _ in range(rng.randrange(12))) + text[:20] for text in texts[:1000]]
    normal = lambda text: unicodedata.normalize("NFC", text).encode()
    data = [t.encode() for t in marked]
    compare("special tokens, read", marked, tern(tool, file, data, "marked"),
            [e.ids for e in theirs.encode_batch(marked, add_special_tokens=False)], normal)
    theirs.encode_special_tokens = True  # as plain text
    compare("special tokens, not read", marked, tern(tool, file, data),
            [e.ids for e in theirs.encode_batch(marked, add_special_tokens=False)], normal)


def check_surroundings(tool, file, texts):
    """What a post-processor puts around a single text, in the forms of published tokenizers."""
    theirs = tokenizers.Tokenizer.from_file(str(file))
    theirs.add_special_tokens(
        [tokenizers.AddedToken(t, special=True, normalized=False) for t in ("<|begin|>", "<|end|>")])
    ids = [(name, theirs.token_to_id(name)) for name in ("<|begin|>", "<|end|>")]
    template = lambda single: processors.TemplateProcessing(single=single, pair="$A $B:1", special_tokens=ids)
    forms = {
        "begin": template("<|begin|> $A"), "both": template("<|begin|> $A <|end|>"),
        "end": template("$A <|end|> <|end|>"),
        "llama form": processors.Sequence([processors.ByteLevel(trim_offsets=True),
                                           template("<|begin|> $A")]), "byte level": processors.ByteLevel()
    }
    for name, form in forms.items():
        theirs.post_processor = form
        made = file.with_name(name.replace(" ", "_") + "_post.json")
        theirs.save(str(made))
        expected = [e.ids for e in theirs.encode_batch(texts)]
        ours = tern(tool, made, [t.encode() for t in texts], "alone")
        for text, (tokens, _), wanted in zip(texts, ours, expected, strict=True):
            if tokens != wanted:
                sys.exit(f"post-processor {name}: {text[:100]!r}: ours {tokens[:20]}, theirs {wanted[:20]}")
        print(f"post-processor {name}: {len(texts)} texts, equal")


def every_composition(rng):
    """Each character with a canonical decomposition, in pieces and whole, among marks in any order."""
    marks = [c for c in stable_characters() if unicodedata.combining(c)]
    texts = []
    for c in stable_characters():
        whole = unicodedata.normalize("NFD", c)
        if whole != c:
            texts.append(c + whole + whole[0] + "".join(rng.sample(marks, 3)) + whole + "x")
    return texts


def real_text(tool, folder, files):
    with open(f"{folder}/encoder.json") as file:
        vocabulary = json.load(file)
    vocabulary.pop("<|endoftext|>")
    reference = as_tiktoken(vocabulary, GPT2)
    for file in files:
        with open(file, newline="", encoding="utf-8") as stream:
            lines = stream.read().split("\n") if file.endswith(".jsonl") else [stream.read()]
        texts = [json.loads(line)["text"] if file.endswith(".jsonl") else line for line in lines if line]
        ours = tern(tool, folder, [t.encode() for t in texts])
        compare(f"{file} ({sum(len(t.encode()) for t in texts)} bytes)", texts, ours,
                [reference.encode_ordinary(t) for t in texts])


def main():
    tool = sys.argv[1]
    if sys.argv[2] == "--gpt2":
        return real_text(tool, sys.argv[3], sys.argv[4:])
    rng = random.Random(20240520)
    texts = make_texts(rng, 4000)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        corpus = folder / "corpus.jsonl"
        corpus.write_text("".join(json.dumps({"text": t}) + "\n" for t in texts if t.strip()))
        check_trained_here(tool, sys.argv[2], folder, texts, corpus)
        check_trained_there(tool, folder, texts)
        check_special_tokens(tool, folder / "qwen_form.json", texts, rng)
        check_surroundings(tool, folder / "gpt2_form.json", texts[:1000])
        check(tool, "NFC", folder / "qwen_form.json", every_composition(rng), nfc=True)


if __name__ == "__main__":
    main()
