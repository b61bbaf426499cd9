"""Compares the generation engine with Transformers' generate(): same model shape, device and requests, in one run.

    python3 bench/engine_peer.py [--engine build/cuda/bench/bench_engine] [--peer dynamic,static] [--repeat 5] [name=value ...]

name=value as bench/engine.cpp takes them (default: Qwen3-4B, 64 streams, prompt 512, 64 new tokens). Both sides have
random weights in bf16 (float32 on the host), random prompts, greedy decoding and no end token. Both are timed until each
stream has one token (t1) and until each has `new` (tN): prefill = streams x prompt / t1, decode = streams x (new - 1) /
(tN - t1). --peer: caches of generate(): dynamic, static, compiled (static, with torch.compile; minutes). The engine runs
first and has ended, with its memory freed, when the peer begins. --engine '' leaves it out. Needs torch and transformers.
Nothing else should run on the device.
"""
import argparse, re, statistics, subprocess, sys, time

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("settings", nargs="*", help="name=value")
p.add_argument("--engine", default="build/cuda/bench/bench_engine")
p.add_argument("--peer", default="dynamic,static")
p.add_argument("--repeat", type=int, default=5)
p.add_argument("--device", default="")
a = p.parse_args()
s = dict(layers=36, hidden=2560, heads=32, kv_heads=8, head_dim=128, ffn=9728, tied=1, vocabulary=151936, streams=64,
         prompt=512, new=64, prefill_tokens=2048)
for item in a.settings:
    name, value = item.split("=")
    if name not in s:
        sys.exit(f"'{item}': the names are {', '.join(s)}")
    s[name] = int(value)

ours = {}
if a.engine:
    done = subprocess.run([a.engine, *(f"{k}={v}" for k, v in s.items()), f"repeats={a.repeat}"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    print(done.stdout, flush=True)
    if done.returncode:
        sys.exit(f"{a.engine} ended with {done.returncode}")
    for name in ("prefill", "decode"):
        ours[name] = float(re.search(rf"^RESULT {name} +([\d.]+) tokens/s", done.stdout, re.M).group(1))

import torch, transformers  # after the engine: a CUDA context takes memory

device = a.device or ("cuda" if torch.cuda.is_available() else "cpu")
kind = torch.bfloat16 if device == "cuda" else torch.float32
config = transformers.Qwen3Config(vocab_size=s["vocabulary"], hidden_size=s["hidden"], intermediate_size=s["ffn"],
                                  num_hidden_layers=s["layers"], num_attention_heads=s["heads"],
                                  num_key_value_heads=s["kv_heads"], head_dim=s["head_dim"],
                                  tie_word_embeddings=bool(s["tied"]), max_position_embeddings=max(
                                      4096, s["prompt"] + s["new"]), rms_norm_eps=1e-6, rope_theta=1e6,
                                  bos_token_id=None, eos_token_id=None, pad_token_id=0, attn_implementation="sdpa")
torch.manual_seed(1)
torch.set_default_dtype(kind)
with torch.device(device):
    model = transformers.Qwen3ForCausalLM(config).eval()
torch.set_default_dtype(torch.float32)
wait = torch.cuda.synchronize if device == "cuda" else lambda: None


def seconds(count, options):
    prompts = torch.randint(0, s["vocabulary"], (s["streams"], s["prompt"]), device=device)
    wait()
    begin = time.perf_counter()
    with torch.inference_mode():
        out = model.generate(prompts, attention_mask=torch.ones_like(prompts), max_new_tokens=count,
                             min_new_tokens=count, do_sample=False, use_cache=True, **options)
    wait()
    elapsed = time.perf_counter() - begin
    assert out.shape == (s["streams"], s["prompt"] + count), out.shape
    return elapsed


def figure(name, values):
    values = sorted(values)
    print(
        f"RESULT {name:<22} {values[len(values) // 2]:10.1f} tokens/s ({values[0]:.1f} to {values[-1]:.1f}, {len(values)} times)",
        flush=True)
    return statistics.median(values)


print(
    f"transformers {transformers.__version__}, torch {torch.__version__}, "
    f"{torch.cuda.get_device_name() if device == 'cuda' else device}, {sum(p.numel() for p in model.parameters()) / 1e9:.2f} B parameters"
)
caches = {
    "dynamic": {}, "static": dict(cache_implementation="static", disable_compile=True),
    "compiled": dict(cache_implementation="static")
}
best = {}
for peer in a.peer.split(","):
    for count in (1, s["new"]):
        seconds(count, caches[peer])
    pairs = [(seconds(1, caches[peer]), seconds(s["new"], caches[peer])) for _ in range(a.repeat)]
    best[peer] = (figure(f"{peer}: prefill", [s["streams"] * s["prompt"] / one for one, _ in pairs]),
                  figure(f"{peer}: decode", [s["streams"] * (s["new"] - 1) / (every - one) for one, every in pairs]))
if device == "cuda":
    print(f"peer memory {torch.cuda.max_memory_reserved() / 2**30:.2f} GiB")
for peer, (prefill, decode) in best.items():
    if ours:
        print(f"RESULT engine / {peer}: prefill {ours['prefill'] / prefill:.2f}, decode {ours['decode'] / decode:.2f}")
