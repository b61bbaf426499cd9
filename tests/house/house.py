"""The small invariants of the house. usage: house.py rooms|size|format

rooms   lib/ROOM includes only the rooms that CMakeLists.txt gives it, and nobody else's detail/
size    no source file over 450 lines
format  every source is as clang-format (the version of tests/requirements.txt) leaves it
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_LINES = 450


def tracked(*patterns):
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--", *patterns],
                           check=True, capture_output=True, text=True).stdout
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).exists()]


def declared_rooms():
    """Each room with all rooms it may include: itself, those it names, those they name."""
    text = (ROOT / "CMakeLists.txt").read_text()
    allowed = {}
    for name, rest in re.findall(r"^tern_room\((\w+)([^)]*)\)", text, re.MULTILINE):
        named = re.search(r"ROOMS((?:\s+[a-z_]+\b)*)", rest)
        allowed[name] = {name}
        for room in named.group(1).split() if named else []:
            allowed[name] |= allowed[room]
    return allowed


def check_rooms():
    allowed = declared_rooms()
    for path in tracked("lib/*.hpp", "lib/*.cpp", "lib/*.cu", "lib/*.cuh"):
        room = path.relative_to(ROOT / "lib").parts[0]
        if room not in allowed:
            yield f"{path.relative_to(ROOT)}: CMakeLists.txt names no room {room}"
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            include = re.match(r'\s*#\s*include\s*"(\w+)/([^"]*)"', line)
            if not include or include.group(1) not in allowed:
                continue
            other, where = include.group(1), f"{path.relative_to(ROOT)}:{number}"
            if other not in allowed[room]:
                yield f"{where}: {room} may not include {other}"
            elif other != room and include.group(2).startswith("detail/"):
                yield f"{where}: {other}/detail is {other}'s own"


def check_size():
    for path in tracked("*.hpp", "*.cpp", "*.cu", "*.cuh", "*.py", "*.sh"):
        lines = len(path.read_text().splitlines())
        if lines > MOST_LINES:
            yield f"{path.relative_to(ROOT)}: {lines} lines; is an idea missing that would split it?"


def check_format():
    clang_format = pathlib.Path(sys.executable).parent / "clang-format"
    if not clang_format.exists():
        yield f"{clang_format} is missing: TERN_PYTHON must have the packages of tests/requirements.txt"
        return
    sources = tracked("*.hpp", "*.cpp", "*.cu", "*.cuh")
    command = [clang_format, "--dry-run", *sources]
    for line in subprocess.run(command, capture_output=True, text=True).stderr.splitlines():
        if "warning" in line or "error" in line:
            yield line.replace(f"{ROOT}/", "")


def main():
    checks = {"rooms": check_rooms, "size": check_size, "format": check_format}
    faults = list(checks[sys.argv[1]]())
    print(*faults, sep="\n")
    sys.exit(f"{len(faults)} faults" if faults else 0)


main()
