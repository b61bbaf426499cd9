"""Completion in zsh and fish: what the shells themselves offer.   completion.py SHARE

Both shells find the files of an installation: zsh through fpath, fish in XDG_DATA_DIRS. trainer, prepare and diagnose are
in PATH. zsh completes only on a terminal, so it gets one; what Tab turns the line into is what it offers.
"""

import os
import pty
import select
import subprocess
import sys

share = sys.argv[1]
patience = 60  # seconds; a busy machine may start a program late
# line: the word that its end becomes
lines = {
    "trainer --dry": "--dry-run",
    "trainer quicks": "quickstart",
    "trainer --device a100-": "a100-40gb",
    "prepare qui": "quickstart",
    "prepare text --train-bp": "--train-bpe",
    "diagnose --ver": "--version",
}


def in_fish(line):
    environment = {**os.environ, "XDG_DATA_DIRS": f"{share}:/usr/share", "HOME": os.getcwd()}
    command = ["fish", "--private", "--command", f'complete --do-complete "{line}"']
    offered = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return [row.split("\t")[0] for row in offered.splitlines()]


class Zsh:
    """An interactive zsh without startup files."""

    def __init__(self):
        child, self.terminal = pty.fork()
        if child == 0:
            os.environ.update(TERM="dumb", PS1="> ", ZDOTDIR=os.getcwd())
            os.execvp("zsh", ["zsh", "-f", "-i", "+Z"])
        self.send(f"fpath=({share}/zsh/site-functions $fpath); autoload -Uz compinit; compinit -u -D; echo ready-$((1 + 1))\n")
        self.require("ready-2")

    def send(self, text):
        os.write(self.terminal, text.encode())

    def require(self, wanted):
        """Reads until `wanted` is on the terminal, or fails when nothing more comes."""
        text = ""
        while wanted not in text:
            assert select.select([self.terminal], [], [], patience)[0], f"zsh shows {text!r}, not {wanted}"
            text += os.read(self.terminal, 4096).decode(errors="replace")

    def require_completion(self, line, word):
        self.send(line + "\t")
        self.require(word)
        self.send("\x15")  # clears the line


zsh = Zsh()
for line, word in lines.items():
    offered = in_fish(line)
    assert word in offered, f"fish offers {offered} after '{line}'"
    zsh.require_completion(line, word)
print(f"{len(lines)} lines completed in zsh and fish")
