"""Draws the figures of methods: docs/hdp.svg and the SVG files of docs/campaigns/. Needs the standard library only.

    python3 docs/campaigns/figures.py
"""
import pathlib
from xml.sax.saxutils import escape

HERE = pathlib.Path(__file__).resolve().parent
GRAY, ORANGE, BLUE, GREEN, INK = "#6b7280", "#c05621", "#0b6e99", "#5a7d2a", "#1f2933"
PALE = {GRAY: "#e5e7eb", ORANGE: "#f8dfce", BLUE: "#d2e8f1", GREEN: "#e2ecd5", INK: "#ffffff"}


class Drawing:
    def __init__(self, width, height, label):
        self.head = (
            f'<svg role="img" aria-label="{escape(label)}" viewBox="0 0 {width} {height}" width="{width}" '
            'xmlns="http://www.w3.org/2000/svg" font-family="sans-serif" font-size="12">\n<defs><marker id="tip" '
            'viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">'
            f'<path d="M0,0 L8,4 L0,8 z" fill="{INK}"/></marker></defs>\n<rect width="100%" height="100%" fill="white"/>'
        )
        self.body = []

    def rect(self, x, y, w, h, color, fill=None, radius=2):
        self.body.append(
            f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="{radius}" stroke="{color}" fill="{fill or PALE[color]}"/>'
        )

    def text(self, x, y, words, size=12, anchor="start", color=INK, bold=False):
        weight = ' font-weight="bold"' if bold else ""
        self.body.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" fill="{color}"{weight}>{escape(words)}</text>'
        )

    def box(self, x, y, w, h, lines, color, size=12):
        self.rect(x, y, w, h, color, radius=4)
        top = y + h / 2 - (len(lines) - 1) * (size + 3) / 2 + size * 0.35
        for i, line in enumerate(lines):
            self.text(x + w / 2, top + i * (size + 3), line, size, "middle", bold=i == 0 and len(lines) > 1)

    def path(self, d, color=INK, arrow=True, dashed=False, width=1.4):
        self.body.append(f'<path d="{d}" fill="none" stroke="{color}" stroke-width="{width}"' +
                         (' marker-end="url(#tip)"' if arrow else "") + (' stroke-dasharray="4 3"' if dashed else "") +
                         "/>")

    def save(self, path):
        path.write_text("\n".join([self.head, *self.body, "</svg>"]) + "\n")


# ---- block diffusion ----


def cell(d, x, y, w, h, token, color):
    """A token, or a mask token if it is None."""
    d.rect(x, y, w, h, color, None if token is not None else "#4b5563")
    if token is None:
        d.text(x + w / 2, y + h / 2 + 4, "?", 12, "middle", "white")
    else:
        d.text(x + w / 2, y + h / 2 + 4, token, 10 if len(token) < 5 else 8.5, "middle")


def two_copies(d, x, y, width, prefix, blocks):
    """Clean and noisy copy of a sample. `prefix`: label or None; blocks: color, tokens, masked places, time."""
    side, h = 34, 26
    left = x + (width if prefix else 0)
    if prefix:
        d.box(x, y, width - 10, h, [prefix], GRAY, 11)
    at = left
    for color, tokens, masked, t in blocks:
        for i, token in enumerate(tokens):
            cell(d, at + i * side, y, side - 2, h, token, color)
            cell(d, at + i * side, y + 44, side - 2, h, None if i in masked else token, color)
        w = len(tokens) * side - 2
        d.text(at + w / 2, y + 86, f"t = {t:.2f}", 11, "middle", bold=True)
        d.text(at + w / 2, y + 101, f"weight 1/t = {1 / t:.1f}", 10, "middle", GRAY)
        at += w + 8
    return left, at - 8


