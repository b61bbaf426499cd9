"""Runs that are killed at any moment and resumed end as if never interrupted: the same metrics, samples, verdict and
final weights, bit for bit. (Bulk answers: bulk.py.)

    kills.py TRAINER MPIRUN LIBRARY CLASS -k test_killed        TERN_KILLS=200: number of kills of each campaign

Each campaign runs once without interruption. Then it is started with --resume repeatedly, and all of its
processes are killed (SIGKILL), or told to stop (SIGTERM, SIGUSR1, SIGHUP), at a random moment: after a random time, at a log line (an
evaluation, a checkpoint's step), while a checkpoint's temporary folder is there, or before a random operation on its files
(of one rank; LIBRARY is that of faults.cpp). Needs h5py.
"""
import collections, glob, hashlib, json, os, random, re, signal, subprocess, sys, threading, time

LIBRARY = os.path.abspath(sys.argv.pop(3)) if __name__ == "__main__" else None

import h5py

from diffusion import Diffusion
from half import FP16
from recipe import CONNECTED, GROWING
from refinement import BLOCKS, GOOD, sets
from supervised import SUPERVISED, Supervised
from tiny import MUON, Campaign, limited, main

KILLS = int(os.environ.get("TERN_KILLS", "8"))
# Differs between any two runs: clocks and rates.
VARIES = ("time", "train/throughput", "data/wait_share", "train/mfu", "train/samples_per_second")


def of_session(leader):
    """Processes that `leader` started, in any process group, itself first."""
    found = [leader]
    for name in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(name) as f:
                fields = f.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[3]) == leader:
            found.append(int(name.split("/")[2]))
    return found


def send(process, number):
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass


def content(path):
    """Without the seconds that solving took."""
    if not os.path.exists(path):
        return None
    with open(path, "rb") as f:
        return re.sub(rb", [\d.]+ s\n", b"\n", f.read())


def state_of(folder):
    """Everything a run leaves in its folder, except clocks."""
    with open(f"{folder}/metrics.jsonl") as f:
        lines = [{
            key: value for key, value in json.loads(line).items() if key not in VARIES and not key.startswith("system/")
        } for line in f]
    newest = sorted(glob.glob(f"{folder}/checkpoints/step_????????"))[-1]
    weights = {}
    with h5py.File(f"{newest}/checkpoint.h5") as f:
        f.visititems(lambda name, item: weights.__setitem__(name,
                                                            hashlib.sha256(item[()].tobytes()).hexdigest())
                     if isinstance(item, h5py.Dataset) else None)
        attributes = {key: f.attrs[key] for key in ("step", "tokens", "updates", "samples_hash")}
    found = {"metrics": lines, "weights": weights, "attributes": attributes, "newest": os.path.basename(newest)}
    for name in ("samples.txt", "verdict.json", "checkpoints/best.txt"):
        found[name] = content(f"{folder}/{name}")
    with open(f"{newest}/evaluation.json") as f:
        found["evaluation"] = {key: value for key, value in json.load(f).items() if key not in ("seconds", "joules")}
    return found


