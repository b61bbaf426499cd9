#!/usr/bin/env python3
"""Man pages from the programs' --help: packaging/man/NAME.1.in, which CMake installs with its version filled in.

    man_page.py BUILD            writes them, of the programs in the folder BUILD (cmake --build BUILD --target man_pages)
    man_page.py BUILD --check    exit code 1 if the programs have other ones
"""
import pathlib
import re
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent / "man"
SUMMARIES = {
    "trainer": "trains, evaluates and samples language models on MPI ranks",
    "prepare": "makes the data that trainer reads",
    "diagnose": "checks operations and measures rates of a device",
}


def roff(line):
    """A line as it is, in roff."""
    line = line.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return "\\&" + line if line.startswith(".") else line


def help_of(build, name, *command):
    return subprocess.run([pathlib.Path(build) / name, *command, "--help"], check=True, capture_output=True,
                          text=True).stdout


def commands_of(told):
    """Names of the commands that a --help lists."""
    listed = re.search(r"^commands:\n((?:  \S.*\n)+)", told, re.M)
    return [line.split()[0] for line in listed.group(1).splitlines()] if listed else []


def command_section(name, command, told):
    """A command's own --help, without the exit codes, which are the program's."""
    told = told.split("\nexit codes: ")[0].strip("\n")
    lines = [re.sub(r"^usage: ", "", line) for line in told.split("\n")]
    return [f".SH {name.upper()} {roff(command.upper())}", ".nf", *map(roff, lines), ".fi"]


def page(name, told, commands=()):
    """The man page of the program whose --help is `told`; `commands`: names and --help of its commands."""
    lines_out = [
        f'.TH {name.upper()} 1 "" "Tern @PROJECT_VERSION@" "Tern"', f".SH NAME\n{name} \\- {roff(SUMMARIES[name])}"
    ]
    title = "DESCRIPTION"
    for paragraph in re.split(r"\n\s*\n", told.strip("\n")):
        lines = paragraph.split("\n")
        if lines[0].startswith("usage: "):
            lines_out += [
                ".SH SYNOPSIS\n.nf", *(roff(re.sub(r"^(usage: |       )", "", line)) for line in lines),
                ".fi\n.SH DESCRIPTION"
            ]
            title = ""
            continue
        if re.fullmatch(r"(options|commands|examples|exit codes)", lines[0].rstrip(":"), re.I):
            title = lines.pop(0).rstrip(":").upper()
        elif lines[0].lower().startswith("exit codes: "):
            lines[0], title = lines[0][len("exit codes: "):], "EXIT STATUS"
        lines_out += [f".SH {title}" if title else ".PP", ".nf", *map(roff, lines), ".fi"]
        title = ""
    for command, text in commands:
        lines_out += command_section(name, command, text)
    lines_out.append(".SH SEE ALSO\n" + ", ".join(f"{other}(1)" for other in SUMMARIES if other != name))
    return "\n".join(lines_out) + "\n"


def main(build, check=False):
    stale = []
    for name in SUMMARIES:
        told = help_of(build, name)
        made = page(name, told, [(command, help_of(build, name, command)) for command in commands_of(told)])
        file = FOLDER / f"{name}.1.in"
        if check and (not file.exists() or file.read_text() != made):
            stale.append(file)
        elif not check:
            FOLDER.mkdir(exist_ok=True)
            file.write_text(made)
    for file in stale:
        print(f"{file} is not the program's --help; remake it: cmake --build {build} --target man_pages",
              file=sys.stderr)
    return bool(stale)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--check"]):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], check=len(sys.argv) == 3))
