"""Shapes, types and groups."""
import h5py
import numpy as np
from h5py import h5d, h5s, h5t

from hostile_cases import NORM, case

for name, values in (("other_length", np.zeros(34, "f4")), ("matrix", np.zeros((33, 1),
                                                                               "f4")), ("scalar", np.float32(1))):

    @case(f"weight_of_{name}", "refused", "another model")
    def _(h, folder):
        del h[NORM]
        h[NORM] = values


for name, values in (("integers", np.zeros(33, "i4")), ("texts", np.full(33, b"x")),
                     ("compound", np.zeros(33, [("a", "f4"), ("b", "f4")])), ("complex", np.zeros(33, "c8")),
                     ("arrays", np.zeros(33, np.dtype(("f4", (4,)))))):

    @case(f"weight_of_{name}", "refused", "another model")
    def _(h, folder):
        del h[NORM]
        if name == "arrays":
            h5d.create(
                h.require_group("model/norm").id, b"weight", h5t.array_create(h5t.IEEE_F32LE, (4,)),
                h5s.create_simple((33,)))
        else:
            h[NORM] = values


for kind in ("f2", "f8", ">f4"):

    @case(f"weight_of_type_{kind.strip('>')}_{len(kind)}", "refused" if kind == "f2" else "whole", "differs")
    def _(h, folder):
        values = h[NORM][()]
        del h[NORM]
        h.create_dataset(NORM, data=values, dtype=kind)


@case("weight_of_no_value", "refused", "it has no values")
def _(h, folder):
    del h[NORM]
    h[NORM] = h5py.Empty("f4")


@case("weight_never_written", "refused", "another model")
def _(h, folder):
    del h[NORM]
    h.create_dataset(NORM, (2**40,), "f4", chunks=(1024,))


@case("weight_larger_than_memory", "refused", "larger than memory")
def _(h, folder):
    del h[NORM]
    h.create_dataset(NORM, (2**33, 2**31), "f4", chunks=(1, 1024))


@case("weight_in_chunks_beyond_it", "refused", "chunks")
def _(h, folder):
    del h[NORM]
    h.create_dataset(NORM, (33,), "f4", chunks=(2**29,), maxshape=(None,), compression="gzip")


@case("unneeded_never_written", "whole")
def _(h, folder):
    h.create_dataset("optimizer/x", (2**40,), "f4", chunks=(1024,))


@case("unneeded_larger_than_memory", "whole")
def _(h, folder):
    h.create_dataset("optimizer/x", (2**33, 2**31), "f4", chunks=(1, 1024))


@case("groups_3000_deep", "refused", "nested more than 32 levels")
def _(h, folder):
    group = h["optimizer"]
    for _ in range(3000):
        group = group.create_group("g")


@case("groups_in_a_circle", "refused", "nested more than 32 levels")
def _(h, folder):
    for i in range(8):
        h[f"optimizer/{i}"] = h["optimizer"]


@case("name_that_moves_the_cursor", "refused", "/model/\\x1b[31mX\\nerror: all is well")
def _(h, folder):
    h["model/\x1b[31mX\nerror: all is well"] = np.zeros(3, "f4")


@case("group_in_place_of_a_weight", "refused", "another model")
def _(h, folder):
    del h[NORM]
    h.create_group(NORM)


@case("type_in_place_of_a_weight", "refused", "another model")
def _(h, folder):
    del h[NORM]
    h[NORM] = np.dtype("f4")
