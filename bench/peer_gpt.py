"""The peer: the deck's GPT in PyTorch with torch.compile, on the same device, weights and batches. For kind =
'supervised' the model is Transformers' Qwen3ForCausalLM.

    ./trainer DECK --set campaign.max_steps=100 --print-deck > deck.in
    python3 bench/peer_gpt.py deck.in [--weights checkpoint.h5] [--losses FILE] [--device cpu|cuda] [--threads 2]
                              [--hours 0.333 --valid FILE] [--compute fp8 --fp8 rowwise] [--turns STEPS]

Runs the deck's max_steps; with --hours so long instead, from the end of the first step on, which compiles, the schedule
over that time. Prints one RESULT line: tokens/s (median of the steps after the first five), spread, memory. With
--weights it starts from a Tern checkpoint, otherwise from random values; with --losses it writes the losses of each
step, with --valid the validation losses of the deck's evaluations and the seconds of training before them. With --turns it
runs two steps, which compile, and then STEPS steps for each line of standard input (bench/turns.py), the RESULT in its TURN
lines; in between it gives back the memory of activations. Needs torch 2.11, numpy, h5py for --weights, transformers for
kind = 'supervised', and torchao for its recipes.
bench/compare.py runs both sides.
"""
import argparse, contextlib, itertools, json, statistics, sys, time
import torch
from torch.nn.attention import sdpa_kernel, SDPBackend

import peer_fp8
from peer_chat import ChatBatches
from peer_data import Batches
from peer_deck import listed, read_deck
from peer_model import GPT
from peer_objective import make_objective
from peer_optimizer import Optimizer
from peer_qwen3 import Qwen3


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("deck")
    p.add_argument("--weights")
    p.add_argument("--losses")
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    p.add_argument("--threads", type=int, default=0)
    p.add_argument("--hours", type=float, default=0)
    p.add_argument("--valid")
    p.add_argument("--attention", choices=["cudnn", "flash", "flex", "any"], default="cudnn",
                   help="on a GPU; flex, or what PyTorch chooses: for packed conversations only")
    p.add_argument(
        "--region", choices=["whole", "stack", "none"], default="whole",
        help="what torch.compile takes at once: the forward of a supervision step, or one pass of the blocks, "
        "which is ready in a third of the time")
    p.add_argument("--compute", choices=["fp32", "bf16", "fp8"], help="in place of the deck's precision")
    p.add_argument("--fp8", choices=peer_fp8.RECIPES, default="own", help="how: bench/peer_fp8.py")
    p.add_argument("--turns", type=int, default=0, help="steps per turn")
    return p.parse_args()


def main():
    a = parse()
    if a.threads:
        torch.set_num_threads(a.threads)
    torch.set_float32_matmul_precision("high")
    deck, cuda = read_deck(a.deck), a.device == "cuda"
    if a.compute:
        deck.precision.compute = a.compute
    dtype = torch.bfloat16 if cuda and deck.precision.compute in ("bf16", "fp8") else torch.float32
    supervised = deck.objective.kind == "supervised"
    model = (Qwen3(deck.model, a.device, "flex_attention" if a.attention == "flex" else "sdpa") if supervised else GPT(
        deck.model, dtype, a.device))
    if a.weights:
        model.load(a.weights)
    if deck.precision.compute == "fp8":
        peer_fp8.make_fp8(model.blocks, a.fp8, a.device)
    if a.region == "stack":
        model.stack, model.token_losses = torch.compile(model.stack), torch.compile(model.token_losses)
    objective = make_objective(deck, model,
                               lambda: torch.autocast("cuda", torch.bfloat16, enabled=dtype == torch.bfloat16),
                               torch.compile if a.region == "whole" else lambda f: f)
    optimizer = Optimizer(deck, model, dtype)
    per_rank = deck.batch.per_rank
    total = getattr(deck.batch, "global") or per_rank * max(1, deck.batch.accumulation)
    data = ChatBatches(deck) if supervised else Batches(listed(deck.data.train), deck.model.context, deck.campaign.seed)
    sync = torch.cuda.synchronize if cuda else lambda: None
    kernel = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}.get(a.attention)
    valid = [
        part.split(per_rank)
        for part in map(torch.from_numpy,
                        Batches(listed(deck.data.valid), deck.model.context, 0).first(deck.evaluation.rows))
    ] if a.valid else []
    losses, seconds, rates, points, elapsed, warmup = [], [], [], [], 0, 0  # elapsed: seconds after the first step

    def result(seconds, rates, skipped):
        timed = seconds[skipped:]
        peak = torch.cuda.max_memory_allocated() / 2**30 if cuda else 0
        how = f"fp8 ({a.fp8})" if deck.precision.compute == "fp8" else deck.precision.compute
        return (
            f"torch {torch.__version__} {'eager' if a.region == 'none' else 'compiled'} {how} "
            f"tokens/s={statistics.median(rates[skipped:]):.0f} step={statistics.median(timed) * 1e3:.1f} ms "
            f"({min(timed) * 1e3:.1f} to {max(timed) * 1e3:.1f}) last loss={losses[-1]['train/loss']:.4f} peak={peak:.1f} GiB"
        )

    def turn_ended(step):
        """After a turn: prints its result and waits for the next. False if none comes."""
        since = step - 2
        if since % a.turns:
            return True
        if since:
            print(f"TURN {result(seconds[-a.turns:], rates[-a.turns:], min(2, a.turns - 1))}", flush=True)
        if cuda:
            torch.cuda.empty_cache()
        print("READY", flush=True)
        return bool(sys.stdin.readline())

    def evaluate(step):
        with torch.no_grad(), objective.autocast():
            sums = [
                len(tokens) * objective.model(tokens.to(a.device), targets.to(a.device)).item()
                for tokens, targets in zip(*valid)
            ]
        points.append({"step": step, "seconds": elapsed, "val/loss": sum(sums) / sum(map(len, valid[0]))})
        print(json.dumps(points[-1]), flush=True)

    with sdpa_kernel(kernel) if cuda and kernel else contextlib.nullcontext():
        for step in itertools.count(1):
            share = elapsed / (3600 * a.hours) if a.hours else (step - 1) / deck.campaign.max_steps
            if share >= 1 and not a.turns:
                break
            if step == deck.optimizer.warmup_steps + 1:
                warmup = share
            batch = [torch.from_numpy(part).to(a.device) for part in data.step(step, total)]
            over = objective.total(batch)
            sync()
            start = time.time()
            sums = sum(objective.accumulate(*part, over) for part in zip(*(whole.split(per_rank) for whole in batch)))
            optimizer.step(step, (share, warmup) if a.hours else None)
            sync()
            seconds.append(time.time() - start)
            rates.append(objective.tokens(batch) / seconds[-1])
            losses.append(dict(zip(objective.names, sums.tolist())))
            if step > 1:
                elapsed += seconds[-1]
            if a.turns and step >= 2 and not turn_ended(step):
                break
            if valid and deck.evaluation.every and step % deck.evaluation.every == 0:
                evaluate(step)
        if valid and (not points or points[-1]["step"] != len(losses)):
            evaluate(len(losses))
    if a.valid:
        with open(a.valid, "w") as f:
            f.writelines(json.dumps(point) + "\n" for point in points)
    if a.losses:
        with open(a.losses, "w") as f:
            f.writelines(json.dumps({"step": i + 1, **l}) + "\n" for i, l in enumerate(losses))
    print(f"RESULT {result(seconds, rates, min(5, len(seconds) - 1))}", flush=True)


if __name__ == "__main__":
    main()
