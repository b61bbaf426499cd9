"""Checkpoints of a stranger through the real trainer: loaded, resumed, exported. tests/checkpoint has the many cases. Needs h5py.

    hostile.py TRAINER MPIRUN PREPARE [unittest arguments]
"""
import os, shutil

import h5py
import numpy as np

from stranger import Stranger, sets
from tiny import main

NORM = "model/norm/weight"
MASK = 2**64 - 1
PRIMES = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)


def rotated(x, n):
    return (x << n | x >> 64 - n) & MASK


def mixed(lane, word):
    return rotated((lane + word * PRIMES[1]) & MASK, 31) * PRIMES[0] & MASK


def xxh64(data):
    """XXH64 with seed 0, as in checkpoint.sum: anybody can make one that fits."""
    words = np.frombuffer(data[:len(data) // 8 * 8], "<u8").tolist()
    at, h = 0, PRIMES[4]
    if len(data) >= 32:
        lanes = [(PRIMES[0] + PRIMES[1]) & MASK, PRIMES[1], 0, -PRIMES[0] & MASK]
        while at + 4 <= len(words):
            lanes = [mixed(lane, word) for lane, word in zip(lanes, words[at:at + 4])]
            at += 4
        h = sum(rotated(lane, n) for lane, n in zip(lanes, (1, 7, 12, 18))) & MASK
        for lane in lanes:
            h = ((h ^ mixed(0, lane)) * PRIMES[0] + PRIMES[3]) & MASK
    h = (h + len(data)) & MASK
    for word in words[at:]:
        h = (rotated(h ^ mixed(0, word), 27) * PRIMES[0] + PRIMES[3]) & MASK
    rest = data[len(words) * 8:]
    if len(rest) >= 4:
        h = (rotated(h ^ int.from_bytes(rest[:4], "little") * PRIMES[0] & MASK, 23) * PRIMES[1] + PRIMES[2]) & MASK
        rest = rest[4:]
    for byte in rest:
        h = rotated(h ^ byte * PRIMES[4] & MASK, 11) * PRIMES[0] & MASK
    h = (h ^ h >> 33) * PRIMES[1] & MASK
    h = (h ^ h >> 29) * PRIMES[2] & MASK
    return h ^ h >> 32


def sealed(folder, names=("checkpoint.h5",)):
    lines = ""
    for name in names:
        with open(os.path.join(folder, name), "rb") as f:
            data = f.read()
        lines += f"{xxh64(data):016x} {len(data)} {name}\n"
    with open(os.path.join(folder, "checkpoint.sum"), "w") as f:
        f.write(lines + f"{xxh64(lines.encode()):016x} end\n")


def eight(h):
    h.attrs["step"] = np.full(8, 0x4141414141414141)


def passwd(h):
    del h[NORM]
    h.create_dataset(NORM, (32,), "f4", external=[("/etc/passwd", 0, h5py.h5f.UNLIMITED)])


def link(h):
    del h[NORM]
    h[NORM] = h5py.ExternalLink("../outside/secret.h5", NORM)


def mapping(h):
    del h[NORM]
    layout = h5py.VirtualLayout((32,), "f4")
    layout[...] = h5py.VirtualSource("../outside/secret.h5", NORM, shape=(32,))
    h.create_virtual_dataset(NORM, layout)


def endless(h):
    del h[NORM]
    h.create_dataset(NORM, (2**40,), "f4", chunks=(1024,))


def deep(h):
    group = h["optimizer"]
    for _ in range(3000):
        group = group.create_group("g")


def escape(h):
    h["model/\x1b[31mX\nerror: nothing"] = np.zeros(3, "f4")


CASES = ((eight, "holds 8 values"), (passwd, "external storage"), (link, "link to another file"),
         (mapping, "only shard_NNNN.h5"), (endless, "another model"), (deep, "nested more than 32 levels"),
         (escape, "\\x1b[31mX\\nerror: nothing"))


class Hostile(Stranger):
    def setUp(self):
        super().setUp()
        self.deck(6)
        self.run_trainer()

    def test_the_hash_is_the_checkpoints(self):
        folder = self.file("run/checkpoints/step_00000006")
        before = self.read("run/checkpoints/step_00000006/checkpoint.sum")
        sealed(folder)
        self.assertEqual(self.read("run/checkpoints/step_00000006/checkpoint.sum"), before)

    def test_every_way_in(self):
        """A file, a folder with a fitting checkpoint.sum, a run."""
        honest = self.file("run/checkpoints/step_00000006")
        shutil.copy(f"{honest}/checkpoint.h5", self.file("outside/secret.h5"))
        for change, why in CASES:
            shutil.rmtree(self.file("evil"), ignore_errors=True)
            shutil.copytree(self.file("run"), self.file("evil"))
            step = self.file("evil/checkpoints/step_00000006")
            with h5py.File(f"{step}/checkpoint.h5", "r+") as h:
                change(h)
            sealed(step)
            shutil.copy(f"{step}/checkpoint.h5", self.file("evil.h5"))
            for name, words in (("evil.h5", ("--export", "new", *sets("generation.checkpoint='evil.h5'"))),
                                ("evil.h5", sets("model.load='evil.h5'",
                                                 "output.directory='o'")), ("evil.h5",
                                                                            sets("model.load='evil.h5'",
                                                                                 "model.load_rule='matching'",
                                                                                 "output.directory='o'")),
                                ("step_00000006", ("--export", "new",
                                                   *sets("generation.checkpoint='evil/checkpoints/step_00000006'"))),
                                ("step_00000006", ("--resume",
                                                   *sets("output.directory='evil'", "campaign.max_steps=8"))),
                                ("evil",
                                 sets("campaign.task='evaluate'", "generation.checkpoint='evil'",
                                      "output.directory='o'"))):
                if "model.load_rule='matching'" in words and change in (endless, escape):
                    continue  # what does not match is not taken
                shutil.rmtree(self.file("o"), ignore_errors=True)
                with self.subTest(change.__name__, words=words):
                    self.refused(*words, naming=name, why=why)
                    self.assertFalse(os.path.exists(self.file("new")))

    def test_what_is_not_needed_is_not_read(self):
        """Users may add to a file; values that nobody wrote cost no time."""
        shutil.copy(self.file("run/checkpoints/step_00000006/checkpoint.h5"), self.file("mine.h5"))
        with h5py.File(self.file("mine.h5"), "r+") as h:
            h.create_dataset("optimizer/x", (2**40,), "f4", chunks=(1024,))
            h["optimizer/link"] = h5py.SoftLink("/nowhere")
            h["elsewhere"] = h5py.ExternalLink("absent.h5", "/")
            h.attrs["note"] = "größer"
        self.fine("--export", "new", *sets("generation.checkpoint='mine.h5'"))
        self.fine("--export", "same")
        with open(self.file("new/model.safetensors"), "rb") as a, open(self.file("same/model.safetensors"), "rb") as b:
            self.assertEqual(a.read(), b.read())


if __name__ == "__main__":
    main()