def attention(d, x, y, names, clean, side=24):
    """Which blocks attend to which: names and colors of all, of which `clean` first ones are the clean copies after a prefix."""
    count, first = len(names), 1 if names[0][1] == GRAY else 0
    noisy = first + clean
    for q in range(count):
        d.text(x - 8, y + q * side + side / 2 + 4, names[q][0], 11, "end", names[q][1])
        d.text(x + q * side + side / 2, y - 7, names[q][0], 11, "middle", names[q][1])
        for k in range(count):
            if q < noisy:  # the prefix, or a clean block: all up to itself
                seen = k <= q
            else:  # a noisy block: the prefix, earlier clean blocks, itself
                seen = k < q - clean or k == q
            d.rect(x + k * side, y + q * side, side - 2, side - 2, names[k][1] if seen else "#e5e7eb",
                   names[k][1] if seen else "white", 1)
    return count * side


def unmasking(d, x, y, states, color, notes):
    """Passes over one block, from all masks to none."""
    side, h = 34, 24
    for row, (state, note) in enumerate(zip(states, notes)):
        for i, token in enumerate(state):
            cell(d, x + i * side, y + row * 31, side - 2, h, token, color)
        d.text(x + len(state) * side + 8, y + row * 31 + 16, note, 11)
    return len(states) * 31


def hdp():
    d = Drawing(970, 590, "HDP: two copies of a sample, attention by blocks, order of sampling")
    d.text(20, 26, "Training: a sample is laid out twice, and each block of the noisy copy has its own time t", 15,
           bold=True)
    plan, execution = (ORANGE, "plan"), (BLUE, "execution")
    blocks = [(ORANGE, ["_", "-", "_", "="], {1, 3}, 0.52), (ORANGE, ["_", "lemons", ".", "end"], {0, 1, 3}, 0.81),
              (BLUE, ["11", "-", "4", "="], {2}, 0.23), (BLUE, ["7", "lemons", ".", "line"], {0, 1, 2, 3}, 0.94),
              (BLUE, ["####", "7", "end", "end"], {1, 2}, 0.47)]
    d.text(210, 52, "plan, blocks of 4", 12, color=ORANGE, bold=True)
    d.text(494, 52, "execution, blocks of 4", 12, color=BLUE, bold=True)
    left, right = two_copies(d, 20, 62, 188, "Sara has 11 lemons. She ...", blocks)
    d.text(192, 123, "noisy copy; ? is the mask token", 11, "end")
    d.text(20, 104, "question: clean, given", 11, color=GRAY)
    d.text(right + 8, 79, "clean", 11)
    d.text(right + 8, 123, "noisy", 11)
    d.text(
        20, 188,
        "Learned: the masked tokens. Loss of a block: 1/t times the sum of -log p(token). The plan's and the execution's mean losses "
        "have their own weights.", 12)

    y = 262
    d.text(20, 226, "Attention by blocks: row attends to column", 15, bold=True)
    names = [("Q", GRAY)] + [(f"P{i}", ORANGE) for i in (1, 2)] + [(f"E{i}", BLUE) for i in (1, 2, 3)]
    names += [(f"p{i}", ORANGE) for i in (1, 2)] + [(f"e{i}", BLUE) for i in (1, 2, 3)]
    size = attention(d, 56, y, names, 5)
    d.text(56 + size + 14, y + 3 * 24, "clean copies: question", 11)
    d.text(56 + size + 14, y + 3 * 24 + 15, "and all blocks up to", 11)
    d.text(56 + size + 14, y + 3 * 24 + 30, "their own", 11)
    d.text(56 + size + 14, y + 8 * 24, "noisy copies: question,", 11)
    d.text(56 + size + 14, y + 8 * 24 + 15, "earlier clean blocks,", 11)
    d.text(56 + size + 14, y + 8 * 24 + 30, "their own noisy block", 11)
    d.text(20, y + size + 24, "Q question; P, E clean blocks of plan and execution; p, e their noisy copies.", 11,
           color=GRAY)
    d.text(20, y + size + 40, "Within a block attention runs both ways. No noisy block attends to another.", 11,
           color=GRAY)

    x = 510
    d.text(x, 226, "Sampling: plan first, block after block (first hitting)", 15, bold=True)
    states = [[None] * 4, [None, "-", None, None], ["_", "-", None, None], ["_", "-", None, "="], ["_", "-", "_", "="]]
    notes = [
        "block p1 starts as masks", "pass 1: one token, place drawn at random", "pass 2: the drawn token stays",
        "pass 3", "pass 4: finished, keys and values are cached"
    ]
    down = unmasking(d, x, 250, states, ORANGE, notes)
    y = 250 + down + 24
    for i, (name, color) in enumerate([("question", GRAY), ("p1", ORANGE), ("p2", ORANGE), ("e1", BLUE), ("e2", BLUE),
                                       ("e3", BLUE)]):
        w, at = (76, x) if i == 0 else (46, x + 90 + (i - 1) * 64)
        d.rect(at, y, w, 28, color, radius=4)
        d.text(at + w / 2, y + 18, name, 12, "middle")
        if i < 5:
            d.path(f"M{at + w + 1},{y + 14} L{at + w + (13 if i == 0 else 17)},{y + 14}")
    for i, line in enumerate([
            "The plan ends at its end token; then the execution starts. At test",
            "time only the question is given. The answer is the number after ####.",
            "The other method, ddpm, may unmask several tokens per pass."
    ]):
        d.text(x, y + 54 + 17 * i, line, 12)
    d.save(HERE.parent / "hdp.svg")


