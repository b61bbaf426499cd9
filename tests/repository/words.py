"""Words that documents, comments and messages do not use: file:line, the words, and what to write instead.

    words.py             every file of the repository; exit code 1 if it finds any
    words.py FILE...     these files

It reads documents, decks, scripts and CMake files whole, and of C++ and Python the comments and the strings of more than one
word. It skips code in backticks, the table of such words in CONTRIBUTING.md, and texts of word problems.
"""
import bisect
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Pattern, and what to write instead. A space also matches the end of a line.
WORDS = [
    (r"(?:tokens|bytes|FLOPs?|memory|GiB|GB|MiB|MB|sequences|requests|seconds|steps) an? "
     r"(?:rank|token|step|second|device|layer|request|minute|GPU|node)", "per rank, per token, per step, /s"),
    (r"(?:made |start(?:s|ed)? )?anew", "rebuilt, restart, from scratch"),
    (r"(?:go|goes|going|gone|went) on", "resume, continue"),
    (r"lonely", "single-rank"),
    (r"besides?", "compared with, next to, also"),
    (r"is no (?:folder|file|text|multiple|number)", "is not a"),
    (r"by heart", "memorized"),
    (r"from nothing", "from scratch"),
    (r"as (?:it was|they were)(?=\s*[.,;:)\"]|\s*$)|is what it was|in line again", "unchanged, requeued"),
    (r"likeliest", "argmax, most likely"),
    (r"micro-steps?", "micro-batch, accumulation step"),
    (r"whom|(?:of|the|by) who", "that, which positions attend"),
    (r"hand(?:s|ed|ing)? (?:out|over)", "return, pass"),
    (r"rooms|room of lib|(?:each|every|other|which|this) room", "library, module"),
    (r"the house|house (?:rule|test)s?", "the repository"),
    (r"twins?", "native kernel"),
    (r"TODO|FIXME|HACK|not implemented|unimplemented", "finish it"),
    # American spelling
    (r"(?:neighbo|colo|behavio|favo|hono|labo|flavo|harbo|rumo|rigo|vigo)ur\w*", "-or"),
    (r"(?:label|model|cancel|travel|signal|level|total|channel|fuel|tunnel|marshal)l(?:ed|ing|ers?)", "one l"),
    (r"centre[sd]?|(?:centi|milli|kilo)?metres?|litres?|fibres?", "-er"),
    (r"greys?|greyed", "gray"),
    (r"(?:anal|paral|catal)ys(?:e|ed|ing)", "-yze"),
    (r"towards|whilst|amongst", "toward, while, among"),
    (r"(?:mis)?spelt|learnt|burnt|dreamt", "spelled, learned"),
    (r"judgements?|acknowledgements?|licences?|defence|offence|practis(?:ed|ing)",
     "judgment, license, defense, practice"),
    (r"artefacts?|sceptic\w*|programmes?|ageing|fulfil|skilful|catalogues?|maths", "artifact, program, aging, catalog"),
]
PATTERNS = [
    (re.compile(r"\b(?:" + words.replace(" ", r"\s+") + r")\b", re.IGNORECASE), instead) for words, instead in WORDS
]
# -ise, which is -ize in American spelling except after these beginnings.
ISE = re.compile(r"\b([a-z]+)is(?:e|ed|es|ers?|ing|ations?)\b", re.IGNORECASE)
WITH_S = re.compile(
    r"(?:super|re|ad|de|impro|tele)v|\w*w|(?:de)?no|\w*ra|\w*pr|(?:pre|pro|compro|de|sur)m|a?r|"
    r"(?:pre|con|exer|ex|in|circum)c|expert|advert|chast|treat|disgu|merchand|parad|franch|po|[bc]ru|desp|ma",
    re.IGNORECASE)

CPP = re.compile(
    r'(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>R"(?P<d>[^(]*)\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*")|'
    r"(?<![0-9])'(?:\\.|[^'\\\n])+'", re.DOTALL)
PYTHON = re.compile(
    r'(?P<comment>#[^\n]*)|(?P<string>""".*?"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')', re.DOTALL)
SOURCES = {".cpp": CPP, ".hpp": CPP, ".cu": CPP, ".cuh": CPP, ".py": PYTHON}
WHOLE = {".md", ".in", ".sh", ".cmake", ".txt", ".yaml", ".yml", ".cff", ".def", ".bash", ".lua", ".toml", ".json"}
EXEMPT = ("tests/repository/words.py", "lib/problems/", "lib/prepare/detail/language_words.cpp"
         )  # sentences about houses


def blank(found):
    """As long, with as many lines, and no word."""
    return re.sub(r"[^\n ]", "\0", found[0])


def prose(suffix, text):
    """The text with all but prose blanked. Marks of comments and strings become spaces, since phrases wrap."""
    if suffix == ".md":
        text = re.sub(r"^## Words\n.*?(?=^## |\Z)", blank, text, flags=re.MULTILINE | re.DOTALL)
        text = re.sub(r"\]\([^)\s]*\)", blank, text)
    text = re.sub(r"`[^`\n]+`", blank, text)
    if suffix not in SOURCES:
        return re.sub(r"[#!>|*\"']", " ", text)
    result, end = [], 0
    for found in SOURCES[suffix].finditer(text):
        result.append(re.sub(r"[^\n ]", "\0", text[end:found.start()]))
        if found["comment"] or found["string"] and " " in found[0]:
            result.append(re.sub(r"[/*#!\"']", " ", found[0]))
        else:
            result.append(blank(found))
        end = found.end()
    return "".join(result) + re.sub(r"[^\n ]", "\0", text[end:])


def faults(suffix, text):
    """(line, words, what to write instead)"""
    text = prose(suffix, text)
    ends = [found.start() for found in re.finditer("\n", text)]
    found = [(match, instead) for pattern, instead in PATTERNS for match in pattern.finditer(text)]
    found += [(match, "-ize") for match in ISE.finditer(text) if not WITH_S.fullmatch(match[1])]
    for match, instead in sorted(found, key=lambda pair: pair[0].start()):
        if match[0] != "CANCELLED":  # a state of Slurm
            yield bisect.bisect_left(ends, match.start()) + 1, " ".join(match[0].split()), instead


def check_itself():
    """It finds what it looks for, also over the end of a line, and only in prose."""
    source = '// A run goes\n// on. `twin` and twin\nint colour = 0;\nauto text = "learnt"; say("from "\n  "nothing, likewise");\n'
    page = "Neighbours normalise `colour` as it\nwas.\n\n## Words\n\n| anew | restart |\n"
    expected = [(".cpp", source, [(1, "goes on"), (2, "twin"), (4, "from nothing")]),
                (".md", page, [(1, "Neighbours"), (1, "normalise"), (1, "as it was")])]
    for suffix, text, found in expected:
        assert [(line, words) for line, words, _ in faults(suffix, text)] == found, list(faults(suffix, text))


def main():
    check_itself()
    names = sys.argv[1:]
    if not names:
        listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], check=True, capture_output=True,
                                text=True).stdout
        names = [name for name in listed.split("\0") if name and (ROOT / name).exists()]
    count = 0
    for name in names:
        path = ROOT / name
        if name.startswith(EXEMPT) or not (path.suffix in WHOLE | set(SOURCES) or name == ".ci/run"):
            continue
        for line, words, instead in faults(path.suffix, path.read_text()):
            print(f"{name}:{line}: '{words}'; write: {instead}")
            count += 1
    sys.exit(f"{count} words" if count else 0)


main()
