"""File operations that fail. Whatever fails, a task ends either with everything it makes, or with an exit code other than 0,
and then it is repeated to the same result.

    faults.py TRAINER MPIRUN PREPARE LIBRARY CLASS...        TERN_FAULTS=60: number of faults of each class

Each task runs once as it is. Then it runs with one fault each time: the n-th operation on a file, or that and all after it,
fails. The faults are spread over all kinds of operations (which function, on which file). Needs h5py.
"""
import collections, glob, hashlib, json, os, random, re, shutil, subprocess, sys

PREPARE, LIBRARY = (os.path.abspath(sys.argv.pop(3)) for _ in range(2))

from kills import content, state_of
from tiny import MPIRUN, TRAINER, Campaign, limited, main

FAULTS = int(os.environ.get("TERN_FAULTS", "6"))
ERRORS = {"ENOSPC": 28, "EIO": 5, "EACCES": 13}


def sets(*items):
    return tuple(x for item in items for x in ("--set", item))


class Faults(Campaign):
    """Mixed into the classes below, each of which defines its task."""

    RANKS = 1
    TIMES = (1, 1, 3, 0)

    def setUp(self):
        super().setUp()
        # A gnuplot that does nothing: the real one takes longer than all else.
        os.mkdir(self.file("bin"))
        os.symlink(shutil.which("false"), self.file("bin/gnuplot"))

    def environment(self, **fault):
        env = dict(os.environ, OMP_NUM_THREADS="1", OMP_WAIT_POLICY="passive",
                   PATH=self.file("bin") + os.pathsep + os.environ["PATH"])
        env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "detect_leaks=0") + ":verify_asan_link_order=0"
        env.update({f"FAULT_{key.upper()}": str(value) for key, value in fault.items()})
        if fault:
            env["FAULT_ROOT"] = self.path
        return env

    def attempt(self, name, **fault):
        """Runs the task; returns its exit code and output."""
        env, command = self.environment(**fault), self.task(name)
        if self.RANKS == 1 and fault:
            env["LD_PRELOAD"] = LIBRARY
        elif self.RANKS > 1:
            start = [MPIRUN, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(self.RANKS)]
            if fault:
                start += ["-x", f"LD_PRELOAD={LIBRARY}"
                         ] + [w for key in env if key.startswith("FAULT_") for w in ("-x", key)]
            command = start + command
        done = limited.run(command, cwd=self.path, env=env, text=True, errors="replace", seconds=600,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    def drawn(self):
        """Faults: number of the operation, kind, error, number of failures (0: all from there on)."""
        log = self.file("operations.log")
        code, text = self.attempt("recorded_run", n=0, log=log)
        self.assertEqual(code, 0, text)
        kinds = collections.defaultdict(list)
        with open(log) as f:
            for line in f:
                number, operation, path = line.rstrip("\n").split(" ", 2)
                kinds[operation + " " + re.sub(r"[0-9a-f]{16}|\d+", "#", path.replace("recorded_run", "NAME"))].append(
                    int(number))
        os.remove(log)
        self.kinds = len(kinds)
        rng, faults = random.Random(self.id()), []
        names = sorted(kinds)
        rng.shuffle(names)
        for i in range(FAULTS):
            kind = names[i % len(names)]
            # Of each kind also the last: nothing comes after it.
            n = max(kinds[kind]) if i // len(names) % 2 == 1 else rng.choice(kinds[kind])
            faults.append((n, kind, rng.choice(sorted(ERRORS)), rng.choice(self.TIMES)))
        return faults

    def same(self, name, fault, text):
        found = self.state(name)
        for key in self.whole:
            if key == "samples.txt" and found.get(key) != self.whole[key]:
                self.assertRegex(text, "samples.txt could not be written", fault)
                self.warned += 1
            else:
                self.assertEqual(self.whole[key], found.get(key), f"{fault}: {key}\n{text}")

    def inject(self, i, fault):
        n, kind, error, times = fault
        name = f"fault_run{i}"
        self.begin(name)
        code, text = self.attempt(name, n=n, error=ERRORS[error], times=times)
        self.codes[code] += 1
        self.assertIn(code, (0, 1, 74), f"{fault}: {text}")
        if code == 0:
            self.same(name, fault, text)
        elif not self.complete(name):
            code, again = self.attempt(name)
            self.assertEqual(code, 0, f"{fault}: {text}\nagain: {again}")
            self.same(name, fault, again)
        for left in glob.glob(self.file(f"*{name}*")):
            shutil.rmtree(left) if os.path.isdir(left) else os.remove(left)

    def begin(self, name):
        pass

    def complete(self, name):
        return False

    def check(self):
        self.warned, self.codes = 0, collections.Counter()
        for name in ("whole_run", "recorded_run"):
            self.begin(name)
        code, text = self.attempt("whole_run")
        self.assertEqual(code, 0, text)
        self.whole = self.state("whole_run")
        faults = self.drawn()
        for i, fault in enumerate(faults):
            with self.subTest(fault=fault):
                self.inject(i, fault)
        print(f"{self.id()}: {len(faults)} faults of {self.kinds} kinds of operations; exit codes "
              f"{dict(sorted(self.codes.items()))}, {self.warned} without samples.txt, with a warning")


class Training(Faults):
    OPTIONS = sets("generation.samples=1", "generation.max_tokens=4", "checkpoint.every=3", "checkpoint.keep=1",
                   "evaluation.every=4")
    STEPS = 9

    def task(self, name):
        return [
            TRAINER, "tiny.in", *self.OPTIONS, "--resume",
            *sets(f"campaign.max_steps={self.STEPS}", f"output.directory={name}")
        ]

    def state(self, name):
        state = state_of(self.file(name))
        best = state["checkpoints/best.txt"].decode().strip()
        for file in ("checkpoint.h5", "evaluation.json"):
            self.assertTrue(os.path.exists(self.file(f"{name}/checkpoints/{best}/{file}")), f"{best}/{file}")
        return state

    def test_training(self):
        self.check()


class Resuming(Training):
    """From a run that stopped at step 5."""
    def begin(self, name):
        if not os.path.exists(self.file("base")):
            STEPS, self.STEPS = self.STEPS, 5
            self.assertEqual(self.attempt("base")[0], 0)
            self.STEPS = STEPS
        shutil.copytree(self.file("base"), self.file(name))

    def test_training(self):
        self.check()


class Ranks(Training):
    """Two ranks, each with its shard; the faults are those of rank 0, and of rank 1."""

    RANKS = 2
    TIMES = (1, 1, 3)  # a rank that can write nothing any more keeps the others waiting for minutes
    OPTIONS = Training.OPTIONS + sets("parallel.shard='optimizer'")

    def attempt(self, name, **fault):
        if fault:
            fault.setdefault("rank", self.rank)
        return super().attempt(name, **fault)

    def test_training(self):
        self.rank = 0
        self.check()

    def test_training_on_the_other_rank(self):
        self.rank = 1
        self.check()


class Made(Faults):
    """Tasks that make a folder of files, which exists only if it is complete."""
    def files(self, name):
        found = {}
        for folder, _, names in os.walk(self.file(name)):
            for file in names:
                path = os.path.join(folder, file)
                with open(path, "rb") as f:
                    text = re.sub(rb'"(seconds|made)": [^,\n]*', b"", f.read().replace(name.encode(), b"NAME"))
                found[os.path.relpath(path, self.file(name))] = hashlib.sha256(text).hexdigest()
        return found

    def state(self, name):
        return {"files": self.files(name)}

    def complete(self, name):
        if not os.path.exists(self.file(name)):
            return False
        self.assertEqual(self.state(name), self.whole)
        return True


class PrepareText(Made):
    def task(self, name):
        if not os.path.exists(self.file("text.txt")):
            rng = random.Random(5)
            with open(self.file("text.txt"), "w") as f:
                for _ in range(60):
                    f.write(" ".join("".join(rng.choices("abcdefgh", k=4)) for _ in range(30)) + "<|endoftext|>")
        return [
            PREPARE, "text", "--input", "text.txt", "--output", name, "--train-bpe", "300", "--valid-fraction", "0.3"
        ]

    def test_prepare(self):
        self.check()


class PrepareArithmetic(Made):
    def task(self, name):
        return [
            PREPARE, "arithmetic", "--steps", "2", "--problems", "200", "--test-problems", "40", "--vocabulary", "500",
            "--chats", "--output", name
        ]

    def test_prepare(self):
        self.check()


class Exporting(Made):
    def setUp(self):
        super().setUp()
        self.run_trainer(*sets("campaign.max_steps=5"))

    def task(self, name):
        return [TRAINER, "tiny.in", "--export", name]

    def test_export(self):
        self.check()


class Answering(Faults):
    def setUp(self):
        super().setUp()
        self.run_trainer(*sets("campaign.max_steps=5", "output.directory=model"))
        with open(self.file("requests.jsonl"), "w") as f:
            for i in range(12):
                f.write(json.dumps({"text": f"ab{i}", "id": i, "label": "ab"[i % 2]}) + "\n")

    def task(self, name):
        return [
            TRAINER, "tiny.in", "--resume", *sets(
                "campaign.task='evaluate'", "model.load='model'", "model.context=64",
                "generation.input='requests.jsonl'", "generation.max_model_len=64", "generation.max_tokens=6",
                "generation.temperature=1", "generation.top_k=6", "generation.batch=4", "generation.prefill_tokens=64",
                "generation.pattern='^(?s)(.{0,2}[a-h])'", f"output.directory='{name}'")
        ]

    def state(self, name):
        found = {}
        for file in ("answers.jsonl", "answers_rejects.jsonl"):
            found[file] = content(self.file(f"{name}/{file}"))
        with open(self.file(f"{name}/evaluation.json")) as f:
            record = json.load(f)
        found["evaluation"] = {
            key: record.get(key) for key in ("agreeing", "compared", "correct", "labeled", "good", "exact_match")
        }
        with open(self.file(f"{name}/generation.json")) as f:
            found["generation"] = {
                key: value for key, value in json.load(f).items()
                if key in ("requests", "answers", "rejects", "made_from")
            }
        return found

    def test_answers(self):
        self.check()


if __name__ == "__main__":
    main()
