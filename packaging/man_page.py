#!/usr/bin/env python3
"""A man page from a program's --help.

    man_page.py PROGRAM VERSION SUMMARY OTHERS > NAME.1        OTHERS: names for SEE ALSO, separated by commas
"""
import os
import re
import subprocess
import sys


def roff(line):
    """A line as it is, in roff."""
    line = line.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return "\\&" + line if line.startswith(".") else line


def main(program, version, summary, others):
    name = os.path.basename(program)
    told = subprocess.run([program, "--help"], check=True, capture_output=True, text=True).stdout
    print(f'.TH {name.upper()} 1 "" "Tern {version}" "Tern"')
    print(f".SH NAME\n{name} \\- {roff(summary)}")
    title = "DESCRIPTION"
    for paragraph in re.split(r"\n\s*\n", told.strip("\n")):
        lines = paragraph.split("\n")
        if lines[0].startswith("usage: "):
            print(".SH SYNOPSIS\n.nf")
            print("\n".join(roff(re.sub(r"^(usage: |       )", "", line)) for line in lines))
            print(".fi\n.SH DESCRIPTION")
            title = ""
            continue
        if re.fullmatch(r"(options|examples|exit codes)", lines[0].rstrip(":"), re.I):
            title = lines.pop(0).rstrip(":").upper()
        elif lines[0].lower().startswith("exit codes: "):
            lines[0], title = lines[0][len("exit codes: "):], "EXIT STATUS"
        print(f".SH {title}" if title else ".PP")
        title = ""
        print(".nf\n" + "\n".join(map(roff, lines)) + "\n.fi")
    print(".SH SEE ALSO\n" + ", ".join(f"{other}(1)" for other in others.split(",")))


if __name__ == "__main__":
    main(*sys.argv[1:])
