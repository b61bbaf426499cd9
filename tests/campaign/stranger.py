"""What the tests of files from strangers share: attempts through the real programs, whose outcome is counted.

    PROGRAM TRAINER MPIRUN PREPARE [unittest arguments]
"""
import json, os, subprocess, sys

PREPARE = os.path.abspath(sys.argv.pop(3))

from tiny import TRAINER, Campaign, limited


def sets(*items):
    return tuple(x for item in items for x in ("--set", item))


def nested(levels=100_000, objects=False):
    return '{"a":' * levels + "1" + "}" * levels if objects else "[" * levels + "]" * levels


class Stranger(Campaign):
    """The user's own files are in outside/, which no attempt changes."""
    def setUp(self):
        super().setUp()
        self.outcomes = {}
        os.mkdir(self.file("outside"))
        for name in ("a", "b"):
            self.write(f"outside/{name}", f"the user's {name}\n")

    def tearDown(self):
        print(
            f"{self.id()}: {sum(self.outcomes.values())} cases, exit codes " +
            ", ".join(f"{code}: {n}" for code, n in sorted(self.outcomes.items())), flush=True)
        super().tearDown()

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.file(name)), exist_ok=True)
        with open(self.file(name), "w") as f:
            f.write(text if isinstance(text, str) else json.dumps(text))

    def read(self, name):
        with open(self.file(name), errors="replace") as f:
            return f.read()

    def outside(self):
        return {name: self.read(f"outside/{name}") for name in sorted(os.listdir(self.file("outside")))}

    def attempt(self, *words, program=None):
        """Exit code and output; the deck is named unless a program is."""
        before = self.outside()
        command = [program, *words] if program else [TRAINER, "tiny.in", *words]
        done = limited.run(command, cwd=self.path, env=dict(os.environ, OMP_NUM_THREADS="1"), text=True,
                           errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.outcomes[done.returncode] = self.outcomes.get(done.returncode, 0) + 1
        self.assertEqual(self.outside(), before, done.stdout)
        self.assertNotIn("\x1b", done.stdout)
        return done.returncode, done.stdout

    def refused(self, *words, naming, why="", program=None):
        """One message that names the file, exit code 1."""
        code, text = self.attempt(*words, program=program)
        self.assertEqual(code, 1, text)
        errors = [line for line in text.splitlines() if line.startswith(("error: ", "prepare: "))]
        self.assertEqual(len(errors), 1, text)
        self.assertIn(naming, text[text.index(errors[0]):])
        self.assertIn(why, text[text.index(errors[0]):])
        return text

    def fine(self, *words, program=None):
        code, text = self.attempt(*words, program=program)
        self.assertEqual(code, 0, text)
        return text
