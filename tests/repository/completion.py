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
    "diagnose --vers": "--version",
}


def in_fish(line):
    environment = {**os.environ, "XDG_DATA_DIRS": f"{share}:/usr/share", "HOME": os.getcwd()}
    command = ["fish", "--private", "--command", f'complete --do-complete "{line}"']
    offered = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    return [row.split("\t")[0] for row in offered.splitlines()]


class Zsh:
    """An interactive zsh without startup files. Control-T shows the line as it is, without cursor movements."""

    setup = """fpath=({share}/zsh/site-functions $fpath); autoload -Uz compinit; compinit -u -D
show() {{ print -r -- "<$BUFFER>"; BUFFER= }}; zle -N show; bindkey '^T' show
echo ready-$((1 + 1))
"""

    def __init__(self):
        child, self.terminal = pty.fork()
        if child == 0:
            os.environ.update(TERM="vt100", PS1="> ", ZDOTDIR=os.getcwd())
            os.execvp("zsh", ["zsh", "-f", "-i"])
        self.send(self.setup.format(share=share))
        self.read_until("ready-2")

    def send(self, text):
        os.write(self.terminal, text.encode())

    def read_until(self, end):
        text = ""
        while end not in text:
            assert select.select([self.terminal], [], [], patience)[0], f"zsh shows {text!r}"
            text += os.read(self.terminal, 4096).decode(errors="replace")
        return text

    def completed(self, line):
        self.send(line + "\t\x14")
        return self.read_until(">\r\n").rpartition("<")[2].split(">")[0].strip()


zsh = Zsh()
for line, word in lines.items():
    offered = in_fish(line)
    assert word in offered, f"fish offers {offered} after '{line}'"
    completed = zsh.completed(line)
    assert completed.split()[-1] == word, f"zsh completes '{line}' to '{completed}'"
print(f"{len(lines)} lines completed in zsh and fish")
