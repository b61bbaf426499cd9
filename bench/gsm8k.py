"""GSM8K by training data and by model: bench/gsm8k_{causal,flat,hdp}.in, exact match on its 1,319 test problems.

    python3 bench/gsm8k.py [--gpus 2] [--together 1] [--scale 1] [--steps 'problems=400;variants=1500'] [--seeds 1]
                           [--only 'hdp; flat variants'] [--best] [--data data] [--out runs/gsm8k] [--set group.name=value ...]

Rows are training data x model: `problems`, GSM8K's own; `variants`, these with other numbers as well; `variants +
arithmetic`, made word problems of up to eight steps as well (causal only); `text + variants + arithmetic`, the same from
weights that bench/gsm8k_text.in pretrains, of one model by next tokens, of the two others by block diffusion. The data:

    ./prepare gsm8k data/gsm8k --variants 100 --copies 5 --chats --vocabulary 4096 --output data/gsm8k_variants
    ./prepare gsm8k data/gsm8k --variants 0 --chats --output data/gsm8k_problems
    ./prepare arithmetic --steps 8 --problems 100e3 --chats --output data/gsm8k_arithmetic
    ./prepare text --tokenizer data/gsm8k_variants --input FILES --output data/gsm8k_text

The models of a row take equal steps of 65,536 positions (--steps of a row's data, `text` of the pretraining, times
--scale). Runs share the GPUs, --together at once on each, so tokens/s and seconds compare within a table only. --only:
runs, or how their names (model, data) begin, by semicolons. Each run is printed when it is done, and the table at the
end, or when SIGTERM ends it; runs that are done are not repeated, and a failed one stops only those that start from it.
Exact match is of the last step's weights; --best adds those with the lowest validation loss, of eight evaluations.
Checkpoints are removed once no run needs them. Standard library only. On a CPU, at toy size:

    python3 bench/gsm8k.py --gpus 0 --scale 0.02 --problems 8 --threads 1 --out runs/toy --set precision.compute=fp32 \\
        --set model.layers=2 --set model.hidden=64 --set model.heads=2 --set batch.per_rank=2 --set batch.global=2 \\
        --set evaluation.rows=2 --set data.threads=1
"""
import argparse, json, math, os, pathlib, re, shutil, signal, statistics, sys, threading, time

from together import as_options, call, shared_devices, train

HERE = pathlib.Path(__file__).parent
MODELS = ("causal", "flat", "hdp")
ARITHMETIC, TEXT = "variants + arithmetic", "text + variants + arithmetic"
FILES = {
    "problems": ["problems"], "variants": ["variants"], ARITHMETIC: ["variants", "arithmetic"],
    TEXT: ["variants", "arithmetic"]
}
STEPS = {"text": 1000, "problems": 400, "variants": 1500, ARITHMETIC: 1500, TEXT: 1500}
WARM = 0.1  # largest fraction of the steps, for short runs
# Weights that are trained already take smaller steps.
FROM_TEXT = {"optimizer.lr": 4e-3, "optimizer.matrix_lr": 1e-2, "optimizer.embed_lr": 0.05, "optimizer.head_lr": 4e-3}
PROBLEMS = 1319

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("--trainer", default="./trainer")
p.add_argument("--data", default="data")
p.add_argument("--out", default="runs/gsm8k")
p.add_argument("--gpus", type=int, default=1, help="0: none, a CPU")
p.add_argument("--together", type=int, default=1)
p.add_argument("--threads", type=int, default=4)
p.add_argument("--seeds", type=int, default=1)
p.add_argument("--scale", type=float, default=1.0)
p.add_argument("--steps", default="")
p.add_argument("--only", default="")
p.add_argument("--best", action="store_true", help="evaluate the weights with the lowest validation loss as well")
p.add_argument("--problems", type=int, default=PROBLEMS, help="test problems")
p.add_argument("--set", action="append", default=[])
a = p.parse_args()
DATA, OUT = pathlib.Path(a.data), pathlib.Path(a.out)


