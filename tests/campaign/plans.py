#!/usr/bin/env python3
"""What --dry-run says before a run, during one and after one."""
import json, os, re, unittest

from tiny import Campaign, main


class Plans(Campaign):
    def rate(self, text):
        return re.search(r"\n  rate +(\d+) tokens/s\n +\((.*)\)", text).groups()

    def test_a_run_leaves_its_rate_for_the_same_circumstances_alone(self):
        self.assertIn("unknown: no rate yet", self.run_trainer("--dry-run"))
        self.run_trainer()
        with open(self.file("run/rate.json")) as f:
            left = json.load(f)
        rates = sorted(rate for step, rate in self.steps(key="train/throughput").items() if step > 1)
        self.assertAlmostEqual(left["tokens_per_second"] / rates[len(rates) // 2], 1, places=6)
        rate, source = self.rate(self.run_trainer("--dry-run"))
        self.assertAlmostEqual(int(rate), left["tokens_per_second"], delta=1)
        self.assertRegex(source, r"^measured by the run in run, \d{4}-\d\d-\d\d$")
        # For another device, number of ranks, batch or precision the rate is not quoted.
        for device in ("h200", "h100", "a100"):
            self.assertRegex(self.rate(self.run_trainer("--dry-run", "--device", device))[1],
                             f"^estimated, typical of fp32 on {device.upper()}; no bound$")
        for options, ranks in ((("--ranks", "2"), 1), ((), 2), (("--set", "batch.per_rank=4"), 1), (("--set", "precision.compute='bf16'"), 1)):
            self.assertIn("unknown: no rate yet", self.run_trainer("--dry-run", *options, ranks=ranks), options)

    def test_ranks_that_are_not_here(self):
        one = self.run_trainer("--dry-run", "--device", "h200")
        four = self.run_trainer("--dry-run", "--device", "h200", "--ranks", "4")
        self.assertRegex(four, r"plan of 'tiny' on 4 ranks")
        self.assertRegex(four, r"batch +8 = 2 x 4 x 1\n")
        self.assertRegex(one, r"batch +8 = 2 x 1 x 4\n")
        self.assertIn("3 ranks cannot hold", self.run_trainer("--dry-run", "--ranks", "3", "--set", "parallel.tensor=2", code=1))
        self.assertIn("add --dry-run", self.run_trainer("--ranks", "4", code=1))
        self.assertIn("start one rank", self.run_trainer("--dry-run", "--ranks", "4", ranks=2, code=1))
        self.assertIn("write 1 or more", self.run_trainer("--dry-run", "--ranks", "-1", code=1))

    def test_nodes_that_are_not_here(self):
        def plan(*options):
            return self.run_trainer("--dry-run", "--device", "h100", "--ranks", "4", *options)
        self.assertNotIn("nodes", plan())
        two = plan("--ranks-per-node", "2")
        self.assertRegex(two, r"\n  nodes +2 of 2 ranks\n +\(400 Gbit/s per rank between them, assumed; --network gives another rate\)\n")
        self.assertIn("assumed between nodes", self.rate(two)[1])
        slow = plan("--ranks-per-node", "2", "--network", "10")
        self.assertIn("(10 Gbit/s per rank between them)", slow)
        self.assertLess(int(self.rate(slow)[0]), int(self.rate(two)[0]))
        for option, value in (("--ranks-per-node", "2"), ("--network", "100")):
            self.assertIn("add --dry-run", self.run_trainer(option, value, code=1))
            self.assertIn("write a number above 0", self.run_trainer("--dry-run", option, "-1", code=1))
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
        self.assertRegex(again, r"plan of 'tiny': [\d.]+ K parameters, [\d.]+ .iB per rank of [\d.]+ GiB free, 8 = 2 x 1 x 4 sequences per step")
        self.assertIn("parameter memory", self.run_trainer("--dry-run"))

    def test_samples_fill_their_rows_as_they_do(self):
        with open(self.file("data/problems.jsonl"), "w") as f:
            for i in range(50):
                f.write(json.dumps({"question": f"{i} and 1", "answer": f"{i}+1={i + 1}\n#### {i + 1}"}) + "\n")
        options = [part for value in (
            "objective.kind='block_diffusion'", "data.valid='data/problems.jsonl'", "data.question_tokens=16",
            "data.plan_tokens=8", "data.execution_tokens=24", "model.context=48") for part in ("--set", value)]
        tokens = lambda text: float(re.search(r"\n  tokens +([\d.]+) M\n", text).group(1))
        plans = {name: self.run_trainer("--dry-run", "--device", "h200", *options, "--set", f"data.train='data/{name}.jsonl'",
                                        "--set", "campaign.max_steps=100000") for name in ("problems", "elsewhere")}
        self.assertRegex(plans["elsewhere"], r"the data are not here: .*elsewhere.jsonl")
        self.assertIn("samples of full length assumed", plans["elsewhere"])
        self.assertNotIn("assumed", plans["problems"])
        self.assertAlmostEqual(tokens(plans["elsewhere"]), 0.1 * 8 * 48, delta=0.06)
        self.run_trainer(*options, "--set", "data.train='data/problems.jsonl'")
        learned = self.steps(key="train/tokens")
        self.assertAlmostEqual(tokens(plans["problems"]), 0.1 * learned[40] / 40, delta=0.05 * 0.1 * learned[40] / 40)


if __name__ == "__main__":
    main()
