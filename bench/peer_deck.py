"""A deck as the peer reads it: what `./trainer DECK --set ... --print-deck` prints, all values resolved."""
import re
from types import SimpleNamespace

TOKEN = re.compile(r"!.*|'(?P<text>(?:[^']|'')*)'|&(?P<group>\w+)|(?P<name>\w+)\s*=|/|(?P<word>[^\s,/!']+)")

# What the peer implements; another value is refused, since it would be ignored silently.
SERVED = {
    "model": {
        "activation": ["swiglu", "relu2"], "norm": ["rmsnorm"], "position": ["rope"], "levels": [0],
        "attention_bias": [False], "ffn_bias": [False], "dropout": [0], "skip_connections": [False],
        "input_shortcut": [False], "value_embeddings": [0], "window": [0], "window_start": [0]
    },
    "objective": {"kind": ["causal", "refinement", "supervised"], "z_loss": [0]},
    "batch": {"preset": ["none"], "unit": ["rows"], "global_start": [0]},
    "optimizer": {"kind": ["adamw", "muon"], "lr_rule": ["none"], "ema": [0], "head_lr": [0]},
    "precision": {"compute": ["fp32", "bf16", "fp8"]},
}
# The same for kind = 'supervised', whose model is Transformers' Qwen3.
SUPERVISED = {
    "model": {"activation": ["swiglu"], "qk_norm": [True], "inner_steps": [0], "logit_cap": [0], "experts": [0]},
    "data": {"tokenizer": ["bytes"], "chat_template": ["plain"]},
    "optimizer": {"kind": ["adamw"]},
    "precision": {"compute": ["fp32", "bf16"]},
}


def typed(word):
    if word in (".true.", ".false."):
        return word == ".true."
    try:
        return int(word)
    except ValueError:
        return float(word)


def read_deck(path):
    """deck.group.name: a value, or a list if there are several."""
    deck, group, name = {}, None, None
    for token in TOKEN.finditer(open(path).read()):
        if token["group"]:
            group = deck.setdefault(token["group"], {})
        elif token["name"]:
            name = token["name"]
        elif token["text"] is not None or token["word"]:
            value = typed(token["word"]) if token["word"] else token["text"].replace("''", "'")
            group[name] = value if name not in group else listed(group[name]) + [value]
    for served in [SERVED] + [SUPERVISED] * (deck["objective"]["kind"] == "supervised"):
        for group, names in served.items():
            for name, values in names.items():
                if deck[group][name] not in values:
                    raise SystemExit(
                        f"{path}: the peer does not serve {group}.{name} = {deck[group][name]}, only {values}")
    if deck["batch"]["per_rank"] == 0:
        raise SystemExit(f"{path}: the peer needs batch.per_rank: write what Tern's plan gives")
    return SimpleNamespace(**{name: SimpleNamespace(**values) for name, values in deck.items()})


def listed(value):
    return value if isinstance(value, list) else [value]
