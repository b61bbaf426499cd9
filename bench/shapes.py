"""Training rates at the shapes that users train, each compared with PyTorch on the same device.

    python3 bench/shapes.py [NAME ...] [--trainer ./trainer] [--repeat 2] [--fp8] [--recipes own,rowwise] [--at_once 2] [--profile]
                            [--out DIR] [--list]

Runs bench/compare.py with random weights and tokens once per shape: per_rank sequences per micro-batch, four micro-batches per
step, AdamW, pairs in turn; a peer compiles once per shape. Prints one table. --fp8: Tern in fp8 against PyTorch in bf16 in the
same run. --recipes: also against PyTorch in fp8, by recipes of bench/peer_fp8.py (own, tensorwise, rowwise, rowwise_with_gw_hp), a
row each. --at_once: peers that compile at the same time. --profile: the time of Tern's operations in one step, without a peer.
All shapes are decoders of the Llama family: RMSNorm, SwiGLU, rotary positions. Needs a GPU of at least 80 GiB, torch 2.11 and numpy.
"""
import argparse, os, pathlib, re, subprocess, sys, tempfile
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
GPT2, LLAMA, QWEN = 50304, 128256, 151936  # vocabularies
# name: layers, hidden, heads, key/value heads, head size, ffn, context, vocabulary, sequences per micro-batch, more settings
SHAPES = {
    "124M": (12, 768, 12, 12, 64, 2048, 1024, GPT2, 64, {}),
    "350M": (24, 1024, 16, 16, 64, 2752, 1024, GPT2, 32, {}),
    "350M_T4096": (24, 1024, 16, 16, 64, 2752, 4096, GPT2, 8, {}),
    "760M": (24, 1536, 24, 24, 64, 4096, 1024, GPT2, 24, {}),
    "1.3B": (24, 2048, 16, 16, 128, 5504, 2048, GPT2, 8, {}),
    "1.3B_T8192": (24, 2048, 16, 16, 128, 5504, 8192, GPT2, 2, {}),
    "llama_1B": (16, 2048, 32, 8, 64, 8192, 4096, GPT2, 4, {}),
    "llama_1B_V128K": (16, 2048, 32, 8, 64, 8192, 4096, LLAMA, 4, {}),
    "qwen3_0.6B": (28, 1024, 16, 8, 128, 3072, 4096, QWEN, 4, {"model.qk_norm": ".true."}),
    "llama_3B_8layers": (8, 3072, 24, 8, 128, 8192, 4096, LLAMA, 4, {}),
    "llama_8B_8layers": (8, 4096, 32, 8, 128, 14336, 4096, LLAMA, 4, {"model.tie_embeddings": ".false."}),
    "llama_8B_8layers_T8192": (8, 4096, 32, 8, 128, 14336, 8192, LLAMA, 2, {"model.tie_embeddings": ".false."}),
}
MICRO_BATCHES, STEPS = 4, 8


def settings(name, data, compute):
    layers, hidden, heads, kv_heads, head_dim, ffn, context, vocabulary, rows, more = SHAPES[name]
    return {
        "model.layers": layers, "model.hidden": hidden, "model.heads": heads, "model.kv_heads": kv_heads,
        "model.head_dim": head_dim, "model.ffn_hidden": ffn, "model.context": context, "model.vocabulary": vocabulary,
        "batch.per_rank": rows, "batch.global": MICRO_BATCHES * rows, "optimizer.warmup_steps": 5,
        "precision.compute": compute, "data.train": f"'{data}'", "data.valid": f"'{data}'", "data.tokenizer": "'none'",
        **more
    }


def as_options(values):
    return [word for key, value in values.items() for word in ("--set", f"{key}={value}")]


def write_tokens(path, count=1 << 21):
    """A shard in llm.c's format: random tokens of GPT-2's vocabulary."""
    header = np.zeros(256, dtype="<i4")
    header[:3] = 20240520, 1, count
    with open(path, "wb") as f:
        f.write(header.tobytes())
        f.write(np.random.default_rng(1).integers(0, 50257, count, dtype="<u2").tobytes())


