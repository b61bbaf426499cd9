"""Draws learning curves of runs with gnuplot: a metric of each evaluation against optimizer steps, or minutes.

    python3 docs/curves_figure.py docs/trm.svg --y 'validation loss' 'recursive=runs/trm:val/loss' 'plain=runs/plain:val/loss'
    python3 docs/curves_figure.py docs/arithmetic.svg --y 'exact match (%)' --times 100 --range 0:100 \\
        flat=runs/arithmetic_flat:val/exact_match HDP=runs/arithmetic_hdp:val/exact_match ...

A curve is NAME=RUN:METRIC; RUN is a run's folder, or a file of JSON lines with step and, for minutes, time or seconds.
Curves of one name are seeds and share a colour. --minutes: from a run's first line on.
"""
import argparse, json, pathlib, subprocess

COLOURS = ("#0b6e99", "#c05621", "#5a7d2a", "#7a4ea3", "#555555", "#b08900")
p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("output"); p.add_argument("curves", nargs="+"); p.add_argument("--y", required=True)
p.add_argument("--times", type=float, default=1); p.add_argument("--range", default="", help="of y, as 0:100")
p.add_argument("--key", default="right top"); p.add_argument("--minutes", action="store_true")
a = p.parse_args()


def curve(run, metric):
    path = pathlib.Path(run)
    records = [json.loads(line) for line in (path / "metrics.jsonl" if path.is_dir() else path).read_text().splitlines()]
    begin = records[0].get("time", 0)
    minutes = lambda r: (r["seconds"] if "seconds" in r else r["time"] - begin) / 60
    return [(minutes(r) if a.minutes else r["step"], a.times * r[metric]) for r in records if metric in r]


def quoted(text):
    """As gnuplot's strings, in which two quotes are one."""
    return "'" + text.replace("'", "''") + "'"


plots, data, names = [], [], []
for text in a.curves:
    name, _, rest = text.partition("=")
    run, _, metric = rest.partition(":")
    title = "notitle" if name in names else f"title {quoted(name)}"
    names += [] if name in names else [name]
    plots.append(f"'-' with linespoints linecolor rgb '{COLOURS[names.index(name)]}' linewidth 1.5 pointtype 7 pointsize 0.4 {title}")
    data.append("\n".join(f"{x} {y}" for x, y in curve(run, metric)) + "\ne")
commands = f"""set terminal svg size 560,320 font 'sans-serif,12' background 'white'
set output {quoted(a.output)}
set xlabel '{"minutes" if a.minutes else "optimizer steps"}'
set ylabel {quoted(a.y)}
{f"set yrange [{a.range}]" if a.range else ""}
set key {a.key}
set grid linecolor rgb '#dddddd'
plot {", ".join(plots)}
""" + "\n".join(data) + "\n"
subprocess.run(["gnuplot"], input=commands, text=True, check=True)
