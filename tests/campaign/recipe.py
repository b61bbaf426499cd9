"""The choices of public speed runs of GPT training, in whole campaigns: ranks, restart, counts, refusals.

    recipe.py TRAINER MPIRUN [unittest arguments]
"""
import re, signal

from tiny import MUON, Campaign, main

CONNECTED = ("--set", "model.layers=4", "--set", "model.skip_connections=T", "--set", "model.input_shortcut=T", "--set",
             "model.value_embeddings=1", "--set", "model.tie_embeddings=F", "--set", "model.qk_norm=T")
GROWING = ("--set", "batch.global=16", "--set", "batch.global_start=4", "--set", "batch.growth_steps=20", "--set",
           "model.context=96", "--set", "model.window_start=16", "--set", "model.window_steps=20")


def growing_rows(step):
    """Sequences of a step of GROWING, counted from 0."""
    return 4 * (1 + step * 3 // 20) if step < 20 else 16


class Connections(Campaign):
    def test_connections_on_one_two_and_four_ranks_agree(self):
        for shard in ("none", "optimizer"):
            self.check_ranks(2, *MUON, "--set", f"parallel.shard='{shard}'")
        self.check_ranks(2, "--set", "parallel.shard='full'")
        self.check_ranks(2, "--set", "parallel.tensor=2")
        self.check_ranks(4, "--set", "parallel.tensor=2", "--set", "parallel.shard='optimizer'")

    def check_ranks(self, ranks, *options):
        name = "_".join(o.replace("'", "") for o in options if o != "--set").replace("/", "")
        kind = MUON if "optimizer.kind='muon'" in options else ()
        one = f"one{len(kind)}"
        self.run_trainer(*CONNECTED, *kind, "--fresh", "--set", f"output.directory={one}")
        self.run_trainer(*CONNECTED, *options, "--set", f"output.directory={name}", ranks=ranks)
        self.compare(one, name, 1e-4)

    def test_recomputation_changes_no_bit(self):
        self.run_trainer(*CONNECTED, *GROWING, "--set", "output.directory=kept")
        self.run_trainer(*CONNECTED, *GROWING, "--set", "output.directory=again", "--set",
                         "precision.recompute='block'")
        self.assertEqual(self.steps("kept"), self.steps("again"))

    def test_refusals(self):
        text = self.run_trainer(*GROWING, "--set", "batch.global_start=2", ranks=4, code=1)
        self.assertIn("global_start = 2 is not a multiple of per_rank x ranks = 2 x 4", text)
        self.run_trainer(*CONNECTED)
        text = self.run_trainer(*CONNECTED, "--export", "exported", code=1)
        for word in ("skip_connections", "input_shortcut", "value_embeddings"):
            self.assertIn(word, text)

    def test_text_is_generated_by_a_connected_model(self):
        samples = ("--set", "generation.samples=2", "--set", "generation.max_tokens=10")
        self.run_trainer(*CONNECTED, *samples)
        self.run_trainer(*CONNECTED, *samples, "--set", "campaign.task='generate'", "--set", "generation.prompt='ab'")


class Growth(Campaign):
    def test_batch_and_window_grow_and_tokens_are_counted(self):
        self.run_trainer(*GROWING, "--set", "output.directory=one")
        rows = 0
        for step, tokens in sorted(self.steps("one", "train/tokens").items()):
            rows += growing_rows(step - 1)
            self.assertEqual(tokens, 96 * rows, step)
        self.assertEqual(step, 40)
        text = self.run_trainer(*GROWING, "--dry-run")
        self.assertRegex(text, r"grows +from 4 in 20 steps")
        planned = re.search(r"^ *tokens +([0-9.]+) (\w+)", text, re.M)
        self.assertIsNotNone(planned, text)
        scale = {"K": 1e3, "M": 1e6}[planned.group(2)]
        self.assertAlmostEqual(float(planned.group(1)) * scale, 96 * rows, delta=0.06 * scale)
        self.run_trainer(*GROWING, "--set", "output.directory=two", ranks=2)
        self.compare("one", "two", 1e-4)

    def test_resumed_within_and_after_growth_bit_for_bit(self):
        self.deck(500)
        grows = GROWING + ("--set", "batch.growth_steps=200", "--set", "model.window_steps=300")
        options = CONNECTED + MUON + grows
        self.run_trainer("--set", "output.directory=whole", *options)
        for step in (13, 250):
            name = f"parts{step}"
            here = ("--set", f"output.directory={name}", *options)
            code, text = self.interrupt_after(step, *here, number=signal.SIGUSR1)
            self.assertEqual(code, 75, text)
            self.run_trainer(*here, "--resume")
            for key in ("train/loss", "train/grad_norm", "val/loss", "samples_hash_total", "train/tokens"):
                self.assertEqual(self.steps("whole", key), self.steps(name, key), key)

    def test_a_longer_run_has_the_same_order(self):
        """Growth counts steps, not a fraction of the run: more steps change none of the first."""
        short = GROWING + ("--set", "optimizer.schedule='constant'", "--set", "evaluation.every=0")
        self.run_trainer(*short, "--set", "output.directory=short")
        self.run_trainer(*short, "--set", "output.directory=long", "--set", "campaign.max_steps=60")
        before, after = self.steps("short"), self.steps("long")
        self.assertEqual(before, {s: after[s] for s in before})


if __name__ == "__main__":
    main()