def run(command):
    done = subprocess.run(list(map(str, command)), text=True, errors="replace", stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    return done.returncode, done.stdout


def compare(name, a, data):
    """A row of the table, or what went wrong."""
    options = as_options(settings(name, data, "fp8" if a.fp8 else "bf16"))
    recipes = [recipe for recipe in a.recipes.split(",") if recipe]
    more = ["--peer=--compute bf16", *(f"--peer=--compute fp8 --fp8 {recipe}" for recipe in recipes)
           ] if a.fp8 or recipes else []
    code, text = run([
        sys.executable, HERE / "compare.py", HERE.parent / "input/h100_gpt350m.in", "--trainer", a.trainer, "--random",
        "--resident", "--at_once", a.at_once, "--steps", STEPS, "--repeat", a.repeat, *options, *more, "--out",
        f"{a.out}/{name}"
    ])
    results = re.findall(r"RESULT tokens/s ours (.*?)  peer (.*?)  ratio (.*?\))(?:  (.*))?", text)
    if code or not results:
        return f"| {name} | failed: {text.strip().splitlines()[-1] if text.strip() else code} | | |"
    memory = re.search(r"memory per rank.*?([\d.]+ GiB)", text)
    peak = (re.findall(r"peak=([\d.]+ GiB)", text) + ["?"] * len(results))[-len(results):]
    return "\n".join(
        f"| {name} | {ours}, {memory[1] if memory else '?'} | {peer}, {gib}{f' {how}' if how else ''} | {ratio} |"
        for (ours, peer, ratio, how), gib in zip(results, peak))


def profile(name, a, data):
    values = dict(
        settings(name, data, "fp8" if a.fp8 else "bf16"), **{
            "campaign.max_steps": STEPS, "output.profile": STEPS - 1, "output.directory": f"'{a.out}/{name}_profile'",
            "output.log_every": 1, "evaluation.every": 0, "evaluation.target_loss": 0, "evaluation.rows": 1,
            "checkpoint.every": 0, "generation.samples": 0
        })
    process = subprocess.Popen([a.trainer, HERE.parent / "input/h100_gpt350m.in", "--fresh", *as_options(values)],
                               text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = ""
    for line in process.stdout:  # ended before it writes a checkpoint
        text += line
        if re.match(rf"[\d:]{{8}} +{STEPS - 1}  ", line):
            break
    table = pathlib.Path(a.out) / f"{name}_profile/profile/rank_0000.txt"
    process.kill()
    process.wait()
    return table.read_text() if table.exists() else f"no profile:\n{text[-2000:]}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*")
    p.add_argument("--trainer", default="./trainer")
    p.add_argument("--repeat", type=int, default=2)
    p.add_argument("--fp8", action="store_true")
    p.add_argument("--profile", action="store_true")
    p.add_argument("--out", default="")
    p.add_argument("--recipes", default="")
    p.add_argument("--at_once", type=int, default=2)
    p.add_argument("--list", action="store_true")
    a = p.parse_args()
    unknown = set(a.names) - set(SHAPES)
    if unknown:
        p.error(f"no such shape: {', '.join(sorted(unknown))}; there are {', '.join(SHAPES)}")
    if a.list:
        for name, shape in SHAPES.items():
            print(name, *shape[:-1])
        return
    a.out = a.out or tempfile.mkdtemp(prefix="shapes_")
    os.makedirs(a.out, exist_ok=True)
    data = f"{a.out}/tokens.bin"
    write_tokens(data)
    if not a.profile:
        print(
            "| shape | Tern: tokens/s, memory planned | PyTorch compiled: tokens/s, memory | ratio |\n|---|---|---|---|",
            flush=True)
    for name in a.names or SHAPES:
        print(f"{name}\n{profile(name, a, data)}" if a.profile else compare(name, a, data), flush=True)


if __name__ == "__main__":
    main()
