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
BACKENDS = {"~cuda ~rocm": "openmp", "+cuda": "cuda", "+rocm": "hip"}  # groups of dependencies, TERN_BACKEND of each
NOT_IN_THE_ENVIRONMENT = "amdgpu_target=gfx942"  # which names one architecture


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
                           requires=ignore, conflicts=ignore, generator=ignore, variant=lambda name, **options: self.variants.append(name))
        bases = types.ModuleType("bases")
        for name in ("CMakePackage", "CudaPackage", "ROCmPackage"):
            setattr(bases, name, type(name, (), {}))
        for name in ("spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems", "spack"):
            sys.modules[name] = types.ModuleType(name)
        for name in ("cmake", "cuda", "rocm"):
            sys.modules[f"spack_repo.builtin.build_systems.{name}"] = bases
        sys.modules["spack.package"] = spack
        scope = {}
        exec(compile(path.read_text(), path, "exec"), scope)
        return scope["Tern"]


def words(spec):
    return frozenset(spec.split())


def dependencies_of_the_package(recorder):
    """{condition of a backend, or "": specs}"""
    named = {condition: set() for condition in ("", *BACKENDS)}
    for spec, conditions in recorder.depends:
        if re.split(r"[@ ]", spec)[0] in NOT_A_LIBRARY or NOT_IN_THE_ENVIRONMENT in conditions:
            continue
        named[next((c for c in BACKENDS if c in conditions), "")].add(words(spec))
    return named


def dependencies_of_the_environment():
    named = {}
    for group in re.split(r"\n  - \w+:\n", (ROOT / "spack.yaml").read_text().split("specs:")[0])[1:]:
        when = re.search(r"when: .*", group)
        backend = when and next((c for c, name in BACKENDS.items() if f'== "{name}"' in when[0]), "~cuda ~rocm")
        named.setdefault(backend or "", set()).update(map(words, re.findall(r"    - (.*)", group)))
    named[""] -= {words("openmpi"), words("ccache")}
    return named


def options_of_cmake(package, recorder, variant, faults):
    class Spec(dict):
        def satisfies(self, asked):
            return asked in (variant, "amdgpu_target=gfx90a")

    spec = Spec(hip=types.SimpleNamespace(hipcc="hipcc"))
    return package.cmake_args(types.SimpleNamespace(
        spec=spec, define=lambda name, value: f"{name}={value}",
        define_from_variant=lambda name, variant: f"{name}={variant}" if variant in recorder.variants else faults.append(variant)))


def main():
    recorder = Recorder()
    package = recorder.load(PACKAGE)
    ours, theirs, faults = dependencies_of_the_package(recorder), dependencies_of_the_environment(), []
    for condition in ours:
        for only, where in ((ours[condition] - theirs[condition], "package.py"), (theirs[condition] - ours[condition], "spack.yaml")):
            faults += [f"{condition or 'always'}: only in {where}: {' '.join(sorted(spec))}" for spec in only]
    cmake = "".join(path.read_text() for path in [ROOT / "CMakeLists.txt", *(ROOT / "cmake").glob("*.cmake")])
    for condition, backend in BACKENDS.items():
        options = options_of_cmake(package, recorder, condition, faults)
        faults += [f"no such CMake setting: {option}" for option in options if option.split("=")[0] not in cmake]
        if f"TERN_BACKEND={backend}" not in options:
            faults.append(f"{condition}: TERN_BACKEND is not {backend}")
    print("\n".join(faults) or f"{len(recorder.depends)} dependencies, as in spack.yaml")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
