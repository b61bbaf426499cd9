"""Small invariants of the repository.

    repository.py includes|size|format|width|namespaces|vendors|versions|json|listed

includes lib/NAME includes only the libraries that CMakeLists.txt gives it, all of them, and no other library's detail/;
         CONTRIBUTING.md lists the libraries in CMake's order; kernels of lib/ops are its own; only ops/attention exceeds
         4,000 lines, no folder 40 files
size     no source file over 450 lines
vendors  the runtimes and compilers of GPUs are named in lib/comm and in folders cuda only; elsewhere on_host
         (memory/views.hpp) and native_build (ops/core/operation.hpp) tell a build for GPUs
versions what other versions of a library lack: fmt::join is in <fmt/ranges.h> since fmt 11, fmt 12 removed fmt::localtime
json     JSON is parsed in lib/base/json.cpp only, which limits how deep it is nested
listed   README.md or a page of docs/ links every deck of input/ and names every script of jobs/; a deck begins with a headline
         that --list shows within 100 columns, in a comment of at most ten lines that names the deck's page
format   every source is formatted by clang-format or yapf (the versions of tests/requirements.txt)
width    prose of documents and decks is at most 120 columns wide (wrap.py); docs/deck.md is written by a program
namespaces  a file of lib/NAME is in namespace tern::NAME; base, words and memory are in tern
"""
import pathlib
import re
import subprocess
import sys

import wrap

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOST_LINES = 450
MOST_LINES_OF_A_LIBRARY, MOST_FILES_OF_A_FOLDER = 4000, 40


def tracked(*patterns):
    names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--", *patterns], check=True, capture_output=True,
                           text=True).stdout
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).exists()]


def named_libraries():
    """Each library of CMakeLists.txt, in its order, with the libraries that it names."""
    libraries = {}
    for name, rest in re.findall(r"^tern_(?:library|headers)\(([\w/]+)([^)]*)\)", (ROOT / "CMakeLists.txt").read_text(),
                                 re.MULTILINE):
        named = re.search(r"\bLIBRARIES((?:\s+[a-z_/]+\b)*)", rest)
        libraries[name] = named.group(1).split() if named else []
    return libraries


def library_of(file, libraries):
    """The library of a file below lib/, whose folder may be within another's, and the rest of the file's path."""
    folders = file.split("/")[:-1]
    for length in range(len(folders), 0, -1):
        if "/".join(folders[:length]) in libraries:
            return "/".join(folders[:length]), "/".join(file.split("/")[length:])
    return None, file


def includes(path, libraries):
    """(line number, library, header) of each include that names a library."""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        include = re.match(r'\s*#\s*include\s*"([^"]*)"', line)
        if include:
            library, header = library_of(include.group(1), libraries)
            if library:
                yield number, library, header


def check_includes():
    named = named_libraries()
    allowed = {}  # a library, those it names, those they name
    for library, others in named.items():
        allowed[library] = {library}.union(*(allowed[other] for other in others))
    used = {library: set() for library in named}
    for path in tracked("lib/*.hpp", "lib/*.cpp", "lib/*.cu", "lib/*.cuh"):
        library, _ = library_of(str(path.relative_to(ROOT / "lib")), named)
        if library is None:
            yield f"{path.relative_to(ROOT)}: CMakeLists.txt names no library for it"
            continue
        for number, other, header in includes(path, named):
            where = f"{path.relative_to(ROOT)}:{number}"
            used[library].add(other)
            if other not in allowed[library]:
                yield f"{where}: {library} may not include {other}"
            elif other != library and "detail" in header.split("/"):
                yield f"{where}: this folder is {other}'s own"
            elif other.startswith("ops/") and not library.startswith("ops/") and "/" in header:
                yield f"{where}: kernels are for the libraries of lib/ops only"
    for library, others in named.items():
        for other in others:
            if other not in used[library]:
                yield f"CMakeLists.txt: {library} names {other} and includes nothing of it"
    yield from check_order(list(named))
    yield from check_extent(named)


def check_order(libraries):
    listed = re.search(r"^((?:    [a-z/ ]+\n)+)",
                       (ROOT / "CONTRIBUTING.md").read_text().split("## Code organization")[1], re.MULTILINE)
    if listed is None or listed.group(1).split() != libraries:
        yield f"CONTRIBUTING.md: the libraries in CMake's order are\n    {'  '.join(libraries)}"


def check_extent(libraries):
    for library in libraries:
        sources = [
            path for path in tracked(f"lib/{library}/*.hpp", f"lib/{library}/*.cpp")
            if library_of(str(path.relative_to(ROOT / "lib")), libraries)[0] == library
        ]
        lines = sum(len(path.read_text().splitlines()) for path in sources)
        if lines > MOST_LINES_OF_A_LIBRARY and library != "ops/attention":
            yield f"lib/{library}: {lines} lines; which two libraries is it?"
    files = tracked("lib")
    for folder in sorted({path.parent for path in files}):
        count = sum(path.parent == folder for path in files)
        if count > MOST_FILES_OF_A_FOLDER:
            yield f"{folder.relative_to(ROOT)}: {count} files"


def check_size():
    for path in tracked("*.hpp", "*.cpp", "*.cu", "*.cuh", "*.py", "*.sh"):
        lines = len(path.read_text().splitlines())
        if lines > MOST_LINES:
            yield f"{path.relative_to(ROOT)}: {lines} lines; is an idea missing that would split it?"


