"""Reads the same decks with our reader and with f90nml and compares every value.

usage: compare_f90nml.py DECK_DUMP INPUT_FOLDER

Decks: all of INPUT_FOLDER/*.in, decks generated at random from known values in every way the syntax
allows, and mutants that our reader accepts. Values that our reader derives (0 or empty in the deck) are
derived here a second time.
"""

import json
import pathlib
import random
import subprocess
import sys
import tempfile

try:
    import f90nml
except ImportError:
    sys.exit("f90nml is missing in " + sys.executable + ": install tests/requirements.txt, or point "
             "TERN_PYTHON to a python that has it")

RANDOM_DECKS = 400
MUTANTS = 400
DEFAULTS = {}
PRESET_SETS = ("weight_base", "reward", "refinement_range", "norm_range")  # objective.preset


def derive(deck):
    """Fills in what a deck leaves to be derived."""
    model, batch = deck["model"], deck["batch"]
    model["kv_heads"] = model["kv_heads"] or model["heads"]
    if deck["objective"]["kind"] == "block_diffusion" and deck["objective"]["hierarchy"] == "hdp":
        model["levels"] = 3
    presets = {"conservative": (64, 256), "recommended": (128, 512), "aggressive": (192, 768), "extreme": (256, 1024)}
    if deck["batch"]["preset"] in presets:
        deck["batch"]["per_rank"], deck["batch"]["global"] = presets[deck["batch"]["preset"]]
    if deck["optimizer"]["lr_rule"] == "sqrt":
        deck["optimizer"]["lr"] = 3e-4 * (deck["batch"]["global"] / 128)**0.5
    elif deck["optimizer"]["lr_rule"] == "table":
        deck["optimizer"]["lr"] = {128: 3e-4, 256: 4e-4, 512: 5e-4, 768: 6e-4, 1024: 7e-4}[deck["batch"]["global"]]
    model["head_dim"] = model["head_dim"] or model["hidden"] // model["heads"]
    if not model["ffn_hidden"]:
        wide = 4 * model["hidden"]
        swiglu = -(-(8 * model["hidden"] // 3) // 64) * 64
        model["ffn_hidden"] = swiglu if model["activation"] == "swiglu" else wide
    batch["global"] = batch["global"] or batch["per_rank"] * deck["parallel"]["data"] * max(1, batch["accumulation"])
    refinement = {"aggressive": (5, 1, [0.15, 0.25], [0.5, 1.5]), "extreme": (10, 2, [0.5, 0.97], [2, 15])}
    if deck["objective"]["preset"] in refinement:
        deck["objective"].update(zip(PRESET_SETS, refinement[deck["objective"]["preset"]]))
    generation = deck["generation"]
    generation["checkpoint"] = generation["checkpoint"] or "best"
    if deck["campaign"]["task"] == "generate" and generation["prompt"]:
        generation["samples"] = max(1, generation["samples"])
    deck["output"]["directory"] = deck["output"]["directory"] or "runs/" + deck["campaign"]["name"]
    return deck


def as_list(value):
    return value if isinstance(value, list) else [value]


def list_value(group, name, value, default):
    """A list as f90nml has it; after name(2) = ... it starts at an index, and gaps keep defaults."""
    start = (group.start_index.get(name) or [1])[0]
    result = [] if name not in group.start_index else list(default)
    for i, item in enumerate(as_list(value), start - 1):
        if i < len(result):
            result[i] = result[i] if item is None else item
        else:
            result.append(item)
    return result


def read_f90nml(path):
    """The whole deck by f90nml: defaults, then what the file gives, then what is derived."""
    deck = json.loads(json.dumps(DEFAULTS))
    for group_name, group in f90nml.read(path).items():
        for name, value in group.items():
            default = DEFAULTS[group_name][name]
            if isinstance(default, list):
                value = list_value(group, name, value, default)
            elif isinstance(default, bool) != isinstance(value, bool):
                raise TypeError(f"{group_name}.{name}: {value!r} for {default!r}")
            elif isinstance(default, float) and isinstance(value, int):
                value = float(value)  # digits alone are a real for a real
            deck[group_name][name] = value
    return derive(deck)


def differences(ours, theirs):
    return [
        f"{group}.{name}: ours {ours[group][name]!r}, f90nml {theirs[group][name]!r}" for group in DEFAULTS
        for name in DEFAULTS[group] if ours[group][name] != theirs[group][name]
    ]


# Decks from known values. For each field a function that draws a value our checks allow.
def draw_real(rng):
    return rng.choice([0.0, 0.5, 1e-3, 0.1, 2.5e-7, 0.123456789012345678, rng.random(), rng.random() * 1e-20])


def draw_string(rng):
    alphabet = "ab Z09'\"!&/=,*()%$;:\\.äλ\t~"
    return "x" + "".join(rng.choice(alphabet) for _ in range(rng.randrange(12)))


DRAW = {
    ("campaign", "name"): lambda rng: draw_string(rng).replace("/", "_"),
    ("campaign", "max_steps"): lambda rng: rng.randrange(1, 10**9),
    ("campaign", "seed"): lambda rng: rng.randrange(2**63),
    ("campaign", "max_hours"): draw_real,
    ("model", "qk_norm"): lambda rng: rng.random() < 0.5,
    ("model", "tie_embeddings"): lambda rng: rng.random() < 0.5,
    ("model", "dropout"): lambda rng: min(draw_real(rng), 0.99),
    ("model", "activation"): lambda rng: rng.choice(["swiglu", "gelu", "relu2"]),
    ("model", "layers"): lambda rng: rng.randrange(1, 30),
    ("model", "load"): draw_string,
    ("model", "logit_cap"): draw_real,
    ("model", "embed_std"): draw_real,
    ("model", "inner_steps"): lambda rng: rng.randrange(0, 8),
    ("objective", "supervision_steps"): lambda rng: rng.randrange(2, 9),
    ("objective", "preset"): lambda rng: rng.choice(["none", "none", "aggressive", "extreme"]),
    ("objective", "weight_base"): lambda rng: 1 + draw_real(rng),
    ("objective", "reward"): draw_real,
    ("objective", "refinement_range"): lambda rng: sorted(rng.sample([0.0, 0.05, 0.97, 1.0], 2)),
    ("objective", "norm_range"): lambda rng: sorted(rng.sample([0.0, 0.5, 2.5, 1e3], 2)),
    ("objective", "norm_limit"): lambda rng: 1 + draw_real(rng),
    ("model", "renormalize_experts"): lambda rng: rng.random() < 0.5,
    ("data", "chat_template"): lambda rng: rng.choice(["plain", "chatml", "qwen3"]),
    ("data", "thinking"): lambda rng: rng.random() < 0.5,
    ("generation", "prompt_template"): draw_string,
    ("generation", "output"): draw_string,
    ("generation", "pattern"): draw_string,
    ("generation", "stop"): lambda rng: [draw_string(rng) for _ in range(rng.randrange(1, 4))],
    ("generation", "max_model_len"): lambda rng: rng.randrange(2, 10**6),
    ("generation", "memory_utilization"): lambda rng: rng.choice([0.5, 0.25, 0.90]),
    ("generation", "prefix_cache"): lambda rng: rng.random() < 0.5,
    ("evaluation", "reference"): draw_string,
    ("batch", "accumulation"): lambda rng: rng.randrange(0, 9),
    ("evaluation", "compare_with"): lambda rng: [draw_string(rng) for _ in range(rng.randrange(1, 4))],
    ("data", "train"): lambda rng: [draw_string(rng) for _ in range(rng.randrange(1, 5))],
    ("data", "valid"): lambda rng: [draw_string(rng)] * rng.randrange(1, 4),
    ("optimizer", "betas"): lambda rng: [min(draw_real(rng), 0.99),
                                         min(draw_real(rng), 0.99)],
    ("optimizer", "weight_decay"): draw_real,
    ("optimizer", "grad_clip"): draw_real,
    ("parallel", "data"): lambda rng: rng.randrange(0, 9),
    ("generation", "prompt"): lambda rng: draw_string(rng) + rng.choice(["", "\n", "\n\nb  \n c", " ! \n'x"]),
    ("generation", "samples"): lambda rng: rng.randrange(1, 100),
    ("checkpoint", "keep_best"): lambda rng: rng.random() < 0.5,
    ("cost", "peak_tflops"): draw_real,
}


def any_case(rng, text):
    return "".join(rng.choice([c.lower(), c.upper()]) for c in text)


def write_scalar(rng, value):
    if isinstance(value, bool):
        words = [".true.", "T", ".t.", "true"] if value else [".false.", "F", ".f.", "false"]
        return any_case(rng, rng.choice(words))
    if isinstance(value, int):
        forms = [rng.choice(["", "+", "0", "00"]) + str(value), f"{value:_}"]
        if value % 1000 == 0 and value < 2**53:
            forms.append(f"{value // 1000}{rng.choice('edED')}3")
        return rng.choice(forms)
    if isinstance(value, float):
        text = rng.choice([repr(value), f"{value:.17e}", f"{value:.25E}"])
        text = text.replace("e", rng.choice("edED")) if "e" in text else text
        return text[1:] if text.startswith("0.") and rng.random() < 0.3 else text
    quote = rng.choice("'\"")
    return quote + value.replace(quote, quote * 2) + quote


def write_blank(rng, at_least=0):
    blanks = [" ", "  ", "\t", "\n", "\n\n", " ! it's \"here\" & / = , \n", "!\n"]
    return "".join(rng.choice(blanks) for _ in range(rng.randrange(at_least, at_least + 2)))


def write_list(rng, values):
    parts = []
    while values:
        same = next((i for i, v in enumerate(values) if v != values[0]), len(values))
        take = rng.randrange(1, same + 1)
        text = write_scalar(rng, values[0])
        parts.append(text if take == 1 else f"{take}*{text}")
        values = values[take:]
    text = parts[0]
    for part in parts[1:]:
        text += rng.choice([write_blank(rng) + "," + write_blank(rng), write_blank(rng, 1)]) + part
    return text


def write_assignments(rng, name, value):
    """Assignments that together give `value` to `name`."""
    equals = write_blank(rng) + "=" + write_blank(rng)
    if name == "betas" and rng.random() < 0.4:
        return [f"{any_case(rng, name)}({i}){equals}{write_scalar(rng, v)}" for i, v in enumerate(value, 1)]
    return [any_case(rng, name) + equals + write_list(rng, as_list(value))]


def remove_contradictions(objective, data):
    """Removes what the preset sets, and `thinking` where the chat template does not have it."""
    if objective.get("preset", "none") != "none":
        for name in PRESET_SETS:
            objective.pop(name, None)
    if data.get("chat_template") != "qwen3":
        data.pop("thinking", None)


def write_deck(rng):
    """A deck's text and the values it holds."""
    values = {}
    for (group, name), draw in DRAW.items():
        if rng.random() < 0.6:
            values.setdefault(group, {})[name] = draw(rng)
    remove_contradictions(values.get("objective", {}), values.get("data", {}))
    text = write_blank(rng)
    for group in rng.sample(sorted(values), len(values)):
        assignments = [write_assignments(rng, *item) for item in values[group].items()]
        rng.shuffle(assignments)
        text += "&" + any_case(rng, group) + write_blank(rng, 1)
        for assignment in sum(assignments, []):
            text += assignment + rng.choice([write_blank(rng, 1), write_blank(rng) + "," + write_blank(rng)])
        text += "/" + write_blank(rng)
    if rng.random() < 0.2:
        text = text.replace("\n", "\r\n")
    return text, values


class Report:
    def __init__(self):
        self.compared = 0
        self.failures = []

    def check(self, label, text, ours, theirs):
        self.compared += 1
        wrong = differences(ours, theirs)
        if wrong:
            self.failures.append(f"{label}:\n  " + "\n  ".join(wrong) + f"\n{text}")


def dump(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, check=True)
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def compare_files(program, report, labeled):
    """labeled: (path, values known to be there or None)."""
    for (path, values), line in zip(labeled, dump(program, *[path for path, _ in labeled]), strict=True):
        text = path.read_text()
        if "error" in line:
            report.failures.append(f"{path.name}: refused: {line['error']}\n{text}")
            continue
        report.check(path.name, text, line["deck"], read_f90nml(path))
        if values is not None:
            meant = json.loads(json.dumps(DEFAULTS))
            for group, names in values.items():
                meant[group].update(names)
            report.check(path.name + " (as meant)", text, line["deck"], derive(meant))


def compare_mutants(program, report, folder):
    for i, line in enumerate(dump(program, "--mutants", MUTANTS, 2026)):
        path = folder / f"mutant_{i}.in"
        path.write_bytes(line["text"].encode())
        try:
            theirs = read_f90nml(path)
        except Exception as error:  # f90nml raises many kinds
            report.failures.append(f"{path.name}: f90nml refuses it: {error!r}\n{line['text']}")
            continue
        report.check(path.name, line["text"], line["deck"], theirs)


def main():
    program, inputs = sys.argv[1], pathlib.Path(sys.argv[2])
    DEFAULTS.update(dump(program, "--defaults")[0])
    report = Report()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        labeled = [(path, None) for path in sorted(inputs.glob("*.in"))]
        assert labeled, f"no decks in {inputs}"
        rng = random.Random(2026)
        for i in range(RANDOM_DECKS):
            text, values = write_deck(rng)
            path = folder / f"random_{i}.in"
            path.write_bytes(text.encode())
            labeled.append((path, values))
        compare_files(program, report, labeled)
        compare_mutants(program, report, folder)
    for failure in report.failures[:10]:
        print(failure)
    print(f"{report.compared} comparisons with f90nml {f90nml.__version__}, {len(report.failures)} failures")
    sys.exit(1 if report.failures else 0)


if __name__ == "__main__":
    main()
