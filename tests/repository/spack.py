"""Spack reads spack.yaml and the packages of spack_repo, and the two name the same dependencies.

    spack.py        exit code 1 for what Spack would refuse, or a dependency or variant of one that is not in the other

spack.yaml is read as YAML and held against the structure of Spack's schema, the packages are loaded with Spack's directives
replaced by a recorder (spack_language.py). With spack in PATH, the real one reads both, too (packaging/spack_check.sh).
"""
import pathlib
import re
import shutil
import subprocess
import sys
import types

import yaml

from spack_language import Recorder, is_spec

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPOSITORY = ROOT / "spack_repo/tern"
SITE = {"c", "cxx", "mpi"}  # of the compiler, or of the site
BACKENDS = {"~cuda ~rocm": "openmp", "+cuda": "cuda", "+rocm": "hip"}  # groups of dependencies, TERN_BACKEND of each
GROUP = {"+cudnn": "+cuda", "+rocm amdgpu_target=gfx90a": "+rocm"}  # conditions that belong to a group
PACKAGE_ONLY = {"cudnn-frontend"}  # a package of spack_repo
ENVIRONMENT_ONLY = {"openmpi", "ccache", "ninja", "python"}  # of the package's build system, or a site's choice
VIRTUAL = {"pkgconfig": "pkgconf"}

SECTIONS = set("""bootstrap cdash ci compilers concretizer config container definitions develop env_vars include
    include_concrete mirrors modules packages repos specs toolchains upstreams view""".split())


def names_of_spec(spec):
    return re.split(r"[@ ]", spec)[0]


def faults_of_list(entries, where):
    """A list of specs: each a string that Spack's parser takes. An unquoted `name@1.2:` is a mapping in YAML."""
    if not isinstance(entries, list):
        return [f"spack.yaml: {where} is {entries!r}, not a list"]
    return [
        f"spack.yaml: {where}: {entry!r} is not a spec; quote one that ends in a colon" for entry in entries
        if not (isinstance(entry, str) and (re.fullmatch(r"\$\w+", entry) or is_spec(entry)))
    ]


def faults_of_environment(document):
    """What Spack's schema of environments (schema/env.py and definitions.py, 1.3.0.dev0) would refuse."""
    if not isinstance(document, dict) or set(document) != {"spack"} or not isinstance(document["spack"], dict):
        return ["spack.yaml: not one mapping named spack"]
    spack = document["spack"]
    faults = [f"spack.yaml: no section {name}" for name in spack.keys() - SECTIONS]
    defined = set()
    for definition in spack.get("definitions", []):
        lists = {name: value for name, value in definition.items() if name != "when"}
        if len(lists) != 1:
            faults.append(f"spack.yaml: a definition of {len(lists)} lists: {sorted(lists)}")
        if not isinstance(definition.get("when", ""), str):
            faults.append(f"spack.yaml: when: {definition['when']!r} is not a string")
        for name, entries in lists.items():
            defined.add(name)
            faults += faults_of_list(entries, name)
    faults += faults_of_list(spack.get("specs", []), "specs")
    faults += [
        f"spack.yaml: {entry} is not defined" for entry in spack.get("specs", [])
        if str(entry).startswith("$") and entry[1:] not in defined
    ]
    for name, settings in spack.get("packages", {}).items():
        require = settings.get("require", "")
        faults += faults_of_list(require if isinstance(require, list) else [require], f"packages: {name}: require")
    if spack.get("concretizer", {}).get("unify") not in (True, False, "when_possible"):
        faults.append("spack.yaml: concretizer: unify is neither true nor false nor when_possible")
    return faults


def specs_of_environment(spack, backend):
    """The specs of a backend, as Spack finds them: lists of the same name are joined where `when` holds."""
    def holds(when):
        return eval(when, {"env": {"TERN_BACKEND": backend}, "re": re}) if when else True  # a line of our own file

    lists = {}
    for definition in spack["definitions"]:
        if holds(definition.get("when")):
            for name, entries in definition.items():
                if name != "when":
                    lists.setdefault(name, []).extend(entries)
    return [spec for entry in spack["specs"] for spec in (lists.get(entry[1:], []) if entry[0] == "$" else [entry])]


def words(spec):
    return frozenset(spec.split())


def specs_of_package(recorder, backend_condition):
    """The dependencies that hold for a backend."""
    named = set()
    for spec, conditions, _ in recorder.depends:
        groups = {GROUP.get(condition, condition) for condition in conditions}
        if groups <= {backend_condition} and names_of_spec(spec) not in SITE | PACKAGE_ONLY:
            named.add(words(VIRTUAL.get(spec, spec)))
    return named


