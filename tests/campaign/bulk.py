"""Answers to a file of requests through the real trainer: batches, ranks, kills, refusals, the gap table.

    bulk.py TRAINER MPIRUN [unittest arguments]        TERN_KILLS=50: number of kills of a run
"""
import json, os, random, re, signal, subprocess, time

from tiny import Campaign, limited, main

REQUESTS, KILLS = 60, int(os.environ.get("TERN_KILLS", "10"))


class Bulk(Campaign):
    def setUp(self):
        super().setUp()
        self.run_trainer("--set", "output.directory=model")
        rng = random.Random(3)
        with open(self.file("requests.jsonl"), "w") as f:
            for i in range(REQUESTS):
                words = " ".join("".join(rng.choice("abcdefgh ") for _ in range(4)) for _ in range(rng.randint(1, 5)))
                f.write(json.dumps({"text": f"{words}{i}", "id": i, "label": rng.choice("ab")}) + "\n")
        with open(self.file("prompt.txt"), "w") as f:
            f.write("one prompt before all of them: {text}\n")

    def options(self, directory, *more, task="generate"):
        values = {
            "campaign.task": f"'{task}'", "campaign.name": f"'{directory}'", "model.load": "'model'",
            "model.context": "128", "generation.input": "'requests.jsonl'",
            "generation.prompt_template": "'prompt.txt'", "generation.max_model_len": "128",
            "generation.max_tokens": "48", "generation.temperature": "1", "generation.top_k": "6",
            "generation.batch": "4", "generation.prefill_tokens": "64", "generation.pattern": "'^(?s)(.{3,}[a-h])'",
            "generation.stop": "'ab', 'gh'", "output.directory": f"'{directory}'"
        }
        values.update(more)
        return [word for name, value in values.items() for word in ("--set", f"{name}={value}")]

    def answers(self, directory):
        with open(self.file(f"{directory}/answers.jsonl"),
                  "rb") as a, open(self.file(f"{directory}/answers_rejects.jsonl"), "rb") as r:
            return a.read(), r.read()

    def parts(self, directory):
        """Answers so far."""
        folder = self.file(f"{directory}/parts")
        if not os.path.isdir(folder):
            return 0
        return sum(open(os.path.join(folder, name), "rb").read().count(b"\n") for name in os.listdir(folder))

    def test_files_do_not_depend_on_batch_prefix_cache_or_ranks(self):
        text = self.run_trainer(*self.options("whole"))
        self.assertIn(f"requests      {REQUESTS}, ", text)
        whole = self.answers("whole")
        lines = [json.loads(line) for file in whole for line in file.splitlines()]
        self.assertEqual(sorted(line["id"] for line in lines), list(range(REQUESTS)))
        self.assertGreater(len(whole[0].splitlines()), 10)
        self.assertGreater(len(whole[1].splitlines()), 3)
        for i, (batch, ranks, tensor) in enumerate(
            ((1, 1, 1), (7, 1, 1), (64, 1, 1), (4, 2, 1), (16, 4, 1), (4, 2, 2), (16, 4, 2))):
            cache = ".true." if i % 2 else ".false."
            more = (("generation.batch", str(batch)), ("generation.prefix_cache", cache), ("parallel.tensor",
                                                                                           str(tensor)))
            self.run_trainer(*self.options(f"other{i}", *more), ranks=ranks)
            self.assertEqual(self.answers(f"other{i}"), whole, f"batch {batch}, {ranks} ranks, tensor = {tensor}")

    def kill_once(self, rng, directory, ranks):
        """Starts or resumes the run and ends it at a random moment; returns whether the run ended first."""
        env = dict(os.environ, OMP_NUM_THREADS="1")
        child = limited.start(self.command(*self.options(directory), "--resume", ranks=ranks), cwd=self.path, env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        wanted = self.parts(directory) + rng.randint(0, 20)
        while child.poll() is None and self.parts(directory) < wanted:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.01))
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        output = child.communicate()[0].decode(errors="replace")
        self.assertIn(child.returncode, (0, -signal.SIGKILL), output)
        return child.returncode == 0

    def test_killed_at_random_moments_and_resumed(self):
        self.run_trainer(*self.options("whole"))
        whole, rng, kills, runs, finished = self.answers("whole"), random.Random(11), 0, 0, 0
        while kills < KILLS:
            name = f"killed{runs}"
            runs += 1
            for _ in range(rng.randint(1, 4)):
                quicker = self.kill_once(rng, name, 1 if runs % 3 else 2)
                finished += quicker
                kills += not quicker
            self.run_trainer(*self.options(name), "--resume", ranks=1 + runs % 2)
            self.assertEqual(self.answers(name), whole, f"run {name} after {kills} kills")
        print(f"{kills} kills of {runs} runs ({finished} ended before the kill): all files identical")

    def test_a_signal_stops_it_with_its_own_code(self):
        options = self.options("run", ("generation.stop", "'%%%'"), ("generation.batch", "1"))
        child = limited.start(self.command(*options), cwd=self.path, env=dict(os.environ, OMP_NUM_THREADS="1"),
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        while self.parts("run") < 2 and child.poll() is None:
            time.sleep(0.001)
        child.send_signal(signal.SIGUSR1)
        text = child.communicate()[0]
        self.assertEqual(child.returncode, 75, text)
        self.assertIn("pass --resume to continue", text)
        self.assertIn("resumed: ", self.run_trainer(*options, "--resume"))

    def test_one_process_at_a_time(self):
        options = self.options("run", ("generation.stop", "'%%%'"), ("generation.batch", "1"))
        child = limited.start(self.command(*options), cwd=self.path, env=dict(os.environ, OMP_NUM_THREADS="1"),
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        while self.parts("run") < 2 and child.poll() is None:
            time.sleep(0.001)
        child.send_signal(signal.SIGSTOP)  # so that it cannot end meanwhile
        for option in ("--resume", "--fresh"):
            self.assertIn(f"run is in use by process {child.pid} on ", self.run_trainer(*options, option, code=1))
        child.send_signal(signal.SIGCONT)
        child.communicate()
        self.assertEqual(child.returncode, 0)

    def test_what_changed_is_named(self):
        self.run_trainer(*self.options("run"))
        self.assertIn("belongs to an earlier run", self.run_trainer(*self.options("run"), code=1))
        text = self.run_trainer(*self.options("run", ("generation.temperature", "0.5")), "--resume", code=1)
        self.assertRegex(text, r"&generation temperature was 1(\.0)? and is 0.5 now")
        for folder, _, names in os.walk(self.file("model")):  # for example a copy: other times, the same weights
            for name in names:
                os.utime(os.path.join(folder, name), (1e9, 1e9))
        self.run_trainer(*self.options("run"), "--resume")
        self.run_trainer("--set", "campaign.max_steps=45", "--set", "output.directory=model", "--resume")
        self.assertIn("the weights was", self.run_trainer(*self.options("run"), "--resume", code=1))
        self.run_trainer(*self.options("run"), "--fresh")

    def test_weights_in_fp8(self):
        fp8 = (("precision.compute", "'bf16'"), ("generation.quantization", "'fp8'"))
        self.assertIn("in fp8 as well", self.run_trainer(*self.options("rounded", *fp8)))
        rounded = self.answers("rounded")
        self.run_trainer(*self.options("loaded", fp8[0]))
        self.assertNotEqual(self.answers("loaded"), rounded)
        for batch, ranks in ((1, 1), (16, 2)):
            name = f"rounded{batch}"
            self.run_trainer(*self.options(name, *fp8, ("generation.batch", str(batch))), ranks=ranks)
            self.assertEqual(self.answers(name), rounded, name)
        self.run_trainer(*self.options("tensor", *fp8, ("parallel.tensor", "2")), ranks=2)
        dynamic = (fp8[0], ("generation.quantization", "'fp8_dynamic'"))
        self.run_trainer(*self.options("dynamic", *dynamic))
        self.assertNotEqual(self.answers("dynamic"), rounded)
        self.run_trainer(*self.options("dynamic2", *dynamic, ("generation.batch", "1"), ("parallel.pipeline", "2")),
                         ranks=2)
        self.assertEqual(self.answers("dynamic2"), self.answers("dynamic"))
        text = self.run_trainer(*self.options("rounded", fp8[0]), "--resume", code=1)
        self.assertRegex(text, "the weights was .* in fp8")

    def test_keys_and_values_in_fp8(self):
        fp8 = (("generation.cache_quantization", "'fp8'"),)
        self.assertIn("keys and values in fp8", self.run_trainer(*self.options("coded", *fp8)))
        for name, ranks, more in (("coded1", 1, ("generation.batch", "1")), ("coded2", 2, ("parallel.tensor", "2")),
                                  ("coded3", 2, ("parallel.pipeline", "2"))):
            self.run_trainer(*self.options(name, *fp8, more), ranks=ranks)
            self.assertEqual(self.answers(name), self.answers("coded"), name)
        text = self.run_trainer(*self.options("coded"), "--resume", code=1)
        self.assertRegex(text, "the weights was .*, keys and values in fp8")

    def test_gap_table(self):
        evaluate = lambda name, *more: self.run_trainer(*self.options(name, *more, task="evaluate"))
        evaluate("teacher")
        text = evaluate("student", ("generation.prompt_template", "''"),
                        ("evaluation.reference", "'teacher/answers.jsonl'"),
                        ("evaluation.compare_with", "'teacher', 'nowhere'"), ("cost.dollars_per_gpu_hour", "3"))
        self.assertRegex(text, r"(?m)^  teacher +\d+\.\d% \(\d+\.\d to \d+\.\d\) +- ")
        self.assertRegex(text, r"(?m)^  nowhere +nowhere/evaluation.json is missing")
        self.assertRegex(text, r"(?m)^  student +\d+\.\d% \(\d+\.\d to \d+\.\d\) +\d+\.\d% .*\$0\.\d+$")
        with open(self.file("student/evaluation.json")) as f:
            row = json.load(f)
        with open(self.file("student/answers.jsonl")) as s, open(self.file("teacher/answers.jsonl")) as t:
            student, teacher = (
                {line["id"]: line["messages"][1]["content"] for line in map(json.loads, f)} for f in (s, t))
        with open(self.file("requests.jsonl")) as f:
            labels = {line["id"]: line["label"] for line in map(json.loads, f)}
        self.assertEqual(row["agreeing"], sum(student.get(i) == answer for i, answer in teacher.items()))
        self.assertEqual(row["compared"], len(teacher))
        self.assertEqual(row["correct"], sum(labels[i] == answer for i, answer in student.items()))
        self.assertEqual(row["good"], len(student))
        self.assertEqual(row["exact_match"], row["correct"] / row["labeled"])
        for name in ("exact_match", "agreement"):
            low, high = row[f"{name}_95"]
            self.assertTrue(0 <= low < high <= 1 and low - 1e-9 < row[name] < high + 1e-9, (name, low, high))
        with open(self.file("student/generation.json")) as f:
            made = json.load(f)
        self.assertEqual(row["sampling"], {
            "tokens": made["new_tokens"], "seconds": made["seconds"], "tokens_per_second": made["new_tokens_per_second"]
        })

    CONTINUED = ("--set", "campaign.task=generate", "--set", "model.load=model", "--set", "generation.temperature=0",
                 "--set", "generation.max_tokens=12")

    def test_continued_texts_are_those_of_a_prompt(self):
        prompts = ["abc", "a bad cab ", "  feed", "gab"]
        with open(self.file("two.txt"), "w") as f:
            f.write("\n".join(prompts) + "\n")
        text = self.run_trainer(*self.CONTINUED, "--set", "generation.input=two.txt", "--set", "output.directory=file",
                                "--set", "generation.max_model_len=32")
        self.assertIn("requests      4, 4 good, 0 rejects", text)
        with open(self.file("file/answers.jsonl")) as f:
            answers = [json.loads(line) for line in f]
        for prompt, answer in zip(prompts, answers, strict=True):
            alone = self.run_trainer(*self.CONTINUED, "--set", "model.context=32", "--set", "generation.samples=1",
                                     "--set", "output.directory=alone", "--prompt", prompt)
            self.assertEqual([m["content"] for m in answer["messages"]][:1], [prompt])
            self.assertIn(f"---\n{prompt}{answer['messages'][1]['content']}\n---\n1 sample,", alone)
            self.assertEqual(len(answer["messages"][1]["content"]), 12)
            self.assertEqual(answer["finish_reason"], "length")
        # With a stop text the end is known, and a text that does not reach it is no answer.
        text = self.run_trainer(*self.CONTINUED, "--set", "generation.input=two.txt", "--set",
                                "output.directory=stopped", "--set", "generation.max_model_len=32", "--set",
                                "generation.stop='%%%'", code=1)
        self.assertIn("4 rejects: 4 cut", text)

    def test_no_good_answer_is_an_error(self):
        never = self.options("none", ("generation.pattern", "'^%%%$'"))
        for more in ((), ("--resume",)):
            text = self.run_trainer(*never, *more, ranks=2, code=1)
            self.assertRegex(
                text,
                rf"error: (rank 0: )?none of the {REQUESTS} answers is good: {REQUESTS} rejects: .*\d+ pattern; none/answers_rejects.jsonl has the reason for each"
            )
            self.assertEqual(len(re.findall(r"^error: ", text, re.M)), 1, text)
        self.assertEqual([len(file.splitlines()) for file in self.answers("none")], [0, REQUESTS])
        text = self.run_trainer("--set", "objective.kind=supervised", "--set", "data.train=none/answers.jsonl", "--set",
                                "data.valid=none/answers.jsonl", code=1)
        self.assertIn(
            "none/answers.jsonl: the file contains no conversations: all answers were rejected; none/answers_rejects.jsonl has the reason for each",
            text)
        evaluated = self.options("measured", ("generation.pattern", "'^%%%$'"), task="evaluate")
        self.assertIn("warning: none of the", self.run_trainer(*evaluated))

    def test_a_dry_run_answers_nothing(self):
        text = self.run_trainer(*self.options("run"), "--dry-run")
        self.assertIn("cache", text)
        self.assertFalse(os.path.exists(self.file("run")))

    def test_a_dry_run_foresees_the_requests_and_prefers_the_last_runs_rate(self):
        priced = (*self.options("run"), "--set", "cost.dollars_per_gpu_hour=3")
        before = self.run_trainer(*priced, "--dry-run")
        self.assertRegex(before, rf"\n  requests +{REQUESTS}\n")
        self.assertRegex(before, r"\n  in common +%d tokens\n" % len("one prompt before all of them: "))
        self.assertRegex(
            before,
            r"\n  rate +[\d.]+ requests/s\n +\(estimated from \d+ GFLOP/s and \d+ GB/s, timed just now; within a factor of two or so\)\n"
        )
        self.run_trainer(*priced)
        with open(self.file("run/generation.json")) as f:
            made = json.load(f)
        after = self.run_trainer(*priced, "--dry-run")
        self.assertRegex(after, rf"\n  prompt tokens +{made['prompt_tokens_each']:.1f} each\n")
        rate = made["requests_per_second"]
        self.assertRegex(after, rf"\n  rate +{rate:.1f} requests/s\n +\(as the last run in run measured\)")
        rows = [re.search(rf"\n +{data} +{data} +([\d.]+) .*\$([\d.]+)\n", after).groups() for data in (1, 2, 4, 8)]
        self.assertEqual(rows[0], (f"{rate:.1f}", f"{made['dollars_per_1000']:.4f}"))
        self.assertEqual(sorted(rows, key=lambda row: float(row[0])), rows)
        # For another device or other ranks the rate is not quoted.
        self.assertIn("estimated, typical", self.run_trainer(*priced, "--dry-run", "--device", "h200"))
        self.assertNotIn("as the last run", self.run_trainer(*priced, "--dry-run", "--ranks", "2"))

    def test_a_dry_run_says_what_it_assumed(self):
        text = self.run_trainer(*self.options("run"), "--dry-run", "--without-data")
        self.assertIn("(assumed: 1000 requests, assuming the longest prompts that max_model_len allows)\n", text)
        self.assertRegex(text, r"\n  prompt tokens +80.0 each\n")
        with open(self.file("broken.jsonl"), "w") as f:
            f.write('{"text": "one"}\n{"txt": "two"}\n')
        for name, value, message in (("generation.input", "'later.jsonl'",
                                      "later.jsonl"), ("generation.input", "'broken.jsonl'", "broken.jsonl:2: "),
                                     ("data.tokenizer", "'nowhere'", "nowhere"), ("model.load", "'elsewhere'",
                                                                                  "elsewhere")):
            text = self.run_trainer(*self.options("run", (name, value)), "--dry-run", code=1)
            self.assertIn(message, text)
            self.assertIn("--without-data plans without data, tokenizer and weights.", text)
            self.assertIn("1000 requests",
                          self.run_trainer(*self.options("run", (name, value)), "--dry-run", "--without-data"))

    def test_a_dry_run_plans_for_a_device_that_is_not_here(self):
        options = self.options("run", ("precision.compute", "'bf16'"))
        usable = {}
        for device, rate, memory in (("h100", 3.35, 79.6), ("H200", 4.8, 140.4)):
            text = self.run_trainer(*options, "--dry-run", "--device", device)
            self.assertRegex(text,
                             rf"\n  rate +[\d.]+ requests/s\n +\(estimated, typical .* {rate:.2f} TB/s; no bound\)")
            usable[device] = float(re.search(r"usable on device +([\d.]+) GiB", text).group(1))
            self.assertAlmostEqual(usable[device], 0.9 * memory - 1.1, delta=0.01)
            for data in (1, 2, 4, 8):
                self.assertRegex(text, rf"\n +{data} +{data} +[\d.]+ +[\d.]+ s ")
        self.assertIn("pass one of H200, H100", self.run_trainer(*options, "--dry-run", "--device", "h300", code=1))
        self.assertIn("add --dry-run", self.run_trainer(*options, "--device", "h100", code=1))


if __name__ == "__main__":
    main()
