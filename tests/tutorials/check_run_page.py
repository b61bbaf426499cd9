"""run_page.py finds what is wrong with a page: a command that fails, output that differs, a value out of its range."""
import os, pathlib, subprocess, sys, tempfile, unittest

RUNNER = pathlib.Path(__file__).resolve().parent / "run_page.py"
GOOD = '''# A page

```text title="words.txt"
one 1.5 GiB
two
three
```

Then

```sh
word=$(head -n 1 words.txt)
cat words.txt
```

<!-- cut: ^t -->
```text
two
three
```

<!-- cut: ^one .. ^two -->
```text
one 7 MiB
two
```
<!-- expect: 1 <= ^one ([\\d.]+) <= 2 -->

```sh
echo "$word again"
python3 -c 'print("python", 3)'
```

```text
one 0.25 s again
python 12
```

<!-- not run: it fails -->
```sh
false
```

<!-- not run: differs -->
```text
anything
```
'''


class Page(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_page(self, text, *options):
        self.page = self.folder / "page.md"
        self.page.write_text(text)
        done = subprocess.run([
            sys.executable, RUNNER, self.page, self.folder / "run", "--trainer", "/bin/true", "--prepare", "/bin/true",
            *options
        ], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout

    def refused(self, text, *parts):
        code, said = self.run_page(text)
        self.assertEqual(code, 1, said)
        for part in parts:
            self.assertIn(part, said)

    def changed(self, old, new):
        self.assertEqual(GOOD.count(old), 1, old)
        return GOOD.replace(old, new)

    def test_a_good_page(self):
        code, said = self.run_page(GOOD)
        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"2 blocks of commands have run in \d+ s of processor time; 0 faults")
        self.assertEqual(os.readlink(self.folder / "run/trainer"), str(pathlib.Path("/bin/true").resolve()))

    def test_commands_that_fail(self):
        self.refused(self.changed("cat words.txt\n", "cat words.txt\ncat nothing.txt\n"), "page.md:11: exit code 1",
                     "nothing.txt: No such")
        self.refused(self.changed('echo "$word again"', "exit 75"), "page.md:29: exit code 75")
        self.refused(self.changed("word=$(head -n 1 words.txt)", "false | true"), "exit code 1")

    def test_output_that_differs(self):
        self.refused(self.changed("two\nthree\n```\n\n<!--", "two\nfour\n```\n\n<!--"), "the page shows\n  four",
                     "print\n  three")
        self.refused(self.changed("two\nthree\n```\n\n<!--", "two\n```\n\n<!--"), "the page shows\n  (nothing)")
        self.refused(self.changed("one 7 MiB", "one 7 apples"), "the page shows\n  one 7 apples")
        self.refused(self.changed("again\npython", "again\nPython"),
                     "the commands do not print, in this order,\n  Python 12")
        self.refused(self.changed("cut: ^t", "cut: ^none"), "no line of the output matches '^none'")

    def test_values_out_of_their_range(self):
        self.refused(self.changed("expect: 1 <=", "expect: 1.6 <="), "1.5 is not from 1.6 to 2")
        self.refused(self.changed("expect: 1 <= ^one", "expect: 1 <= ^none"), "nothing in the output matches")

    def test_mistakes_of_the_page(self):
        self.refused(GOOD + "\n```sh\n", "this block does not end")
        self.refused(GOOD.replace("<!-- cut: ^t -->", "<!-- cut: ^t -->\nText."), "a comment stands before text")
        self.refused("# No commands\n", "has no commands")

    def test_update_writes_what_was_cut(self):
        code, said = self.run_page(GOOD.replace("two\nthree\n```\n\n<!--", "two\n```\n\n<!--"), "--update")
        self.assertEqual(code, 0, said)
        self.assertEqual(self.page.read_text(), GOOD.replace("one 7 MiB", "one 1.5 GiB"))

    def test_a_page_after_another(self):
        self.run_page(GOOD)
        first = self.folder / "first"
        (self.folder / "run").rename(first)
        code, said = self.run_page("```sh\ncat words.txt\n```\n", "--after", first)
        self.assertEqual(code, 0, said)
        code, said = self.run_page("```sh\ntrue\n```\n", "--after", self.folder / "none")
        self.assertEqual(code, 1)
        self.assertIn("is missing: run the page that makes it first", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
