"""Wraps paragraphs and list items of Markdown files at 120 columns: wrap.py FILE...

Only blocks with a longer line change. Tables, code, headings and HTML stay.
"""
import pathlib
import re
import sys
import textwrap

COLUMNS = 120
MARKER = re.compile(r"(\s*)([-*+]|\d+\.)\s+")
UNWRAPPED = re.compile(r"\s*[|#<>]|\s*\[[^]]+\]:|.*(  |\\)$")  # tables, headings, HTML, quotes, links, hard breaks


def wrapped(block):
    """Lines of a block of paragraphs and list items."""
    items = []
    for line in block:
        if MARKER.match(line) or not items:
            items.append([line])
        else:
            items[-1].append(line)
    for item in items:
        marker = MARKER.match(item[0])
        first = marker.group() if marker else re.match(r"\s*", item[0]).group()
        rest = re.match(r"\s*", item[1]).group() if len(item) > 1 else " " * len(first)
        text = " ".join([item[0][len(first):], *(line.strip() for line in item[1:])])
        lines = textwrap.wrap(text, COLUMNS, initial_indent=first, subsequent_indent=rest, break_long_words=False,
                              break_on_hyphens=False)
        if any(MARKER.match(line) or UNWRAPPED.match(line) for line in lines[1:]):
            lines = item  # would begin a line with a mark of Markdown
        yield from lines


def blocks(lines):
    """Blocks of lines that are not blank, and whether each may be wrapped."""
    fenced, listed, block = None, False, []
    for line in [*lines, ""]:
        fence = re.match(r"\s*(```|~~~)", line)
        if line.strip() and not fence and fenced is None:
            block.append(line)
            continue
        if block:
            code = block[0].startswith("    ") and not listed
            listed = bool(MARKER.match(block[0])) or (listed and block[0].startswith(" "))
            yield block, not code and not any(UNWRAPPED.match(one) for one in block)
            block = []
        if fence:
            fenced = None if fenced == fence.group(1) else fenced or fence.group(1)
        yield [line], False


def wrap(text):
    result = []
    for block, prose in blocks(text.splitlines()):
        long = any(len(line) > COLUMNS for line in block)
        result += wrapped(block) if prose and long else block
    return "\n".join(result[:-1]) + "\n"


def main():
    for name in sys.argv[1:]:
        path = pathlib.Path(name)
        path.write_text(wrap(path.read_text()))


if __name__ == "__main__":
    main()
