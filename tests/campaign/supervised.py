"""Supervised training of a tiny model through the real trainer: ranks, restart, epochs, packing, results.

    supervised.py TRAINER MPIRUN [unittest arguments]
"""
import json, random, re, signal

from tiny import EXPERTS, Campaign, main, write_shard

WORDS = {
    "alpha": "omega", "left": "right", "day": "night", "up": "down", "hot": "cold", "yes": "no", "in": "out",
    "old": "new"
}
LONGEST = "x" * 90


def sets(*items):
    return tuple(x for item in items for x in ("--set", item))


SUPERVISED = sets("objective.kind='supervised'", "data.train='data/train.jsonl'", "data.valid='data/valid.jsonl'",
                  "model.context=48", "model.qk_norm=T")
EPOCHS = ("--set", "campaign.max_steps=1000", "--set")  # withdraws the deck's own number of steps


def sample_hash(n):
    """SplitMix64's finalizer, as lib/campaign/training/state.cpp."""
    mask = 2**64 - 1
    n = (n + 0x9E3779B97F4A7C15) & mask
    n = (n ^ n >> 30) * 0xBF58476D1CE4E5B9 & mask
    n = (n ^ n >> 27) * 0x94D049BB133111EB & mask
    return n ^ n >> 31


class Supervised(Campaign):
    def setUp(self):
        super().setUp()
        rng = random.Random(3)
        for name, n in (("train", 200), ("valid", 40)):
            self.write(name, [(rng.choice(list(WORDS)) + "?" * rng.randint(0, 12)) for _ in range(n)])

    def write(self, name, questions):
        with open(self.file(f"data/{name}.jsonl"), "w") as f:
            for question in questions:
                answer = WORDS.get(question.rstrip("?"), "well")
                f.write(
                    json.dumps({
                        "messages": [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
                    }) + "\n")

    def rows(self, text):
        return int(re.search(r"train: \d+ conversations in (\d+) rows of 48 positions", text).group(1))

    # ---- layouts

    def test_ranks_and_micro_steps_agree(self):
        self.deck(100)
        self.run_trainer(*SUPERVISED, *sets("output.directory=one"))
        for name, ranks, *items in (("micro1", 1, "batch.per_rank=1"), ("micro8", 1, "batch.per_rank=8"), ("ranks2", 2),
                                    ("ranks4", 4), ("ranks2s", 2, "parallel.shard='optimizer'"),
                                    ("ranks4s", 4, "parallel.shard='optimizer'"),
                                    ("ranks4f", 4, "parallel.shard='full'"), ("tensor2", 2, "parallel.tensor=2"),
                                    ("grid", 4, "parallel.tensor=2", "parallel.pipeline=2")):
            self.run_trainer(*SUPERVISED, *sets(f"output.directory={name}", *items), ranks=ranks)
            self.compare("one", name, 1e-4)
            for step, accuracy in self.steps("one", "val/accuracy").items():  # over some hundred tokens
                self.assertAlmostEqual(self.steps(name, "val/accuracy")[step], accuracy, delta=0.02)

    def check_resumed(self, *options, ranks=1):
        self.deck(300)
        self.run_trainer(*SUPERVISED, *options, *sets("output.directory=whole"), ranks=ranks)
        code, text = self.interrupt_after(33, *SUPERVISED, *options, ranks=ranks, number=signal.SIGUSR1)
        self.assertEqual(code, 75, text)
        self.run_trainer(*SUPERVISED, *options, "--resume", ranks=ranks)
        for key in ("train/loss", "train/grad_norm", "val/loss", "samples_hash_total"):
            self.assertEqual(self.steps("whole", key), self.steps("run", key), key)

    def test_resumed_bit_for_bit(self):
        self.check_resumed()

    def test_resumed_bit_for_bit_in_bf16_sharded(self):
        self.check_resumed(*sets("precision.compute='bf16'", "parallel.shard='optimizer'"), ranks=2)

    def test_recomputation_changes_no_bit(self):
        self.run_trainer(*SUPERVISED, *sets("output.directory=kept"))
        self.run_trainer(*SUPERVISED, *sets("output.directory=again", "precision.recompute='block'"))
        self.assertEqual(self.steps("kept"), self.steps("again"))

    # ---- epochs

    def test_epochs_are_steps(self):
        text = self.run_trainer(*SUPERVISED, *EPOCHS, "campaign.epochs=3")
        rows = self.rows(text)
        steps = -(-3 * rows // 8)
        self.assertNotEqual(3 * rows % 8, 0)  # the last step is filled up
        per_step = re.search(rf"\nupdates: {steps}, {rows / 8:.1f} per epoch; each of ([\d.]+) samples in 8 rows\n",
                             text)
        self.assertAlmostEqual(float(per_step.group(1)), 8 * 200 / rows, delta=0.05)
        self.assertIn(f"; epochs = 3: {steps} steps", text)
        self.assertEqual(sorted(self.steps()), list(range(1, steps + 1)))
        self.assertEqual(self.steps(key="train/lr")[steps], 0)  # the schedule has this length
        hashes = self.steps(key="samples_hash_total")
        for step in (1, rows // 8, steps):
            self.assertEqual(int(hashes[step], 16), sum(map(sample_hash, range(8 * step))) % 2**64)
        self.run_trainer(*SUPERVISED, *sets(f"campaign.max_steps={steps}", "output.directory=counted"))
        self.assertEqual(self.steps(), self.steps("counted"))

    def test_epochs_resumed(self):
        options = (*SUPERVISED, *EPOCHS, "campaign.epochs=25")
        self.run_trainer(*options, *sets("output.directory=whole"))
        code, text = self.interrupt_after(13, *options)
        self.assertEqual(code, 75, text)
        self.run_trainer(*options, "--resume")
        for key in ("train/loss", "val/loss", "samples_hash_total"):
            self.assertEqual(self.steps("whole", key), self.steps("run", key), key)

    def test_a_plan_needs_the_data_for_its_steps(self):
        options = (*SUPERVISED, *EPOCHS, "campaign.epochs=3", "--dry-run")
        text = self.run_trainer(*options)
        self.assertRegex(text, r"\n  steps +\d+\n  tokens ")
        text = self.run_trainer(*options, *sets("batch.global=64", "optimizer.warmup_steps=1"))
        self.assertRegex(
            text,
            r"warning: only \d updates \(epochs = 3\) of [\d.]+ samples in 64 rows; models rarely learn anything in fewer than 50: "
            r"lower &batch global, or raise &campaign epochs; &batch unit = 'samples' makes")
        self.assertNotIn("warning", self.run_trainer(*options, "--set", "campaign.epochs=200"))
        text = self.run_trainer("--dry-run")
        self.assertIn(
            "warning: only 40 updates (max_steps = 40) of 8 rows; models rarely learn anything in fewer than 50: raise &campaign max_steps\n",
            text)
        self.assertNotIn("warning", self.run_trainer("--dry-run", "--set", "campaign.max_steps=50"))
        for ranks in (1, 2):
            self.assertRegex(self.run_trainer(*options, *sets("data.train='elsewhere.jsonl'"), ranks=ranks, code=1),
                             r"elsewhere.jsonl")
            text = self.run_trainer(*options, "--without-data", ranks=ranks)
            self.assertRegex(text, r"\n  steps +unknown: no data yet\n")
        text = self.run_trainer(*options, "--without-data")
        self.assertRegex(text, r"\n +1(?: +[\d.]+){3} +[\d,.]+ +- +- +-\n")  # no time without steps

    def test_a_warmup_longer_than_the_epochs_is_refused(self):
        text = self.run_trainer(*SUPERVISED, *EPOCHS, "campaign.epochs=1", *sets("optimizer.warmup_steps=500"), ranks=2,
                                code=1)
        self.assertRegex(
            text,
            r"epochs = 1 of \d+ rows, 8 per step.*optimizer.warmup_steps: 500 is more than campaign.max_steps = \d+")
        self.assertEqual(len(re.findall(r"^error: ", text, re.M)), 1, text)

    def test_epochs_of_block_diffusion(self):
        with open(self.file("data/problems.jsonl"), "w") as f:
            for i in range(50):
                f.write(json.dumps({"question": f"{i} and 1", "answer": f"{i}+1={i + 1}\n#### {i + 1}"}) + "\n")
        text = self.run_trainer(
            *EPOCHS, "campaign.epochs=2",
            *sets("objective.kind='block_diffusion'", "data.train='data/problems.jsonl'",
                  "data.valid='data/problems.jsonl'", "data.question_tokens=16", "data.plan_tokens=8",
                  "data.execution_tokens=24", "model.context=48"))
        rows = int(re.search(r"train: 50 samples in (\d+) rows", text).group(1))
        self.assertEqual(max(self.steps()), -(-2 * rows // 8))

    # ---- steps of samples

    SAMPLES = SUPERVISED + sets("batch.unit='samples'", "batch.global=13", "batch.per_rank=1",
                                "optimizer.warmup_steps=1")

    def test_steps_of_samples(self):
        options = (*self.SAMPLES, *EPOCHS, "campaign.epochs=4")
        text = self.run_trainer(*options, *sets("output.directory=one"))
        rows, steps = self.rows(text), -(-4 * 200 // 13)
        self.assertLess(rows, 80)
        self.assertIn(f"\nupdates: {steps}, 15.4 per epoch; each of 13 samples in {13 * rows / 200:.1f} rows\n", text)
        self.assertNotIn("warning", text)
        self.assertEqual(self.steps("one", "train/lr")[steps], 0)
        hashes = self.steps("one", "samples_hash_total")
        self.assertEqual(sorted(hashes), list(range(1, steps + 1)))
        for step in hashes:
            self.assertEqual(int(hashes[step], 16), sum(map(sample_hash, range(step * 13 * rows // 200))) % 2**64)
        dry = self.run_trainer(*options, "--dry-run")
        for name, value in (("samples per step", "13"), ("rows per step", f"{13 * rows / 200:.1f}"),
                            ("steps per epoch", "15.4"), ("steps", str(steps))):
            self.assertRegex(dry, rf"\n  {name} +{re.escape(value)}\n")
        # The same steps on any ranks and micro-batches; some ranks have no row in some of them.
        for name, ranks, *items in (("per2", 1, "batch.per_rank=2"), ("ranks2", 2), ("ranks4", 4),
                                    ("ranks4f", 4, "parallel.shard='full'"), ("tensor2", 2, "parallel.tensor=2"),
                                    ("stages2", 2, "parallel.pipeline=2"), ("most", 2, "batch.per_rank=0")):
            text = self.run_trainer(*options, *sets(f"output.directory={name}", *items), ranks=ranks)
            self.assertIn(f"\nupdates: {steps}, 15.4 per epoch", text)
            self.compare("one", name, 1e-4)

    def test_steps_of_samples_resumed(self):
        self.check_resumed(*self.SAMPLES, ranks=2)

    def test_steps_of_samples_without_packing_are_rows(self):
        unpacked = SUPERVISED + sets("data.packing=F")
        self.run_trainer(*unpacked, *sets("batch.unit='samples'"))
        self.run_trainer(*unpacked, *sets("output.directory=rows"))
        self.assertEqual(self.steps(), self.steps("rows"))

    def test_steps_of_samples_of_experts_and_block_diffusion(self):
        for i, options in enumerate(
            (self.SAMPLES + EXPERTS,
             sets("objective.kind='block_diffusion'", "data.train='data/train.jsonl'", "data.valid='data/test.jsonl'",
                  "data.question_tokens=16", "data.plan_tokens=8", "data.execution_tokens=48", "model.context=72",
                  "batch.unit='samples'", "batch.global=7", "batch.per_rank=1", "objective.clip_search=F",
                  "optimizer.warmup_steps=1"))):
            if i == 1:
                self.problems()
            self.run_trainer(*options, *sets(f"output.directory=one{i}"))
            self.run_trainer(*options, *sets(f"output.directory=four{i}"), ranks=4)
            self.compare(f"one{i}", f"four{i}", 1e-4)

    def test_samples_that_ranks_and_rows_do_not_fit(self):
        text = self.run_trainer(*self.SAMPLES, *sets("batch.global=2"), ranks=2, code=1)
        self.assertRegex(
            text,
            r"error: &batch global = 2 samples: a row of the training data holds 3\.\d of them on average, and rows are "
            r"never split; set global = 4 or more, or &data packing = .false.")
        self.assertEqual(len(re.findall(r"^error: ", text, re.M)), 1, text)
        options = self.SAMPLES + sets("batch.per_rank=4", "campaign.max_steps=60")
        text = self.run_trainer(*options, "--dry-run", ranks=2)
        found = re.search(
            r"warning: 13 samples in 4\.\d rows per step fill 5\d% of the micro-batches of 2 data ranks x per_rank = 4: set "
            r"&batch global = (\d+), lower", text)
        self.assertNotIn("warning",
                         self.run_trainer(*options, *sets(f"batch.global={found.group(1)}"), "--dry-run", ranks=2))
        self.assertIn("elsewhere.jsonl",
                      self.run_trainer(*self.SAMPLES, *sets("data.train='elsewhere.jsonl'"), "--dry-run", code=1))
        text = self.run_trainer(*self.SAMPLES, "--dry-run", "--without-data")
        self.assertRegex(text, r"\n  rows per step +unknown: no data yet\n")
        text = self.run_trainer(*sets("batch.unit='samples'"), code=1)
        self.assertIn(
            "batch.unit: 'samples' counts problems or conversations (.json, .jsonl), which token shards do not have; "
            "set unit = 'rows'", text)
        text = self.run_trainer(*self.SAMPLES, "--show-batch")
        self.assertIn("first micro-batch of rank 0 of 1: 1 rows", text)

    # ---- data

    def test_truncation_and_packing_are_told(self):
        self.deck(20)
        self.write("train", ["up?", "down" + "?" * 20, LONGEST, "in", LONGEST + "y"])
        few = SUPERVISED + sets("data.packing=F")
        text = self.run_trainer(*few)
        self.assertRegex(
            text,
            r"train: 5 conversations in 3 rows of 48 positions, \d+\.\d% filled; 3 of 5 answers learned, \d+\.\d% of the tokens; "
            r"2 too long \(the longest has 97 tokens\), 0 of them cut, 2 left out\n")
        text = self.run_trainer(*few, *sets("data.too_long='cut'", "output.directory=cut"))
        self.assertRegex(text, r"in 3 rows .* 2 of them cut, 0 left out; 2 left out with nothing to learn\n")
        text = self.run_trainer(*SUPERVISED, *sets("output.directory=packed"))
        self.assertIn("train: 5 conversations in 1 rows", text)
        self.assertIn("train/learned_tokens", {key for line in self.metrics("packed") for key in line})

    def test_how_many_answers_are_learned_is_told(self):
        """Of the tokenizer that ./prepare languages makes there is none here: markers are added tokens of a BPE of bytes."""
        rest = iter(range(256, 512))
        vocabulary = {}
        printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
        for b in range(256):
            vocabulary[chr(b) if b in printable else chr(next(rest))] = b
        added = [{"id": 256 + i, "content": name, "special": True}
                 for i, name in enumerate(("<|im_start|>", "<|im_end|>", "<|endoftext|>"))]
        with open(self.file("data/tokenizer.json"), "w") as f:
            json.dump(
                {
                    "added_tokens": added, "model": {"type": "BPE", "vocab": vocabulary, "merges": []},
                    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}
                }, f)
        turns = [{"role": "user", "content": "up"}, {"role": "assistant", "content": "down"},
                 {"role": "user", "content": "in"}, {"role": "assistant", "content": "out"}]

        def conversations(weight):
            with open(self.file("data/two.jsonl"), "w") as f:
                for _ in range(20):
                    turns[1]["weight"] = weight
                    f.write(json.dumps({"messages": turns}) + "\n")

        options = (*SUPERVISED, *sets("model.context=192", "data.tokenizer='data/tokenizer.json'",
                                      "data.train='data/two.jsonl'", "data.valid='data/two.jsonl'"), "--show-batch")
        for weight, template, learned, words in ((1, "chatml", 40, ["down", "out"]), (0, "chatml", 20, ["out"]),
                                                 (1, "plain", 40, ["down", "out"]), (0, "plain", 20, ["out"]),
                                                 (1, "qwen3", 20, ["out"])):
            conversations(weight)
            text = self.run_trainer(*options, *sets(f"data.chat_template='{template}'"))
            self.assertRegex(text, rf"filled; {learned} of 40 answers learned, \d+\.\d% of the tokens")
            self.assertEqual("learns the last answer" in text, template == "qwen3")
            first = [line for line in text.splitlines() if re.match(r" +\d+ +(\d+) ", line) and ' learned  "' in line]
            shown = "".join(json.loads(line[line.index('"'):]) for line in first)
            ends = "<|endoftext|>" if template == "plain" else "<|im_end|>"
            self.assertTrue(shown.startswith("".join(word + ends for word in words)), shown)
            self.assertEqual(shown.count("down"), shown.count("out") if "down" in words else 0)

    def test_refusals(self):
        for name, line, words in (("a", '{"messages": [{"role": "user", "content": "up"}]}', "data/a.jsonl:1"),
                                  ("b", '{"question": "up"}', "data/b.jsonl:1")):
            with open(self.file(f"data/{name}.jsonl"), "w") as f:
                f.write(line + "\n")
            text = self.run_trainer(*SUPERVISED, *sets(f"data.train='data/{name}.jsonl'", f"output.directory={name}"),
                                    ranks=2, code=1)
            self.assertIn(words, text)
            self.assertEqual(len(re.findall(r"^error: ", text, re.M)), 1, text)
        self.write("train", [LONGEST])
        text = self.run_trainer(*SUPERVISED, *sets("output.directory=c"), code=1)
        self.assertIn("no conversation is left of 1: 1 are longer than the 48 tokens", text)

    def test_show_batch(self):
        for ranks in (1, 2):
            text = self.run_trainer(*SUPERVISED, "--show-batch", ranks=ranks)
            self.assertIn(f"first micro-batch of rank 0 of {ranks}: 2 rows", text)
            rows = text.split("\nrow ")[1:]
            self.assertEqual(len(rows), 2)
            for row in rows:
                lines = re.findall(r"^ +(\d+) +(\d+) +(\d+) +(\d+)  (\S+) +(learned|-) +(\".*\")$", row, re.M)
                self.assertEqual([int(line[0]) for line in lines], list(range(len(lines))))
                chats = {}
                for _, chat, place, token, role, learned, piece in lines:
                    self.assertEqual(learned == "learned", role == "assistant")
                    text_so_far = chats.setdefault(chat, {"user": "", "assistant": "", "count": 0})
                    self.assertEqual(int(place), text_so_far["count"])
                    text_so_far["count"] += 1
                    if int(token) < 256:
                        self.assertEqual(json.loads(piece), chr(int(token)))
                    text_so_far[role] += json.loads(piece)
                self.assertGreater(len(chats), 1)
                for chat in chats.values():
                    self.assertEqual(chat["assistant"], WORDS[chat["user"].rstrip("?\n")] + "<|endoftext|>")
                if len(lines) < 48:
                    self.assertIn(f"{len(lines)} to 47: padding", row)
        text = self.run_trainer("--show-batch", code=1)
        self.assertIn("--show-batch shows conversations", text)

    # ---- results

    def test_answers_are_learned(self):
        self.deck(200)
        self.run_trainer(*SUPERVISED)
        accuracy = self.steps(key="val/accuracy")
        print("accuracy:", accuracy)
        self.assertLess(accuracy[0], 0.2)
        self.assertGreater(accuracy[200], 0.95)
        text = self.run_trainer(*SUPERVISED, *sets("campaign.task='evaluate'"), ranks=2)
        self.assertIn(f"validation loss {self.steps(key='val/loss')[200]:.4f}", text)
        self.assertIn(f"val/accuracy {accuracy[200]:.4f}", text)
        answer = sets("generation.samples=2", "generation.temperature=0", "generation.max_tokens=20")
        for question in WORDS:
            text = self.run_trainer(*SUPERVISED, *answer, "--prompt", question)
            self.assertEqual(text.count(f"---\n{question}\n{WORDS[question]}\n"), 2, text)
        self.run_trainer(*SUPERVISED, "--export", "hf")
        # A run from the export continues where the first one ended.
        text = self.run_trainer(*SUPERVISED, *sets("model.load='hf'", "output.directory=more"))
        self.assertAlmostEqual(self.steps("more", "val/loss")[0], self.steps(key="val/loss")[200], places=5)


if __name__ == "__main__":
    main()
