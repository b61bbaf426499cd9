"""Compares the trainer with PyTorch: same deck, device, initial weights and batches, in one run.

    python3 bench/compare.py DECK [--trainer ./trainer] [--steps 100] [--repeat 3] [--threads 2] [--set group.name=value ...]
                             [--peer=OPTIONS ...] [--random [--resident]]

Serves kind = 'causal', 'refinement' and 'supervised' (bench/peer_deck.py says what else). Prints tokens/s of both sides, run in
turn, with medians and the median of the pairwise ratios, and the largest difference of the two loss curves, including
the losses of each supervision step; --out DIR keeps them (ours/metrics.jsonl, peer.jsonl). --steps is also the schedule's
length, so a deck's warmup may need --set optimizer.warmup_steps. With --random each side draws its own weights and no
losses are compared: for models whose checkpoint would not fit here; none is written (the trainer is ended once it
has logged its steps). --peer several times: as many peers, each in turn, as --peer="--compute bf16"
--peer="--compute fp8 --fp8 rowwise". With --resident a peer compiles once and keeps its parameters on the device while the others
have their turns; --at_once of them compile at the same time, and so need their memory together. Needs torch 2.11, numpy,
h5py, and transformers for kind = 'supervised'. Nothing else should run on the device.
"""
import argparse, concurrent.futures, glob, json, os, re, shlex, statistics, subprocess, sys, tempfile

from peer_deck import read_deck
from turns import Program

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument("deck")
p.add_argument("--trainer", default="./trainer")
p.add_argument("--steps", type=int, default=100)
p.add_argument("--repeat", type=int, default=3)
p.add_argument("--threads", type=int, default=0)
p.add_argument("--device", default="")
p.add_argument("--set", action="append", default=[])
p.add_argument("--out", default="")
p.add_argument("--random", action="store_true", help="random weights, no checkpoint, no losses compared")
p.add_argument("--peer", action="append", help="further options of peer_gpt.py, as '--region stack --attention flash'")
p.add_argument("--resident", action="store_true", help="peers start once; with --random")
p.add_argument("--at_once", type=int, default=2, help="with --resident: peers that compile at the same time")
a = p.parse_args()
if a.resident and not a.random:
    p.error("--resident needs --random")
peer_options = a.peer or [""]
out = a.out or tempfile.mkdtemp(prefix="compare_")
os.makedirs(out, exist_ok=True)
env = dict(os.environ, **({"OMP_NUM_THREADS": str(a.threads)} if a.threads else {}))


def sets(*items):
    return [x for item in items for x in ("--set", item)]


def run(command, ends=(0,)):
    done = subprocess.run(command, env=env, text=True, errors="replace", stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode not in ends:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-4000:]}")
    return done.stdout


def train(directory, *more):
    command = [a.trainer, a.deck, "--fresh", *sets(*a.set, *quiet, f"output.directory={directory}", *more)]
    return run(command, ends=(0, 77))  # 77: a refinement run with a bad verdict, expected of so short a run


def train_without_end(directory):
    """Ends the trainer one step before its last, before it writes a checkpoint."""
    command = [
        a.trainer, a.deck, "--fresh",
        *sets(*a.set, *quiet, f"output.directory={directory}", f"campaign.max_steps={a.steps + 1}")
    ]
    text, process = "", subprocess.Popen(command, env=env, text=True, errors="replace", stdout=subprocess.PIPE,
                                         stderr=subprocess.STDOUT)
    for line in process.stdout:
        text += line
        if re.match(rf"[\d:]{{8}} +{a.steps}  ", line):
            process.kill()
            break
    process.stdout.close()
    if process.wait() >= 0:
        sys.exit(f"{' '.join(command)} ended with {process.returncode}:\n{text[-4000:]}")
    return text


def losses(path):
    return {r["step"]: r for r in map(json.loads, open(path)) if "train/loss" in r}


