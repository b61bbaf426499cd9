"""Writes property_additions.inc: python3 make_property_additions.py > property_additions.inc

Characters that Unicode gained after version 14, by general category and script, as Oniguruma has them in the
package tokenizers. Needs that package and a Python with Unicode 14 (3.11).
"""
import sys
import unicodedata

from tokenizers import Regex, pre_tokenizers

CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf".split()
# Those with additions; the last seven are new.
SCRIPTS = (
    "Arabic Armenian Balinese Bengali Bopomofo Brahmi Common Coptic Cyrillic Devanagari Egyptian_Hieroglyphs Ethiopic Georgian "
    "Glagolitic Grantha Greek Gujarati Gurmukhi Han Hangul Hebrew Hiragana Inherited Javanese Kaithi Kannada Katakana Khmer Khojki "
    "Lao Latin Malayalam Mongolian Myanmar Oriya Sharada Sinhala Sundanese Syriac Tagalog Tamil Tangut Telugu Thai Tibetan "
    "Garay Gurung_Khema Kawi Kirat_Rai Nag_Mundari Ol_Onal Sunuwar Todhri Tulu_Tigalari").split()


def ranges(text, name):
    """First and last characters of the runs in `text`, which is sorted, of a property."""
    found = []
    for piece, _ in pre_tokenizers.Split(Regex(rf"\p{{{name}}}"), behavior="removed",
                                         invert=True).pre_tokenize_str(text):
        for c in map(ord, piece):
            if found and found[-1][1] == c - 1:
                found[-1][1] = c
            else:
                found.append([c, c])
    return found


def main():
    assert unicodedata.unidata_version == "14.0.0", unicodedata.unidata_version
    unassigned = "".join(c for c in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(c) == "Cn")
    new = "".join(chr(c) for a, b in ranges(unassigned, "^Cn") for c in range(a, b + 1))
    print("// Made by make_property_additions.py. Do not edit.")
    print("// Property, first and last character.")
    print("constexpr Addition additions[] = {")
    for name in CATEGORIES + SCRIPTS:
        rows = [f'{{"{name.replace("_", "").lower()}", 0x{a:X}, 0x{b:X}}},' for a, b in ranges(new, name)]
        line = "   "
        for row in rows:
            if len(line) + 1 + len(row) > 100:
                print(line)
                line = "   "
            line += " " + row
        if line.strip():
            print(line)
    print("};")


main()
