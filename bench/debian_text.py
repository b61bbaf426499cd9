"""A text corpus from the documentation in Debian packages, as JSON lines {"text"} for ./prepare text.

    apt-get download linux-doc-6.1 rust-doc sagemath-doc ...        # names: docs/measurements/pretraining.md
    python3 bench/debian_text.py *.deb > debian.jsonl

Reads HTML and plain text files. A document keeps the paragraphs of English prose, and the listings between them, that
no document before it has; one of fewer than 500 characters is left out. Needs dpkg-deb.
"""
import gzip, hashlib, html, json, re, subprocess, sys, tarfile

STOP_WORDS = frozenset(
    "the of to and a in is for that it be as on with are this by or an from not can if you will at".split())
DROPPED = re.compile(r"<(script|style|nav|head|header|footer|svg|math)\b.*?</\1\s*>|<!--.*?-->", re.S | re.I)
LISTING = re.compile(r"<pre\b[^>]*>(.*?)</pre\s*>", re.S | re.I)
BREAK = re.compile(r"</?(?:p|li|ul|ol|dd|dt|dl|div|td|th|tr|table|h[1-6]|section|blockquote|br|hr)\b[^>]*>", re.I)
TAG = re.compile(r"<[^>]*>")
WORD = re.compile(r"[A-Za-z']+")


def is_prose(text):
    words = WORD.findall(text.lower())
    return len(words) >= 8 and sum(w in STOP_WORDS for w in words) >= 0.15 * len(words)


def paragraphs_of_html(page):
    """(is a listing, text) in the page's order."""
    for i, part in enumerate(LISTING.split(DROPPED.sub(" ", page))):
        if i % 2:
            yield True, html.unescape(TAG.sub("", part)).rstrip()
        else:
            for text in BREAK.split(part):
                yield False, " ".join(html.unescape(TAG.sub("", text)).split())


def paragraphs_of_text(page):
    for text in re.split(r"\n\s*\n", page):
        yield False, text.strip("\n").rstrip()


def documents(package, seen):
    process = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE)
    with tarfile.open(fileobj=process.stdout, mode="r|") as files:
        for entry in files:
            name = entry.name.removesuffix(".gz")
            kind = name.rsplit(".", 1)[-1].lower()
            if not entry.isreg() or kind not in ("html", "htm", "xhtml", "txt", "rst") or entry.size > 4 << 20:
                continue
            data = files.extractfile(entry).read()
            page = (gzip.decompress(data) if name != entry.name else data).decode("utf-8", "ignore")
            kept, prose = [], 0
            for listing, text in (paragraphs_of_html if "htm" in kind else paragraphs_of_text)(page):
                if listing and not kept or not listing and not is_prose(text):
                    continue
                key = hashlib.blake2b(text.encode(), digest_size=8).digest()
                if key in seen:
                    continue
                seen.add(key)
                kept.append(text)
                prose += 0 if listing else len(text)
            if prose >= 500:
                yield "\n\n".join(kept)
    if process.wait() != 0:
        sys.exit(f"{package}: dpkg-deb cannot read it")


def main():
    if sys.argv[1:2] in (["-h"], ["--help"]):
        return print(__doc__.strip())
    if len(sys.argv) < 2:
        sys.exit(__doc__.strip())
    seen = set()
    for package in sys.argv[1:]:
        count = size = 0
        try:
            for text in documents(package, seen):
                print(json.dumps({"text": text}))
                count += 1
                size += len(text)
        except tarfile.ReadError:
            sys.exit(f"{package}: dpkg-deb cannot read it")
        print(f"{package}: {count} documents, {size / 1e6:.1f} MB", file=sys.stderr)


if __name__ == "__main__":
    main()
