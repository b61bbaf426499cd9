"""Block diffusion through the real trainer: hierarchical and flat, on ranks, resumed, solving problems, starting from weights.

    diffusion.py TRAINER MPIRUN [unittest arguments]
"""
import json, os, re, signal

from tiny import Campaign, main, write_shard


class Diffusion(Campaign):
    """Block diffusion on samples: hierarchical and flat, on ranks, resumed, solving problems."""

    OBJECTIVE = ("--set", "objective.kind='block_diffusion'", "--set", "data.train='data/train.jsonl'", "--set",
                 "data.valid='data/test.jsonl'", "--set", "data.question_tokens=16", "--set", "data.plan_tokens=8",
                 "--set", "data.execution_tokens=24", "--set", "model.context=48", "--set", "optimizer.ema=0.9",
                 "--set", "generation.temperature=0")
    HDP = OBJECTIVE + ("--set", "objective.hierarchy='hdp'", "--set", "objective.plan_block=0", "--set",
                       "objective.execution_block=4")
    FLAT = OBJECTIVE + ("--set", "objective.block_length=5")

    def setUp(self):
        super().setUp()
        self.problems()

    def keys(self, directory="run"):
        return {key for line in self.metrics(directory) for key in line}

    def test_ranks_agree(self):
        self.deck(60)
        for kind, objective in (("hdp", self.HDP), ("flat", self.FLAT)):
            # The clip interval is chosen by comparing variances: rounding could tip it.
            fixed = objective + ("--set", "objective.clip_search=F", "--set", "evaluation.problems=6")
            self.run_trainer(*fixed, "--set", f"output.directory={kind}")
            for ranks, shard in ((2, "none"), (2, "optimizer"), (4, "optimizer")):
                name = f"{kind}{ranks}_{shard}"
                self.run_trainer(*fixed, "--set", f"output.directory={name}", "--set", f"parallel.shard='{shard}'",
                                 ranks=ranks)
                parts = ("train/loss_plan", "train/loss_execution", "val/loss_plan") if kind == "hdp" else ()
                self.compare(kind, name, 1e-4, ("train/loss", "val/loss") + parts)

    def test_validation_does_not_depend_on_the_micro_batch(self):
        """Nor does what is chosen by it: the clip interval, with which training continues."""
        self.deck(45)
        clip = [f"train/clip_{end}_{level}" for end in ("low", "high") for level in ("plan", "execution")]
        for name, ranks, per_rank in (("two", 1, 2), ("one", 1, 1), ("eight", 1, 8), ("ranks", 2, 4)):
            self.run_trainer(*self.HDP, "--set", f"output.directory={name}", "--set", f"batch.per_rank={per_rank}",
                             ranks=ranks)
            self.compare("two", name, 1e-4)
            for key in clip:
                self.assertEqual(self.steps("two", key), self.steps(name, key), key)

    def test_resumed_bit_for_bit(self):
        self.deck(300)
        for ranks, objective in ((1, self.HDP), (2, self.FLAT + ("--set", "parallel.shard='optimizer'"))):
            whole, parts = f"whole{ranks}", f"parts{ranks}"
            self.run_trainer(*objective, "--set", f"output.directory={whole}", ranks=ranks)
            options = objective + ("--set", f"output.directory={parts}")
            code, text = self.interrupt_after(130, *options, ranks=ranks, number=signal.SIGUSR1)
            self.assertEqual(code, 75, text)
            self.run_trainer(*options, "--resume", ranks=ranks)
            for key in ("train/loss", "train/grad_norm", "val/loss",
                        "train/clip_low" if ranks == 2 else "train/clip_low_plan"):
                self.assertEqual(self.steps(whole, key), self.steps(parts, key), key)

    def test_packing_changes_the_rows_not_the_samples(self):
        self.deck(20)
        roomy = self.FLAT + ("--set", "data.execution_tokens=48", "--set", "model.context=72")
        packed = self.run_trainer(*roomy)
        alone = self.run_trainer(*roomy, "--set", "data.packing=F", "--set", "output.directory=alone")
        self.assertRegex(packed, r"train: 300 samples in 1\d\d rows of 128 positions, [89]\d\.\d% filled")
        self.assertRegex(alone, r"train: 300 samples in 300 rows of 128 positions, \d\d\.\d% filled")

    def test_problems(self):
        self.deck(40)
        text = self.run_trainer(*self.HDP, "--set", "evaluation.problems=10")
        self.assertRegex(
            text,
            r"(?m)^[\d:]{8} +40  exact match [\d.]+% \(\d+ of 10; 95% interval [\d.]+ to [\d.]+%\), well-formed [\d.]+%$"
        )
        self.assertLessEqual(
            {"val/exact_match", "val/well_formed", "val/loss_plan", "train/loss_execution", "val/accuracy"},
            self.keys())
        for line in self.metrics(
        ):  # what the report draws together with val/loss: a mean over the tokens of both levels
            if "train/loss" in line:
                parts = sorted((line["train/loss_plan"], line["train/loss_execution"]))
                self.assertTrue(parts[0] < line["train/loss_per_token"] < parts[1], line)
        with open(self.file("run/samples.txt")) as f:
            page = f.read()
        self.assertEqual(page.count("question:"), 8)
        self.assertEqual(page.count("expected:"), 8)
        last = self.steps("run", "val/loss")[40]
        answers, predictions, sampled = [], [], []
        for ranks in (1, 2):
            text = self.run_trainer(*self.HDP, "--set", "campaign.task='evaluate'", ranks=ranks)
            self.assertIn(f"validation loss {last:.4f}", text)
            answers.append(re.search(r"exact match [\d.]+% \((\d+ of 30)", text).group(1))
            with open(self.file("run/predictions.jsonl")) as f:
                predictions.append(f.read())
            sampled.append(self.sampled_tokens())
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(predictions[0], predictions[1])
        self.assertEqual(sampled[0], sampled[1])
        self.assertLessEqual(sampled[0], 30 * (8 + 24))
        self.check_predictions(predictions[0], answers[0])
        text = self.run_trainer(*self.HDP, "--set", "campaign.task='evaluate'", "--set", "generation.given_plan=T")
        self.assertIn("plan:\n_+_=_\n", text)
        self.assertLessEqual(self.sampled_tokens(), 30 * 24)  # plans are not sampled
        options = self.HDP + ("--set", "generation.samples=1", "--prompt", "3 and 4")
        first, second = (re.sub(r", [\d.]+ s\n", "", self.run_trainer(*options)) for _ in range(2))
        self.assertEqual(first, second)
        self.assertIn("3 and 4\n", first)

    def sampled_tokens(self):
        with open(self.file("run/evaluation.json")) as f:
            sampling = json.load(f)["sampling"]
        self.assertGreater(sampling["tokens"], 0)
        self.assertAlmostEqual(sampling["tokens_per_second"] * sampling["seconds"] / sampling["tokens"], 1, places=6)
        return sampling["tokens"]

    def check_predictions(self, text, told):
        """One line per problem, in their order, and the record that counts them."""
        lines = [json.loads(line) for line in text.splitlines()]
        with open(self.file("data/test.jsonl")) as f:
            self.assertEqual([line["question"] for line in lines], [json.loads(line)["question"] for line in f])
        with open(self.file("run/evaluation.json")) as f:
            record = json.load(f)
        self.assertEqual(sum(line["correct"] for line in lines), record["correct"])
        self.assertEqual(told, f"{record['correct']} of {record['problems']}")
        self.assertEqual(record["exact_match"], record["correct"] / record["problems"])
        low, high = record["exact_match_95"]
        self.assertTrue(0 <= low < high <= 1 and low - 1e-9 < record["exact_match"] < high + 1e-9, (low, high))
        self.assertAlmostEqual(record["loss"], self.steps("run", "val/loss")[40], places=5)

    def length(self, sample):
        """In characters of the model: the log writes the end of text out, and control characters as \\xNN."""
        return len(re.sub(r"\\x[0-9a-f]{2}|<\|endoftext\|>", "|", sample))

    def test_text_without_samples(self):
        options = ("--set", "objective.kind='block_diffusion'", "--set", "objective.block_length=4", "--set",
                   "generation.samples=2")
        self.run_trainer(*options)
        losses = self.steps("run", "val/loss")
        self.assertLess(losses[40], losses[0])
        text = self.run_trainer(*options, "--prompt", "ab", "--set", "generation.max_tokens=6")
        written = re.findall(r"---\n(ab.*?)(?=\n---)", text, re.S)
        self.assertEqual(len(written), 2)
        for sample in written:
            self.assertGreater(self.length(sample), 2)
            self.assertLessEqual(self.length(sample), 8)
        text = self.run_trainer(*options, "--prompt", "ab")
        for sample in re.findall(r"---\n(ab.*?)(?=\n---)", text, re.S):
            length = self.length(sample.split("\n(")[0])
            self.assertEqual("(ends here: &model context = 16 is full)" in sample, length == 16, sample)

    def test_a_mask_that_is_a_token_is_refused(self):
        write_shard(self.file("data/train_0.bin"), [97, 98, 270] * 500)
        options = ("--set", "objective.kind='block_diffusion'", "--set", "objective.block_length=4")
        text = self.run_trainer(*options, "--set", "model.vocabulary=271", code=1, ranks=2)
        self.assertIn(
            "holds token 270, which block diffusion takes for its mask, the last of &model vocabulary = 271: "
            "write 272 or more", text)
        self.run_trainer(*options)
        printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
        names = list(map(chr, printable)) + [chr(256 + i) for i in range(256 - len(printable))]
        os.mkdir(self.file("data/tokens"))
        with open(self.file("data/tokens/tokenizer.json"), "w") as f:
            json.dump(
                {
                    "model": {"type": "BPE", "vocab": {name: i for i, name in enumerate(names)}, "merges": []},
                    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "decoder": {"type": "ByteLevel"},
                    "added_tokens": [{"id": 256, "content": "<|endoftext|>", "special": True}]
                }, f)
        named = ("--set", "data.tokenizer='data/tokens'", "--set", "output.directory=named")
        text = self.run_trainer(*self.HDP, *named, "--set", "model.vocabulary=257", code=1)
        self.assertIn("the tokenizer 'data/tokens' has 257 tokens, as many as &model vocabulary", text)
        self.run_trainer(*self.HDP, *named, "--set", "model.vocabulary=258")

    def test_starts_from_a_model_without_levels(self):
        self.run_trainer(*self.FLAT, "--set", "output.directory=flat")
        load = ("--set", "model.load=flat", "--set", "output.directory=hdp")
        text = self.run_trainer(*self.HDP, *load, code=1)
        self.assertIn("/model/embed_levels/weight is missing", text)
        self.assertIn("load_rule = 'matching'", text)
        text = self.run_trainer(*self.HDP, *load, "--set", "model.load_rule=matching")
        self.assertRegex(text, r"(\d+) of the model's (\d+) tensors are in flat/\S+")
        self.assertRegex(text, r"weights of a different &model:\n.*levels")
        self.assertIn("keeps its initial values: /model/embed_levels/weight (3, 32)", text)
        self.assertNotIn("not taken", text)
        self.run_trainer(*self.HDP, *load, "--set", "model.load_rule=matching", "--resume")  # of its own checkpoint

    def test_a_prompt_that_is_part_of_the_sample_is_written_once(self):
        options = self.HDP + ("--set", "objective.hierarchy='flat'", "--set", "objective.condition='none'")
        self.run_trainer(*options)
        text = self.run_trainer(*options, "--prompt", "3 and 4", "--set", "generation.samples=1")
        self.assertEqual(text.count("3 and 4"), 1, text)

    def test_refusals(self):
        for change, words in (("data.plan_tokens=9", ("context", "48")), ("objective.hierarchy='hpd'", ("hdp",)),
                              ("data.train='data/none.jsonl'", ("none.jsonl",))):
            text = self.run_trainer(*self.HDP, "--set", change, code=1)
            for word in words:
                self.assertIn(word, text)
        text = self.run_trainer(*self.HDP, "--export", "hf", code=1)
        self.assertIn("checkpoint.h5", text)
        with open(self.file("data/train.jsonl"), "a") as f:
            f.write('{"question": "1 and 1"}\n')
        text = self.run_trainer(*self.HDP, code=1)
        self.assertIn("train.jsonl:301", text)
        self.assertIn("answer", text)

    def test_what_does_not_fit_is_refused_before_step_one_with_what_would(self):
        large = ("--set", "model.layers=400", "--set", "model.hidden=4096", "--set", "model.ffn_hidden=16384", "--set",
                 "batch.per_rank=8")
        text = self.run_trainer(*large, code=1)
        self.assertRegex(text, r"The plan needs [\d.]+ GiB per rank, and a device has [\d.]+ GiB free")
        self.assertRegex(text, r"recompute = 'block' +[\d.]+ GiB  too much")
        self.assertRegex(text, r"per_rank = 1  global = 8 +[\d.]+ GiB  too much")
        self.assertNotIn("time UTC", text)
        dry = self.run_trainer(*large, "--dry-run")
        self.assertRegex(dry, r"The plan needs [\d.]+ GiB per rank")
        self.assertEqual(dry.count("memory per rank"), 1)


if __name__ == "__main__":
    main()
