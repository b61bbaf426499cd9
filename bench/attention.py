"""Times PyTorch's scaled_dot_product_attention at the shapes of bench/attention.cpp, causal; the shortest
of many runs:  python bench/attention.py [repetitions [threads]]
With one thread: processor time, which other work on the machine does not add to. The default is two."""
import sys
import time

import torch
from torch.nn.functional import scaled_dot_product_attention

threads = int(sys.argv[2]) if len(sys.argv) > 2 else 2
torch.set_num_threads(threads)
clock = time.process_time if threads == 1 else time.perf_counter
repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 50


def shortest(run):
    run()
    times = []
    for _ in range(repetitions):
        start = clock()
        run()
        times.append(clock() - start)
    return min(times) * 1e3


for batch, heads, kv_heads, queries, keys, size in [(8, 4, 4, 256, 256, 64), (4, 8, 8, 1024, 1024, 64),
                                                    (4, 8, 2, 1024, 1024, 64), (2, 4, 4, 1024, 1024, 128),
                                                    (8, 4, 4, 1, 256, 64), (8, 8, 8, 1, 1024, 64)]:
    # (B, T, heads, E) in memory, as a projection leaves it.
    q = torch.randn(batch, queries, heads, size).transpose(1, 2).requires_grad_()
    k, v = (torch.randn(batch, keys, kv_heads, size).transpose(1, 2).requires_grad_() for _ in range(2))

    def forward():
        return scaled_dot_product_attention(q, k, v, is_causal=queries > 1, enable_gqa=heads != kv_heads)

    with torch.no_grad():
        forward_time = shortest(forward)
    out = forward()
    gradient = torch.randn(batch, queries, heads, size).transpose(1, 2)
    backward_time = shortest(lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True))
    print(
        f"fp32  B={batch} H={heads} K={kv_heads} Tq={queries:<5d} Tk={keys:<5d} E={size:<4d} "
        f"forward {forward_time:9.3f} ms   backward {backward_time:9.3f} ms", flush=True)
