"""The peer: the deck's GPT in PyTorch with torch.compile, on the same device, weights and batches.

    ./trainer DECK --set campaign.max_steps=1 --set optimizer.lr=1e-30 --set optimizer.warmup_steps=0 ... --export DIR
    python3 bench/peer_gpt.py DECK --weights DIR --steps 100 [--losses FILE] [--device cpu|cuda] [--threads 2]

Prints one RESULT line: tokens/s (median of the steps after the first five), spread, memory. With --weights it
starts from an exported Transformers directory, else from random values; with --losses it writes one loss a step.
Batches are the deck's own: the shards, cut into windows and visited in the order of lib/data/shuffle.cpp.
bench/compare.py runs both sides and sets them side by side.
"""
import argparse, glob, json, math, os, re, statistics, struct, time
import numpy as np, torch, torch.nn as nn, torch.nn.functional as F


def read_deck(path, overrides):
    """Enough of a namelist for our own decks: group -> name -> text or list."""
    text = re.sub(r"!.*", "", open(path).read())
    deck = {}
    for group, body in re.findall(r"&(\w+)(.*?)(?:\s/\s|\s/$)", text + "\n", re.S):
        parts = re.split(r"(\w+)\s*=", body)[1:]
        deck[group] = {k: [v.strip(" '\"\n\t") for v in re.split(r",", val.strip().rstrip(","))]
                       for k, val in zip(parts[::2], parts[1::2])}
    for item in overrides:
        key, value = item.split("=", 1)
        group, name = key.split(".")
        deck.setdefault(group, {})[name] = [v.strip(" '\"") for v in value.split(",")]
    return deck


def value(deck, group, name, default):
    text = deck.get(group, {}).get(name, [None])[0]
    if text is None or text == "": return default
    return type(default)(float(text)) if isinstance(default, (int, float)) else text


# ---- data: the same windows in the same order ---------------------------------------------------------------
def open_shards(patterns):
    shards = []
    for pattern in patterns:
        for name in sorted(glob.glob(pattern)):
            magic, version, count = struct.unpack("<3i", open(name, "rb").read(12))
            if magic == 20240520: shards.append(np.memmap(name, np.uint16 if version == 1 else np.uint32, "r", 1024, (count,)))
            else: shards.append(np.memmap(name, np.uint16, "r"))
    return shards


def philox(counter, key):
    c, k, mask = list(counter), list(key), 0xFFFFFFFF
    for r in range(10):
        if r: k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & mask, (p0 >> 32) ^ c[3] ^ k[1], p0 & mask]
    return c


def shuffled_window(sample, windows, seed):
    half = 1
    while half < 32 and 1 << 2 * half < windows: half += 1
    epoch, v, mask = sample // windows, sample % windows, (1 << half) - 1
    while True:
        left, right = v >> half, v & mask
        for r in range(6):
            left, right = right, (left ^ philox((right, r, epoch & 0xFFFFFFFF, (epoch >> 32) ^ (2 << 16)),
                                                (seed & 0xFFFFFFFF, seed >> 32))[0]) & mask
        v = left << half | right
        if v < windows: return v


