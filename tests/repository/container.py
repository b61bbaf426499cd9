"""The Apptainer definition packaging/tern.def: sections, arguments, copied files, syntax of its scripts.

    container.py            exit code 1 if it has a fault
    container.py SECTION    prints that script, with the default arguments
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = ("post", "environment", "runscript", "test")
BUILDS = ({}, {"preset": "cuda", "base": "nvidia/cuda:13.0.0-devel-ubuntu24.04"})


def parse():
    """Header as {key: value}, sections as {name: text}."""
    header, sections, name = {}, {}, None
    for line in (ROOT / "packaging/tern.def").read_text().splitlines():
        if line.startswith("%"):
            name = line[1:].strip()
            assert name not in sections, f"two sections {name}"
            sections[name] = ""
        elif name:
            sections[name] += line + "\n"
        elif line and not line.startswith("#"):
            key, value = line.split(": ", 1)
            header[key] = value
    return header, sections


def substitute(text, arguments):
    return re.sub(r"\{\{ (\w+) \}\}", lambda use: arguments[use.group(1)], text)


def check_structure(header, sections, defaults):
    if set(header) != {"Bootstrap", "From"}:
        yield f"the header has {', '.join(header)}"
    if set(sections) != {"arguments", "help", "files", *SCRIPTS}:
        yield f"the sections are {', '.join(sections)}"
    used = set(re.findall(r"\{\{ (\w+) \}\}", header["From"] + "".join(sections.values())))
    if used != set(defaults):
        yield f"arguments used: {sorted(used)}, declared: {sorted(defaults)}"


def check_contents(sections, defaults):
    copied = {}
    for line in sections["files"].split("\n"):
        if line.strip():
            source, target = line.split()
            copied[source] = target
            if not (ROOT / source).exists() or target != f"/opt/source/{source}":
                yield f"files: {line.strip()}"
    # What configuration, build and installation read.
    cmake = "".join(path.read_text() for path in [ROOT / "CMakeLists.txt", *(ROOT / "cmake").glob("*.cmake")])
    read = set(re.findall(r"install\((?:DIRECTORY|FILES) ([\w. ]+?) DESTINATION", cmake.replace("\n", " ")))
    read = {name.split("/")[0] for names in read for name in names.split()
           } | {"CMakePresets.json", "app", "cmake", "lib", "packaging"}
    read |= set(re.findall(r"add_subdirectory\((\w+)\)", cmake)) - {"tests"}
    if read - set(copied):
        yield f"files: {', '.join(sorted(read - set(copied)))} not copied"
    presets = re.findall(r'"name": "(\w+)"', (ROOT / "CMakePresets.json").read_text())
    for changed in BUILDS:
        arguments = {**defaults, **changed}
        if arguments["preset"] not in presets:
            yield f"no preset {arguments['preset']}"
        for name in SCRIPTS:
            for shell in ("sh", "bash"):
                script = substitute(sections[name], arguments)
                said = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True)
                if said.returncode:
                    yield f"{shell}: %{name}: {said.stderr.strip()}"


def main():
    header, sections = parse()
    defaults = dict(line.strip().split("=", 1) for line in sections.get("arguments", "").split("\n") if line.strip())
    if len(sys.argv) > 1:
        print(substitute(sections[sys.argv[1]], defaults))
        return 0
    faults = list(check_structure(header, sections, defaults)) or list(check_contents(sections, defaults))
    print("\n".join(faults) or f"{len(sections)} sections")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
