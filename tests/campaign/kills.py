"""Runs that are killed at any moment and resumed end as if never interrupted: the same metrics, samples, verdict and
final weights, bit for bit. (Bulk answers: bulk.py.)

    kills.py TRAINER MPIRUN CLASS -k test_killed        TERN_KILLS=200: number of kills of each campaign

Each campaign runs once without interruption. Then it is started with --resume repeatedly, and all of its
processes are killed (SIGKILL), or told to stop (SIGTERM, SIGUSR1), at a random moment: after a random time, at a log line (an evaluation, a checkpoint's
step), or while a checkpoint's temporary folder is there. Needs h5py.
"""
import glob, hashlib, json, os, random, re, signal, subprocess, threading, time

import h5py

from diffusion import Diffusion
from refinement import GOOD
from supervised import SUPERVISED, Supervised
from tiny import Campaign, limited, main

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
        if int(fields[3]) == leader: found.append(int(name.split("/")[2]))
    return found


def send(process, number):
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass


class Killer:
    """Starts commands and kills them; counts kills by target."""

    def __init__(self, seed):
        self.rng, self.counts, self.quicker = random.Random(seed), {}, 0

    def aim(self, child, folder):
        """Waits for the moment; returns its name, and the thread that reads the output."""
        what = self.rng.choice(("time", "time", "evaluation", "step", "checkpoint"))
        deadline = time.monotonic() + self.rng.uniform(0.05, 2.5)
        pattern = {"evaluation": "validation loss", "step": rf"step +\d*{self.rng.randint(0, 9)}/"}.get(what)
        seen = threading.Event()

        self.output = []

        def read():
            for line in child.stdout:
                self.output.append(line)
                if pattern and re.search(pattern, line): seen.set()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        while child.poll() is None and time.monotonic() < deadline:
            if seen.is_set() or what == "checkpoint" and glob.glob(f"{folder}/checkpoints/*.tmp-*"): break
            time.sleep(0.0005)
        time.sleep(self.rng.choice((0, 0, self.rng.uniform(0, 0.02), self.rng.uniform(0, 0.1))))
        return what, reader

    def kill(self, command, cwd, folder):
        """Whether the run ended before it could be killed."""
        env = dict(os.environ, OMP_NUM_THREADS="1", OMP_WAIT_POLICY="passive")
        child = limited.start(command, cwd=cwd, env=env, text=True, errors="replace", stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, start_new_session=True)
        what, reader = self.aim(child, folder)
        number = self.rng.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGUSR1))
        if number == signal.SIGKILL:
            for process in of_session(child.pid): send(process, number)
        else:
            send(child.pid, number)  # of several ranks: to mpirun, which passes it on
            what = number.name
        reader.join()
        child.stdout.close()
        # Negative: the signal came before main() began; mpirun then ends with 128 + its number. After a SIGTERM mpirun may
        # also end with 1, or crash (-11).
        launched = (128 + number, *((1, -signal.SIGSEGV) if number == signal.SIGTERM else ())) if "-n" in command else ()
        if child.wait() not in (-number, 75, *launched):
            assert child.returncode in (0, 77), f"{number.name}: {child.returncode}: {''.join(self.output[-20:])}"
            self.quicker += 1
            return True
        self.counts[what] = self.counts.get(what, 0) + 1
        return False

    @property
    def kills(self):
        return sum(self.counts.values())


class Kills(Campaign):
    """Mixed into the classes below, each of which defines its campaign."""

    def file_of(self, directory, name):
        """Without the seconds that solving took."""
        with open(self.file(f"{directory}/{name}"), "rb") as f:
            return re.sub(rb", [\d.]+ s\n", b"\n", f.read())

    def state(self, directory):
        """Everything a run leaves, except clocks."""
        lines = [{key: value for key, value in line.items() if key not in VARIES and not key.startswith("system/")} for line in self.metrics(directory)]
        newest = sorted(glob.glob(self.file(f"{directory}/checkpoints/step_????????")))[-1]
        weights = {}
        with h5py.File(f"{newest}/checkpoint.h5") as f:
            f.visititems(lambda name, item: weights.__setitem__(name, hashlib.sha256(item[()].tobytes()).hexdigest())
                         if isinstance(item, h5py.Dataset) else None)
            attributes = {key: f.attrs[key] for key in ("step", "tokens", "updates", "samples_hash")}
        found = {"metrics": lines, "weights": weights, "attributes": attributes, "newest": os.path.basename(newest)}
        for name in ("samples.txt", "verdict.json", "checkpoints/best.txt"):
            found[name] = self.file_of(directory, name) if os.path.exists(self.file(f"{directory}/{name}")) else None
        with open(f"{newest}/evaluation.json") as f:
            found["evaluation"] = {key: value for key, value in json.load(f).items() if key not in ("seconds", "joules")}
        return found

    def same(self, whole, directory):
        state = self.state(directory)
        self.assertEqual(len(whole["metrics"]), len(state["metrics"]), directory)
        for a, b in zip(whole["metrics"], state["metrics"]):
            self.assertEqual(a, b, directory)
        self.assertEqual(whole, state, directory)

    def check(self, options, ranks=1, steps=60, code=0):
        self.deck(steps)
        # Few steps between checkpoints and evaluations, and not the same ones.
        options = options + tuple(w for o in ("checkpoint.every=7", "evaluation.every=10") for w in ("--set", o))
        self.run_trainer(*options, "--set", "output.directory=whole", ranks=ranks, code=code)
        whole, killer, runs = self.state("whole"), Killer(self.id() + str(ranks)), 0
        while killer.kills < KILLS:
            name = f"killed{runs}"
            runs += 1
            mine = options + ("--set", f"output.directory={name}", "--resume")
            for _ in range(killer.rng.randint(2, 12)):
                if killer.kill(self.command(*mine, ranks=ranks), self.path, self.file(name)): break
            self.run_trainer(*mine, ranks=ranks, code=code)
            self.same(whole, name)
        print(f"{self.id()}, {ranks} ranks: {killer.kills} kills {killer.counts} of {runs} runs, "
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


if __name__ == "__main__":
    main()
