"""The peer: the deck's GPT in PyTorch with torch.compile, on the same device, weights and batches.

    ./trainer DECK --set campaign.max_steps=100 --print-deck > deck.in
    python3 bench/peer_gpt.py deck.in [--weights checkpoint.h5] [--losses FILE] [--device cpu|cuda] [--threads 2]

Runs the deck's max_steps and prints one RESULT line: tokens/s (median of the steps after the first five), spread,
memory. With --weights it starts from a checkpoint of Tern, else from random values; with --losses it writes the
losses of each step. Needs torch 2.11, numpy, and h5py for --weights. bench/compare.py runs both sides.
"""
import argparse, contextlib, json, statistics, time
import torch
from torch.nn.attention import sdpa_kernel, SDPBackend

from peer_data import Batches
from peer_deck import listed, read_deck
from peer_model import GPT
from peer_objective import make_objective
from peer_optimizer import Optimizer


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("deck"); p.add_argument("--weights"); p.add_argument("--losses")
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    p.add_argument("--threads", type=int, default=0)
    p.add_argument("--attention", choices=["cudnn", "flash"], default="cudnn", help="on a GPU")
    p.add_argument("--region", choices=["whole", "stack", "none"], default="whole",
                   help="what torch.compile takes at once: the forward of a supervision step, or one pass of the blocks, "
                        "which is ready in a third of the time")
    return p.parse_args()


def main():
    a = parse()
    if a.threads: torch.set_num_threads(a.threads)
    torch.set_float32_matmul_precision("high")
    deck, cuda = read_deck(a.deck), a.device == "cuda"
    dtype = torch.bfloat16 if cuda and deck.precision.compute == "bf16" else torch.float32
    model = GPT(deck.model, dtype, a.device)
    if a.weights: model.load(a.weights)
    if a.region == "stack":
        model.stack, model.token_losses = torch.compile(model.stack), torch.compile(model.token_losses)
    objective = make_objective(deck, model, lambda: torch.autocast("cuda", torch.bfloat16, enabled=dtype == torch.bfloat16),
                               torch.compile if a.region == "whole" else lambda f: f)
    optimizer = Optimizer(deck, model, dtype)
    per_rank = deck.batch.per_rank
    total = getattr(deck.batch, "global") or per_rank * max(1, deck.batch.accumulation)
    data = Batches(listed(deck.data.train), deck.model.context, deck.campaign.seed)
    sync = torch.cuda.synchronize if cuda else lambda: None
    kernel = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}[a.attention]
    losses, seconds = [], []
    with sdpa_kernel(kernel) if cuda else contextlib.nullcontext():
        for step in range(1, deck.campaign.max_steps + 1):
            windows = torch.from_numpy(data.step(step, total)).to(a.device)
            sync(); start = time.time()
            sums = sum(objective.micro_step(part[:, :-1].contiguous(), part[:, 1:].contiguous(), total)
                       for part in windows.split(per_rank))
            optimizer.step(step)
            sync(); seconds.append(time.time() - start); losses.append(dict(zip(objective.names, sums.tolist())))
    if a.losses:
        with open(a.losses, "w") as f: f.writelines(json.dumps({"step": i + 1, **l}) + "\n" for i, l in enumerate(losses))
    timed = seconds[min(5, len(seconds) - 1):]; median = statistics.median(timed)
    peak = torch.cuda.max_memory_allocated() / 2**30 if cuda else 0
    print(f"RESULT torch {torch.__version__} {'eager' if a.region == 'none' else 'compiled'} {dtype} "
          f"tokens/s={total * deck.model.context / median:.0f} step={median * 1e3:.1f} ms "
          f"({min(timed) * 1e3:.1f} to {max(timed) * 1e3:.1f}) last loss={losses[-1]['train/loss']:.4f} "
          f"peak={peak:.1f} GiB", flush=True)


if __name__ == "__main__":
    main()