class Killer:
    """Starts commands and kills them; counts kills by target and by signal."""

    SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)

    def __init__(self, seed, operations):
        self.rng, self.operations = random.Random(seed), operations
        self.counts, self.quicker = collections.Counter(), 0

    def aim(self, child, folder):
        """Waits for the moment; returns its name, and the thread that reads the output."""
        what = self.rng.choice(("time", "time", "evaluation", "step", "checkpoint"))
        deadline = time.monotonic() + self.rng.uniform(0.05, 2.5)
        pattern = {"evaluation": "validation loss", "step": rf"^[\d:]{{8}} +\d*{self.rng.randint(0, 9)}  "}.get(what)
        seen = threading.Event()

        self.output = []

        def read():
            for line in child.stdout:
                self.output.append(line)
                if pattern and re.search(pattern, line):
                    seen.set()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        while child.poll() is None and time.monotonic() < deadline:
            if seen.is_set() or what == "checkpoint" and glob.glob(f"{folder}/checkpoints/*.tmp-*"):
                break
            time.sleep(0.0005)
        time.sleep(self.rng.choice((0, 0, self.rng.uniform(0, 0.02), self.rng.uniform(0, 0.1))))
        return what, reader

    def kill(self, command, cwd, folder):
        """Whether the run ended before it could be killed."""
        number, env = self.rng.choice(self.SIGNALS), environment()
        at_operation = self.rng.random() < 0.6
        if at_operation:
            command = preloaded(command, env, FAULT_ROOT=cwd, FAULT_N=self.rng.randint(1, self.operations),
                                FAULT_SIGNAL=int(number),
                                **({"FAULT_RANK": self.rng.randint(0, 1)} if "-n" in command else {}))
        child = limited.start(command, cwd=cwd, env=env, text=True, errors="replace", stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, start_new_session=True,
                              preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL))
        if at_operation:
            what, reader = "operation", threading.Thread(target=lambda: self.output.extend(child.stdout), daemon=True)
            self.output = []
            reader.start()
        else:
            what, reader = self.aim(child, folder)
            if number == signal.SIGKILL:
                for process in of_session(child.pid):
                    send(process, number)
            else:
                send(child.pid, number)  # of several ranks: to mpirun, which passes it on
        reader.join()
        child.stdout.close()
        # Negative: the signal came before main() began; mpirun then ends with 128 + its number. After a SIGTERM or a
        # SIGHUP, which it passes on as SIGTERM, mpirun may also end with 1, or crash (-11).
        launched = (128 + number, *((1, -signal.SIGSEGV) if number in (signal.SIGTERM, signal.SIGHUP) else
                                    ())) if "-n" in command else ()
        if child.wait() not in (-number, 75, *launched):
            assert child.returncode in (0, 77), f"{number.name}: {child.returncode}: {''.join(self.output[-20:])}"
            self.quicker += 1
            return True
        self.counts[what] += 1
        self.counts[number.name] += 1
        return False

    @property
    def kills(self):
        return sum(self.counts[number.name] for number in set(self.SIGNALS))


def environment():
    env = dict(os.environ, OMP_NUM_THREADS="1", OMP_WAIT_POLICY="passive")
    env["ASAN_OPTIONS"] = env.get("ASAN_OPTIONS", "detect_leaks=0") + ":verify_asan_link_order=0"
    return env


def preloaded(command, env, **settings):
    """The command with the library of faults.cpp, which `settings` guide: in `env`, or passed on by mpirun."""
    env.update({name: str(value) for name, value in settings.items()})
    if "-n" not in command:
        env["LD_PRELOAD"] = LIBRARY
        return command
    after = command.index("-n") + 2
    return command[:after] + ["-x", f"LD_PRELOAD={LIBRARY}"] + [w for name in settings for w in ("-x", name)
                                                               ] + command[after:]


class Kills(Campaign):
    """Mixed into the classes below, each of which defines its campaign."""
    def operations(self, options, ranks, code):
        """Runs the campaign; returns its state, and the number of operations on files of the rank with the fewest."""
        log, env = self.file("operations.log"), environment()
        command = preloaded(self.command(*options, "--set", "output.directory=whole", ranks=ranks), env,
                            FAULT_ROOT=self.path, FAULT_LOG=log)
        done = limited.run(command, cwd=self.path, env=env, text=True, errors="replace", seconds=600,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, code, done.stdout)
        with open(log) as f:
            numbers = collections.Counter(int(line.split(" ", 1)[0]) for line in f)
        os.remove(log)
        # Ranks other than 0 write files only if they hold shards.
        return state_of(self.file("whole")), max([n for n, times in numbers.items() if times == ranks] or numbers)

    def same(self, whole, directory):
        state = state_of(self.file(directory))
        self.assertEqual(len(whole["metrics"]), len(state["metrics"]), directory)
        for a, b in zip(whole["metrics"], state["metrics"]):
            self.assertEqual(a, b, directory)
        self.assertEqual(whole, state, directory)

    def check(self, options, ranks=1, steps=60, code=0):
        self.deck(steps)
        # Few steps between checkpoints and evaluations, and not the same ones.
        options = options + tuple(w for o in ("checkpoint.every=7", "evaluation.every=10") for w in ("--set", o))
        whole, operations = self.operations(options, ranks, code)
        killer, runs = Killer(self.id() + str(ranks), operations), 0
        while killer.kills < KILLS:
            name = f"killed{runs}"
            runs += 1
            mine = options + ("--set", f"output.directory={name}", "--resume")
            for _ in range(killer.rng.randint(2, 12)):
                if killer.kill(self.command(*mine, ranks=ranks), self.path, self.file(name)):
                    break
            self.run_trainer(*mine, ranks=ranks, code=code)
            self.same(whole, name)
        print(f"{self.id()}, {ranks} ranks: {killer.kills} kills {dict(killer.counts)} of {runs} runs, "
              f"{killer.quicker} ended before the kill: no difference")


