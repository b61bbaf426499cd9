"""Forms of a recursive model compared with plain GPTs of equal parameters and of equal compute: bench/refinement.in, one table.

    python3 bench/refinement.py --data data/text4096 [--trainer ./trainer] [--steps 400] [--seeds 1] [--together 8]
                                [--only 'stack 3 aggressive; plain'] [--out runs/refinement] [--set group.name=value ...]

A form is recursion x detach_from x preset, or 'base B': answer s weighs B^s, without reward; 'alone' scores the last
answer only. 'stack 3 alone, S x P' takes S answers of P passes, twelve in all. All runs see the same tokens. The plain
GPT of equal compute is wider and deeper: as many block FLOPs per token as twelve passes of the recursive blocks; the
FLOPs that --dry-run counts are in the table. Each row: validation losses of the answers, means over seeds; refinement,
(first - last) / first; whether they are in order; gradient norm, median; seconds. Runs share the device, --together at
once, so seconds compare within the table only. Runs that are done are not repeated. Standard library only. On a CPU,
at toy size, with ./prepare cpp-headers:

    python3 bench/refinement.py --data data/cpp_headers --steps 20 --together 2 --threads 1 --out runs/toy \\
        --only 'stack 0 aggressive; plain' --set precision.compute=fp32 --set model.vocabulary=1024 --set model.hidden=64 \\
        --set model.layers=1 --set model.context=64 --set batch.per_rank=4 --set batch.global=8 --set evaluation.rows=16
"""
import argparse, functools, json, math, pathlib, re, statistics, time

from together import all_of, as_options, call, interval, train

DECK = pathlib.Path(__file__).parent / "refinement.in"
# The guide's blocks have residuals of their own, start from the input, and add rewards up.
BLOCK = {"model.recursion": "block", "model.initial_states": "input", "objective.reward_over": "sum"}


def weighed(base):
    return {"objective.preset": "none", "objective.weight_base": base, "objective.reward": 0}


PLAIN = {"objective.kind": "causal", "objective.preset": "none", "model.inner_steps": 0}

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("--data", required=True)
p.add_argument("--trainer", default="./trainer")
p.add_argument("--steps", type=int, default=400)
p.add_argument("--seeds", type=int, default=1)
p.add_argument("--together", type=int, default=8)
p.add_argument("--threads", type=int, default=2)
p.add_argument("--only", default="", help="forms, or how their names begin, by semicolons")
p.add_argument("--out", default="runs/refinement")
p.add_argument("--wide", default="12,1024", help="layers and width of the plain GPT of equal compute")
p.add_argument("--set", action="append", default=[])
a = p.parse_args()


def forms():
    layers, width = a.wide.split(",")
    found = {}
    for name, settings in (("stack", {}), ("block", BLOCK)):
        for detach in range(4):
            for preset in ("aggressive", "extreme"):
                found[f"{name} {detach} {preset}"] = dict(
                    settings, **{"objective.detach_from": detach, "objective.preset": preset})
        for base in (10, 15, 20, 30, 100, 1000):
            found[f"{name} 3 base {base}"] = dict(settings, **weighed(base), **{"objective.detach_from": 3})
        found[f"{name} 3 alone"] = dict(settings, **weighed(1e4), **{"objective.detach_from": 3})
    for answers in (2, 3, 6):
        found[f"stack 3 alone, {answers} x {12 // answers}"] = dict(
            weighed(1e4), **{
                "objective.detach_from": answers - 1, "objective.supervision_steps": answers,
                "model.inner_steps": 12 // answers - 1
            })
    found["plain, equal parameters"] = PLAIN
    found["plain, equal compute"] = dict(PLAIN, **{"model.layers": layers, "model.hidden": width})
    chosen = [c.strip() for c in a.only.split(";") if c]
    return {
        name: s for name, s in found.items()
        if not chosen or any(name == c or c not in found and name.startswith(c) for c in chosen)
    }


def run(form, seed, settings):
    """Validation losses of the answers (nan: it diverged), median gradient norm, seconds of training."""
    given = {
        "data.train": f"{a.data}/train_*.bin", "data.valid": f"{a.data}/valid_*.bin", "data.tokenizer": a.data,
        **dict(s.split("=", 1) for s in a.set), **settings, "campaign.max_steps": a.steps, "campaign.seed": seed
    }
    directory = pathlib.Path(a.out) / f"{re.sub('[ ,]+', '_', form)}_{seed}"
    lines = [
        json.loads(line) for line in open(train(a.trainer, DECK, directory, given, ends=(0, 76, 77), threads=a.threads))
    ]
    last = [line for line in lines if any(key.startswith("val/loss") for key in line)][-1]
    answers = sorted(key for key in last if key.startswith("val/loss_step_"))
    steps = [line for line in lines if "train/loss" in line]
    ended = last["step"] == a.steps
    return ([last[key] if ended else math.nan for key in answers or ["val/loss"]],
            statistics.median(s["train/grad_norm"] for s in steps), steps[-1]["time"] - steps[0]["time"])


def flops(settings):
    printed = call(
        [a.trainer,
         str(DECK), "--dry-run", *as_options({**dict(s.split("=", 1) for s in a.set), **settings})])
    return re.search(r"FLOP per token\s+(\S+)", printed).group(1)


def main():
    begun, chosen = time.time(), forms()
    jobs = {(form, seed): functools.partial(run, form, seed, s) for seed in range(1, a.seeds + 1)
            for form, s in chosen.items()}
    done = all_of(jobs, a.together)
    print(f"{a.steps} steps, {a.seeds} seeds, {a.together} runs at once, {time.time() - begun:.0f} s in all\n")
    print(
        "| form | FLOP per token | losses of the answers | last, interval | refinement | in order | norm | seconds |\n|---|---|---|---|---|---|---|---|"
    )
    for form, settings in chosen.items():
        of = [done[form, seed] for seed in range(1, a.seeds + 1)]
        losses = [statistics.mean(x) for x in zip(*(answers for answers, _, _ in of))]
        ordered = all(x > y for x, y in zip(losses, losses[1:]))
        last = [answers[-1] for answers, _, _ in of]
        row = [
            form,
            flops(settings), ", ".join(f"{x:.3f}" for x in losses),
            f"{statistics.mean(last):.3f} ± {interval(last):.3f}",
            f"{100 * (1 - losses[-1] / losses[0]):.1f}%" if len(losses) > 1 else "",
            ("yes" if ordered else "no") if len(losses) > 1 else "",
            f"{statistics.mean(norm for _, norm, _ in of):.2f}", f"{statistics.mean(s for _, _, s in of):.0f}"
        ]
        print("| " + " | ".join(row) + " |")


main()
