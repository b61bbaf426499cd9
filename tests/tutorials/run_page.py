#!/usr/bin/env python3
"""Runs a page of docs/tutorials as a reader does: every command, in order, as printed.

    run_page.py PAGE FOLDER --trainer FILE --prepare FILE [--after FOLDER] [--update]

The commands run in FOLDER, which is removed first and laid out like the root of the project: ./trainer, ./prepare, docs, input,
jobs and lib. With --after it starts as a copy of the folder that another page has left. One shell runs the whole page, so
that variables last; a command that fails fails the page.

What a page has:

    ```sh                         commands
    ```fortran title="own.in"     a file, written at this place (any language with a title)
    ```text                       lines of the output of the commands above it, or, after `cut`, all lines that match

and, in comments on a line of their own, which readers do not see:

    <!-- not run: REASON -->      the next block of commands is left out, or the next ```text is not compared
    <!-- cut: REGEX -->           the next ```text is all lines of the output that match; `FROM .. TO`: those from the first line
                                  that matches FROM to the next one that matches TO
    <!-- expect: LOW <= REGEX <= HIGH -->     the last number that the group of REGEX finds in the output is in this range

Numbers and their units are not compared, nor how many blanks are between words: they differ between machines. --update writes what
was cut in this run into the page, with the numbers of this machine.

$TERN_PYTHON is the page's python3. hf/bin/python of a page is that of $TERN_TRANSFORMERS, a virtual environment with
requirements.txt of this folder (6 GB: tests/run.sh does not make one). Without it the blocks that use hf are left out, and the last
line says how many.
"""
import argparse, os, pathlib, re, resource, shutil, sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.append(str(HERE.parent))
import limited

SECONDS = 900  # of a page, on a machine of its own
MARK = "@@ end of block"
NUMBER = re.compile(
    r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?:/\d+)?(?: ?(?:ms|s|min|hours|h|KiB|MiB|GiB|kB|MB|GB|K|M|G|%)\b)?", re.I)


class Block:
    def __init__(self, line, info):
        self.line, self.lines, self.notes = line, [], {}
        self.language = info.split()[0] if info else ""
        title = re.search(r'title="([^"]+)"', info)
        self.title = title.group(1) if title else None
        self.kind = "file" if self.title else {"sh": "commands", "text": "output"}.get(self.language, "shown")

    @property
    def text(self):
        return "".join(line + "\n" for line in self.lines)


class Expectation:
    kind = "expectation"

    def __init__(self, line, text):
        parts = re.split(r"\s*<=\s*", text)
        if len(parts) != 3:
            sys.exit(f"line {line}: an expectation is LOW <= REGEX <= HIGH, not '{text}'")
        self.line, self.low, self.pattern, self.high = line, float(parts[0]), parts[1], float(parts[2])


def parse(page):
    """Blocks and expectations, in the order of the page."""
    parts, block, notes = [], None, {}
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if block is not None:
            if line.rstrip() == "```":
                block = None
            else:
                block.lines.append(line)
            continue
        note = re.fullmatch(r"<!-- (not run|cut|expect): (.*) -->", line)
        if note and note.group(1) == "expect":
            parts.append(Expectation(number, note.group(2)))
        elif note:
            notes[note.group(1)] = note.group(2)
        elif line.startswith("```"):
            block = Block(number, line[3:].strip())
            block.notes, notes = notes, {}
            parts.append(block)
        elif line.strip() and notes:
            sys.exit(f"{page.name}:{number}: a comment stands before text instead of a block")
    if block is not None:
        sys.exit(f"{page.name}:{block.line}: this block does not end")
    return parts


def comparable(line):
    return " ".join(NUMBER.sub("#", line).split())


def lay_out(folder, options):
    if folder.exists():
        shutil.rmtree(folder)
    if options.after:
        if not options.after.is_dir():
            sys.exit(f"{options.after} is missing: run the page that makes it first")
        shutil.copytree(options.after, folder, symlinks=True)
        shutil.rmtree(folder / ".page")
    else:
        folder.mkdir(parents=True)
        for name in ("docs", "input", "jobs", "lib"):
            (folder / name).symlink_to(ROOT / name)
        (folder / "trainer").symlink_to(options.trainer)
        (folder / "prepare").symlink_to(options.prepare)
    (folder / ".page/bin").mkdir(parents=True)
    shim = folder / ".page/bin/python3"
    shim.write_text(f'#!/bin/sh\nexec "{os.environ.get("TERN_PYTHON", sys.executable)}" "$@"\n')
    shim.chmod(0o755)


def link_transformers(page, parts, folder):
    """Links hf to the environment with Transformers; without one, leaves out the blocks that use it. Returns how many."""
    if "hf/bin/" not in page.read_text() or (folder / "hf").exists():
        return 0
    found = os.environ.get("TERN_TRANSFORMERS")
    if found:
        if not pathlib.Path(found, "bin/python").exists():
            sys.exit(f"TERN_TRANSFORMERS: {found}/bin/python does not exist")
        (folder / "hf").symlink_to(pathlib.Path(found).resolve())
        return 0
    left_out = 0
    reason = None
    for part in parts:
        if part.kind == "commands":
            reason = "needs Transformers" if "hf/bin/" in part.text and "not run" not in part.notes else None
            left_out += reason is not None
        if reason and part.kind != "expectation":
            part.notes["not run"] = reason
        if reason and part.kind == "expectation":
            part.low, part.high = None, None
    return left_out