class Run:
    """One training run and its evaluation; `start`: the pretraining that it starts from."""
    def __init__(self, model, data, seed, start=None):
        self.model, self.data, self.seed, self.start = model, data, seed, start
        self.name = f"{model} {data}" + (f", seed {seed}" if a.seeds > 1 else "")
        self.directory = OUT / re.sub(r"\W+", "_", f"{model} {data} {seed}")
        self.state, self.row = "waiting", None

    def pretrains(self):
        return self.data == "text"

    def deck(self):
        return HERE / ("gsm8k_text.in" if self.pretrains() else f"gsm8k_{self.model}.in")

    def steps(self):
        given = dict(s.rsplit("=", 1) for s in a.steps.split(";") if s.strip())
        given = {name.strip(): float(steps) for name, steps in given.items()}
        return max(4, round(a.scale * given.get(self.data, STEPS[self.data])))

    def settings(self):
        test = {"data.valid": DATA / "gsm8k/test.jsonl"}
        if self.model == "causal":
            test = {"data.valid": DATA / "gsm8k_variants/test_chat.jsonl", "generation.input": requests()}
        if self.pretrains():
            test = {"data.valid": DATA / "gsm8k_text/valid_*.bin"}
        steps, ending = self.steps(), "train_chat.jsonl" if self.model == "causal" else "train.jsonl"
        files = [DATA / "gsm8k_text/train_*.bin"
                ] if self.pretrains() else [DATA / f"gsm8k_{f}" / ending for f in FILES[self.data]]
        made = {
            "data.train": ",".join(f"'{f}'" for f in files), "data.tokenizer": DATA / "gsm8k_variants",
            "campaign.max_steps": steps, "campaign.seed": self.seed,
            "evaluation.every": math.ceil(steps / (8 if a.best else 4)),
            "output.log_every": min(25,
                                    math.ceil(steps / 8)), "optimizer.warmup_steps": min(50, math.ceil(WARM * steps))
        }
        if self.pretrains() and self.model == "causal":
            made.update({"objective.kind": "causal", "model.context": 1024})  # as many positions as two copies have
        if a.best:
            made["checkpoint.keep_best"] = "T"
        if self.model != "causal" and not self.pretrains():
            made["evaluation.problems"] = min(256, a.problems)
        if self.start:
            made.update({"model.load": self.start.directory, "model.load_rule": "matching"}, **FROM_TEXT)
        return {**test, **made, **dict(s.split("=", 1) for s in a.set)}

    def done(self):
        files = ["done"] if self.pretrains() else ["evaluation.json", *["evaluation_best.json"] * a.best]
        return all((self.directory / file).exists() for file in files)

    def remove_checkpoints(self):
        shutil.rmtree(self.directory / "checkpoints", ignore_errors=True)

    def make(self, device):
        """Trains and evaluates; RuntimeError with the end of its output if it fails."""
        if not self.done() or self.pretrains():
            if not (self.directory / "checkpoints").exists():
                (self.directory / "done").unlink(missing_ok=True)  # what it left is of no use
            train(a.trainer, self.deck(), self.directory, self.settings(), threads=a.threads, device=device, keep=True)
        if not self.done():
            if a.best:
                self.evaluate(device, {"generation.checkpoint": "best"})
                (self.directory / "evaluation.json").rename(self.directory / "evaluation_best.json")
            self.evaluate(device)
        self.row = self.read()

    def evaluate(self, device, chosen={}):
        shutil.rmtree(self.directory / "parts", ignore_errors=True)  # of an evaluation that was killed
        for name in ("answers.jsonl", "answers_rejects.jsonl"):
            (self.directory / name).unlink(missing_ok=True)
        given = {k: v for k, v in self.settings().items() if not k.startswith("model.load")}
        given.update({"campaign.task": "evaluate", "output.directory": self.directory, **chosen})
        if self.model != "causal":
            given.update({"evaluation.problems": a.problems, "generation.batch": min(660, a.problems)})
        call([a.trainer, str(self.deck()), *as_options(given)], threads=a.threads, device=device)

    def read(self):
        lines = [json.loads(line) for line in (self.directory / "metrics.jsonl").read_text().splitlines()]
        steps = [line for line in lines if "train/loss" in line]
        rate = statistics.median(line["train/throughput"] for line in steps)
        losses = {line["step"]: line["val/loss"] for line in lines if line.get("val/loss") is not None}
        row = {"rate": rate, "seconds": lines[-1]["time"] - steps[0]["time"], "loss": [math.nan, *losses.values()][-1]}
        if self.pretrains():
            return row
        seen = re.search(r"each of ([\d.,]+) samples", (self.directory / "log.txt").read_text())
        score = json.loads((self.directory / "evaluation.json").read_text())
        if a.best:
            row.update(best_step=min(losses, key=losses.get), best=json.loads(
                (self.directory / "evaluation_best.json").read_text()))
        asked, good = (score["requests"], score["good"]) if "requests" in score else (score["problems"],
                                                                                      score["well_formed"])
        return dict(row, seen=float(seen.group(1).replace(",", "")) * steps[-1]["step"] if seen else math.nan,
                    match=score["exact_match"], interval=score["exact_match_95"], good=good / asked)


def requests():
    """The test's requests, or the first --problems of them, which main() writes."""
    return DATA / "gsm8k_variants/test_requests.jsonl" if a.problems >= PROBLEMS else OUT / "requests.jsonl"


def percent(match, interval):
    return f"{100 * match:.1f}% ({100 * interval[0]:.1f} to {100 * interval[1]:.1f})"


