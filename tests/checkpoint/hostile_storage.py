"""Values that are elsewhere: external storage, links, mappings of virtual datasets."""
import os
import shutil

import h5py
import numpy as np
from h5py import h5d, h5p, h5s, h5t

from hostile_cases import FOLDER, NORM, PLAIN, SHARDED, case

# ---- values that are elsewhere


def external(h, path, shape, file, name=NORM):
    del h[name]
    h.create_dataset(name, shape, "f4", external=[(file, 0, h5py.h5f.UNLIMITED)])


SECRET = os.path.join(FOLDER, "secret.h5")  # the user's own checkpoint
shutil.copy(os.path.join(PLAIN, "checkpoint.h5"), SECRET)
PIPE = os.path.join(FOLDER, "pipe")
os.mkfifo(PIPE)

for name, file in (("passwd", "/etc/passwd"), ("pipe", PIPE), ("relative", "../secret.h5")):

    @case(f"external_storage_{name}", "refused", "external storage")
    def _(h, folder):
        external(h, folder, (33,), file)

    @case(f"external_storage_{name}_unneeded", "whole")
    def _(h, folder):
        h.create_dataset("optimizer/x", (33,), "f4", external=[(file, 0, h5py.h5f.UNLIMITED)])


for name, file in (("absolute", SECRET), ("relative", "../secret.h5"), ("pipe", PIPE), ("passwd", "/etc/passwd"),
                   ("absent", "absent.h5")):

    @case(f"external_link_{name}", "refused", f"/{NORM} is a link to another file")
    def _(h, folder):
        del h[NORM]
        h[NORM] = h5py.ExternalLink(file, NORM)

    @case(f"external_link_{name}_of_a_group", "refused", "/model/layers is a link to another file")
    def _(h, folder):
        del h["model/layers"]
        h["model/layers"] = h5py.ExternalLink(file, "model/layers")

    @case(f"external_link_{name}_unneeded", "whole")
    def _(h, folder):
        h["optimizer/x"] = h5py.ExternalLink(file, "model/layers")


for name, target in (("inside", "/optimizer/m/model/norm/weight"), ("nowhere", "/absent"), ("itself", f"/{NORM}")):

    @case(f"soft_link_{name}", "refused", f"/{NORM} is a soft link")
    def _(h, folder):
        del h[NORM]
        h[NORM] = h5py.SoftLink(target)

    @case(f"soft_link_{name}_unneeded", "whole")
    def _(h, folder):
        h["optimizer/x"] = h5py.SoftLink(target)


@case("soft_link_through_a_link_outside", "refused", "is a soft link")
def _(h, folder):
    h["optimizer/x"] = h5py.ExternalLink(SECRET, "/")
    del h[NORM]
    h[NORM] = h5py.SoftLink(f"/optimizer/x/{NORM}")


# ---- mappings of virtual datasets


def mapped(h, file, shape=(33,), source=(33,), name=NORM, select=None, key="/data"):
    if name in h:
        del h[name]
    layout = h5py.VirtualLayout(shape, "f4")
    origin = h5py.VirtualSource(file, key, shape=source)
    layout[...] = origin if select is None else origin[select]
    h.create_virtual_dataset(name, layout, fillvalue=0)


def shard(folder, values, name="shard_0000.h5", **options):
    with h5py.File(os.path.join(folder, name), "w") as s:
        return s.create_dataset("data", data=values, **options).shape


def raw_mapping(h, target, source, file=b"shard_0000.h5", key=b"/data"):
    """One mapping as given; NORM has 33 elements."""
    del h[NORM]
    create = h5p.create(h5p.DATASET_CREATE)
    create.set_virtual(target, file, key, source)
    links = h5p.create(h5p.LINK_CREATE)
    links.set_create_intermediate_group(True)
    space = h5s.create_simple((33,), target.get_simple_extent_dims(True))
    h5d.create(h.id, NORM.encode(), h5t.IEEE_F32LE, space, create, links)


for name, file in (("absolute", SECRET), ("above", "../secret.h5"), ("pipe", PIPE), ("itself", "."),
                   ("same_file", "checkpoint.h5"), ("long_name", "shard_00000.h5"), ("hidden_path", "x/shard_0000.h5"),
                   ("control", "shard_\x1b[2J.h5")):

    @case(f"mapped_{name}", "refused", "only shard_NNNN.h5 next to it is read")
    def _(h, folder):
        mapped(h, file, key=NORM)


@case("mapped_source_of_32_dimensions", "refused", "32 dimensions of a shard")
def _(h, folder):
    shard(folder, np.zeros(33, "f4"))
    source = h5s.create_simple((1,) * 31 + (33,))
    source.select_hyperslab((0,) * 32, (1,) * 31 + (33,))
    raw_mapping(h, h5s.create_simple((33,)), source)


@case("mapped_source_without_elements", "refused", "has 0 values")
def _(h, folder):
    shard(folder, np.zeros(0, "f4"))
    mapped(h, "shard_0000.h5")


