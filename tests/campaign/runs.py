"""Whole campaigns of a tiny model through the real trainer: ranks, restart, refusals, tasks.

    runs.py TRAINER MPIRUN [unittest arguments]        each class is one ctest entry
"""
import json, os, re, signal

from tiny import EXPERTS, MUON, Campaign, main, write_shard


class Ranks(Campaign):
    """The result of a step does not depend on how ranks are laid out."""
    def test_one_two_and_four_ranks_agree(self):
        self.deck(100)
        self.run_trainer("--set", "output.directory=one")
        for ranks in (2, 4):
            for shard in ("none", "optimizer"):
                name = f"ranks{ranks}_{shard}"
                self.run_trainer("--set", f"output.directory={name}", "--set", f"parallel.shard='{shard}'", ranks=ranks)
                self.compare("one", name, 1e-4)

    def test_muon_on_one_two_and_four_ranks_agrees(self):
        self.deck(100)
        self.run_trainer(*MUON, "--set", "output.directory=one")
        for ranks, shard in ((2, "none"), (2, "optimizer"), (4, "none"), (4, "optimizer")):
            name = f"ranks{ranks}_{shard}"
            self.run_trainer(*MUON, "--set", f"output.directory={name}", "--set", f"parallel.shard='{shard}'",
                             ranks=ranks)
            self.compare("one", name, 1e-4)

    def test_experts_on_one_and_two_ranks_agree(self):
        for muon in ((), MUON):
            self.run_trainer(*EXPERTS, *muon, "--set", f"output.directory=one{len(muon)}")
            for shard in ("none", "optimizer"):
                name = f"ranks2_{shard}{len(muon)}"
                self.run_trainer(*EXPERTS, *muon, "--set", f"output.directory={name}", "--set",
                                 f"parallel.shard='{shard}'", ranks=2)
                self.compare(f"one{len(muon)}", name, 1e-4, ("train/loss", "val/loss", "train/router_loss"))

    def test_experts_divided_over_ranks_agree(self):
        even = EXPERTS + ("--set", "model.router_loss=0")
        self.run_trainer(*EXPERTS, "--set", "output.directory=one")
        self.run_trainer(*even, "--set", "output.directory=even")
        balance = ("train/router_loss",)
        for reference, options, layout, value, keys in (("one", EXPERTS, "tensor", "2",
                                                         balance), ("one", EXPERTS, "shard", "'full'", balance),
                                                        ("even", even, "pipeline", "2", ())):
            self.run_trainer(*options, "--set", f"output.directory={layout}", "--set", f"parallel.{layout}={value}",
                             ranks=2)
            self.compare(reference, layout, 1e-4, ("train/loss", "val/loss") + keys)

    def test_muon_resumed_from_four_ranks_on_two(self):
        self.deck(300)
        options = MUON + ("--set", "parallel.shard='optimizer'")
        self.run_trainer(*options, "--set", "output.directory=whole", ranks=4)
        code, text = self.interrupt_after(15, *options, ranks=4, number=signal.SIGUSR1)
        self.assertEqual(code, 75, text)
        self.run_trainer(*options, "--resume", ranks=2)
        self.compare("whole", "run", 1e-4)

    def test_resume_from_four_ranks_on_one_and_two(self):
        self.deck(500)
        self.run_trainer("--set", "output.directory=whole", ranks=4)
        for ranks in (1, 2, 4):
            for shard in ("none", "optimizer"):
                name = f"to{ranks}_{shard}"
                options = ("--set", f"output.directory={name}", "--set", f"parallel.shard='{shard}'")
                code, text = self.interrupt_after(15, *options, ranks=4, number=signal.SIGUSR1)
                self.assertEqual(code, 75, text)
                self.assertIn("checkpoint written", text)
                self.run_trainer(*options, "--resume", ranks=ranks)
                self.compare("whole", name, 1e-4)