def cells(run):
    r = run.row
    match, best, good, seen = f"loss {r['loss']:.3f}", [""] * a.best, "", ""
    if not run.pretrains():
        match = percent(r["match"], r["interval"])
        good, seen = f"{100 * r['good']:.1f}%", f"{r['seen']:,.0f}"
        if a.best:
            best = [percent(r["best"]["exact_match"], r["best"]["exact_match_95"]) + f", step {r['best_step']}"]
    data = run.data + (f", seed {run.seed}" if a.seeds > 1 else "")
    return [data, run.model, match, *best, good, seen, str(run.steps()), f"{r['rate']:,.0f}", f"{r['seconds']:.0f}"]


def wanted():
    """All runs, pretrainings first, then the longest; pretrainings only if a run starts from them."""
    chosen, runs = [c.strip() for c in a.only.split(";") if c.strip()], []
    for seed in range(1, a.seeds + 1):
        text = {kind: Run(kind, "text", seed) for kind in ("flat", "causal")}
        later = [
            Run(model, data, seed, text["causal" if model == "causal" else "flat"] if data == TEXT else None)
            for data in (TEXT, ARITHMETIC, "variants", "problems") for model in reversed(MODELS)
            if data != ARITHMETIC or model == "causal"
        ]
        later = [run for run in later if not chosen or any(run.name == c or run.name.startswith(c) for c in chosen)]
        runs += [run for run in text.values() if any(r.start is run and not r.done() for r in later)] + later
    return sorted(runs, key=lambda run: (not run.pretrains(), -run.steps()))


class Queue:
    """Runs in their order, each when what it starts from is there."""
    def __init__(self, runs):
        self.runs, self.changed, self.begun = runs, threading.Condition(), time.time()

    def take(self):
        with self.changed:
            while True:
                waiting = [run for run in self.runs if run.state == "waiting"]
                for run in waiting:
                    if run.start not in self.runs or run.start.state == "done":
                        run.state = "running"
                        return run
                    if run.start.state.startswith("failed"):
                        run.state = "failed: what it starts from failed"
                if not any(run.state == "waiting" for run in waiting):
                    return None
                self.changed.wait()

    def end(self, run, state):
        with self.changed:
            run.state = state
            self.changed.notify_all()
            for start in {run, run.start} - {None}:
                users = [r for r in self.runs if r.start is start]
                if state == "done" and all(r.state == "done" for r in users):
                    start.remove_checkpoints()
        shown = " | ".join(cells(run)) if state == "done" else f"{run.name} {state.splitlines()[0]}"
        print(f"{time.time() - self.begun:4.0f} s  {shown}", flush=True)

    def work(self, device):
        while run := self.take():
            try:
                run.make(device)
                self.end(run, "done")
            except Exception as error:  # the other runs continue
                self.end(run, f"failed: {error}")

    def table(self):
        print(
            f"\n{a.problems} problems, {a.gpus} GPUs, {a.together} runs at once on each, {time.time() - self.begun:.0f} s in all\n"
        )
        columns = [
            "data", "model", "exact match (95%)", *["lowest loss"] * a.best, "well-formed", "problems seen", "steps",
            "tokens/s", "seconds"
        ]
        print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
        order = ["text", *FILES]
        for run in sorted(self.runs, key=lambda r: (order.index(r.data), MODELS.index(r.model), r.seed)):
            if run.state == "done":
                print("| " + " | ".join(cells(run)) + " |")
        failed = [run for run in self.runs if run.state != "done"]  # or did not end
        for run in failed:
            print(f"\n{run.name}: {run.state}")
        sys.stdout.flush()
        return 1 if failed else 0


def main():
    for name in ("gsm8k/test.jsonl", "gsm8k_problems/train.jsonl", "gsm8k_variants/tokenizer.json",
                 "gsm8k_arithmetic/train.jsonl", "gsm8k_text/meta.json"):
        if not (DATA / name).exists():
            sys.exit(f"{DATA / name} is missing: how it is made says {p.prog} --help")
    OUT.mkdir(parents=True, exist_ok=True)
    if a.problems < PROBLEMS:
        lines = (DATA / "gsm8k_variants/test_requests.jsonl").read_text().splitlines(keepends=True)
        requests().write_text("".join(lines[:a.problems]))
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", ",".join(map(str, range(a.gpus)))).split(",")
    queue = Queue(wanted())

    def ended(*_):
        queue.table()
        sys.exit(1)

    signal.signal(signal.SIGTERM, ended)
    devices = visible[:a.gpus] * a.together if a.gpus else [None] * a.together
    workers = [threading.Thread(target=queue.work, args=(device,), daemon=True) for device in devices]
    with shared_devices(a.together if a.gpus else 1):
        for worker in workers:
            worker.start()
        for worker in workers:
            while worker.is_alive():
                worker.join(1)
    sys.exit(queue.table())


main()