def bd3lm():
    d = Drawing(760, 416, "BD3-LM: two copies of a text, attention by blocks")
    d.text(20, 26, "A text, clean and noisy: each block of the noisy copy has its own time t", 15, bold=True)
    blocks = [(BLUE, ["The", "quick", "brown", "fox"], {1}, 0.30),
              (BLUE, ["jumps", "over", "the", "lazy"], {0, 1, 3}, 0.74),
              (BLUE, ["dog", "and", "runs", "away"], {2, 3}, 0.55)]
    left, right = two_copies(d, 110, 44, 0, None, blocks)
    d.text(100, 61, "clean", 12, "end")
    d.text(100, 105, "noisy", 12, "end")
    d.text(right + 14, 66, "both copies of a token have", 11)
    d.text(right + 14, 81, "the same position number", 11)
    d.text(right + 14, 105, "? is the mask token: learned", 11)
    d.text(right + 14, 120, "from the noisy copy only", 11)
    d.text(20, 190, "Attention by blocks: row attends to column", 15, bold=True)
    names = [(f"B{i}", BLUE) for i in (1, 2, 3)] + [(f"b{i}", ORANGE) for i in (1, 2, 3)]
    size = attention(d, 60, 226, names, 3, 30)
    x = 60 + size + 30
    for i, line in enumerate([
            "B: clean blocks. Each attends to all blocks up to itself.",
            "b: noisy blocks. Each attends to the clean blocks before it and to itself.",
            "Within a block attention runs both ways.", "",
            "Block length 1: a causal GPT's likelihood, at twice its positions.",
            "Block length = context: one diffusion over the whole text.",
            "Between them: blocks are autoregressive, tokens within a block are",
            "drawn together, or one by one in random order."
    ]):
        d.text(x, 246 + 18 * i, line, 12)
    d.save(HERE / "bd3lm.svg")


# ---- causal GPTs ----


