"""The deck's batches: the shards, split into windows and visited in the order of lib/data/shuffle.cpp."""
import glob, struct
import numpy as np


def open_shards(patterns):
    shards = []
    for pattern in patterns:
        for name in sorted(glob.glob(pattern)):
            magic, version, count = struct.unpack("<3i", open(name, "rb").read(12))
            if magic == 20240520:
                shards.append(np.memmap(name, np.uint16 if version == 1 else np.uint32, "r", 1024, (count,)))
            else:
                shards.append(np.memmap(name, np.uint16, "r"))
    return shards


def philox(counter, key):
    c, k, mask = list(counter), list(key), 0xFFFFFFFF
    for r in range(10):
        if r:
            k = [(k[0] + 0x9E3779B9) & mask, (k[1] + 0xBB67AE85) & mask]
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & mask, (p0 >> 32) ^ c[3] ^ k[1], p0 & mask]
    return c


def shuffled_window(sample, windows, seed):
    half = 1
    while half < 32 and 1 << 2 * half < windows:
        half += 1
    epoch, v, mask = sample // windows, sample % windows, (1 << half) - 1
    while True:
        left, right = v >> half, v & mask
        for r in range(6):
            left, right = right, (left ^ philox((right, r, epoch & 0xFFFFFFFF, (epoch >> 32) ^ (2 << 16)),
                                                (seed & 0xFFFFFFFF, seed >> 32))[0]) & mask
        v = left << half | right
        if v < windows:
            return v


class Batches:
    def __init__(self, patterns, length, seed):
        self.shards, self.length, self.seed = open_shards(patterns), length, seed
        self.counts = [max(0, (len(s) - 1) // length) for s in self.shards]
        self.windows = sum(self.counts)

    def sample(self, g):
        w = shuffled_window(g, self.windows, self.seed)
        for shard, count in zip(self.shards, self.counts):
            if w < count:
                return np.asarray(shard[w * self.length:(w + 1) * self.length + 1], dtype=np.int64)
            w -= count

    def first(self, sequences):
        """Tokens and targets of the first windows, in order: validation."""
        windows = [
            np.asarray(s[i * self.length:(i + 1) * self.length + 1], dtype=np.int64)
            for s, count in zip(self.shards, self.counts) for i in range(count)
        ][:sequences]
        return np.stack(windows)[:, :-1].copy(), np.stack(windows)[:, 1:].copy()

    def step(self, step, sequences):
        """Batch of optimizer step 1, 2, ...: tokens and targets (sequences, length)."""
        windows = np.stack([self.sample((step - 1) * sequences + i) for i in range(sequences)])
        return np.ascontiguousarray(windows[:, :-1]), np.ascontiguousarray(windows[:, 1:])
