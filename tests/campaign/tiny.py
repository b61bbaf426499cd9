"""A model small enough that a step takes milliseconds, and the real trainer run on it: shared by the whole-campaign tests.

Their command line is PROGRAM TRAINER MPIRUN [unittest arguments]; each class is one ctest entry.
"""
import glob, json, os, random, re, signal, struct, subprocess, sys, tempfile, unittest

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import limited

TRAINER, MPIRUN = os.path.abspath(sys.argv[1]), sys.argv[2]

DECK = """
! A model small enough that a step takes milliseconds.
&campaign name = 'tiny' max_steps = {steps} /
&model layers = 2 hidden = 32 heads = 4 kv_heads = 2 ffn_hidden = 64 context = 16 vocabulary = 272 /
&data train = 'data/train_*.bin' valid = 'data/valid_*.bin' tokenizer = 'bytes' threads = 1 /
&batch per_rank = 2 global = 8 /
&optimizer lr = 3e-3 warmup_steps = 5 /
&checkpoint every = {every} /
&evaluation every = {evaluate} rows = 8 /
&generation samples = 0 /
&output directory = 'run' log_every = 1 /
"""

MUON = ("--set", "optimizer.kind='muon'", "--set", "optimizer.matrix_lr=2e-2", "--set", "optimizer.embed_lr=1e-2")

EXPERTS = ("--set", "model.experts=4", "--set", "model.experts_per_token=2", "--set", "model.expert_hidden=32", "--set",
           "model.router_loss=0.02")


def write_shard(path, tokens):
    with open(path, "wb") as f:
        f.write(struct.pack("<256i", 20240520, 1, len(tokens), *([0] * 253)))
        f.write(struct.pack(f"<{len(tokens)}H", *tokens))


class Campaign(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = self.folder.name
        os.mkdir(self.file("data"))
        rng = random.Random(1)
        words = ["".join(rng.choice("abcdefgh") for _ in range(rng.randint(2, 6))) for _ in range(40)]
        for name, n in (("train_0", 6000), ("train_1", 3000), ("valid_0", 1500)):
            text = " ".join(rng.choices(words, range(1, 41), k=n // 4))[:n]
            write_shard(self.file(f"data/{name}.bin"), list(text.encode()))
        self.deck(40)

    def tearDown(self):
        self.folder.cleanup()

    def file(self, name):
        return os.path.join(self.path, name)

    def deck(self, steps):
        with open(self.file("tiny.in"), "w") as f:
            f.write(DECK.format(steps=steps, every=max(10, steps // 25), evaluate=max(20, steps // 10)))

    def problems(self):
        """data/train.jsonl and data/test.jsonl: sums of two numbers as word problems."""
        rng = random.Random(3)
        for name, n in (("train", 300), ("test", 30)):
            with open(self.file(f"data/{name}.jsonl"), "w") as f:
                for _ in range(n):
                    a, b = rng.randint(1, 20), rng.randint(1, 20)
                    f.write(json.dumps({"question": f"{a} and {b}", "answer": f"{a}+{b}={a + b}\n#### {a + b}"}) + "\n")

    def command(self, *options, ranks=1):
        start = [] if ranks == 1 else [
            MPIRUN, "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n",
            str(ranks)
        ]
        return start + [TRAINER, "tiny.in", *options]

    def run_trainer(self, *options, ranks=1, code=0):
        env = dict(os.environ, OMP_NUM_THREADS="1")
        done = limited.run(self.command(*options, ranks=ranks), cwd=self.path, env=env, text=True, errors="replace",
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, code, done.stdout)
        return done.stdout

    def metrics(self, directory="run"):
        with open(self.file(f"{directory}/metrics.jsonl")) as f:
            return [json.loads(line) for line in f]

    def steps(self, directory="run", key="train/loss"):
        """Step -> value; fails if a step was logged twice."""
        found = {}
        for line in self.metrics(directory):
            if key in line:
                self.assertNotIn(line["step"], found)
                found[line["step"]] = line[key]
        return found

    def interrupt_after(self, step, *options, ranks=1, number=signal.SIGTERM):
        """Sends the signal once the step is logged; the run must have hundreds of steps left at that point."""
        env = dict(os.environ, OMP_NUM_THREADS="1")
        # A small pipe: the run cannot be far ahead of what is read here.
        child = limited.start(self.command(*options, ranks=ranks), cwd=self.path, env=env, text=True, pipesize=4096,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            for line in child.stdout:
                if at_step(step, line):
                    for pid in ranks_of(child, ranks) if number == signal.SIGUSR1 else [child.pid]:
                        os.kill(pid, number)
                    break
            rest = child.stdout.read()
            code = child.wait()
        finally:
            child.kill() if child.poll() is None else None
            child.stdout.close()
        return code, rest

    def compare(self, reference, directory, bound, keys=("train/loss", "val/loss")):
        """The same samples at each step, and figures that differ only by rounding."""
        self.assertEqual(self.steps(reference, "samples_hash_total"), self.steps(directory, "samples_hash_total"))
        for key in keys:
            a, b = self.steps(reference, key), self.steps(directory, key)
            self.assertEqual(sorted(a), sorted(b))
            first = [s for s in a if s <= 100]  # rounding differences grow without bound in training
            worst = max(abs(a[s] - b[s]) / abs(a[s]) for s in first)
            print(f"{directory}: largest relative difference of {key} at {len(first)} steps: {worst:.2e}")
            self.assertLess(worst, bound)


def at_step(step, line):
    """Whether the line of the log is of this step."""
    return re.match(rf"[\d:]{{8}} +{step}  ", line)


def ranks_of(child, ranks):
    """Process ids of the ranks. Slurm signals ranks; mpirun, signaled in their place, passes it on with a delay."""
    if ranks == 1:
        return [child.pid]
    lists = glob.glob(f"/proc/{child.pid}/task/*/children")
    pids = [int(pid) for name in lists for pid in open(name).read().split()]
    assert len(pids) == ranks, (pids, ranks)
    return pids


def main():
    unittest.main(argv=[sys.argv[0]] + sys.argv[3:], verbosity=2)
