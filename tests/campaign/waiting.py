"""How OpenMP's threads wait: the trainer chooses, unless the user has.

    waiting.py TRAINER MPIRUN [unittest arguments]
"""
import json, os, re, subprocess

from tiny import Campaign, limited, main

CHOICES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME", "KMP_LIBRARY")


class Waiting(Campaign):
    def start(self, *options, ranks=1, threads=2, code=0, **chosen):
        """Output of the trainer, and of the OpenMP runtime before it, where only `chosen` is set in the environment."""
        env = {name: value for name, value in os.environ.items() if name not in CHOICES}
        env.update(OMP_NUM_THREADS=str(threads), OMP_DISPLAY_ENV="verbose", **chosen)
        done = limited.run(self.command(*options, ranks=ranks), cwd=self.path, env=env, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def spin_counts(self, text):
        return re.findall(r"GOMP_SPINCOUNT = '(\d+)'", text)

    def test_the_runtime_is_given_a_short_spin_by_one_restart(self):
        first, last = self.spin_counts(self.start("--version"))
        self.assertGreater(int(first), 100000)
        self.assertEqual(last, "3000")

    def test_the_users_choice_stands(self):
        for name, value in (("OMP_WAIT_POLICY", "active"), ("OMP_WAIT_POLICY", "passive"), ("GOMP_SPINCOUNT", "77"),
                            ("KMP_BLOCKTIME", "5")):
            text = self.start("--set", "campaign.max_steps=5", "--fresh", **{name: value})
            self.assertEqual(len(self.spin_counts(text)), 1, text)
            self.assertIn(f"OpenMP waits: {name}={value}", text)

    def test_one_thread_waits_for_none(self):
        text = self.start("--set", "campaign.max_steps=5", threads=1)
        self.assertEqual(len(self.spin_counts(text)), 1, text)
        self.assertNotIn("OpenMP waits", text)

    def test_arguments_and_ranks_survive(self):
        """Every rank re-executes once, before MPI; its arguments arrive unchanged."""
        name = "it''s  a  name"
        text = self.start("--set", "campaign.max_steps=5", "--set", f"campaign.name='{name}'", "--set",
                          "output.directory='a  b'", ranks=2)
        self.assertEqual(len(self.spin_counts(text)), 4, text)
        self.assertIn("OpenMP waits: spin 3000 times, then sleep", text)
        self.assertTrue(os.path.exists(self.file("a  b/metrics.jsonl")))
        self.assertIn("no deck given", limited.run([self.command()[0], ""], capture_output=True, text=True).stderr)

    def test_the_head_of_the_log_says_who_ran_what_where(self):
        text = self.start("--set", "campaign.max_steps=5", ranks=2)
        with open(self.file("run/log.txt")) as f:
            head = f.read().split("\n")[:3]
        self.assertRegex(head[0], r"^tern \d+\.\d+\.\d+ \([0-9a-f]{7,}(-dirty)?\): train 'tiny'$")
        self.assertRegex(
            head[1], r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC, " + re.escape(os.uname().nodename) +
            r": 2 ranks x 2 threads, OpenMP on .+$")
        self.assertEqual(head[2], "OpenMP waits: spin 3000 times, then sleep")
        with open(self.file("run/run.json")) as f:
            record = json.load(f)
        self.assertEqual((record["ranks"], record["threads"], record["host"], record["exit_code"]),
                         (2, 2, os.uname().nodename, 0))
        with open(self.file("run/report.html")) as f:
            page = f.read()
        self.assertIn("<tr><th>Status<td>finished, " + record["ended"], page)
        self.assertIn(f"commit {record['commit']}", page)


if __name__ == "__main__":
    main()
