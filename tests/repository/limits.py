"""tests/limited.py ends what hangs, and nothing that a busy machine only slows down; every test runs within its limits."""
import contextlib, io, pathlib, re, signal, subprocess, sys, unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))
import limited
from limited import Thread, Tree, Watch

LIMITED = [sys.executable, str(ROOT / "tests/limited.py")]


def thread(got, delayed, state="R"):
    made = Thread()
    made.got, made.delayed, made.state = got, delayed, state
    return made


class Clock(unittest.TestCase):
    """How much of two seconds counts."""
    def setUp(self):
        self.tree = Tree(0)
        self.tree.count(2.0, {"a": thread(1, 1), "b": thread(5, 5, "S")}, {1: 100}, {1: ["0", "0"]})
        self.addCleanup(setattr, limited, "load", limited.load)
        limited.load = lambda: 10.0

    def count(self, a, b, written=100, reaped="0"):
        return self.tree.count(2.0, {"a": a, "b": b}, {1: written}, {1: [reaped, "0"]})

    def check(self, expected, *threads, **more):
        counts, wrote = self.count(*threads, **more)
        self.assertAlmostEqual(counts, expected)
        return wrote

    def test_a_processor_of_its_own(self):
        self.check(2.0, thread(3, 1), thread(5, 5, "S"))

    def test_a_tenth_of_a_processor(self):
        self.check(0.2, thread(1.2, 2.8), thread(5, 5, "S"))

    def test_no_turn_at_all(self):
        self.check(0.0, thread(1, 1), thread(5, 5, "S"))

    def test_a_rank_that_naps_and_gets_its_turn_late(self):
        self.check(0.1, thread(1.05, 1.95, "S"), thread(5.05, 5.95, "S"))

    def test_sleep_counts(self):
        self.check(2.0, thread(1, 1, "S"), thread(5, 5, "S"))

    def test_half_of_the_time_asleep(self):
        self.check(1.0 + 0.1, thread(1.1, 1.9, "S"), thread(5, 5, "S"))

    def test_the_disk_does_not(self):
        self.count(thread(1, 1, "D"), thread(5, 5, "S"))
        self.check(0.0, thread(1, 1, "D"), thread(5, 5, "S"))

    def test_what_short_processes_wait_for_is_not_seen(self):
        self.check(0.2, thread(1, 1, "S"), thread(5, 5, "S"), reaped="7")

    def test_a_stopped_process(self):
        self.check(0.2, thread(1, 1, "T"), thread(5, 5, "S"))

    def test_writing_is_noticed(self):
        self.assertFalse(self.check(2.0, thread(3, 1), thread(5, 5, "S")))
        self.assertTrue(self.check(2.0, thread(5, 1), thread(5, 5, "S"), written=101))


class Verdict(unittest.TestCase):
    def judge(self, *looks, load=1.0):
        """The verdict after the last of (counted, written, clock), and none before."""
        watch = Watch(Tree(0), "program", seconds=100, silent=10)
        for look in looks[:-1]:
            self.assertIsNone(watch.judge(*look, load))
        return watch.judge(*looks[-1], load)

    def test_hung(self):
        self.assertRegex(self.judge((6, True, 6), (6, False, 12), (6, False, 18)), "^hung: wrote nothing for 12 s")

    def test_writing_goes_on(self):
        self.assertIsNone(self.judge(*((6, i % 2 == 0, 6 * i) for i in range(16))))

    def test_too_slow(self):
        self.assertRegex(self.judge(*((6, True, 6 * i) for i in range(17))), "^too slow: has not ended after 102 s")

    def test_starved(self):
        self.assertIsNone(self.judge((1, True, 599), load=2.0))
        self.assertRegex(self.judge((1, True, 601), load=2.0), "^starved")


class Ended(unittest.TestCase):
    """Real processes."""
    def launch(self, *words):
        done = subprocess.run([*LIMITED, *words], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    def test_exit_codes_and_output_pass(self):
        self.assertEqual(self.launch("60", "sh", "-c", "echo out; echo err >&2; exit 7"), (7, "out\n", "err\n"))
        self.assertEqual(self.launch("60", "sh", "-c", "kill -TERM $$")[0], 128 + signal.SIGTERM)

    def test_what_is_stopped_is_ended_with_all_its_processes(self):
        script = "sleep 1000 & sh -c 'kill -STOP $$; :' & echo $! >&2; wait"
        code, _, said = self.launch("100", "--silent", "1", "bash", "-c", script)
        self.assertEqual(code, limited.EXPIRED)
        stopped, rest = said.split("\n", 1)
        self.assertRegex(rest, r"bash -c .* hung: wrote nothing for \d+ s of its own time")
        self.assertRegex(rest, rf"process {stopped}: sh -c .*\n  1 threads \([Tt] ")
        self.assertRegex(rest, r"stacks of process \d+:\n  Thread 1 .*\n  #0 |gdb is not installed|ptrace")
        self.assertIn(limited.fields(stopped)[:1], ([], ["Z"]))

    def test_an_orphan_is_ended_too(self):
        code, out, _ = self.launch("60", "bash", "-c", "(sleep 1000 >/dev/null 2>&1 & echo $!); true")
        self.assertEqual(code, 0)
        self.assertIn(limited.fields(out.strip())[:1], ([], ["Z"]))

    def test_run_raises(self):
        with self.assertRaisesRegex(limited.Expired, "hung"), contextlib.redirect_stderr(io.StringIO()) as said:
            limited.run(["sleep", "1000"], silent=0.5)
        self.assertIn("sleep 1000", said.getvalue())
        self.assertEqual(limited.run(["cat"], input="text", capture_output=True, text=True).stdout, "text")


class Everywhere(unittest.TestCase):
    """No other limit of the clock's time."""
    def lines(self, pattern):
        names = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--", *pattern], check=True, capture_output=True,
                               text=True).stdout
        for name in filter(None, names.split("\0")):
            if name in ("tests/limited.py", "tests/repository/limits.py") or not (ROOT / name).exists():
                continue
            for number, line in enumerate((ROOT / name).read_text().splitlines(), 1):
                yield f"{name}:{number}: {line.strip()}", line

    def none(self, wrong, *pattern):
        self.assertEqual([where for where, line in self.lines(pattern) if re.search(wrong, line)], [])

    def test_programs_of_tests_start_within_limits(self):
        commands = re.findall(
            r"add_test\(\s*NAME\s+(\S+)\s+COMMAND\s+(\S+)",
            "\n".join(line for _, line in self.lines(("tests/**CMakeLists.txt", "cmake/Libraries.cmake"))))
        self.assertGreater(len(commands), 15)
        self.assertEqual([name for name, command in commands if command != "${TERN_LIMITED}"], [])

    def test_no_limit_of_ctest_python_or_shell(self):
        self.none(r"\bTIMEOUT\b", "tests/**CMakeLists.txt", "cmake/Libraries.cmake")
        self.none(r"\btimeout\s*=", "tests/**.py")
        self.none(r"(^|[\s(])timeout\s+[-\d]", "tests/**.sh")


if __name__ == "__main__":
    unittest.main(verbosity=2)
