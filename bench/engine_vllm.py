"""Compares the generation engine with vLLM offline: same model shape, requests and device, in turn in one run.

    python3 bench/engine_vllm.py [--engine build/cuda/bench/bench_engine] [--kinds bf16,fp8] [--cases CASE ...] [--repeat 5]
                                 [--seconds 20] [--batched_tokens N] [--out DIR] [name=value ...]

CASE: streams:prompt:new[:shared[:kinds]], as 64:512:256, or 64:2048:64:1920 for prompts whose first 1,920 tokens are the same;
"bf16" or "fp8" at the end, as 512:256:64:0:bf16, leaves the other out. name=value: the model's shape (default: Qwen3-4B).
Both sides have random weights, random prompts, greedy decoding and no end token. fp8: weights, inputs of linear maps, keys and
values on both sides. vLLM: load_format = 'dummy', CUDA graphs, its default of batched tokens (16384 on a Hopper GPU) unless
--batched_tokens gives another, prefix cache only where prompts share tokens. Tern: its defaults, so 2,048 prompt tokens per pass
(--set prefill_tokens=16384 for as many as vLLM's).

vLLM starts once per kind (all at the same time; about a minute) and keeps the memory that the cases need; the engine starts per
case, and a repeat is one turn of each. Both are timed until each stream has one token (t1) and until each has `new` (tN):
prompts = streams x prompt / t1, decode = streams x (new - 1) / (tN - t1). One turn of each is not counted. A case ends after
--repeat pairs, or after --seconds of them if there are three. Prints a row per case as it ends, and the table; the ratio is the
median over pairs, with the smallest and the largest. Logs are in --out. Needs vLLM 0.20 and torch; by default 120 GiB. Nothing else
should run on the device.
"""
import argparse, concurrent.futures, json, os, pathlib, random, statistics, sys, tempfile, time

from turns import Program

SHAPE = dict(layers=36, hidden=2560, heads=32, kv_heads=8, head_dim=128, ffn=9728, tied=1, vocabulary=151936)
CASES = [
    "1:512:64", "8:512:64", "64:512:64", "64:512:256", "256:512:64", "512:256:64", "64:128:32", "16:2048:16",
    "4:8192:16", "64:2048:64:1920"
]


def write_config(directory, shape, context):
    """config.json of a Qwen3 model of this shape, without weights."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(
        json.dumps(
            dict(architectures=["Qwen3ForCausalLM"], model_type="qwen3", hidden_size=shape["hidden"],
                 intermediate_size=shape["ffn"], num_hidden_layers=shape["layers"], num_attention_heads=shape["heads"],
                 num_key_value_heads=shape["kv_heads"], head_dim=shape["head_dim"], vocab_size=shape["vocabulary"],
                 tie_word_embeddings=bool(shape["tied"]), max_position_embeddings=context, rms_norm_eps=1e-6,
                 rope_theta=1e6, hidden_act="silu", attention_bias=False, attention_dropout=0.0, bos_token_id=0,
                 eos_token_id=0, initializer_range=0.02, use_cache=True, torch_dtype="bfloat16")))


def serve(options):
    """vLLM's side: a turn for each line {"streams", "prompt", "new", "shared"}; prints TURN t1 tN, in seconds."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what vLLM prints goes to the log
    import vllm
    model = vllm.LLM(**options)
    config = model.llm_engine.vllm_config
    print("vLLM", vllm.__version__, config, flush=True)
    draw = random.Random(1)
    common = [draw.randrange(1000, 50000) for _ in range(1 << 16)]

    def seconds(case, count):
        prompts = [{
            "prompt_token_ids": common[:case["shared"]] +
                                [draw.randrange(1000, 50000) for _ in range(case["prompt"] - case["shared"])]
        } for _ in range(case["streams"])]
        sampling = vllm.SamplingParams(temperature=0.0, max_tokens=count, ignore_eos=True, detokenize=False)
        begin = time.perf_counter()
        answers = model.generate(prompts, sampling, use_tqdm=False)
        elapsed = time.perf_counter() - begin
        assert [len(answer.outputs[0].token_ids) for answer in answers] == case["streams"] * [count]
        return elapsed

    print("READY", file=out)
    for line in sys.stdin:
        case = json.loads(line)
        first, every = seconds(case, 1), seconds(case, case["new"])
        print(f"TURN {first:.9f} {every:.9f}\nREADY", file=out)


class Case:
    def __init__(self, text):
        parts = text.split(":")
        self.text, self.kinds = text, ("bf16", "fp8")
        if parts[-1] in self.kinds:
            self.kinds = (parts.pop(),)
        try:
            self.streams, self.prompt, self.new, self.shared = [*map(int, parts), 0][:4]
        except ValueError:
            sys.exit(f"'{text}': give streams:prompt:new[:shared[:kind]]")
        if self.new < 2 or self.shared >= self.prompt:
            sys.exit(f"'{text}': new is at least 2, shared less than prompt")

    def values(self):
        return {"streams": self.streams, "prompt": self.prompt, "new": self.new, "shared": self.shared}