class Gpt(Kills):
    OPTIONS = ("--set", "generation.samples=1", "--set", "data.tokenizer='bytes'", "--set", "evaluation.patience=50")

    def test_killed_on_one_rank(self):
        self.check(self.OPTIONS)

    def test_killed_on_two_ranks(self):
        self.check(self.OPTIONS + ("--set", "parallel.shard='optimizer'"), ranks=2)


class Hdp(Kills, Diffusion):
    # The clip interval that an evaluation chooses is part of the state.
    OPTIONS = Diffusion.HDP + ("--set", "objective.clip_search=T", "--set", "evaluation.problems=6")

    def test_killed_on_one_rank(self):
        self.check(self.OPTIONS)

    def test_killed_on_two_ranks(self):
        self.check(self.OPTIONS, ranks=2)


class Trm(Kills):
    def test_killed_on_one_rank(self):
        self.check(GOOD)

    def test_killed_on_two_ranks(self):
        self.check(GOOD, ranks=2)


class Chat(Kills, Supervised):
    def test_killed_on_one_rank(self):
        self.check(SUPERVISED + ("--set", "optimizer.ema=0.9"))

    def test_killed_on_two_ranks(self):
        self.check(SUPERVISED + ("--set", "parallel.shard='full'"), ranks=2)


class Growth(Kills):
    """Batch and window grow during the run, on connected blocks with Muon."""

    OPTIONS = CONNECTED + MUON + GROWING + sets("batch.growth_steps=40", "model.window_steps=50")

    def test_killed_on_one_rank(self):
        self.check(self.OPTIONS)

    def test_killed_on_two_ranks(self):
        self.check(self.OPTIONS + sets("parallel.shard='optimizer'"), ranks=2)


class Half(Kills):
    """fp16: the loss scale doubles and is halved."""

    OPTIONS = FP16 + sets("precision.loss_scale=1048576", "precision.loss_scale_steps=4")

    def test_killed_on_one_rank(self):
        self.check(self.OPTIONS)

    def test_killed_on_two_ranks(self):
        self.check(self.OPTIONS + sets("parallel.shard='full'"), ranks=2)


class TrmConnected(Kills):
    """Refinement with recursion over blocks and gradients cut between answers."""
    def test_killed_on_one_rank(self):
        self.check(GOOD + BLOCKS)

    def test_killed_on_two_ranks(self):
        self.check(GOOD + BLOCKS, ranks=2)


class Sources(Kills, Supervised):
    """Conversations of several files, packed; a step is a number of conversations."""
    def options(self):
        self.write("more", ["hot?", "old", "up??"] * 30)
        return SUPERVISED + sets("data.train='data/train.jsonl', 'data/more.jsonl'", "data.packing=T",
                                 "batch.unit='samples'", "batch.global=24")

    def test_killed_on_one_rank(self):
        self.check(self.options())

    def test_killed_on_two_ranks(self):
        self.check(self.options(), ranks=2)


class Matching(Kills):
    """From the tensors that another model has."""
    def options(self):
        self.run_trainer(*sets("campaign.max_steps=5", "output.directory=other"))
        return sets("model.load='other'", "model.load_rule='matching'", "model.qk_norm=T", "model.layers=3")

    def test_killed_on_one_rank(self):
        self.check(self.options())

    def test_killed_on_two_ranks(self):
        self.check(self.options(), ranks=2)


if __name__ == "__main__":
    main()