VENDORS = re.compile(
    r"KOKKOS_ENABLE_(CUDA|HIP|SYCL)|Kokkos::(Cuda|HIP|SYCL)|TERN_WITH_(CUDA|HIP|NCCL)|__(CUDA|HIP)[A-Z_]+|"
    r"\b(cuda|hip|nccl|rccl|cublas|cudnn|rocblas)[A-Z]\w+|<(cuda|hip|nccl|rccl|cublas)[\w/]*\.h>|\b(cuda|hip)_\w+\(")
INSTRUCTIONS = {"lib/base/types.hpp": "__CUDA_ARCH__"}  # conversions that nvcc does not find by itself


def check_vendors():
    for path in tracked("lib/*.hpp", "lib/*.cpp", "app/*.cpp"):
        name = str(path.relative_to(ROOT))
        if name.startswith("lib/comm/") or "/cuda/" in name:
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = VENDORS.search(re.sub(r"//.*", "", line))
            if found and found.group() != INSTRUCTIONS.get(name):
                yield f"{name}:{number}: {found.group()}; lib/comm/gpu.hpp stands between Tern and the vendors"


def check_versions():
    for path in tracked("lib/*.hpp", "lib/*.cpp", "app/*.cpp", "bench/*.cpp", "tests/*.cpp"):
        text = path.read_text()
        for number, line in enumerate(text.splitlines(), 1):
            if "fmt::join(" in line and "#include <fmt/ranges.h>" not in text:
                yield f"{path.relative_to(ROOT)}:{number}: fmt::join without <fmt/ranges.h> (needed since fmt 11)"
            if "fmt::localtime(" in line:
                yield f"{path.relative_to(ROOT)}:{number}: fmt::localtime, which fmt 12 removed; take localtime_r"


PARSERS = re.compile(r"\bjson\s*::\s*(parse|accept|sax_parse|from_\w+)\s*\(|\boperator>>.*json")


def check_json():
    for path in tracked("lib/*.hpp", "lib/*.cpp", "app/*.cpp"):
        name = str(path.relative_to(ROOT))
        if name == "lib/base/json.cpp":
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = PARSERS.search(re.sub(r"//.*", "", line))
            if found:
                yield f"{name}:{number}: {found.group()}; base/json.hpp refuses what is nested too deeply"


def check_listed():
    texts = [path.read_text() for path in tracked("README.md", "docs/*.md")]
    column = max(len(f"input/{path.name}  ") for path in tracked("input/*.in"))
    for path in tracked("input/*.in"):
        if not any(re.search(rf"\]\((\.\./)*input/{re.escape(path.name)}\)", text) for text in texts):
            yield f"no document links input/{path.name}"
        header = path.read_text().split("\n&")[0].split("\n")
        if len(header) > 10 or not all(line.startswith("!") for line in header):
            yield f"input/{path.name}: {len(header)} lines before the first group; comments, at most ten"
        if len(header[0]) - len("! ") > 100 - column:
            yield f"input/{path.name}: a headline of {len(header[0]) - len('! ')} characters; --list has room for {100 - column}"
        page = re.match(r"! Page +(docs/campaigns/\w+\.md)$", header[-1])
        if page is None or not (ROOT / page.group(1)).exists():
            yield f"input/{path.name}: its last line before the first group is no page of docs/campaigns"
    for path in tracked("jobs/*.sh"):
        if not any(f"jobs/{path.name}" in text for text in texts):
            yield f"no document names jobs/{path.name}"


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
    python = [path for path in tracked("*.py") if "spack_repo" not in path.parts]  # Spack has a style of its own
    command = [sys.executable, "-m", "yapf", "--diff", "--parallel", *python]
    for line in subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout.splitlines():
        if line.startswith("--- "):
            yield f"{line.split()[1].replace(f'{ROOT}/', '')}: yapf formats it differently"


def check_width():
    for path in tracked("*.md", "*.in"):
        name = str(path.relative_to(ROOT))
        lines = path.read_text().splitlines()
        prose = [(lines, True)] if path.suffix == ".in" else wrap.blocks(lines)
        for block, wrappable in prose:
            for line in block if wrappable and name != "docs/deck.md" else []:
                if len(line) > wrap.COLUMNS:
                    yield f"{name}: {len(line)} columns, more than {wrap.COLUMNS}: {line[:60]}"


# Names that every library uses, and a library whose parts are in the namespace of the model.
NAMESPACES = {"base": "tern", "words": "tern", "memory": "tern", "parameters": "tern::model", "block": "tern::model"}


def check_namespaces():
    for library in named_libraries():
        folder = library.partition("/")[0]  # families of operations share tern::ops
        wanted = NAMESPACES.get(folder, f"tern::{folder}")
        for path in tracked(f"lib/{library}/*.hpp", f"lib/{library}/*.cpp"):
            found = re.findall(r"^namespace (tern[:\w]*)", path.read_text(), re.MULTILINE)
            if found and not any((one + "::").startswith(wanted + "::") for one in found):
                yield f"{path.relative_to(ROOT)}: namespace {found[0]}, not {wanted}"


def main():
    checks = {
        "includes": check_includes, "size": check_size, "format": check_format, "width": check_width,
        "namespaces": check_namespaces, "vendors": check_vendors, "versions": check_versions, "json": check_json,
        "listed": check_listed
    }
    if sys.argv[1:] not in [[name] for name in checks]:
        sys.exit(f"usage: repository.py {' | '.join(checks)}")
    faults = list(checks[sys.argv[1]]())
    print(*faults, sep="\n")
    sys.exit(f"{len(faults)} faults" if faults else 0)


main()
