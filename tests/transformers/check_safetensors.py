"""Writes files for our reader, or reads ours, with the safetensors package.

write FILE: tensors of every float type and shape, values a function of name and place.
read FILE DTYPE: fails unless FILE holds what the test wrote.
"""
import sys

import numpy as np
from safetensors import deserialize, safe_open
from safetensors.numpy import load_file, save_file

SHAPES = {"matrix": (3, 5), "vector": (7,), "scalar": (), "empty": (0, 4), "cube": (2, 3, 4)}


def values(shape):
    """Exact in all of float16, bfloat16, float32 and float64; both signs."""
    count = int(np.prod(shape, dtype=np.int64))
    return ((np.arange(count) % 64) * 0.25 - 4.0).reshape(shape)


def write(file):
    tensors = {}
    for name, shape in SHAPES.items():
        for dtype in ("float16", "float32", "float64"):
            tensors[f"{name}.{dtype}"] = values(shape).astype(dtype)
    half = np.arange(65536, dtype=np.uint32).astype(np.uint16).view(np.float16)
    tensors["all_halves"] = half
    tensors["all_halves.as_float32"] = half.astype(np.float32)
    tensors["integers"] = np.arange(6, dtype=np.int64)
    save_file(tensors, file, metadata={"format": "np"})


def read(file, dtype):
    with safe_open(file, "np") as opened:
        assert opened.metadata() == {"format": "pt", "größe": "\"klein\""}, opened.metadata()
        names = set(opened.keys())
    assert names == set(SHAPES), names
    if dtype == "bf16":  # which numpy lacks: the upper half of a float32
        with open(file, "rb") as opened:
            stored = dict(deserialize(opened.read()))
        assert all(t["dtype"] == "BF16" for t in stored.values()), stored
        loaded = {
            name: (np.frombuffer(t["data"], np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(t["shape"])
            for name, t in stored.items()
        }
    else:
        loaded = load_file(file)
        assert all(t.dtype == np.float32 for t in loaded.values())
    for name, shape in SHAPES.items():
        np.testing.assert_array_equal(loaded[name], values(shape).astype(np.float32), strict=True)


if sys.argv[1] == "write":
    write(sys.argv[2])
else:
    read(sys.argv[2], sys.argv[3])