def causal():
    d = Drawing(800, 250, "Causal GPT: next-token prediction")
    d.text(20, 26, "Every position predicts the next token", 15, bold=True)
    tokens, nexts = ["namespace", "std", "{", "template", "<", "class"], ["std", "{", "template", "<", "class", "T"]
    w = 84
    for i, (token, following) in enumerate(zip(tokens, nexts)):
        x = 20 + i * (w + 4)
        d.box(x, 196, w, 26, [token], GRAY, 11)
        d.path(f"M{x + w / 2},{194} L{x + w / 2},{160}")
        d.path(f"M{x + w / 2},{114} L{x + w / 2},{84}")
        d.box(x, 56, w, 26, [following], BLUE, 11)
    d.box(20, 116, 6 * w + 20, 42,
          ["blocks of attention and MLP", "a position attends to itself and to those before it"], GREEN, 12)
    side, x, y = 22, 600, 66
    d.text(x - 12, 26, "Attention", 15, bold=True)
    for q in range(6):
        for k in range(6):
            d.rect(x + k * side, y + q * side, side - 2, side - 2, GREEN if k <= q else "#e5e7eb",
                   GREEN if k <= q else "white", 1)
    d.text(x + 3 * side, y - 8, "to position", 11, "middle")
    d.text(x - 8, y + 3 * side + 4, "from", 11, "end")
    d.text(20, 242, "Loss: mean of -log p(next token) over all positions. Perplexity: its exponential.", 12)
    d.save(HERE / "causal.svg")


