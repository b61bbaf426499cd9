"""Full sharding: parameters, gradients and states divided over ranks give the same run as one rank.

    sharding.py TRAINER MPIRUN [unittest arguments]
"""
import os, signal

from tiny import EXPERTS, Campaign, main

FULL = ("--set", "parallel.shard='full'")
RECURSIVE = ("--set", "objective.kind='refinement'", "--set", "model.inner_steps=1", "--set",
             "objective.supervision_steps=2")


class Full(Campaign):
    def check(self, ranks, *options, code=0):
        """100 steps of `ranks` fully sharded, compared with one rank's."""
        self.deck(100)
        self.run_trainer(*options, "--set", "output.directory=one", code=code)
        for n in ranks:
            self.run_trainer(*options, *FULL, "--set", f"output.directory=full{n}", ranks=n, code=code)
            self.compare("one", f"full{n}", 1e-5)
            norms = [self.steps(name, "train/grad_norm") for name in ("one", f"full{n}")]
            self.assertLess(max(abs(a - b) / a for a, b in zip(norms[0].values(), norms[1].values())), 1e-4)

    def test_one_two_and_four_ranks_agree(self):
        self.check((1, 2, 4))

    def test_collectives_agree_too(self):
        """Ranks that cannot reach each other's memory gather and sum layers by collectives."""
        os.environ["NCCL_P2P_DISABLE"] = "1"
        self.addCleanup(os.environ.pop, "NCCL_P2P_DISABLE")
        self.check((2, 4))

    def test_untied_learned_positions_and_biases(self):
        self.check((2,), "--set", "model.tie_embeddings=.false.", "--set", "model.position='learned'", "--set",
                   "model.attention_bias=.true.", "--set", "model.layers=3", "--set", "model.qk_norm=.true.")

    def test_recomputation_average_and_dropout(self):
        self.check((2,), "--set", "precision.recompute='block'", "--set", "optimizer.ema=0.99", "--set",
                   "model.dropout=0.1")

    def test_recursive_model(self):
        self.check((2,), *RECURSIVE, code=77)  # no verdict is good after 100 steps

    def test_recursion_in_each_block(self):
        self.check((2,), *RECURSIVE, "--set", "model.recursion='block'", "--set", "objective.detach_from=1", code=77)

    def test_experts(self):
        self.check((2,), *EXPERTS, "--set", "model.router_loss=0")

    def test_samples_are_written_while_training(self):
        self.deck(40)
        options = ("--set", "generation.samples=2", "--set", "generation.max_tokens=6", "--set",
                   "generation.temperature=0")
        self.run_trainer(*options, "--set", "output.directory=one")
        self.run_trainer(*options, *FULL, "--set", "output.directory=full", ranks=2)
        pages = [open(self.file(f"{name}/samples.txt"), "rb").read() for name in ("one", "full")]
        self.assertEqual(pages[0], pages[1])

    def test_resumed_bit_for_bit(self):
        for compute in ("fp32", "bf16"):
            self.deck(300)
            options = FULL + ("--set", f"precision.compute='{compute}'")
            self.run_trainer(*options, "--set", f"output.directory=whole_{compute}", ranks=2)
            parts = options + ("--set", f"output.directory=parts_{compute}")
            code, text = self.interrupt_after(15, *parts, ranks=2, number=signal.SIGUSR1)
            self.assertEqual(code, 75, text)
            self.run_trainer(*parts, "--resume", ranks=2)
            for key in ("train/loss", "train/grad_norm", "val/loss", "samples_hash_total"):
                self.assertEqual(self.steps(f"whole_{compute}", key), self.steps(f"parts_{compute}", key), key)

    def test_checkpoints_go_on_in_any_layout(self):
        self.deck(300)
        self.run_trainer("--set", "output.directory=whole")
        for before, after in (((4, "full"), (1, "none")), ((4, "full"), (2, "full")), ((2, "optimizer"), (4, "full")),
                              ((1, "none"), (2, "full"))):
            name = f"from{before[0]}{before[1]}_to{after[0]}{after[1]}"
            directory = ("--set", f"output.directory={name}")
            code, text = self.interrupt_after(15, *directory, "--set", f"parallel.shard='{before[1]}'", ranks=before[0],
                                              number=signal.SIGUSR1)
            self.assertEqual(code, 75, text)
            self.run_trainer(*directory, "--set", f"parallel.shard='{after[1]}'", "--resume", ranks=after[0])
            self.compare("whole", name, 1e-5)


if __name__ == "__main__":
    main()
