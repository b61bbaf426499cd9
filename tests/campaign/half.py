"""Training in fp16 with dynamic loss scaling through the real trainer: every objective, overflow, restart, ranks.

    half.py TRAINER MPIRUN [unittest arguments]
"""
import json, random, signal

from tiny import EXPERTS, MUON, Campaign, main


def sets(*items):
    return tuple(x for item in items for x in ("--set", item))


FP16 = sets("precision.compute='fp16'")
DIFFUSION = sets("objective.kind='block_diffusion'", "data.train='data/train.jsonl'", "data.valid='data/test.jsonl'",
                 "data.question_tokens=16", "data.plan_tokens=8", "data.execution_tokens=24", "model.context=48",
                 "objective.clip_search=F", "evaluation.problems=2")
HDP = DIFFUSION + sets("objective.hierarchy='hdp'", "objective.plan_block=0", "objective.execution_block=4")
SUPERVISED = sets("objective.kind='supervised'", "data.train='data/chats.jsonl'", "data.valid='data/chats.jsonl'",
                  "model.context=48", "model.qk_norm=T")
REFINEMENT = sets("objective.kind='refinement'", "objective.supervision_steps=3", "model.inner_steps=1",
                  "model.embed_std=1", "objective.norm_range=0.01, 100", "objective.refinement_range=-1, 1")


class Half(Campaign):
    def setUp(self):
        super().setUp()
        self.problems()
        rng = random.Random(5)
        with open(self.file("data/chats.jsonl"), "w") as f:
            for _ in range(80):
                a = rng.randint(1, 9)
                f.write(
                    json.dumps({
                        "messages": [{"role": "user", "content": f"after {a}"},
                                     {"role": "assistant", "content": f"{a + 1}"}]
                    }) + "\n")

    def closeness(self, name, options, scale=65536):
        """Largest differences of the losses in fp16 and bf16 from those in fp32. `scale`: at which no step overflows."""
        found = {}
        for compute in ("fp32", "fp16", "bf16"):
            directory = f"{name}_{compute}"
            scaled = sets(f"precision.loss_scale={scale}") if compute == "fp16" else ()
            self.run_trainer(*options, *sets(f"precision.compute='{compute}'", f"output.directory={directory}"),
                             *scaled)
            found[compute] = self.steps(directory)
        for key in ("train/skipped", "train/overflowed"):
            self.assertEqual(self.steps(f"{name}_fp16", key)[40], 0, (name, key))
        worst = {c: max(abs(found[c][s] - x) / abs(x) for s, x in found["fp32"].items()) for c in ("fp16", "bf16")}
        print(f"{name}: largest relative difference from fp32: fp16 {worst['fp16']:.1e}, bf16 {worst['bf16']:.1e}")
        return worst

    def test_every_objective_is_closer_to_fp32_than_bf16(self):
        for name, options in (("causal", ()), ("muon", MUON), ("experts", EXPERTS), ("hdp", HDP), ("flat", DIFFUSION),
                              ("supervised", SUPERVISED), ("dropout", sets("model.dropout=0.1")),
                              ("recomputed", sets("precision.recompute='block'"))):
            # Block diffusion weighs a token by up to 1 / clip_low.
            worst = self.closeness(name, options, scale=64 if "data/train.jsonl" in str(options) else 65536)
            self.assertLess(worst["fp16"], worst["bf16"], name)
            self.assertLess(worst["fp16"], 1e-2, name)

    def test_refinement(self):
        worst = self.closeness("refinement", REFINEMENT)
        self.assertLess(worst["fp16"], worst["bf16"])

    def test_a_scale_that_is_too_large_is_halved_until_gradients_fit(self):
        text = self.run_trainer(*FP16, *sets("precision.loss_scale=16777216"))
        self.assertIn("gradients overflow fp16: step skipped, loss scale halved to 8388608", text)
        overflowed, scales = self.steps("run", "train/overflowed"), self.steps("run", "train/loss_scale")
        self.assertGreater(overflowed[40], 2)
        self.assertEqual(scales[40], 2**24 / 2**overflowed[40])
        self.assertEqual(self.steps("run", "train/skipped")[40], 0)
        losses = self.steps()
        self.assertLess(losses[40], losses[1] - 0.3)
        usual = self.run_trainer(*FP16, *sets("output.directory=usual"))
        self.assertNotIn("overflow", usual)

    def test_the_scale_does_not_matter(self):
        """Powers of two round nothing; only what underflows differs."""
        for scale in (4096, 8192):
            self.run_trainer(*FP16, *sets(f"precision.loss_scale={scale}", f"output.directory=scale{scale}"))
        a, b = self.steps("scale4096", "train/grad_norm"), self.steps("scale8192", "train/grad_norm")
        worst = max(abs(a[s] - b[s]) / a[s] for s in a)
        print(f"gradient norms at two scales differ by {worst:.1e}")
        self.assertLess(worst, 1e-3)

    def test_resumed_bit_for_bit(self):
        """Across doublings and overflows, whose counts are in the checkpoint."""
        self.deck(500)
        options = FP16 + sets("precision.loss_scale=1048576", "precision.loss_scale_steps=4")
        self.run_trainer(*options, *sets("output.directory=whole"))
        code, text = self.interrupt_after(33, *options, *sets("output.directory=parts"), number=signal.SIGUSR1)
        self.assertEqual(code, 75, text)
        self.run_trainer(*options, *sets("output.directory=parts"), "--resume")
        for key in ("train/loss", "train/grad_norm", "val/loss", "train/loss_scale", "train/overflowed"):
            self.assertEqual(self.steps("whole", key), self.steps("parts", key), key)
        scales = self.steps("whole", "train/loss_scale")
        self.assertGreater(self.steps("whole", "train/overflowed")[500], 10)
        self.assertTrue(any(scales[s + 1] == 2 * scales[s] for s in range(1, 500)))
        self.assertTrue(any(scales[s + 1] == scales[s] / 2 for s in range(1, 500)))

    def test_ranks_agree(self):
        options = FP16 + sets("precision.loss_scale=8388608")
        self.run_trainer(*options, *sets("output.directory=one"))
        for name, ranks, *items in (("two", 2), ("sharded", 4, "parallel.shard='optimizer'"), ("full", 2,
                                                                                               "parallel.shard='full'"),
                                    ("tensor", 2, "parallel.tensor=2"), ("pipeline", 2, "parallel.pipeline=2")):
            self.run_trainer(*options, *sets(f"output.directory={name}", *items), ranks=ranks)
            self.assertEqual(self.steps("one", "train/loss_scale"), self.steps(name, "train/loss_scale"), name)
            self.compare("one", name, 5e-3)

    def test_weights_are_used_in_other_precisions(self):
        self.run_trainer(*FP16)
        last = self.steps("run", "val/loss")[40]
        for compute in ("fp16", "fp32", "bf16"):
            text = self.run_trainer(*sets(f"precision.compute='{compute}'", "campaign.task='evaluate'"))
            found = float(text.split("validation loss ")[1].split()[0])
            self.assertAlmostEqual(found, last, delta=0.01, msg=compute)
        text = self.run_trainer(*FP16, "--prompt", "abc", *sets("generation.samples=1", "generation.max_tokens=8"))
        self.assertIn("---\nabc", text)

    def test_divergence_still_ends_the_run(self):
        text = self.run_trainer(*FP16, *sets("optimizer.lr=1e6", "optimizer.warmup_steps=0", "output.skip_limit=3"),
                                code=76)
        self.assertIn("3 steps in a row had no finite loss or gradient", text)


if __name__ == "__main__":
    main()
