"""Composes docs/quickstart.svg from a run's own report: two of its plots and the memory plan of its log.

    python3 docs/quickstart_figure.py runs/quickstart docs/quickstart.svg
"""
import pathlib, re, sys
from xml.sax.saxutils import escape

PLAN_WIDTH = 310
TERMS = ("parameter memory", "gradients", "optimizer states", "activations", "workspace", "data", "key-value cache")
SIZE = r" {2,}([\d.]+ [KMG]?i?B)"


def size(svg):
    """Width and height of a plot, which the trainer states as its viewBox."""
    return tuple(float(x) for x in re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg).groups())


def panel(run, name):
    """The plot without its own head; ids get the plot's name, since the panels share a document."""
    text = (run / f"{name}.svg").read_text()
    body = text[text.index(">", text.index("<svg")) + 1:text.rindex("</svg>")]
    body = re.sub(r"<title>.*?</title>|<desc>.*?</desc>|<style>.*?</style>", "", body, flags=re.S)
    for ident in set(re.findall(r"id=[\"']([^\"']+)[\"']", body)):
        body = re.sub(rf"([\"'#]){re.escape(ident)}(?=[\"'])", rf"\g<1>{name}_{ident}", body)
    return (*size(text), re.sub(r"\s*\n", "\n", body))


def plan_panel(run):
    """The plan at the head of the log, as the run printed it."""
    log = (run / "log.txt").read_text()
    rows = [(term, re.search(rf"^ +{term}{SIZE}", log, re.M).group(1)) for term in TERMS]
    rows.append(("sum per rank", re.search(rf"^ +memory per rank{SIZE}", log, re.M).group(1)))
    lines = [
        f'<text x="{PLAN_WIDTH / 2:g}" y="40" text-anchor="middle" font-size="14">Memory plan (--dry-run), one rank</text>'
    ]
    for i, (term, amount) in enumerate(rows):
        y = 78 + 23 * i + (8 if i == len(TERMS) else 0)
        lines.append(f'<text x="20" y="{y}" font-size="13">{escape(term)}</text>'
                     f'<text x="{PLAN_WIDTH - 20}" y="{y}" font-size="13" text-anchor="end">{escape(amount)}</text>')
    rule = 78 + 23 * len(TERMS) - 12
    lines.append(f'<path d="M20,{rule} L{PLAN_WIDTH - 20},{rule}" stroke="rgb(  0,   0,   0)" fill="none"/>')
    return PLAN_WIDTH, rule + 60, "\n".join(lines)


run, output = map(pathlib.Path, sys.argv[1:3])
style = re.search(r"<style>.*?</style>", (run / "loss.svg").read_text(), re.S).group(0)
panels = [panel(run, "loss"), panel(run, "exact_match"), plan_panel(run)]
placed, x = [], 0
for width, height, body in panels:
    placed.append(
        f'<svg x="{x:g}" y="0" width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}">\n{body}\n</svg>'
    )
    x += width
head = ('<svg role="img" aria-label="Quickstart: loss, problems solved, memory plan" '
        f'viewBox="0 0 {x:g} {max(height for _, height, _ in panels):g}"\n xmlns="http://www.w3.org/2000/svg" '
        'xmlns:xlink="http://www.w3.org/1999/xlink">')
output.write_text("\n".join([head, style, *placed, "</svg>", ""]))