class FakeSpec:
    """A concrete spec of some words, with a prefix for each dependency."""
    def __init__(self, text):
        self.words = words(text)

    def satisfies(self, asked):
        return all("+" + word[1:] not in self.words if word[0] == "~" else word in self.words for word in asked.split())

    __contains__ = satisfies

    def __getitem__(self, name):
        return types.SimpleNamespace(hipcc="hipcc", prefix=types.SimpleNamespace(include=f"{name}/include"))


def faults_of_options(package, text, wanted, cmake):
    """What cmake_args makes of a spec: settings that CMake has, and those that the build depends on."""
    instance = package()
    instance.spec, instance.run_tests = FakeSpec(text), False
    options = dict(option.split("=", 1) for option in instance.cmake_args())
    faults = [
        f"{text}: {name} is {options.get(name)}, not {value}" for name, value in wanted.items()
        if options.get(name) != value
    ]
    for name in options:
        required = name.removeprefix("CMAKE_REQUIRE_FIND_PACKAGE_")
        if (f"find_package({required} "
                if required != name else name) not in cmake and not (required == name and name.startswith("CMAKE_")):
            faults.append(f"{text}: no such setting in CMake: {name}")
    return faults


def faults_of_architectures(recorder):
    """One architecture is compiled for: any other, with or without it, is a conflict."""
    refused = {spec for specs, _ in recorder.conflicts for spec in specs}
    return [
        f"accepted: {spec}" for spec in ("cuda_arch=80", "cuda_arch=90a", "amdgpu_target=gfx908") if spec not in refused
    ]


def faults_of_package():
    recorder = Recorder()
    package = recorder.load(REPOSITORY / "packages/tern/package.py")
    frontend = Recorder()
    frontend.load(REPOSITORY / "packages/cudnn_frontend/package.py")
    cmake = "".join(path.read_text() for path in [ROOT / "CMakeLists.txt", *(ROOT / "cmake").glob("*.cmake")])
    common = {
        "TERN_ARCH": "none", "TERN_CCACHE": "False", "TERN_TESTS": "False",
        "CMAKE_REQUIRE_FIND_PACKAGE_KokkosKernels": "True"
    }
    faults = recorder.faults + frontend.faults + faults_of_architectures(recorder)
    for text, wanted in {
            "~cuda ~rocm": {"TERN_BACKEND": "openmp"},
            "+cuda cuda_arch=90": {"TERN_BACKEND": "cuda", "CMAKE_CUDA_ARCHITECTURES": "90a", "TERN_CUDNN": "False"},
            "+cuda cuda_arch=90 +cudnn": {"TERN_CUDNN": "True", "CUDNN_FRONTEND_INCLUDE": "cudnn-frontend/include"},
            "+rocm amdgpu_target=gfx90a": {"TERN_BACKEND": "hip", "CMAKE_HIP_ARCHITECTURES": "gfx90a"},
            "+rocm amdgpu_target=gfx942": {"TERN_BACKEND": "hip", "CMAKE_HIP_ARCHITECTURES": "gfx942"}
    }.items():
        faults += faults_of_options(package, text, common | wanted, cmake)
    tests = "".join(path.read_text() for path in (ROOT / "tests").glob("*/CMakeLists.txt"))
    tested = re.findall(r'"(test_\w+)"', (REPOSITORY / "packages/tern/package.py").read_text())
    families = {f"test_ops_{path.parent.name}" for path in (ROOT / "tests/ops").glob("*/test_*.cpp")}
    faults += [
        f"no such test program: {name}" for name in tested if name not in families and f"tern_test({name} " not in tests
    ]
    for path in REPOSITORY.glob("packages/*/package.py"):
        faults += [
            f"{path}:{number}: {len(line)} characters; Spack's style has 99"
            for number, line in enumerate(path.read_text().splitlines(), 1) if len(line) > 99
        ]
    return recorder, faults


def main():
    document = yaml.safe_load((ROOT / "spack.yaml").read_text())
    faults = faults_of_environment(document)
    recorder, found = faults_of_package()
    faults += found
    if not faults:
        for condition, backend in BACKENDS.items():
            package = specs_of_package(recorder, condition)
            environment = {
                words(spec) for spec in specs_of_environment(document["spack"], backend)
                if names_of_spec(spec) not in ENVIRONMENT_ONLY
            }
            for only, where in ((package - environment, "package.py"), (environment - package, "spack.yaml")):
                faults += [f"{backend}: only in {where}: {' '.join(sorted(spec))}" for spec in only]
    print("\n".join(faults) or f"{len(recorder.depends)} dependencies, as in spack.yaml")
    if not faults and shutil.which("spack"):
        return subprocess.run([ROOT / "packaging/spack_check.sh", "read", "processors"]).returncode
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