class Batches:
    def __init__(self, patterns, length, seed):
        self.shards, self.length, self.seed = open_shards(patterns), length, seed
        self.counts = [max(0, (len(s) - 1) // length) for s in self.shards]
        self.windows = sum(self.counts)

    def sample(self, g):
        w = shuffled_window(g, self.windows, self.seed)
        for shard, count in zip(self.shards, self.counts):
            if w < count: return np.asarray(shard[w * self.length:(w + 1) * self.length + 1], dtype=np.int64)
            w -= count


# ---- model: Llama as torch.compile likes it -------------------------------------------------------------------
class Block(nn.Module):
    def __init__(self, D, H, K, E, ffn, eps):
        super().__init__()
        self.H, self.K, self.E, self.eps = H, K, E, eps
        self.n1, self.n2 = nn.Parameter(torch.ones(D)), nn.Parameter(torch.ones(D))
        self.qkv, self.o = nn.Linear(D, (H + 2 * K) * E, bias=False), nn.Linear(H * E, D, bias=False)
        self.up, self.down = nn.Linear(D, 2 * ffn, bias=False), nn.Linear(ffn, D, bias=False)

    def forward(self, x, cos, sin):
        B, T, D = x.shape
        q, k, v = self.qkv(F.rms_norm(x, (D,), self.n1.to(x.dtype), self.eps)).view(B, T, -1, self.E).transpose(1, 2).split([self.H, self.K, self.K], 1)
        def rotate(t):
            a, b = t.chunk(2, -1)
            return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
        y = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True, enable_gqa=self.K != self.H)
        x = x + self.o(y.transpose(1, 2).reshape(B, T, -1))
        gate, up = self.up(F.rms_norm(x, (D,), self.n2.to(x.dtype), self.eps)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


class GPT(nn.Module):
    def __init__(self, deck, dtype, device):
        super().__init__()
        m = lambda name, default: value(deck, "model", name, default)
        self.L, D, H = m("layers", 12), m("hidden", 768), m("heads", 12)
        K, self.T, self.V, self.eps = m("kv_heads", 0) or H, m("context", 1024), m("vocabulary", 50304), m("norm_eps", 1e-5)
        E = m("head_dim", 0) or D // H
        ffn = m("ffn_hidden", 0) or (8 * D // 3 + 63) // 64 * 64
        self.dtype = dtype
        self.embed = nn.Embedding(self.V, D)
        self.blocks = nn.ModuleList([Block(D, H, K, E, ffn, self.eps) for _ in range(self.L)])
        self.norm = nn.Parameter(torch.ones(D))
        angle = torch.outer(torch.arange(self.T).float(), m("rope_base", 10000.0) ** (-torch.arange(0, E, 2).float() / E))
        self.register_buffer("cos", angle.cos().to(dtype)); self.register_buffer("sin", angle.sin().to(dtype))
        for p in self.parameters():
            if p.dim() > 1: nn.init.normal_(p, std=0.02)
        self.to(device)

    def forward(self, tokens, targets):
        x = self.embed(tokens).to(self.dtype)
        for block in self.blocks: x = block(x, self.cos, self.sin)
        x = F.rms_norm(x, (x.shape[-1],), self.norm.to(x.dtype), self.eps)
        return F.cross_entropy(F.linear(x, self.embed.weight.to(x.dtype)).float().view(-1, self.V), targets.view(-1))

    def load(self, directory):
        from safetensors.torch import load_file
        w = load_file(os.path.join(directory, "model.safetensors"))
        with torch.no_grad():
            self.embed.weight.copy_(w["model.embed_tokens.weight"]); self.norm.copy_(w["model.norm.weight"])
            for i, b in enumerate(self.blocks):
                at = lambda name: w[f"model.layers.{i}.{name}.weight"]
                b.qkv.weight.copy_(torch.cat([at(f"self_attn.{n}_proj") for n in "qkv"])); b.o.weight.copy_(at("self_attn.o_proj"))
                b.up.weight.copy_(torch.cat([at("mlp.gate_proj"), at("mlp.up_proj")])); b.down.weight.copy_(at("mlp.down_proj"))
                b.n1.copy_(at("input_layernorm")); b.n2.copy_(at("post_attention_layernorm"))


def learning_rate(deck, step, max_steps):
    o = lambda name, default: value(deck, "optimizer", name, default)
    lr, low, warmup = o("lr", 3e-4), o("min_lr", 0.0), o("warmup_steps", 0)
    if step <= warmup: return lr * step / warmup
    progress = min(1, (step - warmup) / max(1, max_steps - warmup))
    return low + (lr - low) * 0.5 * (1 + math.cos(math.pi * progress))  # cosine


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("deck"); p.add_argument("--set", action="append", default=[]); p.add_argument("--weights")
    p.add_argument("--steps", type=int, default=30); p.add_argument("--losses"); p.add_argument("--eager", action="store_true")
    p.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu"); p.add_argument("--threads", type=int, default=0)
    p.add_argument("--attention", default="cudnn")
    a = p.parse_args()
    if a.threads: torch.set_num_threads(a.threads)
    torch.set_float32_matmul_precision("high")
    deck, cuda = read_deck(a.deck, a.set), a.device == "cuda"
    dtype = torch.bfloat16 if cuda and value(deck, "precision", "compute", "fp32") == "bf16" else torch.float32
    model = GPT(deck, dtype, a.device)
    if a.weights: model.load(a.weights)
    step_model = model if a.eager else torch.compile(model)
    o = lambda name, default: value(deck, "optimizer", name, default)
    matrices = [q for q in model.parameters() if q.dim() > 1]; vectors = [q for q in model.parameters() if q.dim() == 1]
    betas = tuple(float(b) for b in deck.get("optimizer", {}).get("betas", ["0.9", "0.95"]))
    adam = torch.optim.AdamW([{"params": matrices, "weight_decay": o("weight_decay", 0.1)}, {"params": vectors, "weight_decay": 0.0}],
                             lr=o("lr", 3e-4), betas=betas, eps=o("eps", 1e-8), fused=True)
    per_rank = value(deck, "batch", "per_rank", 8); total = value(deck, "batch", "global", 0) or per_rank
    data = Batches(deck["data"]["train"], model.T, value(deck, "campaign", "seed", 1337))
    max_steps, clip, sync = value(deck, "campaign", "max_steps", 1000), o("grad_clip", 1.0), torch.cuda.synchronize if cuda else lambda: None
    losses, seconds = [], []
    import contextlib
    from torch.nn.attention import sdpa_kernel, SDPBackend
    context = sdpa_kernel({"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}[a.attention]) if cuda else contextlib.nullcontext()
    with context:
        for step in range(1, a.steps + 1):
            windows = torch.from_numpy(np.stack([data.sample((step - 1) * total + i) for i in range(total)]))
            if cuda: windows = windows.to(a.device)
            for group in adam.param_groups: group["lr"] = learning_rate(deck, step, max_steps)
            sync(); start, mean = time.time(), 0.0
            for part in windows.split(per_rank):
                with torch.autocast("cuda", torch.bfloat16, enabled=dtype == torch.bfloat16):
                    loss = step_model(part[:, :-1].contiguous(), part[:, 1:].contiguous()) * (len(part) / total)
                loss.backward(); mean = mean + loss.detach()
            if clip: torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            adam.step(); adam.zero_grad(set_to_none=True); sync()
            seconds.append(time.time() - start); losses.append(float(mean))
    if a.losses: open(a.losses, "w").write("".join(json.dumps({"step": i + 1, "train/loss": l}) + "\n" for i, l in enumerate(losses)))
    timed = seconds[min(5, len(seconds) - 1):]; median = statistics.median(timed)
    peak = torch.cuda.max_memory_allocated() / 2**30 if cuda else 0
    print(f"RESULT torch {torch.__version__} {'eager' if a.eager else 'compiled'} {dtype} tokens/s={total * model.T / median:.0f} "
          f"step={median * 1e3:.1f} ms ({min(timed) * 1e3:.1f} to {max(timed) * 1e3:.1f}) last loss={losses[-1]:.4f} peak={peak:.1f} GiB", flush=True)


if __name__ == "__main__":
    main()
