"""Tokens and time to the AdamW deck's final loss: bench/recipe.in, whole and less one choice each, over seeds.

    python3 bench/recipe.py --data data/openwebtext [--trainer ./trainer] [--tokens 9.2e6] [--seeds 3] [--together 4]
                            [--only full,adamw] [--out runs/recipe] [--set group.name=value ...]

Each run takes --tokens training tokens with a schedule of its own; those named full/2 and full/4 take a half and a
quarter of them. Prints one table, a row per variant: final validation loss (mean over seeds, 95% interval of the mean),
and of the tokens and seconds at which the loss first reached the mean final loss of the AdamW deck, interpolated
between evaluations: mean over seeds, and the AdamW deck's over it. Runs share the device, --together at once, so
seconds compare within the table only. --adamw-lr: rates of the AdamW deck, of which the best one counts. Every run keeps
its deck and metrics.jsonl under --out (files that exist are not run again); checkpoints are removed. Standard library
only. On a CPU, at toy size, with ./prepare cpp-headers:

    python3 bench/recipe.py --data data/cpp_headers --tokens 2e5 --seeds 1 --together 2 --threads 1 --out runs/toy \\
        --set precision.compute=fp32 --set model.vocabulary=1024 --set data.tokenizer=data/cpp_headers \\
        --set model.hidden=64 --set model.heads=4 --set model.ffn_hidden=256 --set model.context=64 --set batch.per_rank=4 \\
        --set batch.global=8 --set evaluation.rows=32
"""
import argparse, functools, json, math, pathlib, re, statistics, sys, time

from together import all_of, interval, train

HERE = pathlib.Path(__file__).parent
# What the AdamW deck of the same shape has instead, as input/h100_gpt350m.in.
ADAMW = {
    "optimizer.kind": "adamw", "optimizer.matrix_lr": 0, "optimizer.embed_lr": 0, "optimizer.head_lr": 0,
    "optimizer.betas": "0.9,0.95", "optimizer.eps": 1e-8, "optimizer.weight_decay": 0.1
}
PLAIN = {"model.embed_std": 0, "model.head_std": 0, "model.init_zero_residual": "F"}
LESS = {
    "muon": ADAMW,
    "relu2": {"model.activation": "swiglu", "model.ffn_hidden": 0},  # 0: as many parameters
    "qk_norm": {"model.qk_norm": "F"},
    "untied head": {"model.tie_embeddings": "T", "model.head_std": 0, "model.embed_std": 0.02},
    "zero residual": {"model.init_zero_residual": "F"},
    "logit_cap": {"model.logit_cap": 0},
    "skips": {"model.skip_connections": "F"},
    "shortcut": {"model.input_shortcut": "F"},
    "value embeddings": {"model.value_embeddings": 0},
    "window": {"model.window_start": 0, "model.window_steps": 0},
    "batch growth": {"batch.global_start": 0, "batch.growth_steps": 0},
    "trapezoid": {"optimizer.schedule": "cosine"},
}
WARM = 0.05  # fraction of the steps, of the AdamW deck
GROWS = 0.4  # fraction of the steps over which the batch grows
WIDENS = 0.6  # the same of the window

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("--data", required=True)
p.add_argument("--trainer", default="./trainer")
p.add_argument("--tokens", type=float, default=9.2e6)
p.add_argument("--seeds", type=int, default=3)
p.add_argument("--together", type=int, default=4)
p.add_argument("--threads", type=int, default=2)
p.add_argument("--evaluations", type=int, default=10)
p.add_argument("--only", default="", help="variants, by commas")
p.add_argument("--adamw-lr", default="2e-3,4e-3,8e-3")
p.add_argument("--out", default="runs/recipe")
p.add_argument("--set", action="append", default=[])
a = p.parse_args()


def variants():
    """Name -> (fraction of the tokens, settings)."""
    base = dict(ADAMW, **PLAIN)
    for choice in LESS:
        if choice != "muon":
            base.update(LESS[choice])
    base["model.embed_std"] = 0
    runs = {
        f"adamw {lr}": (1, dict(base, **{"optimizer.lr": lr, "optimizer.min_lr": float(lr) / 10, "warm": WARM}))
        for lr in a.adamw_lr.split(",")
    }
    runs["full"], runs["full/2"], runs["full/4"] = (1, {}), (0.5, {}), (0.25, {})
    for choice, settings in LESS.items():
        extra = {"optimizer.lr": 2e-3, "warm": WARM} if choice == "muon" else {}
        runs[f"less {choice}"] = (1, dict(settings, **extra))
    chosen = [c for c in a.only.split(",") if c]
    return {
        name: v for name, v in runs.items() if not chosen or any(name == c or name.startswith(c + " ") for c in chosen)
    }


def numbers():
    """The deck's numbers that the steps depend on."""
    deck = (HERE / "recipe.in").read_text()
    found = {}
    for group, name in (("model", "context"), ("batch", "global"), ("batch", "global_start")):
        found[f"{group}.{name}"] = int(re.search(rf"^  {name} +=\s*(\d+)", deck, re.M).group(1))
    found.update((k, int(v)) for k, v in (s.split("=", 1) for s in a.set) if k in found)
    return found


