"""Whole campaigns of recursive refinement through the real trainer: losses, verdicts, exit codes, restart, ranks, tasks.

    refinement.py TRAINER MPIRUN [unittest arguments]
"""
import json, random, re, signal

from tiny import MUON, Campaign, main, write_shard


def sets(*changes):
    return tuple(word for change in changes for word in ("--set", change))


S = 3  # answers
# The large init_std makes the model refine from the first steps on; after 40 the refinement is 0.10 to 0.17 for seeds 1, 2, 3, 1337.
MODEL = sets("objective.kind='refinement'", f"objective.supervision_steps={S}", "objective.reward=4",
             "model.inner_steps=1", "model.init_std=0.2", "model.embed_std=1", "objective.norm_range=0.1, 100",
             "objective.norm_limit=1000")
GOOD = MODEL + sets("objective.refinement_range=0.03, 0.5")
FAILED = MODEL + sets("objective.refinement_range=0.98, 0.99")  # out of reach
FINDINGS = ["order", "refinement", "finite values", "gradient norm", "largest gradient norm", "smoothness", "progress"]
BLOCKS = sets("model.recursion='block'", "model.initial_states='input'", "objective.detach_from=1",
              "objective.reward_over='sum'")
TRAINED = [f"train/loss_step_{s}" for s in range(S)]
EVALUATED = [f"val/loss_step_{s}" for s in range(S)]
LOSSES = ["train/loss", "val/loss"] + TRAINED + EVALUATED


