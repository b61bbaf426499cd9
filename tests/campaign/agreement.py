"""Ranks that were started differently, or of which one fails, end together, with one message, before anything is written.

    agreement.py TRAINER MPIRUN [unittest arguments]
"""
import os, subprocess

from tiny import MPIRUN, TRAINER, Campaign, limited, main


class Agreement(Campaign):
    def run_unequal(self, first, second, cwd=None):
        """Two ranks with these options, of which the second may run in another folder."""
        rank = lambda options, folder: ["-n", "1", "-wdir", folder, TRAINER, "tiny.in", *options]
        done = limited.run([
            MPIRUN, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", *rank(first, self.path), ":",
            *rank(second, cwd or self.path)
        ], cwd=self.path, env=dict(os.environ, OMP_NUM_THREADS="1"), text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def refused(self, first, second, *words, cwd=None):
        code, text = self.run_unequal(first, second, cwd)
        self.assertEqual(code, 1, text)
        self.assertEqual(text.count("error:"), 1, text)
        for word in words:
            self.assertIn(word, text)
        self.assertNotIn("stopped by a signal", text)
        self.assertFalse(os.path.exists(self.file("run")), "something was written")
        return text

    def test_different_decks(self):
        for name, mine, other in (("campaign.seed", "4", "5"), ("campaign.max_steps", "40",
                                                                "60"), ("parallel.shard", "'none'", "'optimizer'"),
                                  ("parallel.tensor", "1", "2"), ("output.directory", "'run'", "'other'")):
            self.refused(("--set", f"{name}={mine}"), ("--set", f"{name}={other}"), "different decks or options",
                         f"rank 1 has {name} = {other}, rank 0 has {name} = {mine}")

    def test_different_options(self):
        self.refused((), ("--resume",), "rank 1 has the option --resume, rank 0 has no option --resume")
        self.refused(("--dry-run",), (), "rank 1 has no option --dry-run")
        self.refused((), ("--export", "run"), "--export run")

    def test_what_one_rank_lacks(self):
        os.mkdir(self.file("elsewhere"))
        self.refused((), (), "rank 1: ", "tiny.in", cwd=self.file("elsewhere"))
        os.symlink(self.file("tiny.in"), self.file("elsewhere/tiny.in"))
        code, text = self.run_unequal((), (), self.file("elsewhere"))
        self.assertEqual(code, 1, text)
        self.assertEqual(text.count("error:"), 1, text)
        self.assertIn("rank 1: ", text)
        self.assertIn("data/train", text)
        self.assertNotIn("stopped by a signal", text)

    def test_equal_ranks_train(self):
        code, text = self.run_unequal(*2 * (("--set", "campaign.max_steps=6"),))
        self.assertEqual(code, 0, text)


if __name__ == "__main__":
    main()
