"""The first steps with the real programs: what needs no MPI, prompts, short runs, the best checkpoint, exports, README and docs.

    command_line.py TRAINER MPIRUN PREPARE SOURCE [unittest arguments]        SOURCE: the folder of the project
"""
import glob, itertools, json, os, re, shlex, shutil, subprocess, sys

PREPARE, SOURCE = os.path.abspath(sys.argv.pop(3)), os.path.abspath(sys.argv.pop(3))

from tiny import TRAINER, Campaign, limited, main, write_shard


def launch(*words, cwd=None, env=(), stdout=subprocess.PIPE, seconds=limited.SECONDS):
    """Exit code, standard output and standard error."""
    done = limited.run(words, cwd=cwd, env=dict(os.environ, OMP_NUM_THREADS="1", **dict(env)), text=True,
                       seconds=seconds, stdout=stdout, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def write(file, text):
    with open(file, "w") as f:
        f.write(text)


class Shown(Campaign):
    """Help, version, list, printed decks and mistakes in them."""

    NO_MPI = {"OMPI_MCA_pml": "none_such"}  # MPI cannot start

    def test_they_need_no_mpi(self):
        code, _, _ = launch(TRAINER, "tiny.in", cwd=self.path, env=self.NO_MPI)
        self.assertNotEqual(code, 0)
        for words, part in ((("--help",), "exit codes"), (("--version",), "tern "),
                            (("tiny.in", "--print-deck"), "&campaign"), (("--list",), "quickstart ")):
            code, out, err = launch(TRAINER, *words, cwd=self.path, env=self.NO_MPI)
            self.assertEqual((code, err), (0, ""), words)
            self.assertIn(part, out)
        for words, part in ((("tiny.in", "--set", "model.laysers=2"), "layers"), (("no.in",), "no such deck"),
                            (("--dryrun",), "did you mean --dry-run?"), (("tiny.in", "b.in"), "one word too many"),
                            (("--no-such",), "--help"), ((), "no deck given")):
            code, out, err = launch(TRAINER, *words, cwd=self.path, env=self.NO_MPI)
            self.assertEqual((code, out), (1, ""), words)
            self.assertTrue(err.startswith("error: "), err)
            self.assertIn(part, err)

    def test_one_rank_speaks(self):
        for words in (("--version",), ("tiny.in", "--print-deck")):
            self.assertEqual(self.run_words(*words, ranks=2), self.run_words(*words))
        text = self.run_trainer("--set", "model.layers=0", ranks=2, code=1)
        self.assertEqual(text.count("error:"), 1, text)

    def run_words(self, *words, ranks=1):
        done = limited.run(
            self.command(ranks=ranks)[:-1] + list(words), cwd=self.path, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_the_list_names_each_deck_with_its_first_line(self):
        names = sorted(n[:-3] for n in os.listdir(os.path.join(SOURCE, "input")) if n.endswith(".in"))
        title, *lines = self.run_words("--list").splitlines()  # from another folder: the decks next to the program
        self.assertRegex(title, r"^decks of \S+/input, to run with trainer NAME:$")
        listed = [line.split()[0] for line in lines if not line.startswith(" ")]  # a long first line continues below
        self.assertEqual(sorted(listed), names)
        self.assertLessEqual(max(map(len, lines)), 100)
        self.assertRegex(lines[0], r"^quickstart +Quickstart: a small HDP")
        names = "quickstart laptop_gpt h200_hdp h100_gpt350m h100x8_trm_fast h100x8_distill_teacher"
        order = [listed.index(name) for name in names.split()]
        self.assertEqual(order, sorted(order), listed)  # from a laptop to a cluster
        os.mkdir(self.file("input"))
        shutil.copy(self.file("tiny.in"), self.file("input/own.in"))
        with open(self.file("input/plain.in"), "w") as f:
            f.write("&campaign /\n")
        self.assertEqual([line.split()[0] for line in self.run_words("--list").splitlines()[1:]], ["own", "plain"])

    def test_a_deck_is_found_by_its_name(self):
        for name in ("quickstart", "quickstart.in"):
            code, out, err = launch(TRAINER, name, "--print-deck", cwd=self.path)
            self.assertEqual((code, err), (0, ""))
            self.assertRegex(out, r"^! deck: \S+/input/quickstart\.in\n")
        os.mkdir(self.file("input"))
        shutil.copy(self.file("tiny.in"), self.file("input/own.in"))
        self.assertIn("deck: input/own.in\n", launch(TRAINER, "own", "--dry-run", cwd=self.path)[1])
        code, out, err = launch(TRAINER, "onw", cwd=self.path)
        self.assertEqual((code, out), (1, ""))
        self.assertIn("did you mean own?", err)

    def test_commands_of_prepare_have_help_of_their_own(self):
        code, out, err = launch(PREPARE, "quickstart", "--help", cwd=self.path)
        self.assertEqual((code, err), (0, ""))
        for part in ("usage: prepare quickstart", "--force", "exit codes"):
            self.assertIn(part, out)
        self.assertNotIn("--train-bpe", out)
        listed = launch(PREPARE, "--help", cwd=self.path)[1]
        for command in ("quickstart", "cpp-headers", "text", "arithmetic", "languages", "gsm8k", "sentences", "plans"):
            self.assertRegex(listed, rf"(?m)^  {command} +\S")
            self.assertIn(f"usage: prepare {command}", launch(PREPARE, command, "--help", cwd=self.path)[1])
        self.assertRegex(launch(PREPARE, "--version", cwd=self.path)[1], r"^tern \d")
        for words, part in ((("quickstrat",), "did you mean quickstart?"), (("text", "--trainbpe", "5"),
                                                                            "did you mean --train-bpe?"),
                            (("quickstart", "more"), "one word too many"), (("languages", "--steps", "2"),
                                                                            "./prepare arithmetic")):
            code, out, err = launch(PREPARE, *words, cwd=self.path)
            self.assertEqual((code, out), (1, ""), words)
            self.assertIn(part, err)

    def test_the_list_of_a_folder_has_its_runs(self):
        for name, options in (("a", ()), ("b", ("--set", "campaign.max_steps=20"))):
            self.run_trainer(*options, "--set", f"output.directory=runs/{name}")
        titles, *rows = self.run_words("--list", "runs").splitlines()
        self.assertRegex(titles, r"^run +state +step +validation loss +best +time +last line \(UTC\)$")
        loss = r"\d\.\d{4}"
        for name, steps, row in zip("ab", (40, 20), rows, strict=True):
            ended = r"[\d.]+ (s|min) +20\d\d-\d\d-\d\d \d\d:\d\d"
            self.assertRegex(row, rf"^runs/{name} +finished +{steps}/{steps} +{loss} +{loss} at {steps} +{ended}$")
            self.assertIn(f"{self.steps(f'runs/{name}', 'val/loss')[steps]:.4f}", row)
        self.assertEqual(self.run_words("--list", "runs/b").splitlines()[1].split(), rows[1].split())
        self.assertEqual(self.run_words("--list", "."), "./tiny.in  \n")
        compared = self.run_words("--compare", "runs/a", "runs/b")
        self.assertRegex(compared, r"(?m)^deck value +a +b$")
        self.assertRegex(compared, r"(?m)^campaign\.max_steps +40 +20$")
        self.assertTrue(compared.endswith("curves and tables: runs/a/compare.html\n"), compared)
        self.assertIn("</html>", open(self.file("runs/a/compare.html")).read())
        code, out, err = launch(TRAINER, "--compare", "runs/a", "runs/c", cwd=self.path, env=self.NO_MPI)
        self.assertEqual((code, out), (1, ""))
        self.assertTrue(err.startswith("error: --compare runs/c: no such directory"), err)
        for folder, part in (("nowhere", "no such folder"), ("data", "it holds no run"), ("tiny.in", "no such folder")):
            code, out, err = launch(TRAINER, "--list", folder, cwd=self.path, env=self.NO_MPI)
            self.assertEqual((code, out), (1, ""), folder)
            self.assertTrue(err.startswith(f"error: --list {folder}: {part}"), err)

    def test_output_that_cannot_be_written_is_an_error(self):
        shows = (("--help",), ("--version",), ("--list",), ("tiny.in", "--print-deck"), ("tiny.in", "--dry-run"))
        for words in shows:
            with open("/dev/full", "w") as full:
                code, _, err = launch(TRAINER, *words, cwd=self.path, stdout=full)
            self.assertEqual(code, 1, words)
            self.assertIn("standard output", err)
            code, _, err = launch("sh", "-c", f"exec {shlex.join([TRAINER, *words])} >&-", cwd=self.path)
            self.assertEqual(code, 1, words)
            self.assertIn("standard output", err)
        with open("/dev/full", "w") as full:
            self.assertEqual(launch(PREPARE, "--help", stdout=full)[0], 1)

    def test_a_run_does_not_need_standard_output(self):
        code, _, err = launch("sh", "-c", f"exec {TRAINER} tiny.in >&- 2>&- <&-", cwd=self.path)
        self.assertEqual(code, 0, err)
        self.assertEqual(len(self.steps()), 40)  # and no file of the run took the log's lines
        with open(self.file("run/log.txt")) as f:
            self.assertIn("finished at step 40", f.read())


class Refused(Campaign):
    """Options and values that contradict each other, and missing files."""
    def refused(self, *options, parts):
        text = self.run_trainer(*options, code=1)
        for part in parts:
            self.assertIn(part, text)
        self.assertFalse(os.path.exists(self.file("run/metrics.jsonl")), text)
        return text

    def test_options(self):
        self.refused("--resume", "--fresh", parts=("--resume and --fresh",))
        self.refused("--prompt", "x", "--export", "hf", parts=("--prompt and --export",))
        self.refused("--export", "", parts=("--export", "name the directory"))
        self.refused("--quick", "0", parts=("--quick 0",))
        self.refused("--prompt", "@gone.txt", parts=("gone.txt",))
        for name in (".", ".."):
            self.refused("--set", f"campaign.name='{name}'", "--set", "output.directory=''",
                         parts=(f"'{name}'", "campaign.name"))

    def test_fresh_moves_runs_aside_and_nothing_else(self):
        os.mkdir(self.file("home"))
        with open(self.file("home/thesis.tex"), "w") as f:
            f.write("x")
        self.refused("--fresh", "--set", "output.directory=home", parts=("home", "not the directory of a run"))
        self.assertEqual(os.listdir(self.file("home")), ["thesis.tex"])

    def test_missing_data_names_the_command_that_makes_them(self):
        for deck, command in (("quickstart", "quickstart"), ("laptop_gpt", "cpp-headers"), ("trm_small", "cpp-headers"),
                              ("distill_small_teacher_train", "languages"), ("distill_small_teacher", "languages")):
            code, out, err = launch(TRAINER, os.path.join(SOURCE, f"input/{deck}.in"), cwd=self.path)
            self.assertEqual(code, 1, out)
            self.assertIn(f"./prepare {command}", err)
            self.assertNotIn("data/data", err)

    def test_weights_that_are_not_there(self):
        self.refused("--prompt", "x", parts=("no checkpoint in run", "train first"))
        self.refused("--prompt", "x", "--set", "generation.checkpoint=gone", parts=("gone: no such file or folder",))
        os.mkdir(self.file("empty"))
        for load, part in (("gone", "gone: no such file or folder"), ("empty",
                                                                      "empty contains no readable checkpoint")):
            text = self.run_trainer("--set", f"model.load={load}", code=1)
            self.assertIn(part, text)
            self.assertIn("&model load", text)
            self.assertNotIn("train first", text)

    def test_a_pipe_is_no_data(self):
        os.mkfifo(self.file("data/pipe.bin"))
        self.refused("--set", "data.train='data/pipe.bin'", parts=("pipe.bin", "a pipe"))

    def test_weights_that_are_not_finite(self):
        self.deck(6)
        self.run_trainer("--export", "x", "--set", "model.load='run'", code=1)
        self.run_trainer("--set", "output.directory=good")
        self.run_trainer("--set", "output.directory=good", "--export", "hf")
        name = self.file("hf/model.safetensors")
        with open(name, "r+b") as f:
            f.seek(-4000, os.SEEK_END)
            f.write(b"\x00\x00\xc0\x7f" * 1000)  # nan
        text = self.run_trainer("--set", "model.load=hf", "--set", "output.skip_limit=100", code=76)
        self.assertNotIn("finished", text)
        self.assertIn("not finite", text)
        text = self.run_trainer("--set", "generation.checkpoint=hf", "--set", "campaign.task=evaluate", code=1)
        self.assertIn("not finite", text)
        self.assertFalse(os.path.exists(self.file("run/evaluation.json")))


class Prompts(Campaign):
    GREEDY = ("--set", "generation.temperature=0", "--set", "generation.max_tokens=6")

    def test_a_prompt_wins_over_requests_and_holds_lines(self):
        self.run_trainer()
        with open(self.file("requests.txt"), "w") as f:
            f.write("a\n")
        with open(self.file("tiny.in")) as f:
            deck = f.read().replace("&generation samples = 0",
                                    "&generation samples = 0 input = 'requests.txt' pattern = 'x' stop = 'y'")
        with open(self.file("tiny.in"), "w") as f:
            f.write(deck)
        prompt = "it's\n'two'"
        text = self.run_trainer("--prompt", prompt, *self.GREEDY)
        self.assertEqual(text.count(f"---\n{prompt}"), 1)
        for end in ("\n", "\r\n", ""):
            with open(self.file("prompt.txt"), "wb") as f:
                f.write((prompt + end).encode())
            self.assertEqual(self.answer(self.run_trainer("--prompt", "@prompt.txt", *self.GREEDY)), self.answer(text))
        self.assertFalse(os.path.exists(self.file("run/answers.jsonl")))

    def answer(self, text):
        return text.split("---\n")[1]


class Quick(Campaign):
    def printed(self, *options):
        text = self.run_trainer("--print-deck", *options)
        return {name: int(value) for name, value in re.findall(r"^ +(\w+) = (\d+) *(?:!|$)", text, re.M)}, text

    def every(self, text):
        return [int(n) for n in re.findall(r"^ +every = (\d+)", text, re.M)]

    def test_the_schedule_shrinks_with_the_steps(self):
        self.deck(1000)
        options = ("--set", "optimizer.warmup_steps=100", "--set", "output.log_every=50")
        values, text = self.printed(*options)
        self.assertEqual((values["max_steps"], values["warmup_steps"], values["log_every"]), (1000, 100, 50))
        self.assertEqual(self.every(text), [40, 100])
        with open(self.file("tiny.in")) as f:
            deck = f.read().replace("warmup_steps = 5", "warmup_steps = 100").replace("log_every = 1", "log_every = 50")
        with open(self.file("tiny.in"), "w") as f:
            f.write(deck)
        values, text = self.printed("--quick", "20")
        self.assertEqual((values["max_steps"], values["warmup_steps"], values["log_every"]), (20, 2, 1))
        self.assertEqual(self.every(text), [5, 5])
        values, text = self.printed("--quick", "20", "--set", "evaluation.every=3")  # explicit settings are kept
        self.assertEqual(self.every(text), [5, 3])
        values, text = self.printed("--quick", "2000")  # longer than the deck: nothing is shortened
        self.assertEqual((values["max_steps"], values["warmup_steps"]), (2000, 100))

    def test_every_deck_shrinks_to_any_length(self):
        for name in os.listdir(os.path.join(SOURCE, "input")):
            for steps in (1, 2, 7, 100):
                code, out, err = launch(TRAINER, os.path.join(SOURCE, "input", name), "--quick", str(steps),
                                        "--print-deck", cwd=self.path)
                self.assertEqual((code, err), (0, ""), name)
                self.assertIn(f"max_steps = {steps} ", out)

    def test_a_quick_run_ends_with_all_that_a_run_writes(self):
        self.deck(1000)
        text = self.run_trainer("--quick", "8")
        self.assertIn("finished at step 8", text)
        self.assertEqual(sorted(self.steps(key="val/loss")), [0, 2, 4, 6, 8])
        self.assertIn("weights from", self.run_trainer("--prompt", "a"))


class Best(Campaign):
    """Evaluations, prompts and exports take the best checkpoint, and say so."""

    # The rate explodes after the warmup: a late checkpoint is worse than the best.
    WORSENS = ("--set", "optimizer.lr=1", "--set", "optimizer.warmup_steps=40", "--set", "evaluation.every=5", "--set",
               "checkpoint.keep=1", "--set", "optimizer.grad_clip=0")

    def test_best_newest_and_path(self):
        self.run_trainer(*self.WORSENS)
        losses = {step: loss for step, loss in self.steps(key="val/loss").items() if step > 0}
        best = min(losses, key=losses.get)
        self.assertLess(best, 40, losses)
        evaluate = ("--set", "campaign.task=evaluate")
        text = self.run_trainer(*evaluate)
        self.assertRegex(text, rf"step_{best:08}\S* \(step {best}, the best\)")
        self.assertIn(f"validation loss {losses[best]:.4f}", text)
        with open(self.file("run/evaluation.json")) as f:
            record = json.load(f)
        self.assertAlmostEqual(record["loss"], losses[best], places=5)
        self.assertIn(f"step_{best:08}", record["weights"])
        self.assertNotIn("sampling", record)
        text = self.run_trainer(*evaluate, "--set", "generation.checkpoint=newest")
        self.assertRegex(text, rf"\(step 40; the best is step_{best:08}\)")
        self.assertIn(f"validation loss {losses[40]:.4f}", text)
        text = self.run_trainer(*evaluate, "--set", "generation.checkpoint='run/checkpoints/step_00000040'", ranks=2)
        self.assertIn(f"validation loss {losses[40]:.4f}", text)
        self.assertIn("the best)", self.run_trainer("--prompt", "a"))
        self.assertIn("the best)", self.run_trainer("--export", "hf"))

    def test_a_damaged_best_txt_is_reported_and_mended(self):
        self.run_trainer(*self.WORSENS)
        file = self.file("run/checkpoints/best.txt")
        evaluate = ("--set", "campaign.task=evaluate")
        for i, damaged in enumerate(("stfp_00000010\n", "step_00000040\n", None)):
            step = self.best_step()
            os.remove(file) if damaged is None else write(file, damaged)
            for options in (evaluate, ("--prompt", "a"), ("--export", f"hf{i}")):
                text = self.run_trainer(*options)
                warned = rf"warning: .*best.txt .*the best is that of step {step}: it is used"
                self.assertNotIn("warning", text) if damaged is None else self.assertRegex(text, warned)
                self.assertRegex(text, rf"step_{step:08}\S* \(step {step}, the best\)")
            text = self.run_trainer(*self.WORSENS, "--resume", "--set", f"campaign.max_steps={45 + 5 * i}")
            self.assertRegex(text, rf"warning: .*best.txt .*the best is that of step {step}; best.txt is rewritten")
            with open(file) as f:
                self.assertEqual(f.read(), f"step_{self.best_step():08}\n")
            self.assertTrue(os.path.exists(self.file(f"run/checkpoints/step_{self.best_step():08}/checkpoint.h5")))
        self.assertNotIn("warning", self.run_trainer(*evaluate))

    def best_step(self):
        losses = {step: loss for step, loss in self.steps(key="val/loss").items() if step > 0}
        return min(losses, key=losses.get)

    def test_without_a_best_one_the_newest_is_taken(self):
        self.run_trainer("--set", "checkpoint.keep_best=F")
        self.assertRegex(self.run_trainer("--set", "campaign.task=evaluate"), r"\(step 40, the best\)")
        worsens = (*self.WORSENS, "--set", "checkpoint.keep_best=F", "--fresh")
        self.run_trainer(*worsens)
        text = self.run_trainer("--set", "campaign.task=evaluate")
        best = f"the best checkpoint, of step {self.best_step()}, does not exist: the newest checkpoint is used"
        self.assertRegex(text, f"warning: .*{best}")
        self.assertRegex(text, r"\(step 40\)")


class Exports(Campaign):
    def test_nothing_is_overwritten(self):
        self.deck(6)
        self.run_trainer()
        os.mkdir(self.file("empty"))
        for name in ("new", "deep/new", "empty", "slash/"):
            self.run_trainer("--export", name)
            with open(self.file(f"{name}/config.json"), "rb") as f:
                before = f.read()
            text = self.run_trainer("--export", name, code=1)
            self.assertIn("not overwritten", text)
            with open(self.file(f"{name}/config.json"), "rb") as f:
                self.assertEqual(f.read(), before)
            self.assertEqual([n for n in os.listdir(self.path) if "partial" in n], [])

    def test_the_tokenizer_goes_along(self):
        self.deck(6)
        self.run_trainer()
        self.run_trainer("--export", "hf")
        with open(self.file("hf/tokenizer.json")) as f:
            vocabulary = json.load(f)["model"]["vocab"]
        self.assertEqual(sorted(vocabulary.values()), list(range(256)))
        with open(self.file("hf/tokenizer_config.json")) as f:
            config = json.load(f)
        self.assertEqual((config["eos_token"], config["model_max_length"]), ("<|endoftext|>", 16))
        self.assertFalse(os.path.exists(self.file("hf/chat_template.jinja")))


class Readme(Campaign):
    """README.md and docs/: runs have options that decks take, links resolve, messages are the program's; documents.py runs commands."""

    DOCUMENTS = ["README.md", "CONTRIBUTING.md"] + sorted(glob.glob("docs/**/*.md", root_dir=SOURCE, recursive=True))

    def setUp(self):
        super().setUp()
        for name in ("input", "bench", "jobs", "docs", "README.md"):
            os.symlink(os.path.join(SOURCE, name), self.file(name))
        os.symlink(TRAINER, self.file("trainer"))
        os.symlink(PREPARE, self.file("prepare"))

    def text(self, name):
        with open(os.path.join(SOURCE, name)) as f:
            return f.read()

    def commands(self, name):
        """The lines of the indented code blocks, continued ones joined, without comments."""
        lines = re.findall(r"^    (\S.*|  --.*)$", self.text(name), re.M)
        return [re.sub(r"(^| +)#.*", "", line) for line in "\n".join(lines).replace("\\\n", " ").split("\n")]

    def run_block(self, *lines):
        code, out, err = launch("bash", "-euc", "\n".join(lines), cwd=self.path, seconds=600)
        self.assertEqual(code, 0, out[-3000:] + err)
        return out

    def test_every_run_of_the_documents_has_options_and_values_that_decks_take(self):
        with open(self.file("data/prompt.txt"), "w") as f:
            f.write("a prompt")
        count = 0
        for name in self.DOCUMENTS:
            for command in self.commands(name):
                run = re.match(r"(?:srun .*?|mpirun -n \w+ )?(\./trainer input/.*|\./trainer bench/.*)$", command)
                if run:
                    self.run_block("N=2",
                                   re.sub(r"=N\b", "=$N",
                                          run.group(1).replace(" --print-deck", "")) + " --print-deck")
                    count += 1
        self.assertGreater(count, 25)

    def test_scripts_and_links_are_there(self):
        for name in self.DOCUMENTS:
            folder = os.path.dirname(os.path.join(SOURCE, name))
            for script in re.findall(r"\b((?:bench|jobs|docs)/\w+\.(?:py|sh))\b", self.text(name)):
                self.assertTrue(os.path.exists(os.path.join(SOURCE, script)), f"{name}: {script}")
            for link in re.findall(r"\]\(([^)]+)\)", self.text(name)):
                path, _, anchor = link.partition("#")
                where = os.path.normpath(os.path.join(folder, path)) if path else os.path.join(SOURCE, name)
                self.assertTrue(os.path.exists(where), f"{name}: {link}")
                if anchor:
                    with open(where) as f:
                        titles = re.findall(r"^#+ (.*)$", f.read(), re.M)
                    anchors = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
                    self.assertIn(anchor, anchors, f"{name}: {link}")

    def test_messages_of_the_troubleshooting_page_are_the_programs(self):
        literals = []
        for folder, _, names in itertools.chain(os.walk(os.path.join(SOURCE, "lib")),
                                                os.walk(os.path.join(SOURCE, "jobs"))):
            for name in names:
                if name.endswith((".cpp", ".hpp", ".sh")):
                    with open(os.path.join(folder, name)) as f:
                        for group in re.findall(r'(?:"(?:[^"\\\n]|\\.)*"\s*)+', f.read()):
                            literals.append("".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', group)))
        messages = re.findall(r"^\| `([^`]+)` \|", self.text("docs/troubleshooting.md"), re.M)
        self.assertGreater(len(messages), 40)
        parts = [(message, [part.strip() for part in message.split("...")]) for message in messages]
        self.assertEqual(
            [m for m, all_of in parts if not any(all(p in literal for p in all_of) for literal in literals)], [])


if __name__ == "__main__":
    main()