class Resume(Campaign):
    """A stopped and resumed run repeats the uninterrupted one, bit for bit."""
    def check(self, *options, ranks=1):
        self.deck(500)
        self.run_trainer("--set", "output.directory=whole", *options, ranks=ranks)
        # mpirun ends its job a second after a SIGTERM.
        for number in (signal.SIGTERM, signal.SIGUSR1) if ranks == 1 else (signal.SIGUSR1,):
            name = f"parts{int(number)}"
            options_here = ("--set", f"output.directory={name}", *options)
            code, text = self.interrupt_after(13, *options_here, ranks=ranks, number=number)
            self.assertEqual(code, 75, text)
            self.assertIn("checkpoint written", text)
            self.run_trainer(*options_here, "--resume", ranks=ranks)
            for key in ("train/loss", "train/grad_norm", "val/loss", "samples_hash_total"):
                self.assertEqual(self.steps("whole", key), self.steps(name, key), key)

    def test_one_rank(self):
        self.check()

    def test_two_ranks_sharded(self):
        self.check("--set", "parallel.shard='optimizer'", ranks=2)

    def test_muon(self):
        self.check(*MUON)
        text = self.run_trainer("--set", "output.directory=whole", "--resume", code=1)  # the deck's kind is adamw
        self.assertIn("the states of another &optimizer", text)

    def test_experts_in_bf16_sharded(self):
        self.check(*EXPERTS, "--set", "precision.compute='bf16'", "--set", "parallel.shard='optimizer'", ranks=2)

    def test_muon_in_bf16_sharded(self):
        self.check(*MUON, "--set", "precision.compute='bf16'", "--set", "parallel.shard='optimizer'", ranks=2)

    def test_dropout_and_bf16(self):
        self.check("--set", "model.dropout=0.1", "--set", "precision.compute='bf16'")

    def test_recomputation_changes_no_bit(self):
        self.run_trainer("--set", "output.directory=kept")
        self.run_trainer("--set", "output.directory=again", "--set", "precision.recompute='block'")
        self.assertEqual(self.steps("kept"), self.steps("again"))

    def test_a_killed_run_resumes_from_its_newest_checkpoint(self):
        self.deck(500)
        self.run_trainer("--set", "output.directory=whole")
        self.interrupt_after(300, number=signal.SIGKILL)  # checkpoints are written every 20 steps, asynchronously
        text = self.run_trainer("--resume")
        self.assertIn("resumed from", text)
        self.assertEqual(self.steps("whole"), self.steps("run"))

    def test_another_length_is_listed_and_a_jump_of_the_rate_announced(self):
        self.run_trainer("--set", "campaign.max_steps=20")
        text = self.run_trainer("--resume")
        self.assertIn("resumed with another deck than the checkpoint's:\ncampaign.max_steps = 40, not 20\n", text)
        jump = re.search(
            r"\nthe learning rate jumps up from 0\.00e\+00 at step 20 to (\S+) at step 21: schedule = 'cosine' runs over "
            r"max_steps = 40 now, not max_steps = 20\n", text)
        self.assertIsNotNone(jump, text)
        self.assertEqual(jump.group(1), f"{self.steps('run', 'train/lr')[21]:.2e}")

    def test_a_run_that_is_long_enough_says_that_nothing_was_done(self):
        self.run_trainer()
        before = self.metrics()
        for steps in (30, 40):
            text = self.run_trainer("--resume", "--set", f"campaign.max_steps={steps}")
            self.assertIn(
                f"nothing was done: the run is at step 40 already, and campaign.max_steps = {steps}; set campaign.max_steps "
                "above 40 to train on\n", text)
            self.assertNotIn("finished at step", text)
        self.assertEqual(self.metrics(), before)

    def test_the_first_step_of_a_start_is_in_no_rate(self):
        for options in (("--set", "campaign.max_steps=20"), ("--resume", "--set", "campaign.max_steps=30")):
            text = self.run_trainer(*options)
            self.assertRegex(text, r"(?m)^time UTC +step +loss +lr +grad +tokens/s +left$")
            first, second = re.findall(r"^[\d:]{8} +\d+ +\d\.\d{4}  .*$", text, re.M)[:2]
            self.assertRegex(first, r"^\S+ +\d+ +\S+ +\S+ +\S+ +- +(-|[\d.]+ (s|min|h))$")
            self.assertRegex(second, r"^\S+ +\d+ +\S+ +\S+ +\S+ +[\d,.]+ +[\d.]+ (s|min|h)$")
        rates = self.steps("run", "train/throughput")
        self.assertEqual(sorted(rates), [s for s in range(2, 31) if s != 21])
        seconds = [line["system/seconds"] for line in self.metrics()]
        self.assertEqual(seconds, sorted(seconds))

    def test_a_damaged_newest_checkpoint_is_reported_and_passed_over(self):
        self.run_trainer("--set", "output.directory=whole")
        self.run_trainer()
        newest = self.file("run/checkpoints/step_00000040/checkpoint.h5")
        with open(newest, "r+b") as f:
            f.seek(os.path.getsize(newest) // 2)
            byte = f.read(1)
            f.seek(-1, 1)
            f.write(bytes([byte[0] ^ 0x10]))
        text = self.run_trainer("--resume")
        self.assertIn("step_00000040", text)
        self.assertRegex(text, r"resumed from \S*step_000000[23]0")
        self.assertEqual(self.steps("whole"), self.steps("run"))


class Refusals(Campaign):
    def refused(self, *words, options=(), ranks=1):
        text = self.run_trainer(*options, ranks=ranks, code=1)
        for word in words:
            self.assertIn(word, text)
        self.assertEqual(len(re.findall(r"^error: ", text, re.M)), 1, text)
        self.assertFalse(os.path.exists(self.file("run/metrics.jsonl")))

    def test_shards(self):
        self.refused("data/none_*.bin", options=("--set", "data.train='data/none_*.bin'"))
        open(self.file("data/train_2.bin"), "wb").close()
        self.refused("train_2.bin", "empty")
        write_shard(self.file("data/train_2.bin"), list(range(200)))
        os.truncate(self.file("data/train_2.bin"), 1100)
        self.refused("train_2.bin")
        write_shard(self.file("data/train_2.bin"), [1, 2, 271, 272] * 30)
        self.refused("train_2.bin", "272", ranks=2)

    def test_shards_of_another_tokenizer(self):
        def meta(**values):
            with open(self.file("data/meta.json"), "w") as f:
                json.dump(dict(tokenizer="data/corpus", vocabulary=272, end_of_text=271, **values), f)

        meta()
        words = ("data/meta.json", "'data/corpus' (272 tokens)", "tokenizer = 'bytes' (257 tokens)")
        self.refused(*words)
        self.refused(*words, ranks=2)
        self.assertEqual(os.listdir(self.file("run/checkpoints")), [])
        self.refused(*words, options=("--set", "campaign.task='evaluate'"))
        self.assertIn("warning: data/meta.json: these shards were made with the tokenizer 'data/corpus'",
                      self.run_trainer("--set", "data.tokenizer='nowhere'", "--set", "campaign.max_steps=5"))

    def test_layouts(self):
        self.refused("global = 8", "per_rank x ranks = 2 x 3 = 6", ranks=3)

    def test_decks(self):
        text = self.run_trainer("--set", "model.laysers=3", code=1)
        self.assertIn("layers", text)
        text = self.run_trainer("--set", "model.hidden=33", ranks=2, code=1)
        self.assertEqual(text.count("error:"), 1, text)

    def test_options(self):
        self.assertIn("--help", self.run_trainer("--no-such-option", code=1))
        self.refused("generation.refine=2", "only kind = 'refinement'", options=("--refine", "2"))

    def test_a_checkpoint_of_another_model(self):
        self.run_trainer()
        evaluate, new = ("--set", "campaign.task='evaluate'"), ("--set", "model.load='run'", "--set",
                                                                "output.directory=new")
        for layers, words in ((1, "/model/layers/1/[^ ]+ is not in the deck's"), (3,
                                                                                  "/model/layers/2/[^ ]+ is missing")):
            for task in (evaluate, new):
                text = self.run_trainer("--set", f"model.layers={layers}", *task, code=1)
                self.assertRegex(text, rf"run/\S+ contains another model: {words}")
        # Other models of the same shapes.
        for name, was, now in (("heads", "4", "2"), ("rope_base", "10000.0", "500.0"), ("logit_cap", "0.0", "30.0"),
                               ("norm_eps", "1e-05", "0.001"), ("layers", "2", "3")):
            shaped = ("--set", "model.head_dim=8", "--set",
                      f"model.{name}={now}") if name == "heads" else ("--set", f"model.{name}={now}")
            for task in (("--resume",),) if name in ("layers", "heads") else (("--resume",), evaluate, new):
                self.assertIn(f"model.{name} = {now}, not {was}", self.run_trainer(*shaped, *task, code=1))

    def test_what_else_a_resumed_run_does_differently_is_said(self):
        self.run_trainer()
        text = self.run_trainer("--resume", "--set", "campaign.seed=3", "--set", "batch.global=4", "--set",
                                "campaign.max_steps=42")
        self.assertIn("campaign.seed = 3, not 1337", text)
        self.assertIn("batch.global = 4, not 8", text)
        self.assertIn("campaign.max_steps = 42, not 40", text)

    def test_an_earlier_run_is_not_overwritten(self):
        self.run_trainer()
        text = self.run_trainer(code=1)
        self.assertIn("--resume", text)
        self.run_trainer("--fresh")
        self.assertTrue(os.path.exists(self.file("run.1/metrics.jsonl")))
        self.assertEqual(self.steps("run.1"), self.steps("run"))


class Tasks(Campaign):
    def test_plan_equals_run(self):
        plan = self.run_trainer("--dry-run")
        planned = re.search(r"memory per rank +([\d.]+ .iB)", plan).group(1)
        self.assertIn(f"memory planned {planned} per rank", self.run_trainer())

    def test_plan_of_experts_equals_run(self):
        wide = EXPERTS + ("--set", "model.expert_hidden=4096")
        plan = self.run_trainer(*wide, "--dry-run")
        of = lambda name: float(re.search(rf"{name} +([\d.]+) M", plan).group(1))
        self.assertAlmostEqual(of("parameter count") - of("active per token"), 2 * 2 * 3 * 32 * 4096 / 1e6, delta=0.011)
        planned = re.search(r"memory per rank +([\d.]+ .iB)", plan).group(1)
        self.assertIn(f"memory planned {planned} per rank", self.run_trainer(*wide))

    def test_a_profile_tells_the_operations_of_its_step_and_changes_nothing(self):
        self.deck(6)
        self.run_trainer("--set", "output.directory=plain", ranks=2)
        text = self.run_trainer("--set", "output.profile=3", ranks=2)
        self.assertIn("profile in run/profile: step 3: ", text)
        self.assertEqual(self.steps("plain"), self.steps("run"))
        for rank in range(2):
            with open(self.file(f"run/profile/rank_{rank:04}.txt")) as f:
                table = f.read()
            rows = dict((line.split()[0], line.split()) for line in table.splitlines()[3:])
            for operation in ("gemm", "attention_forward", "attention_backward_key", "norm_backward", "adamw"):
                self.assertIn(operation, rows, table)
            self.assertGreater(float(rows["gemm"][5]), 0, table)  # TFLOP/s
            with open(self.file(f"run/profile/rank_{rank:04}.json")) as f:
                events = json.load(f)["traceEvents"]
            kernels = [e for e in events if e["ph"] == "X"]
            self.assertEqual(len(kernels), sum(int(row[2]) for row in rows.values()))
            self.assertEqual({e["pid"] for e in events}, {rank})

    def test_fp8_leaves_in_bf16_what_it_cannot_multiply(self):
        run = lambda name, *options: self.run_trainer("--set", f"output.directory='{name}'", *options)
        fp8, said = ("--set", "precision.compute='fp8'"), "computed in bf16 instead of fp8: "
        self.assertNotIn(said, run("fp8", *fp8))
        self.assertIn(said + "experts and their router\n", run("experts", *fp8, *EXPERTS))
        self.assertIn(said + "linear layers of 72 x 32, not multiples of 16\n",
                      run("width", *fp8, "--set", "model.ffn_hidden=72"))
        self.assertIn(said + "the head's gradients, 32 x 300, not multiples of 16\n",
                      run("words", *fp8, "--set", "model.vocabulary=300"))
        odd = ("--set", "model.context=12")
        self.assertIn(said + "all linear layers, since the 24 tokens of a micro-batch are not a multiple of 16\n",
                      run("odd", *fp8, *odd))
        run("bf16", "--set", "precision.compute='bf16'", *odd)
        self.assertEqual(self.steps("odd"), self.steps("bf16"))

    def test_fp8_over_several_micro_batches_resumes_bit_for_bit(self):
        def options(name, compute="fp8"):
            return ("--set", f"output.directory='{name}'", "--set", f"precision.compute='{compute}'", "--set",
                    "batch.global=12", "--set", "campaign.max_steps=200")

        self.run_trainer(*options("whole"))
        self.run_trainer(*options("bf16", "bf16"))
        self.interrupt_after(15, *options("parts"))
        self.run_trainer(*options("parts"), "--resume")
        whole, bf16 = self.steps("whole"), self.steps("bf16")
        self.assertEqual(self.steps("parts"), whole)
        self.assertNotEqual(whole, bf16)
        self.assertLess(max(abs(whole[step] - bf16[step]) for step in whole), 0.1)
        saturated = self.steps("whole", "train/fp8_saturated")
        self.assertEqual(saturated.keys(), whole.keys())
        self.assertLess(max(saturated.values()), 100)

    def test_a_run_over_wall_time_ends_its_schedule_with_it(self):
        for hours in (0.002, 0.01, 0.05):  # a busy machine may not do 7 steps in the first
            timed = ("--set", "campaign.max_steps=0", "--set", f"campaign.max_hours={hours}", "--set",
                     "output.directory='timed'", "--set", "evaluation.every=0")
            self.assertRegex(self.run_trainer(*timed, "--dry-run"), r"steps +(about [\d,]+|unknown)\n")
            code, text = self.interrupt_after(7, *timed, "--fresh")
            if code == 75:
                break
        self.assertEqual(code, 75, text)
        first = self.steps("timed", "train/lr")
        text = self.run_trainer(*timed, "--resume")
        self.assertRegex(text, r"finished at step \d+")
        self.assertNotIn("/0 ", text)
        rates = self.steps("timed", "train/lr")
        self.assertEqual({step: rates[step] for step in first}, first)
        falling = [rate for step, rate in sorted(rates.items()) if step >= 5]
        self.assertEqual(falling, sorted(falling, reverse=True))
        self.assertLess(falling[-1], falling[0])
        self.assertEqual(max(rates.values()), rates[5])
        self.assertIn("set one of them", self.run_trainer("--set", "campaign.max_steps=0", code=1))

    def test_largest_batch(self):
        text = self.run_trainer("--dry-run", "--set", "batch.per_rank=0", "--set", "batch.global=64")
        self.assertRegex(text, r"batch +64 = 64 x 1 x 1")

    def test_evaluate_repeats_the_validation_loss(self):
        self.run_trainer()
        last = self.steps("run", "val/loss")[40]
        for ranks in (1, 2):
            text = self.run_trainer("--set", "campaign.task='evaluate'", ranks=ranks)
            self.assertIn(f"validation loss {last:.4f}", text)

    def test_runs_beside_are_stated_in_log_and_report(self):
        self.run_trainer("--set", "output.directory=plain", "--set", "campaign.max_steps=20")
        beside = ("--set", "evaluation.compare_with='plain', 'nowhere'")
        other = self.steps("plain", "val/loss")[20]
        for task in ("train", "evaluate"):
            text = self.run_trainer(*beside, "--set", f"campaign.task={task}")
            own = self.steps("run", "val/loss")[40]
            stated = f"{other:.4f} at step 20; this run's, {own:.4f}, is {'lower' if own < other else 'higher'} by"
            self.assertIn(f"\ncompared with plain: {stated}", text)
            self.assertIn("\ncompared with nowhere: there is no such directory\n", text)
        with open(self.file("run/report.html")) as f:
            self.assertIn(f"<th>Compared with plain<td>{stated}", f.read())

    def test_generate_and_export(self):
        self.run_trainer()
        options = ("--prompt", "it's", "--set", "generation.samples=2", "--set", "generation.max_tokens=8")
        first, second = (self.run_trainer(*options, ranks=r) for r in (1, 2))
        pages = [re.sub(r", [\d.]+ s\n", "", t) for t in (first, second)]
        self.assertEqual(pages[0], pages[1])
        self.assertEqual(first.count("---\nit's"), 2)
        self.run_trainer("--export", "hf")
        greedy = ("--set", "generation.temperature=0", "--set", "generation.samples=1", "--set",
                  "generation.max_tokens=8", "--prompt", "abc")
        ours = self.run_trainer(*greedy)
        again = self.run_trainer(*greedy, "--set", "generation.checkpoint='hf'")
        self.assertEqual(ours.split("---")[1], again.split("---")[1])
        self.assertNotIn("ends here", ours)
        text = self.run_trainer("--prompt", "abc", "--set", "generation.max_tokens=100", "--set",
                                "generation.samples=1")
        self.assertRegex(text, r"(?s)---\nabc.{13}\n\(ends here: &model context = 16 is full\)\n---")


if __name__ == "__main__":
    main()