def settings_of(fraction, given):
    """All settings of a variant: those given, and steps for its tokens."""
    n = numbers()
    own = dict(s.split("=", 1) for s in a.set)
    size, grows = n["batch.global"], "batch.global_start" not in given
    if grows and "batch.global_start" not in own:
        own["batch.global_start"] = n["batch.global_start"] = size // 2
    rows = fraction * a.tokens / n["model.context"]
    steps, start = math.ceil(rows / size), n["batch.global_start"]
    if grows:  # the growing part has fewer rows: more steps
        while rows_in(steps, round(GROWS * steps), start, size) < rows:
            steps += 1
    result = {"data.train": f"{a.data}/train_*.bin", "data.valid": f"{a.data}/valid_*.bin", **own, **given}
    result["campaign.max_steps"] = steps
    result["optimizer.warmup_steps"] = round(result.pop("warm", 0) * steps)
    if grows:
        result["batch.growth_steps"] = max(1, round(GROWS * steps))
    if "model.window_start" not in given:
        result["model.window_start"] = max(16, n["model.context"] // 4)
        result["model.window_steps"] = max(1, round(WIDENS * steps))
    result["evaluation.every"] = max(1, steps // a.evaluations)
    return result


def rows_in(steps, growth, start, last):
    """Rows of the first steps of a batch that grows by multiples of `start` (lib/data/step_rows.hpp)."""
    more = last // start - 1
    return sum(start * (1 + s * more // growth) if s < growth else last for s in range(steps))


def run(name, seed, fraction, given):
    directory = pathlib.Path(a.out) / f"{name.replace(' ', '_').replace('/', '_of_')}_{seed}"
    settings = dict(settings_of(fraction, given), **{"campaign.seed": seed})
    return curve(train(a.trainer, HERE / "recipe.in", directory, settings, threads=a.threads))


def curve(metrics):
    """[(tokens, seconds since the first step, validation loss)] of a run."""
    points, tokens, start = [], 0, None
    lines = [json.loads(line) for line in open(metrics)]
    at = {line["step"]: line["train/tokens"] for line in lines if "train/tokens" in line}
    for line in lines:
        if "train/loss" in line and start is None:
            start = line["time"]
        if "val/loss" in line and line["val/loss"] is not None and line["step"] > 0:
            earlier = [step for step in at if step <= line["step"]]
            tokens = at[max(earlier)] if earlier else 0
            points.append((tokens, line["time"] - (start or line["time"]), line["val/loss"]))
    return points


def reached(points, loss):
    """(tokens, seconds) at which a curve first reaches the loss; None: never."""
    for before, after in zip([None] + points, points):
        if after[2] <= loss:
            if before is None or before[2] <= after[2]:
                return after[:2]
            share = (before[2] - loss) / (before[2] - after[2])
            return tuple(x + share * (y - x) for x, y in zip(before[:2], after[:2]))
    return None


def main():
    begun, runs, curves = time.time(), variants(), {}
    pathlib.Path(a.out).mkdir(parents=True, exist_ok=True)
    jobs = {(name, seed): functools.partial(run, name, seed, *v) for seed in range(1, a.seeds + 1)
            for name, v in runs.items()}
    for (name, seed), of in all_of(jobs, a.together).items():
        curves.setdefault(name, []).append(of)
    final = {name: [c[-1][2] for c in of] for name, of in curves.items()}
    peers = [name for name in final if name.startswith("adamw")]
    if not peers:
        sys.exit("no AdamW deck was run: no loss to reach")
    best = min(peers, key=lambda name: statistics.mean(final[name]))
    target = statistics.mean(final[best])
    cost = {}
    for name, of in curves.items():
        hits = [reached(c, target) for c in of]
        cost[name] = tuple(statistics.mean(x) for x in zip(*hits)) if all(hits) else None
    whole = tuple(statistics.mean(x) for x in zip(*(c[-1][:2] for c in curves[best])))
    print(f"loss to reach: {target:.4f}, the final one of '{best}' ({whole[0] / 1e6:.2f} M tokens, {whole[1]:.1f} s), "
          f"{a.seeds} seeds, {a.together} runs at once, {time.time() - begun:.0f} s in all\n")
    print(
        "| variant | tokens | final loss | interval | tokens to reach it | ratio | seconds | ratio |\n|---|---|---|---|---|---|---|---|"
    )
    for name in runs:
        tokens = statistics.mean(c[-1][0] for c in curves[name])
        hit = cost[name]
        row = [name, f"{tokens / 1e6:.2f} M", f"{statistics.mean(final[name]):.4f}", f"{interval(final[name]):.4f}"]
        row += [f"{hit[0] / 1e6:.2f} M", f"{whole[0] / hit[0]:.2f}", f"{hit[1]:.1f}", f"{whole[1] / hit[1]:.2f}"
               ] if hit else ["-"] * 4
        print("| " + " | ".join(row) + " |")


main()
