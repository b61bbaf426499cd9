"""Cases of hostile checkpoints, made from honest ones (make_hostile.py)."""
import os
import shutil
import sys

import h5py

PLAIN, SHARDED, FOLDER = sys.argv[1:4]
NORM = "model/norm/weight"
CASES = []


def case(name, outcome, text="", source=PLAIN):
    """Decorator: makes the case by a function of the opened checkpoint.h5 and its folder."""
    def make(change):
        folder = os.path.join(FOLDER, name)
        shutil.copytree(source, folder)
        os.remove(os.path.join(folder, "checkpoint.sum"))
        with h5py.File(os.path.join(folder, "checkpoint.h5"), "r+") as h:
            change(h, folder)
        CASES.append((name, outcome, text))
        return change

    return make
