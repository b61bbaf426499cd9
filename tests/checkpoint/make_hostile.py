"""Checkpoints that a stranger could have made, from honest ones. usage: make_hostile.py PLAIN SHARDED FOLDER

PLAIN, SHARDED: step folders with the tensors of small_tensors(). Writes FOLDER/CASE/checkpoint.h5 (and shards), without
checkpoint.sum, and FOLDER/cases.txt, a line per case: CASE, 'refused' or 'whole', and a text of the message.
"""
import os

import hostile_attributes  # noqa: F401, each makes its cases
import hostile_shapes  # noqa: F401
import hostile_storage  # noqa: F401
from hostile_cases import CASES, FOLDER

with open(os.path.join(FOLDER, "cases.txt"), "w") as f:
    for fields in CASES:
        f.write("\t".join(fields) + "\n")
