#!/usr/bin/env python3
"""Writes patterns.json: how the package tokenizers (Oniguruma) splits texts, for test_pretokenizer.

Run from anywhere: python3 tests/golden/make_patterns.py. Needs tokenizers 0.23.

"splits": a pattern and, for each of "texts", the bytes of its pieces. "properties": number of characters, sum of
code points and sum of their squares, over the characters in "assigned" (first and last of each run). U+1171E, which
changed from Mn to Mc in Unicode 15.1, is left out.
"""
import json
import pathlib
import random

from tokenizers import Regex, pre_tokenizers

CATEGORIES = ("L LC M N P S Z C Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co "
              "Han Latin Cyrillic Hiragana Katakana Hangul Thai Arabic Devanagari Common Inherited Kawi "
              "Letter Uppercase_Letter Digit Space Punct XDigit ASCII Hani").split()
PATTERNS = [
    r"\x{6e}", r"\x{6E}+", r"\x6e", r"\x9", r"\x{6e}{2}", r"\x{4f60}\x{597d}", r"[\x{61}-\x{63}\x{E9}]+",
    r"\u00e9|\u006e", r"[\u4e00-\u9fff]+", r"\p{P}+", r"\p{Lu}", r"\P{L}+", r"\p{Han}+", r"\p{^L}+", r"\P{^L}+",
    r"\p{Lu}{2}", r"\P{L}{1,2}", r"\p{ l u }", r"\p{uppercase-letter}+", r"\p{N}{1,3}",
    r"[\p{Lu}\p{Lt}]?[\p{Ll}\p{M}]+", r"[^\p{L}\p{N}\s]+", r"\p{Hiragana}+|\p{Katakana}+|\p{Hangul}+",
    r"\p{Cyrillic}+|\p{Latin}+", r"[\P{L}]+", r"[^\P{L}]+", r"[\p{^Lu}a]+", r"[^\P{Lu}\P{L}]+", r"[^a\P{L}]+",
    r"[n\P{L}]+", r"\p{C}+", r"\P{C}+", r"[\p{Cn}x]+", r"[^\p{C}]+", r"[\S]+", r"[^\S]+", r"[^\S\n]+", r"[\Sn ]+",
    r"\S+", r"[\W]+", r"[^\W]+", r"\W+", r"\w{2}", r"[\D]+", r"\d{2}", r"\D+", r"[\H]+", r"[^\Hb]+", r"\h{2}",
    r"\101|\012|\0", r"[\101\12]+", r"(a)\1", r"(?<n>a|b)\g<n>", r"(?<n>a)\k<n>", r"\cA|\cj", r"[\cJ ]+", r"\R{2}",
    r"\t{2}", r"\.{2}", r"\{2}", r"a\{", r"x{a}|{x}", r"\p{Space}+|\p{Digit}+|\p{Punct}+", r"(?i)\x{6e}|\p{Lu}",
    r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+"
]
OTHER = 0x1171E


def split(pattern, text, **settings):
    return pre_tokenizers.Split(Regex(pattern), **settings).pre_tokenize_str(text)


def runs(characters):
    found = []
    for c in characters:
        if found and found[-1][1] == c - 1:
            found[-1][1] = c
        else:
            found.append([c, c])
    return found


def texts():
    rng = random.Random(20261130)
    pool = [
        "a", "n", "nn", "x", "N", "B", "aa", "ab", "12", "3", "٣", "½", " ", "  ", "\t\t", "\n", "\r\n", "\n\n", "..",
        "!?", "«", "¿", "$", "_", "{2}", "{6e}", "{a}", "x{6e}", "é", "e\u0301", "Éà", "ß", "Ж", "жук", "ǅ", "你好", "中",
        "かな", "カナ", "한국", "ไทย", "नमस्ते", "مرحبا", "🦜", "👩\u200d🔬", "\u00a0", "\u180e", "\u2028", "\u0378",
        "\U00031350", "\U0001e4f0", "\U0002ebf0", "\u0897", "\x01", "\x00", "\x0b", "\U0010fffd", "fg", "0x1F"
    ]
    return ["", "an{6e}xb", "aB{}", "中文 and English, 12 of 3."
           ] + ["".join(rng.choice(pool) for _ in range(rng.randint(1, 24))) for _ in range(60)]


def main():
    every = "".join(chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000)
    assigned = [c for piece, _ in split(r"\P{Cn}+", every, behavior="removed", invert=True) for c in map(ord, piece)]
    known = "".join(map(chr, assigned))
    properties = {}
    for name in CATEGORIES:
        found = [
            c for piece, _ in split(rf"\p{{{name}}}+", known, behavior="removed", invert=True) for c in map(ord, piece)
        ]
        found = [c for c in found if c != OTHER]
        properties[name] = [len(found), sum(found), sum(c * c for c in found)]
    lines = texts()
    splits = [[
        pattern, [[len(piece.encode()) for piece, _ in split(pattern, text, behavior="isolated")] for text in lines]
    ] for pattern in PATTERNS]
    with open(pathlib.Path(__file__).with_name("patterns.json"), "w", encoding="utf-8", newline="\n") as file:
        rows = [
            f'"assigned": {json.dumps(runs(assigned))}', f'"properties": {json.dumps(properties)}',
            f'"texts": {json.dumps(lines)}', '"splits": [\n' + ",\n".join(json.dumps(row) for row in splits) + "\n]"
        ]
        file.write("{" + ",\n".join(rows) + "}\n")


if __name__ == "__main__":
    main()
