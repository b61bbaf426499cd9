"""Writes nfc_tables.inc from Python's own Unicode data: python3 make_nfc_tables.py > nfc_tables.inc

Normalization of an assigned character never changes from one Unicode version to the next, so a newer
Python only adds characters.
"""
import sys
import unicodedata

HANGUL = range(0xAC00, 0xD7A4)  # composed by arithmetic


def rows(items, per_line):
    for i in range(0, len(items), per_line):
        print("    " + " ".join(items[i : i + per_line]))


def main():
    decompositions, classes = [], []
    for c in range(sys.maxunicode + 1):
        text = unicodedata.decomposition(chr(c))
        if text and not text.startswith("<") and c not in HANGUL:
            parts = [int(p, 16) for p in text.split()] + [0]
            composes = int(unicodedata.normalize("NFC", chr(c)) == chr(c))
            decompositions.append(f"{{0x{c:x}, 0x{parts[0]:x}, 0x{parts[1]:x}, {composes}}},")
        value = unicodedata.combining(chr(c))
        if value and classes and classes[-1][1] == c - 1 and classes[-1][2] == value:
            classes[-1][1] = c
        elif value:
            classes.append([c, c, value])
    print(f"// Made by make_nfc_tables.py from Unicode {unicodedata.unidata_version}. Do not edit.")
    print("// Canonical decompositions: character, its first and second part (0: one part only), and")
    print("// whether normalization form C puts them together again.")
    print("constexpr Decomposition decompositions[] = {")
    rows(decompositions, 4)
    print("};\n// Canonical combining classes other than 0: first and last character, class.")
    print("constexpr CombiningClass combining_classes[] = {")
    rows([f"{{0x{a:x}, 0x{b:x}, {v}}}," for a, b, v in classes], 5)
    print("};")


main()