def peer(kind, cases, shape, a, out):
    """Starts vLLM for these cases, with as many keys and values as they need."""
    context = max(c.prompt + c.new for c in cases) + 16
    tokens = max(max(c.streams * (c.prompt - c.shared + c.new + 32) + c.shared for c in cases), context + 64)
    of_token = 2 * shape["layers"] * shape["kv_heads"] * shape["head_dim"] * (1 if kind == "fp8" else 2)
    name = f"{kind}{'_shared' if cases[0].shared else ''}"
    write_config(out / name, shape, max(4096, context))
    options = dict(model=str(out / name), load_format="dummy", skip_tokenizer_init=True, dtype="bfloat16",
                   max_model_len=context, seed=0, max_num_seqs=max(c.streams for c in cases),
                   enable_prefix_caching=cases[0].shared > 0, gpu_memory_utilization=0.1,
                   kv_cache_memory_bytes=int(1.1 * tokens * of_token))
    if a.batched_tokens:
        options["max_num_batched_tokens"] = a.batched_tokens
    if kind == "fp8":
        options.update(quantization="fp8", kv_cache_dtype="fp8")
    print(f"vLLM {name}: {options}", flush=True)
    env = {
        "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1",
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn", "VLLM_CACHE_ROOT": str(out / f"{name}_cache")
    }
    return Program([sys.executable, __file__, "--serve", json.dumps(options)], out / f"vllm_{name}.log", env)


def of(values, unit=1):
    values = sorted(v / unit for v in values)
    digits = 0 if values[-1] >= 1000 else 2 if values[-1] >= 20 else 3
    return f"{statistics.median(values):,.{digits}f} ({values[0]:,.{digits}f} to {values[-1]:,.{digits}f})"


def measure(kind, case, program, shape, a, out):
    """A row of the table."""
    fp8 = ["fp8_weights=1", "fp8_inputs=1", "fp8_cache=1"] if kind == "fp8" else []
    values = [f"{k}={v}" for k, v in {**shape, **case.values()}.items()]
    engine = Program([a.engine, *values, "turns=1", *fp8, *a.set],
                     out / f"engine_{kind}_{case.text.replace(':', '_')}.log")
    figures = {"prompts": ([], []), "decode": ([], []), "all": ([], [])}
    begin = None
    while len(figures["all"][0]) < a.repeat:
        if begin and time.time() - begin > a.seconds and len(figures["all"][0]) >= 3:
            break
        pair = [engine.turn(), program.turn(json.dumps(case.values()))]
        if begin is None:
            begin = time.time()
            continue  # the first pair is not counted
        for side, text in enumerate(pair):
            first, every = map(float, text.split())
            figures["prompts"][side].append(case.streams * case.prompt / first)
            figures["decode"][side].append(case.streams * (case.new - 1) / (every - first))
            figures["all"][side].append(case.streams * case.new / every)
    engine.end()
    row = f"| {kind}, {case.streams} streams, prompt {case.prompt}{f' ({case.shared} shared)' if case.shared else ''}, {case.new} new |"
    for ours, theirs in figures.values():
        row += f" {of(ours)} | {of(theirs)} | {of([x / y for x, y in zip(ours, theirs)])} |"
    print(f"{row} {len(ours)} pairs", flush=True)
    return row


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("settings", nargs="*", help="name=value of the shape")
    p.add_argument("--serve", help=argparse.SUPPRESS)
    p.add_argument("--engine", default="build/cuda/bench/bench_engine")
    p.add_argument("--kinds", default="bf16,fp8")
    p.add_argument("--cases", nargs="+", default=CASES)
    p.add_argument("--repeat", type=int, default=5)
    p.add_argument("--seconds", type=float, default=20)
    p.add_argument("--batched_tokens", type=int, default=0)
    p.add_argument("--set", action="append", default=[], help="name=value of bench/engine.cpp")
    p.add_argument("--out", default="")
    a = p.parse_args()
    if a.serve:
        return serve(json.loads(a.serve))
    shape = dict(SHAPE)
    for item in a.settings:
        name, _, value = item.partition("=")
        if name not in shape:
            p.error(f"'{item}': the names are {', '.join(shape)}")
        shape[name] = int(value)
    out, cases = pathlib.Path(a.out or tempfile.mkdtemp(prefix="vllm_")), [Case(text) for text in a.cases]
    out.mkdir(parents=True, exist_ok=True)
    jobs = [(kind, group) for kind in a.kinds.split(",") for shared in (False, True)
            if (group := [c for c in cases if kind in c.kinds and (c.shared > 0) == shared])]
    programs, rows, begin = [peer(kind, group, shape, a, out) for kind, group in jobs], [], time.time()
    try:
        with concurrent.futures.ThreadPoolExecutor(len(programs)) as pool:
            list(pool.map(Program.ready, programs))
        print(f"vLLM ready after {time.time() - begin:.0f} s", flush=True)
        for (kind, group), program in zip(jobs, programs):
            for case in group:
                try:
                    rows.append(measure(kind, case, program, shape, a, out))
                except RuntimeError as error:
                    rows.append(f"| {kind}, {case.text} | failed: {str(error).splitlines()[-1]} |")
                    print(error, flush=True)
            program.end()  # its memory is free for what follows
    finally:
        for program in programs:
            program.process.kill()
    print(
        "\n| case | prompts: Tern, tokens/s | vLLM | ratio | decode: Tern | vLLM | ratio | new tokens over tN: Tern | vLLM | ratio |\n"
        + "|---" * 10 + "|\n" + "\n".join(rows))


if __name__ == "__main__":
    main()
