"""The Spack package names what the environment of spack.yaml names: with Spack's directives replaced by a recorder.

    spack.py        exit code 1 if a dependency or variant of one is not in the other
"""
import contextlib
import pathlib
import re
import sys
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "spack_repo/tern/packages/tern/package.py"
NOT_A_LIBRARY = {"c", "cxx", "mpi"}  # of the compiler, or of the site


class Recorder:
    """Stands for Spack's package language."""

    def __init__(self):
        self.conditions, self.depends, self.variants = [], [], []

    @contextlib.contextmanager
    def when(self, condition):
        self.conditions.append(condition)
        yield
        self.conditions.pop()

    def depends_on(self, spec, when=None, type=("build", "link")):
        self.depends.append((spec, tuple(self.conditions) + ((when,) if when else ())))

    def load(self, path):
        ignore = lambda *args, **options: None
        spack = types.ModuleType("spack.package")
        vars(spack).update(when=self.when, depends_on=self.depends_on, license=ignore, maintainers=ignore, version=ignore,
                           requires=ignore, generator=ignore, variant=lambda name, **options: self.variants.append(name))
        bases = types.ModuleType("bases")
        bases.CMakePackage, bases.CudaPackage = type("CMakePackage", (), {}), type("CudaPackage", (), {})
        for name in ("spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems", "spack"):
            sys.modules[name] = types.ModuleType(name)
        for name in ("cmake", "cuda"):
            sys.modules[f"spack_repo.builtin.build_systems.{name}"] = bases
        sys.modules["spack.package"] = spack
        scope = {}
        exec(compile(path.read_text(), path, "exec"), scope)
        return scope["Tern"]


def words(spec):
    return frozenset(spec.split())


def main():
    recorder = Recorder()
    package = recorder.load(PACKAGE)
    named = {}
    for spec, conditions in recorder.depends:
        name = re.split(r"[@ ]", spec)[0]
        if name not in NOT_A_LIBRARY:
            named.setdefault("+cuda" if "+cuda" in conditions else "~cuda" if "~cuda" in conditions else "", set()).add(words(spec))
    groups = []
    for line in (ROOT / "spack.yaml").read_text().split("specs:")[0].splitlines():
        if re.match(r"  - \w+:$", line):
            groups.append([])
        elif re.match(r"    - ", line):
            groups[-1].append(line[6:])
        elif "when:" in line:
            groups[-1].append("cuda" if "== \"cuda\"" in line else "processors")
    libraries, programs, processors, cuda = groups
    every = {words(spec) for spec in libraries + programs} - {words("openmpi"), words("ccache")}
    faults = []
    for title, ours, theirs in (("always", named[""], every), ("for processors", named["~cuda"], set(map(words, processors[:-1]))),
                                ("with cuda", named["+cuda"], set(map(words, cuda[:-1])))):
        for only, where in ((ours - theirs, "package.py"), (theirs - ours, "spack.yaml")):
            faults += [f"{title}: only in {where}: {' '.join(sorted(spec))}" for spec in only]
    options = package.cmake_args(types.SimpleNamespace(
        spec=types.SimpleNamespace(satisfies=lambda spec: spec == "+cuda"), define=lambda name, value: f"{name}={value}",
        define_from_variant=lambda name, variant: f"{name}={variant}" if variant in recorder.variants else faults.append(variant)))
    cmake = "".join((ROOT / name).read_text() for name in ("CMakeLists.txt", "cmake/Toolchain.cmake"))
    faults += [f"no such CMake setting: {option}" for option in options if option.split("=")[0] not in cmake]
    print("\n".join(faults) or f"{len(recorder.depends)} dependencies, as in spack.yaml")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
