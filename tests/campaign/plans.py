#!/usr/bin/env python3
"""What --dry-run says before a run, during one and after one."""
import json, os, re, struct

from tiny import Campaign, main


class Plans(Campaign):
    def rate(self, text):
        rate, source = re.search(r"\n  rate +([\d,.]+) tokens/s\n +\((.*)\)", text).groups()
        return float(rate.replace(",", "")), source

    TIMED = r"^estimated for {} on \w+, 1 threads from \d+ GFLOP/s and \d+ GB/s, timed just now{}; within a factor of two or so$"

    def test_a_run_leaves_its_rate_for_the_same_circumstances_alone(self):
        text = self.run_trainer("--dry-run")
        self.assertRegex(self.rate(text)[1], self.TIMED.format("fp32", ""))
        self.assertRegex(text, r"\n  time +[\d.]+ s\n")
        self.run_trainer()
        with open(self.file("run/rate.json")) as f:
            left = json.load(f)
        rates = sorted(rate for step, rate in self.steps(key="train/throughput").items() if step > 1)
        self.assertAlmostEqual(left["tokens_per_second"] / rates[len(rates) // 2], 1, places=6)
        rate, source = self.rate(self.run_trainer("--dry-run"))
        self.assertAlmostEqual(rate / left["tokens_per_second"], 1, delta=6e-4)  # four digits
        self.assertRegex(source, r"^measured by the run in run, \d{4}-\d\d-\d\d$")
        # For another device, number of ranks, batch or precision the rate is not quoted.
        for device in ("h200", "h100", "a100"):
            self.assertRegex(
                self.rate(self.run_trainer("--dry-run", "--device", device))[1],
                f"^estimated, typical of fp32 on {device.upper()}; no bound$")
        for options, ranks in ((("--ranks", "2"), 1), ((), 2), (("--set", "batch.per_rank=4"), 1),
                               (("--set", "precision.compute='bf16'"), 1)):
            source = self.rate(self.run_trainer("--dry-run", *options, ranks=ranks))[1]
            self.assertRegex(source, self.TIMED.format(r"\w+", "(, per rank)?"), options)

    def test_ranks_that_are_not_here(self):
        one = self.run_trainer("--dry-run", "--device", "h200")
        four = self.run_trainer("--dry-run", "--device", "h200", "--ranks", "4")
        self.assertRegex(four, r"plan of 'tiny' on 4 ranks")
        self.assertRegex(four, r"batch +8 = 2 x 4 x 1\n")
        self.assertRegex(one, r"batch +8 = 2 x 1 x 4\n")
        self.assertIn("3 ranks cannot hold",
                      self.run_trainer("--dry-run", "--ranks", "3", "--set", "parallel.tensor=2", code=1))
        self.assertIn("add --dry-run", self.run_trainer("--ranks", "4", code=1))
        self.assertIn("start one rank", self.run_trainer("--dry-run", "--ranks", "4", ranks=2, code=1))
        self.assertIn("set 1 or more", self.run_trainer("--dry-run", "--ranks", "-1", code=1))

    def test_nodes_that_are_not_here(self):
        def plan(*options):
            return self.run_trainer("--dry-run", "--device", "h100", "--ranks", "4", *options)

        self.assertNotIn("nodes", plan())
        two = plan("--ranks-per-node", "2")
        self.assertRegex(
            two,
            r"\n  nodes +2 of 2 ranks\n +\(400 Gbit/s per rank between them, assumed; --network gives another rate\)\n")
        self.assertIn("assumed between nodes", self.rate(two)[1])
        slow = plan("--ranks-per-node", "2", "--network", "10")
        self.assertIn("(10 Gbit/s per rank between them)", slow)
        self.assertLess(self.rate(slow)[0], self.rate(two)[0])
        for option, value in (("--ranks-per-node", "2"), ("--network", "100")):
            self.assertIn("add --dry-run", self.run_trainer(option, value, code=1))
            self.assertIn("set a number above 0", self.run_trainer("--dry-run", option, "-1", code=1))
            self.assertIn("start one rank", self.run_trainer("--dry-run", option, value, ranks=2, code=1))

    def test_the_table_is_short_when_a_run_goes_on(self):
        def logged():
            with open(self.file("run/log.txt")) as f:
                return f.read()

        self.run_trainer("--resume", "--set", "campaign.max_steps=20")  # a first start, despite --resume
        first = logged()
        self.assertIn("parameter memory", first)
        self.run_trainer("--resume")
        again = logged()[len(first):] if logged().startswith(first) else logged()
        self.assertNotIn("parameter memory", again)
        self.assertRegex(
            again,
            r"plan of 'tiny': [\d.]+ K parameters, [\d.]+ .iB per rank of [\d.]+ GiB free, 8 = 2 x 1 x 4 sequences per step"
        )
        self.assertIn("parameter memory", self.run_trainer("--dry-run"))

    def test_samples_fill_their_rows_as_they_do(self):
        with open(self.file("data/problems.jsonl"), "w") as f:
            for i in range(50):
                f.write(json.dumps({"question": f"{i} and 1", "answer": f"{i}+1={i + 1}\n#### {i + 1}"}) + "\n")
        options = [
            part for value in ("objective.kind='block_diffusion'", "data.valid='data/problems.jsonl'",
                               "data.question_tokens=16", "data.plan_tokens=8", "data.execution_tokens=24",
                               "model.context=48") for part in ("--set", value)
        ]
        tokens = lambda text: float(re.search(r"\n  tokens +([\d.]+) M\n", text).group(1))
        dry = ("--dry-run", "--device", "h200", *options, "--set", "campaign.max_steps=100000")
        plans = {
            name: self.run_trainer(*dry, *more, "--set", f"data.train='data/{name}.jsonl'")
            for name, more in (("problems", ()), ("elsewhere", ("--without-data",)))
        }
        self.assertIn("samples of full length assumed", plans["elsewhere"])
        self.assertNotIn("assumed", plans["problems"])
        self.assertAlmostEqual(tokens(plans["elsewhere"]), 0.1 * 8 * 48, delta=0.06)
        self.run_trainer(*options, "--set", "data.train='data/problems.jsonl'")
        learned = self.steps(key="train/tokens")
        self.assertAlmostEqual(tokens(plans["problems"]), 0.1 * learned[40] / 40, delta=0.05 * 0.1 * learned[40] / 40)

    def refused(self, message, *options, ranks=1):
        """The dry run fails as the run does, and has a plan without what it lacks."""
        said = self.run_trainer(*options, ranks=ranks, code=1)
        self.assertRegex(said, message)
        text = self.run_trainer(*options, "--dry-run", ranks=ranks, code=1)
        self.assertRegex(text, message)
        self.assertIn("--without-data plans without data, tokenizer and weights.", text)
        self.assertNotIn("memory per rank", text)
        self.assertEqual(len(re.findall(r"^error: ", text, re.M)), 1, text)
        self.assertIn("memory per rank", self.run_trainer(*options, "--dry-run", "--without-data", ranks=ranks))

    def test_what_the_run_lacks_is_an_error_of_the_plan(self):
        sets = lambda *items: [word for item in items for word in ("--set", item)]
        self.refused("no token shard matches .nowhere/", *sets("data.train='nowhere/*.bin'"))
        self.refused("no token shard matches .nowhere/", *sets("data.valid='nowhere/*.bin'"), ranks=2)
        self.refused("nowhere: no such file or folder", *sets("model.load=nowhere"))
        with open(self.file("data/short.bin"), "wb") as f:
            f.write(struct.pack("<256i", 20240520, 1, 1000, *([0] * 253)))
        self.refused(r"short.bin: truncated: its header counts 1000 tokens", *sets("data.train=data/short.bin"))
        self.refused(r"token \d+ at position .* is outside the vocabulary of 64",
                     *sets("model.vocabulary=64", "data.tokenizer=none"))
        self.problems()
        problems = sets("objective.kind=block_diffusion", "data.train=data/train.jsonl", "data.valid=data/test.jsonl",
                        "data.question_tokens=16", "data.plan_tokens=8", "data.execution_tokens=24", "model.context=48")
        self.run_trainer(*problems, "--dry-run")
        self.refused("nowhere", *problems, *sets("data.tokenizer=nowhere"))
        with open(self.file("data/broken.jsonl"), "w") as f:
            f.write('{"question": "1 and 1", "answer": "#### 2"}\n{"question": "1 and 2"}\n')
        for name in ("train", "valid"):
            self.refused("broken.jsonl:2: .*answer", *problems, *sets(f"data.{name}=data/broken.jsonl"))
        for task in ("evaluate", "generate"):
            self.refused("no checkpoint in run; train first", *sets(f"campaign.task={task}", "generation.samples=1"))
        self.run_trainer()
        self.run_trainer("--dry-run", *sets("campaign.task=evaluate"))
        self.refused("no token shard matches .nowhere/", *sets("campaign.task=evaluate", "data.valid=nowhere/*.bin"))
        self.refused("another model", *sets("campaign.task=evaluate", "model.layers=3"))
        self.refused("another model", *sets("model.load=run", "model.layers=3", "output.directory=other"))
        self.assertIn("add --dry-run", self.run_trainer("--without-data", code=1))

    def test_a_preset_of_the_command_line_is_noted(self):
        here = ("--set", "batch.preset=conservative", "--dry-run")
        text = self.run_trainer(*here)
        self.assertTrue(
            text.startswith(
                "--set batch.preset=conservative replaces the deck's per_rank = 2 with 64; global = 8 with 256\n"),
            text)
        self.assertRegex(text, r"batch +256 = 64 x 1 x 4\n")
        printed = self.run_trainer(*here, "--print-deck")
        self.assertTrue(printed.startswith("! --set batch.preset=conservative replaces"), printed[:200])
        note = "--set optimizer.lr_rule=table replaces the deck's lr = 0.003 with 3e-04\n"
        self.run_trainer("--set", "batch.global=128", "--set", "optimizer.lr_rule=table", "--set",
                         "campaign.max_steps=5")
        with open(self.file("run/log.txt")) as f:
            self.assertIn(note, f.read())


if __name__ == "__main__":
    main()
