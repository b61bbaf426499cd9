"""Sets the trainer beside PyTorch: same deck, device, initial weights and batches, in one run.

    python3 bench/compare.py DECK [--trainer ./trainer] [--steps 100] [--repeat 3] [--threads 2] [--set group.name=value ...]

Prints tokens/s of both sides, repeated in turn, with medians and the median of the ratios pair by pair, and the
largest difference of the two loss curves. Needs torch and safetensors. Nothing else should run on the device.
"""
import argparse, json, os, re, statistics, subprocess, sys, tempfile

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("deck"); p.add_argument("--trainer", default="./trainer"); p.add_argument("--steps", type=int, default=100)
p.add_argument("--repeat", type=int, default=3); p.add_argument("--threads", type=int, default=0)
p.add_argument("--device", default=""); p.add_argument("--set", action="append", default=[]); p.add_argument("--out", default="")
a = p.parse_args()
out = a.out or tempfile.mkdtemp(prefix="compare_")
env = dict(os.environ, **({"OMP_NUM_THREADS": str(a.threads)} if a.threads else {}))
sets = [x for s in a.set for x in ("--set", s)]
quiet = ["--set", "evaluation.every=0", "--set", "evaluation.target_loss=0", "--set", "evaluation.batches=1", "--set", "checkpoint.every=0", "--set", "output.log_every=1", "--set", "generation.samples=0"]


def run(command):
    done = subprocess.run(command, env=env, text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode: sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def losses(path):
    return {r["step"]: r for r in map(json.loads, open(path)) if "train/loss" in r}


# The weights both start from: one step at a rate too small to change any.
start = f"{out}/start"
run([a.trainer, a.deck, *sets, *quiet, "--fresh", "--set", f"output.directory={start}", "--set", "campaign.max_steps=1",
     "--set", "optimizer.warmup_steps=0", "--set", "optimizer.min_lr=0", "--set", "optimizer.lr=1e-30"])
run([a.trainer, a.deck, *sets, "--set", f"output.directory={start}", "--export", f"{out}/weights"])

ours, peers, ratios = [], [], []
for i in range(a.repeat):
    text = run([a.trainer, a.deck, *sets, *quiet, "--fresh", "--set", f"output.directory={out}/ours", "--set", f"campaign.max_steps={a.steps}"])
    mine = losses(f"{out}/ours/metrics.jsonl")
    timed = [mine[s]["train/throughput"] for s in sorted(mine) if s > min(5, a.steps - 1)]
    ours.append(statistics.median(timed))
    peer = run([sys.executable, os.path.join(os.path.dirname(__file__), "peer_gpt.py"), a.deck, *sets, "--set", f"campaign.max_steps={a.steps}",
                "--weights", f"{out}/weights", "--steps", str(a.steps), "--losses", f"{out}/peer.jsonl",
                *(["--threads", str(a.threads)] if a.threads else []), *(["--device", a.device] if a.device else [])])
    result = re.search(r"RESULT.*", peer).group(0)
    peers.append(float(re.search(r"tokens/s=([\d.]+)", result).group(1)))
    ratios.append(ours[-1] / peers[-1])
    print(f"pair {i + 1}: ours {ours[-1]:.0f} tokens/s; peer {result[7:]}; ratio {ratios[-1]:.3f}", flush=True)
theirs = losses(f"{out}/peer.jsonl")
difference = {s: mine[s]["train/loss"] - theirs[s]["train/loss"] for s in mine}
worst = max(difference, key=lambda s: abs(difference[s]))
print(re.search(r"memory planned.*", text).group(0))
print(f"RESULT tokens/s ours {statistics.median(ours):.0f} ({min(ours):.0f} to {max(ours):.0f})  peer {statistics.median(peers):.0f} "
      f"({min(peers):.0f} to {max(peers):.0f})  ratio {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
print(f"RESULT loss over {len(mine)} steps: ours {mine[1]['train/loss']:.4f} to {mine[a.steps]['train/loss']:.4f}, peer {theirs[1]['train/loss']:.4f} to "
      f"{theirs[a.steps]['train/loss']:.4f}; largest difference {abs(difference[worst]):.5f} at step {worst}")
