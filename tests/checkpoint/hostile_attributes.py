"""Root attributes: the reader has a variable for one value of each."""
import os

import h5py
import numpy as np
from h5py import h5a, h5s, h5t

from hostile_cases import PLAIN, case


def stored_as(h, name, space, kind, data=None):
    """Replaces an attribute by one of any space and type."""
    if name in h.attrs:
        del h.attrs[name]
    attribute = h5a.create(h.id, name.encode(), kind, space)
    if data is not None:
        attribute.write(data)


TEXT = h5t.TypeID.copy(h5t.C_S1)
TEXT.set_size(64)
LONG = h5t.TypeID.copy(h5t.C_S1)
LONG.set_size(60000)
PAIR = h5t.py_create(np.dtype([("a", "i8"), ("b", "f8")]))
OPAQUE = h5t.create(h5t.OPAQUE, 64)
RAGGED = h5t.vlen_create(h5t.STD_I64LE)
with h5py.File(os.path.join(PLAIN, "checkpoint.h5")) as honest:
    NAMES = sorted(honest.attrs)
    TEXTS = {name for name in NAMES if isinstance(honest.attrs[name], str)}

for attr in NAMES:
    expected = f"'{attr}'"

    @case(f"{attr}_eight_integers", "refused", f"the attribute {expected} holds 8 values")
    def _(h, folder):
        h.attrs[attr] = np.full(8, 0x4141414141414141)

    @case(f"{attr}_eight_floats", "refused", expected)
    def _(h, folder):
        h.attrs[attr] = np.full((2, 4), 1.5)

    @case(f"{attr}_eight_fixed_texts", "refused", expected)
    def _(h, folder):
        stored_as(h, attr, h5s.create_simple((8,)), TEXT, np.full(8, b"x" * 63, "S64"))

    @case(f"{attr}_eight_texts", "refused", expected)
    def _(h, folder):
        h.attrs[attr] = ["x" * 1000] * 8

    @case(f"{attr}_of_array_type", "refused", expected)
    def _(h, folder):
        del h.attrs[attr]
        h.attrs.create(attr, np.full(4000, 1e300), dtype=np.dtype(("f8", (4000,))))

    @case(f"{attr}_of_no_value", "refused", expected)
    def _(h, folder):
        stored_as(h, attr, h5s.create(h5s.NULL), h5t.STD_I64LE)

    for kind, stored in (("compound", PAIR), ("opaque", OPAQUE), ("ragged", RAGGED)):

        @case(f"{attr}_{kind}", "refused", expected)
        def _(h, folder):
            stored_as(h, attr, h5s.create(h5s.SCALAR), stored)


for attr in ("step", "tokens", "version"):

    @case(f"{attr}_text", "refused", f"the attribute '{attr}' is not an integer")
    def _(h, folder):
        h.attrs[attr] = "10"

    @case(f"{attr}_float", "refused", f"the attribute '{attr}' is not an integer")
    def _(h, folder):
        h.attrs[attr] = 10.0


for attr in ("deck", "format"):

    @case(f"{attr}_number", "refused", f"the attribute '{attr}' is not a text")
    def _(h, folder):
        h.attrs[attr] = 3


@case("step_negative", "refused", "step -1")
def _(h, folder):
    h.attrs["step"] = -1


@case("step_of_2_bytes", "whole")  # converted to the variable's 8
def _(h, folder):
    h.attrs["step"] = np.array(10, ">u2")


@case("deck_of_60000_bytes", "whole")
def _(h, folder):
    stored_as(h, "deck", h5s.create(h5s.SCALAR), LONG, np.full((), b"x" * 60000, "S60000"))


@case("step_absent", "refused", "no root attribute 'step'")
def _(h, folder):
    del h.attrs["step"]


@case("attribute_of_another", "refused", "'mine' holds 5 values")
def _(h, folder):
    h.attrs["mine"] = np.arange(5)