def speed_run():
    d = Drawing(970, 378, "What h100_gpt350m_fast adds to the plain GPT")
    d.text(20, 26, "24 blocks: skips, shortcut, value embeddings", 15, bold=True)
    x, w, h = 46, 26, 200
    at = lambda i: x + i * 44 + (34 if i > 3 else 0) + (34 if i > 5 else 0)
    labels = ["0", "1", "2", "3", "11", "12", "20", "21", "22", "23"]
    for i, label in enumerate(labels):
        d.rect(at(i), 170, w, 56, BLUE, radius=3)
        d.text(at(i) + w / 2, 202, label, 12, "middle")
        if label in ("0", "1", "2", "21", "22", "23"):
            d.path(f"M{at(i) + w / 2},{262} L{at(i) + w / 2},{230}", ORANGE)
    for i in (3, 5):
        d.text(at(i) + w + 26, 203, "...", 14, "middle")
    for i, j in ((0, 9), (1, 8), (2, 7), (3, 6)):
        top = 62 + 24 * i
        d.path(f"M{at(i) + w / 2},168 C{at(i) + w / 2},{top} {at(j) + w / 2},{top} {at(j) + w / 2},168", GREEN)
    d.text((at(0) + at(9) + w) / 2, 62, "U-net skips: block 23 - i takes the output of block i, times a learned scalar",
           12, "middle", GREEN)
    d.path(f"M{at(0) - 16},290 L{at(9) + w},290", GRAY, arrow=False)
    for i in range(1, 10):
        d.path(f"M{at(i) + w / 2},290 L{at(i) + w / 2},230", GRAY, dashed=True, width=0.9)
    d.text(x - 16, 310, "input shortcut: every block after the first takes a x + b x0, x0 the embedded tokens", 12,
           color=GRAY)
    d.text(x - 16, 332, "value embeddings: tables by token, added to the values of layers 0 to 2 and 21 to 23", 12,
           color=ORANGE)
    d.text(x - 16, 354, "Also: Muon, squared ReLU, q/k norm, untied head, capped logits, projections that start at 0.",
           12)

    def plot(top, title, points, left_labels, below, color):
        left, width, height = 640, 290, 66
        d.text(left, top - 10, title, 12, bold=True)
        d.path(f"M{left},{top} L{left},{top + height} L{left + width},{top + height}", GRAY, arrow=False, width=1)
        d.path("M" + " L".join(f"{left + u * width:g},{top + height - v * (height - 6):g}" for u, v in points), color,
               arrow=False, width=2)
        for v, label in left_labels:
            d.text(left - 6, top + height - v * (height - 6) + 4, label, 10, "end")
        for u, label in below:
            d.text(left + u * width, top + height + 14, label, 10, "middle")

    steps = 2500
    window = [(0, 128 / 1024)]
    for s in range(0, 1501, 10):
        window.append((s / steps, (128 + 64 * ((1024 - 128) * s // (64 * 1500))) / 1024 if s < 1500 else 1))
    window.append((1, 1))
    plot(46, "attention window, tokens", window, [(1, "1,024"), (0.125, "128")], [(0, "0"), (0.6, "step 1,500")],
         ORANGE)
    plot(164, "sequences per step", [(0, 0.5), (800 / steps, 0.5), (800 / steps, 1), (1, 1)],
         [(1, "512"), (0.5, "256")], [(0, "0"), (800 / steps, "step 800")], GREEN)
    plot(282, "learning rate: trapezoid", [(0, 1), (0.6, 1), (1, 0)], [(1, "peak"), (0, "0")], [(0, "0"),
                                                                                                (0.6, "0.9 hours"),
                                                                                                (1, "1.5 hours")], BLUE)
    d.save(HERE / "speed_run.svg")


# ---- recursion, distillation ----


def recursion():
    d = Drawing(960, 330, "Recursive refinement: four answers from the same blocks")
    d.text(20, 26,
           "One set of blocks f, run again for every answer: here n = 2 passes over the latent state z per answer", 15,
           bold=True)
    d.box(20, 60, 920, 28, ["x: embedded tokens, an input of every pass over z"], GRAY)
    for s in range(4):
        x = 40 + s * 228
        d.path(f"M{x + 75},90 L{x + 75},112")
        d.box(x, 114, 150, 84, ["answer " + str(s), "z = f(x + y + z), twice", "y = f(y + z)"], BLUE)
        if s:
            d.path(f"M{x - 76},156 L{x - 3},156")
            d.text(x - 39, 148, "y, z", 11, "middle")
        d.path(f"M{x + 75},200 L{x + 75},222")
        d.box(x, 224, 150, 44, [f"head, loss L{s}", "weight " + ("1", "12", "12^2", "12^3")[s]], ORANGE)
    d.text(
        20, 296,
        "Training loss: weighted mean of the four losses (weight_base = 12 here), less a reward for the improvement from answer to answer",
        12)
    d.text(
        20, 313,
        "if wanted. detach_from = 3: gradients pass through all answers; 0: y and z are constants for the next answer.",
        12)
    d.save(HERE / "recursion.svg")


def distillation():
    d = Drawing(960, 312, "Prompt distillation: teacher, answers, student")
    d.text(20, 26, "The student learns, without the prompt, what the teacher answers with it", 15, bold=True)
    heads = ["1. train the teacher", "2. the teacher answers", "3. train the student", "evaluate both"]
    for i, head in enumerate(heads):
        x = 20 + i * 236
        d.text(x, 60, head, 13, bold=True)
        if i:
            d.path(f"M{x - 26},130 L{x - 4},130")
    prompt, sentence = "prompt: table of codes", "Das Haus ist alt."
    for i, (color, lines, answer, note) in enumerate([
        (ORANGE, [prompt, "e.g. German QX"], "German QX",
         ["a new table in each", "conversation: the codes", "must be looked up"]),
        (ORANGE, [prompt, "one fixed table"], "German QX",
         ["only the code is kept", "and saved as an answer:", "the student's data"]),
        (BLUE, None, "QX", ["starts from the teacher's", "weights, which know the", "languages, not the table"]),
        (GRAY, None, "QX ?", ["sentences that neither has", "seen; accuracy, agreement,", "prompt tokens per request"])
    ]):
        x = 20 + i * 236
        if lines:
            d.box(x, 74, 206, 40, lines, color, 11)
        d.box(x, 118, 206, 26, [sentence], GRAY, 11)
        d.path(f"M{x + 103},146 L{x + 103},164")
        d.box(x, 166, 206, 26, [answer], GREEN, 11)
        for j, line in enumerate(note):
            d.text(x, 214 + 16 * j, line, 12)
    d.text(
        20, 280,
        "Measured with 124M parameters, 24 languages, 2,400 unseen sentences: teacher with prompt 100.0% at 147.6 prompt tokens per request,",
        12)
    d.text(20, 297, "student before training 1.1%, student without prompt 100.0% at 25.5 tokens.", 12)
    d.save(HERE / "distillation.svg")


for figure in (hdp, bd3lm, causal, speed_run, recursion, distillation):
    figure()