class Refinement(Campaign):
    def read(self, name, directory="run"):
        with open(self.file(f"{directory}/{name}")) as f:
            return f.read()

    def verdict(self, directory="run"):
        return json.loads(self.read("verdict.json", directory))

    def grades(self, directory="run"):
        return {f["name"]: f["grade"] for f in self.verdict(directory)["findings"]}

    def check_refinement(self, kind, line, last):
        first = line[f"{kind}/loss_step_0"]
        self.assertAlmostEqual(line[f"{kind}/refinement"], (first - line[f"{kind}/loss_step_{last}"]) / first, places=6)

    # ---- losses

    def test_metrics_agree_with_each_other(self):
        self.run_trainer(*GOOD)
        trained = [line for line in self.metrics() if "train/loss" in line]
        evaluated = [line for line in self.metrics() if "val/loss" in line]
        self.assertEqual([line["step"] for line in trained], list(range(1, 41)))
        self.assertEqual([line["step"] for line in evaluated], [0, 20, 40])
        for line in trained:
            self.assertEqual([key for key in sorted(line) if key.startswith("train/loss_step")], TRAINED)
            self.assertEqual(line["train/loss_per_token"], line[TRAINED[-1]])
            self.check_refinement("train", line, S - 1)
        for line in evaluated:
            # Before training, and in an evaluation task, an evaluation continues to 2 S refinements; during training it stops at S.
            answers = 2 * S + 1 if line["step"] == 0 else S
            self.assertEqual(sum(key.startswith("val/loss_step_") for key in line), answers)
            self.assertEqual(line["val/loss"], line[EVALUATED[-1]])
            self.check_refinement("val", line, S - 1)

    def test_the_loss_is_what_the_deck_says(self):
        """One sequence per step, so that the mean over sequences is that of one."""
        options = sets("batch.per_rank=1", "batch.global=1", "campaign.max_steps=10", "objective.weight_base=3")
        shares = [3**s / 13 for s in range(S)]
        self.run_trainer(*FAILED, *options, code=77)
        for line in self.metrics():
            if "train/loss" not in line:
                continue
            losses = [line[key] for key in TRAINED]
            reward = sum((a - b) / a for a, b in zip(losses, losses[1:])) / (S - 1)
            expected = sum(w * loss for w, loss in zip(shares, losses)) - 4 * reward
            self.assertLess(abs(line["train/loss"] - expected), 2e-5 * max(losses), line)

    # ---- verdicts

    def test_a_good_verdict(self):
        text = self.run_trainer(*GOOD, code=0)
        verdict = self.verdict()
        last = self.steps("run", "val/loss")[40]
        self.assertEqual((verdict["verdict"], verdict["succeeded"], verdict["step"], verdict["loss"]),
                         ("good", True, 40, last))
        self.assertEqual([f["name"] for f in verdict["findings"]], FINDINGS)
        self.assertNotIn("failure", self.grades().values())
        figures = {f["name"]: f["figure"] for f in verdict["findings"]}
        self.assertAlmostEqual(figures["refinement"], self.steps("run", "val/refinement")[40], places=6)
        self.assertAlmostEqual(figures["progress"], last - self.steps("run", "val/loss")[0], places=6)
        for page in (text, self.read("log.txt")):
            self.assertIn("verdict of recursive refinement at step 40 (preset none): good", page)
        self.assertIn('<h2>Verdict: <span class="good">good</span></h2>', self.read("report.html"))
        print(re.search(r"^verdict of(.|\n)*?\n  refinement.*", text, re.M).group())

    def test_random_tokens_learned_by_heart_are_refined_by_half_or_more(self):
        """The case of nanochat's guide, four sequences of 64 random tokens, within its range of 50 to 97%."""
        rng = random.Random(5)
        tokens = [rng.randrange(256) for _ in range(4 * 64 + 1)]
        for name in ("train_0", "train_1", "valid_0"):
            write_shard(self.file(f"data/{name}.bin"), tokens)
        self.deck(300)
        options = sets("objective.kind='refinement'", "objective.supervision_steps=4", "objective.detach_from=3",
                       "objective.reward=0", "objective.weight_base=30", "objective.refinement_range=0.5, 0.97",
                       "objective.norm_range=0.01, 100", "objective.norm_limit=1000", "model.context=64",
                       "model.inner_steps=1", "model.embed_std=1", "batch.per_rank=4", "batch.global=4",
                       "evaluation.rows=4")
        self.run_trainer(*options, code=0)
        self.assertEqual((self.verdict()["verdict"], self.grades()["order"], self.grades()["refinement"]),
                         ("good", "good", "good"))

    def test_a_failed_verdict_has_its_own_code_also_when_resumed(self):
        text = self.run_trainer(*FAILED, code=77)
        self.assertRegex(
            text,
            r"  refinement +failure  0\.\d+ \(expected: 0\.98 to 0\.99\)\n +advice: raise &objective reward above 4")
        self.assertEqual((self.verdict()["verdict"], self.grades()["refinement"]), ("failed", "failure"))
        self.assertEqual([name for name, grade in self.grades().items() if grade == "failure"], ["refinement"])
        self.assertIn('<h2>Verdict: <span class="failure">failed</span></h2>', self.read("report.html"))
        before = self.read("verdict.json")
        self.run_trainer(*FAILED, "--resume", code=77)
        self.assertEqual(self.read("verdict.json"), before)
        self.assertEqual(sorted(self.steps()), list(range(1, 41)))
        self.run_trainer(*GOOD, "--resume", code=0)  # the same run, judged by another deck
        self.assertEqual(self.verdict()["verdict"], "good")
        print(re.search(r"^verdict of(.|\n)*?\n  refinement.*", text, re.M).group())

    def test_a_diverged_run_has_a_failed_verdict(self):
        wild = sets("optimizer.lr=1e30", "optimizer.warmup_steps=0", "output.skip_limit=3", "optimizer.weight_decay=0")
        text = self.run_trainer(*GOOD, *wild, code=76)
        self.assertIn("3 in a row", text)
        self.assertEqual((self.verdict()["verdict"], self.grades()["finite values"]), ("failed", "failure"))

    def test_a_run_beside_is_stated(self):
        self.run_trainer(*sets("output.directory='runs/plain'"))
        plain = self.steps("runs/plain", "val/loss")[40]
        text = self.run_trainer(*GOOD, *sets("evaluation.compare_with='runs/plain', 'runs/nowhere'"), code=0)
        own = self.steps("run", "val/loss")[40]
        beside, nowhere = self.verdict()["beside"]
        self.assertEqual((beside["name"], beside["step"], beside["loss"]), ("plain", 40, plain))
        self.assertAlmostEqual(beside["difference"], own - plain, places=6)
        stated = f"{plain:.4f} at step 40; this run's last answer, {own:.4f}, is {'lower' if own < plain else 'higher'} by"
        for page in (text, self.read("log.txt")):
            self.assertIn(f"  {'plain':<22} {stated}", page)
            self.assertIn(f"  {'nowhere':<22} there is no such directory", page)
        self.assertIn(f"<tr><td>plain<td>{stated}", self.read("report.html"))
        self.assertIsNone(nowhere["loss"])

    def test_the_last_answer_is_weighed_against_a_baseline(self):
        text = self.run_trainer(*GOOD, *sets("evaluation.baseline='runs/plain'"), code=77)
        self.assertIn("the verdict needs the run runs/plain of &evaluation baseline, which does not exist yet", text)
        self.assertRegex(text, r"  baseline +failure  there is no such directory")
        for steps, code, grade in ((2, 0, "good"),
                                   (120, 77,
                                    "failure")):  # a plain model that learned little, and one that learned more
            self.run_trainer(
                *sets("output.directory='runs/plain'", f"campaign.max_steps={steps}", "optimizer.warmup_steps=0"),
                "--fresh")
            self.run_trainer(*GOOD, *sets("evaluation.baseline='runs/plain'"), "--resume", code=code)
            self.assertEqual(self.grades()["baseline"], grade)
        plain = self.steps("runs/plain", "val/loss")[120]
        self.assertAlmostEqual(self.verdict()["findings"][-1]["figure"],
                               self.steps("run", "val/loss")[40] - plain, places=6)
        text = self.run_trainer(*sets("evaluation.baseline='runs/plain'"), code=1)
        self.assertIn("only kind = 'refinement' ends with a verdict", text)

    # ---- the same result on every layout

    def test_ranks_agree(self):
        for kind, options in (("adamw", ()), ("muon", MUON), ("blocks", BLOCKS)):
            self.run_trainer(*FAILED, *options, *sets(f"output.directory={kind}"), code=77)
            for shard in ("none", "optimizer"):
                name = f"{kind}2_{shard}"
                self.run_trainer(*FAILED, *options, *sets(f"output.directory={name}", f"parallel.shard='{shard}'"),
                                 ranks=2, code=77)
                self.compare(kind, name, 1e-4, LOSSES)

    def test_micro_steps_change_no_loss(self):
        for per_rank, accumulation_steps in ((8, 1), (4, 2), (2, 4)):
            self.run_trainer(
                *FAILED,
                *sets(f"batch.per_rank={per_rank}", f"batch.accumulation={accumulation_steps}",
                      f"output.directory=by{per_rank}"), code=77)
            if per_rank < 8:
                self.compare("by8", f"by{per_rank}", 1e-4, LOSSES)

    def test_recomputation_changes_no_bit_and_takes_less_memory(self):
        for name, options in (("stack", ()), ("blocks", BLOCKS)):
            with self.subTest(name):
                self.check_recomputation(name, options)

    def check_recomputation(self, name, options):
        planned = {}
        for recompute in ("none", "block"):
            here = options + sets(f"precision.recompute='{recompute}'", f"output.directory={name}_{recompute}")
            self.run_trainer(*FAILED, *here, *sets("model.dropout=0.1"), code=77)
            large = sets("model.layers=4", "model.hidden=128", "model.context=128", "batch.per_rank=8")
            plan = self.run_trainer(*FAILED, *here, *large, "--dry-run")
            planned[recompute] = float(re.search(r"memory per rank +([\d.]+) MiB", plan).group(1))
        for key in LOSSES + ["train/grad_norm"]:
            self.assertEqual(self.steps(name + "_none", key), self.steps(name + "_block", key), key)
        print(f"planned: {planned['none']} MiB, with recomputation {planned['block']} MiB")
        self.assertLess(planned["block"], 0.7 * planned["none"])

    def check_resumed(self, *options, ranks=1):
        self.deck(300)
        self.run_trainer(*FAILED, *options, *sets("output.directory=whole"), ranks=ranks, code=77)
        code, text = self.interrupt_after(23, *FAILED, *options, ranks=ranks, number=signal.SIGUSR1)
        self.assertEqual(code, 75, text)
        self.run_trainer(*FAILED, *options, "--resume", ranks=ranks, code=77)
        for key in LOSSES + ["train/refinement", "train/grad_norm", "samples_hash_total"]:
            self.assertEqual(self.steps("whole", key), self.steps("run", key), key)
        self.assertEqual(self.read("verdict.json", "whole"), self.read("verdict.json"))

    def test_resumed_bit_for_bit(self):
        self.check_resumed()

    def test_resumed_bit_for_bit_with_recursion_in_each_block(self):
        self.check_resumed(*BLOCKS)

    def test_resumed_bit_for_bit_with_muon_in_bf16_sharded(self):
        self.check_resumed(*MUON, *sets("precision.compute='bf16'", "parallel.shard='optimizer'"), ranks=2)

    def test_accumulation_that_contradicts_the_ranks_is_refused(self):
        """The number of ranks is known only at run time."""
        for ranks, product, remedy in ((1, "2 x 1 x 2 = 4", 4), (4, "2 x 4 x 2 = 16", 1)):
            text = self.run_trainer(*GOOD, *sets("batch.accumulation=2"), ranks=ranks, code=1)
            self.assertIn(f"global = 8 is not per_rank x ranks x accumulation = {product}", text)
            self.assertIn(f"set accumulation = {remedy}", text)
            self.assertEqual(len(re.findall(r"^error: ", text, re.M)), 1, text)
        self.run_trainer(
            *GOOD, *sets("batch.accumulation=2", "campaign.max_steps=10", "objective.refinement_range=0.98, 0.99"),
            ranks=2, code=77)

    # ---- tasks

    def losses_of(self, text):
        return dict(re.findall(r"^(val/\w+) (\S+)$", text, re.M))

    def test_evaluate_states_each_refinement(self):
        self.run_trainer(*GOOD)
        line = [line for line in self.metrics() if "val/loss" in line][-1]
        evaluate = GOOD + sets("campaign.task='evaluate'")
        text = self.run_trainer(*evaluate)
        stated = self.losses_of(text)
        print("  ".join(f"{name} {value}" for name, value in stated.items()))
        self.assertEqual(sorted(stated), [f"val/loss_step_{s}" for s in range(2 * S + 1)] + ["val/refinement"])
        for key in EVALUATED + ["val/refinement"]:
            self.assertEqual(stated[key], f"{line[key]:.4f}")
        self.assertIn(f"validation loss {line['val/loss']:.4f} ", text)
        for refine in (0, 1, S - 1, 2 * S, 2 * S + 2):
            text = self.run_trainer(*evaluate, "--refine", str(refine), ranks=2 if refine == 1 else 1)
            again = self.losses_of(text)
            self.assertEqual(len(again), max(2 * S, refine) + 2)
            self.assertEqual({key: again[key] for key in stated if key != "val/refinement"},
                             {key: stated[key] for key in stated if key != "val/refinement"})
            self.assertIn(f"validation loss {again[f'val/loss_step_{refine}']} ", text)

    def test_generate(self):
        for name, options in (("stack", ()), ("blocks", BLOCKS)):
            with self.subTest(name):
                self.check_generation(*options, *sets(f"output.directory={name}"))

    def check_generation(self, *options):
        self.run_trainer(*FAILED, *options, code=77)
        generate = FAILED + options + sets(
            "campaign.task='generate'", "generation.prompt='abc'", "generation.samples=1", "generation.max_tokens=12",
            "generation.temperature=5", "batch.accumulation=2")  # a training setting: no effect here
        trained = self.run_trainer(*generate).split("---")[1]
        written = {n: self.run_trainer(*generate, "--refine", str(n)).split("---")[1] for n in (0, S - 1, 2 * S)}
        self.assertEqual(written[S - 1], trained)
        for text in written.values():
            self.assertTrue(text.startswith("\nabc") and len(text) > 5, text)
        self.assertNotEqual(written[0], trained)  # other logits, and twelve tokens sampled from them

    def test_export_is_refused(self):
        self.run_trainer(*GOOD)
        text = self.run_trainer(*GOOD, "--export", "hf", code=1)
        self.assertIn("--export: no model of Transformers predicts as &objective kind = 'refinement' does", text)
        self.assertIn("checkpoint.h5", text)

    def test_a_recursive_model_is_no_other(self):
        """Neither is read as the other, nor exported as a Transformers model."""
        recursive = sets("model.inner_steps=1", "output.directory=recursive")
        for options in (recursive, sets("output.directory=plain")):
            self.run_trainer(*options)
        text = self.run_trainer(*GOOD, *sets("model.load='plain'"), code=1)
        self.assertRegex(text, r"plain/\S+ contains another model: /model/initial_answer is missing")
        text = self.run_trainer(*sets("campaign.task='evaluate'", "output.directory=recursive"), code=1)
        self.assertRegex(text, r"recursive/\S+ contains another model: /model/initial_\w+ is not in the deck's")
        text = self.run_trainer(*recursive, "--export", "hf", code=1)
        self.assertIn("inner_steps", text)
        self.run_trainer(*FAILED, *sets("model.load='recursive'"), code=77)


if __name__ == "__main__":
    main()