quiet = [
    "evaluation.every=0", "evaluation.target_loss=0", "evaluation.rows=1", "checkpoint.every=0", "output.log_every=1",
    "generation.samples=0"
]
length = f"campaign.max_steps={a.steps}"
with open(f"{out}/deck.in", "w") as f:
    f.write(run([a.trainer, a.deck, *sets(*a.set, length), "--print-deck"]))
read_deck(f"{out}/deck.in")  # refuses what the peer does not serve
# Weights that both start from: one step at a rate too small to change any.
weights = None
if not a.random:
    train(f"{out}/start", "campaign.max_steps=1", "optimizer.warmup_steps=0", "optimizer.min_lr=0",
          "optimizer.lr=1e-30", "optimizer.matrix_lr=0", "optimizer.embed_lr=0", "optimizer.head_lr=0")
    weights, = glob.glob(f"{out}/start/checkpoints/step_*/checkpoint.h5")


def command_of(peer):
    return [
        sys.executable,
        os.path.join(os.path.dirname(os.path.abspath(__file__)), "peer_gpt.py"), f"{out}/deck.in",
        *(["--weights", weights] if weights else []), *shlex.split(peer_options[peer]),
        *(["--threads", str(a.threads)] if a.threads else []), *(["--device", a.device] if a.device else [])
    ]


def resident(peer):
    program = Program([*command_of(peer), "--turns", str(max(3, a.steps - 3))], f"{out}/peer_{peer}.log",
                      {"OMP_NUM_THREADS": str(a.threads)} if a.threads else {})
    program.ready()
    return program


def loss_file(peer):
    return f"{out}/peer{peer or ''}.jsonl"


def peer_result(peer):
    if programs:
        return programs[peer].turn()
    return re.search(r"RESULT (.*)", run([*command_of(peer), "--losses", loss_file(peer)]))[1]


numbers, programs = range(len(peer_options)), []
if a.resident:
    with concurrent.futures.ThreadPoolExecutor(a.at_once) as pool:
        programs = list(pool.map(resident, numbers))
ours, peers = [], [[] for _ in numbers]
for i in range(a.repeat):
    text = train_without_end(f"{out}/ours") if a.random else train(f"{out}/ours", length)
    mine = losses(f"{out}/ours/metrics.jsonl")
    timed = [mine[s]["train/throughput"] for s in sorted(mine) if s > min(5, a.steps - 1)]
    ours.append(statistics.median(timed))
    for peer in numbers:
        result = peer_result(peer)
        peers[peer].append(float(re.search(r"tokens/s=([\d.]+)", result).group(1)))
        print(f"pair {i + 1}: ours {ours[-1]:.0f} tokens/s; peer {result}; ratio {ours[-1] / peers[peer][-1]:.3f}",
              flush=True)
for program in programs:
    program.end()
print(re.search(r"memory per rank.*" if a.random else r"memory planned.*", text).group(0))
for peer in numbers:
    ratios = [x / y for x, y in zip(ours, peers[peer])]
    print(f"RESULT tokens/s ours {statistics.median(ours):.0f} ({min(ours):.0f} to {max(ours):.0f})  "
          f"peer {statistics.median(peers[peer]):.0f} ({min(peers[peer]):.0f} to {max(peers[peer]):.0f})  "
          f"ratio {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})  {peer_options[peer]}".
          rstrip())
for peer in [] if a.random else numbers:
    theirs = losses(loss_file(peer))
    names = [name for name in theirs[1] if name.startswith("train/loss")]
    difference = {(s, name): abs(mine[s][name] - theirs[s][name]) for s in mine if s in theirs for name in names}
    if a.steps <= 10:
        for s in mine:
            print(f"step {s}: " +
                  "  ".join(f"{name[6:]} ours {mine[s][name]:.7f} peer {theirs[s][name]:.7f}" for name in names))
    for name in names:
        worst = max(mine, key=lambda s: difference[s, name])
        print(
            f"RESULT {name[6:]} over {len(mine)} steps: ours {mine[1][name]:.4f} to {mine[a.steps][name]:.4f}, "
            f"peer {theirs[1][name]:.4f} to {theirs[a.steps][name]:.4f}; largest difference {difference[worst, name]:.7f} at step {worst}"
        )
