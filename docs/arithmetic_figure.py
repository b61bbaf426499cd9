"""Draws docs/arithmetic.svg with gnuplot: exact match during training against optimizer steps, a line per run.

    python3 docs/arithmetic_figure.py docs/arithmetic.svg flat=runs/arithmetic_flat HDP=runs/arithmetic_hdp ...

Runs of the same name are seeds and share a colour.
"""
import json, pathlib, subprocess, sys


def curve(run):
    """(step, share of problems solved) of each evaluation."""
    records = map(json.loads, (pathlib.Path(run) / "metrics.jsonl").read_text().splitlines())
    return [(r["step"], r["val/exact_match"]) for r in records if "val/exact_match" in r]


output, *runs = sys.argv[1:]
runs = [run.split("=", 1) for run in runs]
names = list(dict.fromkeys(name for name, _ in runs))
colours = {name: colour for name, colour in zip(names, ("#0b6e99", "#c05621", "#5a7d2a", "#7a4ea3"))}
plots, data = [], []
for i, (name, run) in enumerate(runs):
    first = name not in [n for n, _ in runs[:i]]
    plots.append(f"'-' with linespoints linecolor rgb '{colours[name]}' linewidth 1.5 pointtype 7 pointsize 0.4 "
                 + (f"title '{name}'" if first else "notitle"))
    data.append("\n".join(f"{step} {100 * share}" for step, share in curve(run)) + "\ne")
commands = f"""set terminal svg size 560,320 font 'sans-serif,12' background 'white'
set output '{output}'
set xlabel 'optimizer steps'
set ylabel 'exact match (%)'
set yrange [0:100]
set key left top
set grid linecolor rgb '#dddddd'
plot {", ".join(plots)}
""" + "\n".join(data) + "\n"
subprocess.run(["gnuplot"], input=commands, text=True, check=True)
