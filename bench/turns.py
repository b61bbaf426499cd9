"""Programs that take turns on one device: each starts once, prints READY, and does one turn for each line that it gets.

A turn's result is a line that begins with TURN. A program that waits leaves the device idle but keeps its memory.
"""
import os, pathlib, subprocess


class Program:
    def __init__(self, command, log, env=None):
        self.log, self.waits, self.output = pathlib.Path(log), False, None
        self.output = open(self.log, "w")
        self.process = subprocess.Popen(list(map(str, command)), text=True, errors="replace", bufsize=1,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.output,
                                        env=dict(os.environ, **(env or {})))

    def until(self, word):
        """The rest of the next line that begins with `word`; others go to the log."""
        for line in self.process.stdout:
            if line.split(maxsplit=1)[:1] == [word]:
                return line[len(word):].strip()
            self.output.write(line)
            self.output.flush()
        raise RuntimeError(
            f"{self.process.args} ended with {self.process.wait()}:\n{self.log.read_text(errors='replace')[-4000:]}")

    def ready(self):
        if not self.waits:
            self.until("READY")
        self.waits = True

    def turn(self, line=""):
        self.ready()
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        self.waits = False
        return self.until("TURN")

    def end(self):
        """Closes its input, at which it ends, and waits; what it printed last goes to the log."""
        if self.process.poll() is None:
            rest, _ = self.process.communicate()
            self.output.write(rest or "")
        self.output.close()