@case("mapped_source_too_short", "refused", "has 20 values")
def _(h, folder):
    shard(folder, np.zeros(20, "f4"))
    mapped(h, "shard_0000.h5")


@case("mapped_source_from_far_on", "refused", "has 33 values")
def _(h, folder):
    shard(folder, np.zeros(33, "f4"))
    mapped(h, "shard_0000.h5", source=(2**40,), select=slice(2**39, 2**39 + 33))


@case("mapped_with_gaps", "refused", "gaps")
def _(h, folder):
    shard(folder, np.zeros(99, "f4"))
    mapped(h, "shard_0000.h5", source=(99,), select=slice(0, 99, 3))


@case("mapped_in_part", "refused", "do not cover all")
def _(h, folder):
    shard(folder, np.zeros(33, "f4"))
    target = h5s.create_simple((33,))
    target.select_hyperslab((0,), (5,))
    source = h5s.create_simple((33,))
    source.select_hyperslab((0,), (5,))
    raw_mapping(h, target, source)


@case("mapped_to_nothing", "refused")
def _(h, folder):
    del h[NORM]
    h.create_virtual_dataset(NORM, h5py.VirtualLayout((33,), "f4"), fillvalue=0)


def unbounded():
    space = h5s.create_simple((33,), (h5s.UNLIMITED,))
    space.select_hyperslab((0,), (h5s.UNLIMITED,), block=(33,), stride=(33,))
    return space


for name, file, source in (("without_bounds", b"shard_0000.h5", unbounded()), ("numbered", b"shard_000%b.h5",
                                                                               h5s.create_simple((33,)))):

    @case(f"mapped_{name}", "refused")
    def _(h, folder):
        shard(folder, np.zeros(33, "f4"), chunks=(33,), maxshape=(None,))
        raw_mapping(h, unbounded(), source, file)


for name, change in (("integers",
                      lambda f: shard(f, np.zeros(33, "i8"))), ("matrix", lambda f: shard(f, np.zeros(
                          (33, 1), "f4"))), ("scalar", lambda f: shard(f, np.float32(1))),
                     ("compound", lambda f: shard(f, np.zeros(33, [("a", "f4")])))):

    @case(f"shard_of_{name}", "refused", "contains no row of floats")
    def _(h, folder):
        change(folder)
        mapped(h, "shard_0000.h5")


@case("shard_is_a_pipe", "refused", "is a pipe")
def _(h, folder):
    mapped(h, "shard_0000.h5")
    os.mkfifo(os.path.join(folder, "shard_0000.h5"))


@case("shard_is_a_folder", "refused")
def _(h, folder):
    mapped(h, "shard_0000.h5")
    os.mkdir(os.path.join(folder, "shard_0000.h5"))


@case("shard_is_a_device", "refused", "link out of its folder")
def _(h, folder):
    mapped(h, "shard_0000.h5")
    os.symlink("/dev/zero", os.path.join(folder, "shard_0000.h5"))


@case("shard_is_a_link_outside", "refused", "link out of its folder")
def _(h, folder):
    mapped(h, "shard_0000.h5")
    os.symlink(SECRET, os.path.join(folder, "shard_0000.h5"))


@case("shard_is_a_link_to_itself", "refused", "shard_0000.h5")
def _(h, folder):
    mapped(h, "shard_0000.h5")
    os.symlink("shard_0000.h5", os.path.join(folder, "shard_0000.h5"))


@case("shard_is_absent", "refused", "shard_0000.h5: No such file")
def _(h, folder):
    mapped(h, "shard_0000.h5")


@case("shard_with_external_storage", "refused", "external storage")
def _(h, folder):
    mapped(h, "shard_0000.h5")
    with h5py.File(os.path.join(folder, "shard_0000.h5"), "w") as s:
        s.create_dataset("data", (33,), "f4", external=[("/etc/passwd", 0, h5py.h5f.UNLIMITED)])


@case("shard_with_an_external_link", "refused")
def _(h, folder):
    mapped(h, "shard_0000.h5")
    with h5py.File(os.path.join(folder, "shard_0000.h5"), "w") as s:
        s["data"] = h5py.ExternalLink(SECRET, NORM)


@case("shard_that_is_mapped_itself", "refused", "contains no row of floats")
def _(h, folder):
    mapped(h, "shard_0000.h5")
    with h5py.File(os.path.join(folder, "shard_0000.h5"), "w") as s:
        mapped(s, SECRET, name="data", key=NORM)


@case("sharded_as_written", "whole", source=SHARDED)
def _(h, folder):
    pass


@case("sharded_through_links_in_the_folder", "whole", source=SHARDED)
def _(h, folder):
    os.rename(os.path.join(folder, "shard_0001.h5"), os.path.join(folder, "other"))
    os.symlink("other", os.path.join(folder, "shard_0001.h5"))


@case("sharded_one_shard_longer", "whole", source=SHARDED)
def _(h, folder):
    with h5py.File(os.path.join(folder, "shard_0001.h5"), "r+") as s:
        values = s["data"][()]
        del s["data"]
        s["data"] = np.concatenate([values, values])
