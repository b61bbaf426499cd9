"""Opens a checkpoint as users do. Arguments: checkpoint.h5, its step, 'plain' or 'virtual', a folder with
the expected values of each dataset (raw float32, '/' in names replaced by '.')."""
import os
import sys

import h5py
import numpy as np

file, step, layout, expected = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
SHAPES = {
    "model/embed_tokens/weight": (1031, 768),
    "model/layers/0/self_attn/q_proj/weight": (48, 96),
    "model/norm/weight": (97,),
    "optimizer/m/model/layers/0/self_attn/q_proj/weight": (48, 96),
    "optimizer/count": (),
}

with h5py.File(file, "r") as h5:
    attributes = dict(h5.attrs)
    assert attributes.pop("format") == "tern-checkpoint"
    assert attributes.pop("version") == 1
    assert attributes.pop("step") == step
    assert attributes.pop("tokens") == step * 1000
    assert attributes.pop("deck") == "&campaign name = 'test' /\n"
    assert len(attributes.pop("commit")) > 0
    assert attributes == {"best_loss": 3.25 + step, "note": "größer"}, attributes

    found = {}
    h5.visititems(lambda name, item: found.update({name: item}) if isinstance(item, h5py.Dataset) else None)
    assert {name: item.shape for name, item in found.items()} == SHAPES, found
    for name, item in found.items():
        assert item.dtype == np.dtype("<f4"), (name, item.dtype)
        if layout == "virtual":
            assert item.is_virtual and all(not os.path.isabs(v.file_name) for v in item.virtual_sources())
        elif item.shape:
            assert item.fletcher32 and item.chunks, name
            stored = np.prod([-(-n // c) * c for n, c in zip(item.shape, item.chunks)])
            assert stored < 1.01 * item.size + 1024, (name, item.chunks)
        wanted = np.fromfile(os.path.join(expected, name.replace("/", ".")), "<f4").reshape(item.shape)
        np.testing.assert_array_equal(item[()], wanted)
    matrix = found["model/embed_tokens/weight"]
    wanted = np.fromfile(os.path.join(expected, "model.embed_tokens.weight"), "<f4").reshape(matrix.shape)
    np.testing.assert_array_equal(matrix[250:700, 3:5], wanted[250:700, 3:5])
print("h5py", h5py.__version__, "HDF5", h5py.version.hdf5_version, "read", len(SHAPES), "datasets")
