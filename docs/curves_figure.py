"""Draws learning curves with gnuplot: docs/NAME.svg from the points in docs/curves/NAME.csv.

    python3 docs/curves_figure.py docs/curves/trm.csv                       # the figure, from the file's points
    python3 docs/curves_figure.py docs/curves/*.csv                         # all figures
    python3 docs/curves_figure.py docs/curves/trm.csv \\
        'phase one, last answer=runs/h100x8_trm_fast:val/loss_step_3' ...   # the points first, from runs

A file begins with lines "# option: value": title, x (the label of the axis; steps unless it begins with minutes or tokens), y,
range of y (e.g. 2.5:7), key (gnuplot's place of the legend), size (pixels, e.g. 640,380), logy (any value: logarithmic y; what
is below the range is drawn on the axis), unit (a factor of x), times (a factor of y). Lines "# note:" say where the points come from. Then come rows curve,seed,x,y; the seeds of a curve share a color.

A curve from a run is NAME=RUN:METRIC; RUN is a run's directory, or a file of JSON lines with step and, for minutes, time or seconds.
Curves of one name are seeds. Minutes count from a run's first line, tokens are those of train/tokens.
"""
import csv, json, pathlib, subprocess, sys

COLORS = ("#0b6e99", "#c05621", "#5a7d2a", "#7a4ea3", "#555555", "#b08900")


def read(path):
    """Options, notes and rows of a file of points."""
    lines = path.read_text().splitlines()
    head = [line[1:].strip().partition(": ") for line in lines if line.startswith("#")]
    options = {name: value for name, _, value in head if name != "note"}
    rows = list(csv.reader(line for line in lines if line and not line.startswith("#")))[1:]
    return options, [value for name, _, value in head if name == "note"
                    ], [(c, int(s), float(x), float(y)) for c, s, x, y in rows]


def of_runs(options, curves):
    """Rows of runs, named NAME=RUN:METRIC."""
    rows, seeds = [], {}
    for text in curves:
        name, _, rest = text.partition("=")
        run, _, metric = rest.partition(":")
        seeds[name] = seeds.get(name, 0) + 1
        rows += [(name, seeds[name], x, y) for x, y in points(options, pathlib.Path(run), metric)]
    return rows


def points(options, path, metric):
    records = [
        json.loads(line) for line in (path / "metrics.jsonl" if path.is_dir() else path).read_text().splitlines()
    ]
    begin, tokens = records[0].get("time", 0), 0
    for record in records:
        tokens = record.get("train/tokens", tokens)
        if metric in record:
            minutes = (record["seconds"] if "seconds" in record else record.get("time", 0) - begin) / 60
            x = {"minutes": minutes, "tokens": tokens}.get(options["x"].split()[0].strip(","), record["step"])
            yield float(options.get("unit", 1)) * x, float(options.get("times", 1)) * record[metric]


def write(path, options, notes, rows):
    head = [f"# {name}: {value}" for name, value in options.items()] + [f"# note: {text}" for text in notes]
    with path.open("w") as out:
        print(*head, "curve,seed,x,y", sep="\n", file=out)
        csv.writer(out, lineterminator="\n").writerows((c, s, f"{x:.6g}", f"{y:.5g}") for c, s, x, y in rows)


def quoted(text):
    """As gnuplot's strings, in which two quotes are one."""
    return "'" + text.replace("'", "''") + "'"


def draw(output, options, rows):
    names = list(dict.fromkeys(row[0] for row in rows))
    least = float(options["range"].split(":")[0]) if "logy" in options else float("-inf")
    plots, data = [], []
    for name, seed in dict.fromkeys(row[:2] for row in rows):
        title = f"title {quoted(name)}" if seed == 1 else "notitle"
        color = COLORS[names.index(name)]
        plots.append(f"'-' with linespoints linecolor rgb '{color}' linewidth 1.5 pointtype 7 pointsize 0.4 {title}")
        data.append("\n".join(f"{x} {max(y, least)}" for c, s, x, y in rows if (c, s) == (name, seed)) + "\ne")
    commands = f"""set terminal svg size {options.get('size', '640,380')} font 'sans-serif,12' background 'white'
set output {quoted(str(output))}
set title {quoted(options["title"])} font 'sans-serif,14'
set xrange [0:*]
set xlabel {quoted(options["x"])}
set ylabel {quoted(options["y"])}
{f"set yrange [{options['range']}]" if "range" in options else ""}
{"set logscale y" if "logy" in options else ""}
set key {options.get("key", "right top")}
set grid linecolor rgb '#dddddd'
plot {", ".join(plots)}
""" + "\n".join(data) + "\n"
    subprocess.run(["gnuplot"], input=commands, text=True, check=True)
    # What screen readers say, instead of the program's name.
    output.write_text(output.read_text().replace("<title>Gnuplot</title>", f"<title>{options['title']}</title>", 1))


def main():
    files = [pathlib.Path(text) for text in sys.argv[1:] if text.endswith(".csv")]
    curves = [text for text in sys.argv[1:] if not text.endswith(".csv")]
    if not files or (curves and len(files) != 1) or any("=" not in text for text in curves):
        sys.exit(__doc__)
    for path in files:
        options, notes, rows = read(path)
        if curves:
            rows, notes = of_runs(options, curves), []
            write(path, options, notes, rows)
        draw(path.parent.parent / f"{path.stem}.svg", options, rows)


main()