def script_of(parts, folder):
    lines = ["set -euo pipefail", 'export PATH="$PWD/.page/bin:$PATH"']
    for at, part in enumerate(parts):
        if part.kind == "file":
            (folder / f".page/{at}").write_text(part.text)
            lines.append(f"mkdir -p \"$(dirname '{part.title}')\" && cp .page/{at} '{part.title}'")
        elif part.kind == "commands" and "not run" not in part.notes:
            lines += [part.text, f"echo '{MARK} {at}'"]
    return "\n".join(lines) + "\n"


def run(page, parts, folder):
    """Output of each block of commands by its number; the page ends here if one fails."""
    # One thread: tests run at once.
    env = dict(os.environ, OMP_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
               HF_HUB_OFFLINE="1")
    (folder / ".page/page.sh").write_text(script_of(parts, folder))
    with open(folder / ".page/output.txt", "w") as file:
        done = limited.run(["bash", ".page/page.sh"], cwd=folder, env=env, stdout=file,
                           stderr=limited.subprocess.STDOUT, stdin=limited.subprocess.DEVNULL, seconds=SECONDS,
                           silent=SECONDS)
    pieces = re.split(rf"^{MARK} (\d+)\n", (folder / ".page/output.txt").read_text(errors="replace"), flags=re.M)
    outputs = {int(number): text.splitlines() for text, number in zip(pieces[::2], pieces[1::2])}
    if done.returncode != 0:
        failed = next(part for at, part in enumerate(parts)
                      if part.kind == "commands" and "not run" not in part.notes and at not in outputs)
        sys.exit(f"{page.name}:{failed.line}: exit code {done.returncode} of\n{failed.text}which printed\n{pieces[-1]}")
    return outputs


def cut(pattern, output):
    begin, _, end = pattern.partition(" .. ")
    if not end:
        return [line for line in output if re.search(begin, line)]
    first = next((at for at, line in enumerate(output) if re.search(begin, line)), None)
    if first is None:
        return []
    last = next((at for at in range(first, len(output)) if re.search(end, output[at])), len(output) - 1)
    return output[first:last + 1]


def faults_of_output(block, output):
    shown = block.lines
    if "cut" in block.notes:
        found = [line.rstrip() for line in cut(block.notes["cut"], output)]
        if not found:
            yield f"no line of the output matches '{block.notes['cut']}'"
        for at in range(max(len(found), len(shown))):
            a, b = (lines[at] if at < len(lines) else "(nothing)" for lines in (shown, found))
            if comparable(a) != comparable(b):
                yield f"the page shows\n  {a}\nand the commands print\n  {b}"
        return
    at = 0
    for line in shown:
        while at < len(output) and comparable(output[at]) != comparable(line):
            at += 1
        if at == len(output):
            yield f"the commands do not print, in this order,\n  {line}"
        at += 1


def faults_of_expectation(part, output):
    found = re.findall(part.pattern, "\n".join(output), re.M)
    if not found:
        yield f"nothing in the output matches '{part.pattern}'"
    elif not part.low <= float(found[-1].replace(",", "")) <= part.high:
        yield f"{found[-1]} is not from {part.low:g} to {part.high:g}: {part.pattern}"


def check(page, parts, outputs):
    faults, output = [], []
    for at, part in enumerate(parts):
        if part.kind == "commands":
            output = outputs.get(at, output)
        if part.kind == "output" and "not run" not in part.notes:
            found = faults_of_output(part, output)
        elif part.kind == "expectation" and part.low is not None:
            found = faults_of_expectation(part, output)
        else:
            continue
        faults += [f"{page.name}:{part.line}: {fault}" for fault in found]
    return faults


def update(page, parts, outputs):
    """The page with what was cut in this run."""
    lines, output, moved = page.read_text().splitlines(), [], 0
    for at, part in enumerate(parts):
        if part.kind == "commands":
            output = outputs.get(at, output)
        if part.kind != "output" or "cut" not in part.notes:
            continue
        found = [line.rstrip() for line in cut(part.notes["cut"], output)]
        begin = part.line + moved  # the line after the fence, from 0
        lines[begin:begin + len(part.lines)] = found
        moved += len(found) - len(part.lines)
    page.write_text("\n".join(lines) + "\n")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("page", type=pathlib.Path)
    options.add_argument("folder", type=pathlib.Path)
    for name in ("--trainer", "--prepare", "--after"):
        options.add_argument(name, type=lambda name: pathlib.Path(name).resolve())
    options.add_argument("--update", action="store_true")
    options = options.parse_args()
    page, folder = options.page.resolve(), options.folder.resolve()
    parts = parse(page)
    if not any(part.kind == "commands" for part in parts):
        sys.exit(f"{page.name} has no commands")
    lay_out(folder, options)
    left_out = link_transformers(page, parts, folder)
    outputs = run(page, parts, folder)
    if options.update:
        update(page, parts, outputs)
        parts = parse(page)
        if left_out:
            sys.exit(f"{page.name} is up to date but for the blocks that use Transformers: set TERN_TRANSFORMERS")
    faults = check(page, parts, outputs)
    print(*faults, sep="\n")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = used.ru_utime + used.ru_stime
    print(
        f"{page.name}: {len(outputs)} blocks of commands have run in {seconds:.0f} s of processor time; {len(faults)} faults"
        + (f"; {left_out} that use Transformers have not run: set TERN_TRANSFORMERS" if left_out else ""))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
