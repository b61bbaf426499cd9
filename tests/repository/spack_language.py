"""Stands for Spack's package language: the names that packages may import, and a recorder of their directives.

The names are those of Spack 1.3.0.dev0 (2026-06-29), package API v2.0, which Spack 1.0 has too, and of spack-packages of
2026-07-01. A name that is missing there is missing here.
"""
import contextlib
import re
import sys
import types

API = """
    BaseBuilder Builder Dict EnvironmentModifications Executable FileFilter FileList HeaderList InstallError LibraryList List
    MakeExecutable NoHeadersError NoLibrariesError Optional PackageBase Prefix ProcessError SkipTest Spec Version all_deptypes
    ancestor any_combination_of auto_or_any_combination_of bash_completion_path build_system build_system_flags
    cache_extra_test_sources can_access can_splice cd change_sed_delimiter check_outputs conditional conflicts copy copy_tree
    default_args depends_on determine_number_of_jobs disjoint_sets env env_flags extends filter_compiler_wrappers filter_file
    find find_all_headers find_first find_headers find_libraries find_required_file find_system_libraries fish_completion_path
    fix_darwin_install_name force_remove force_symlink get_escaped_text_output inject_flags install install_test_root
    install_tree is_exe join_path keep_modification_time library_extensions license maintainers makedirs mkdir mkdirp move
    on_package_attributes patch provides pwd redistribute register_builder remove remove_directory_contents remove_linked_tree
    removedirs rename requires resource rmtree run_after run_before set_executable set_install_permissions symlink test_part
    touch tty variant ver version when which which_string working_dir zsh_completion_path""".split()
BUILD_SYSTEMS = {
    "cmake": [
        "CMakePackage", "CMakeBuilder", "generator", "define", "define_from_variant", "define_cuda_architectures",
        "define_hip_architectures"
    ],
    "cuda": ["CudaPackage"],
    "rocm": ["ROCmPackage", "ROCmLibrary"],
    "generic": ["Package", "GenericBuilder"],
}
WHILE_BUILDING = {"ninja", "make_jobs"}  # set by Spack in the package's module during a build
CUDA_ARCHITECTURES = "70 80 86 89 90 90a 100 100a 103 120".split()  # some of them
AMDGPU_TARGETS = "gfx906 gfx908 gfx90a gfx90a:xnack- gfx940 gfx942 gfx950 gfx1100".split()

VERSION = r"=?[\w.-]+(:[\w.-]+)?:?|:[\w.-]+"
ANONYMOUS = rf"(@({VERSION})(,({VERSION}))*)?(\s*([+~]|(?<=\s)-)\w[\w-]*|\s+\w+=\S+|%\S+)*"
NAME = r"[a-z0-9][a-z0-9-]*"


def is_spec(text, named=True):
    """Whether `text` is a spec as Tern writes them: [name][@versions][+variant][~variant][key=value]."""
    return bool(
        re.fullmatch((NAME if named else f"({NAME})?") + ANONYMOUS, text if named else " " + text) or
        not named and re.fullmatch(ANONYMOUS, text))


class Recorder:
    """Loads a package and keeps what its directives say."""
    def __init__(self):
        self.conditions, self.depends, self.faults = [], [], []
        self.variants, self.versions, self.conflicts, self.requirements = {}, {}, [], []

    def fault(self, text):
        self.faults.append(text)

    @contextlib.contextmanager
    def when(self, condition):
        self._read(condition, named=False)
        self.conditions.append(condition)
        yield
        self.conditions.pop()

    def _read(self, spec, named):
        if not is_spec(spec, named):
            self.fault(f"not a spec: {spec}")

    def _where(self, when):
        if when:
            self._read(when, named=False)
        return tuple(self.conditions) + ((when,) if when else ())

    def depends_on(self, spec, when=None, type=("build", "link")):
        self._read(spec, named=True)
        types = (type,) if isinstance(type, str) else tuple(type)
        if not set(types) <= {"build", "link", "run", "test"}:
            self.fault(f"{spec}: type {types}")
        self.depends.append((spec, self._where(when), types))

    def version(self, name, sha256=None, branch=None, tag=None, commit=None, preferred=False):
        self.versions[name] = sha256 or commit or branch
        if not self.versions[name]:
            self.fault(f"version {name} has neither a checksum nor a commit nor a branch")

    def variant(self, name, default=None, description="", values=None, multi=None, when=None, sticky=False):
        self.variants[name] = self._where(when)
        if not description:
            self.fault(f"variant {name} has no description")

    def constraint(self, kept):
        def directive(*specs, when=None, msg=None, policy="one_of"):
            for spec in specs:
                self._read(spec, named=False)
            kept.append((specs, self._where(when)))

        return directive

    def load(self, path):
        """The package's class. Its methods' global names are looked up, too."""
        ignore = lambda *args, **options: None
        played = {
            "when": self.when, "depends_on": self.depends_on, "version": self.version, "variant": self.variant,
            "conflicts": self.constraint(self.conflicts), "requires": self.constraint(self.requirements),
            "license": ignore, "maintainers": ignore, "join_path": lambda *parts: "/".join(map(str, parts))
        }
        spack = types.ModuleType("spack.package")
        for name in API:
            setattr(spack, name, played.get(name, type(name, (), {})))
        modules = {"spack": types.ModuleType("spack"), "spack.package": spack}
        for name in ("spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
            modules[name] = types.ModuleType(name)
        for system, names in BUILD_SYSTEMS.items():
            modules[f"spack_repo.builtin.build_systems.{system}"] = module = types.ModuleType(system)
            for name in names:
                setattr(
                    module, name, ignore if name == "generator" else type(
                        name, (), {
                            "cuda_arch_values": CUDA_ARCHITECTURES, "amdgpu_targets": AMDGPU_TARGETS,
                            "define": staticmethod(lambda name, value: f"{name}={value}"), "define_from_variant":
                                lambda self, name, variant: self.define(name, f"+{variant}" in self.spec)
                        }))
        before = {name: sys.modules.get(name) for name in modules}
        sys.modules.update(modules)
        scope = {"__file__": str(path), "__name__": "package"}
        try:
            exec(compile(path.read_text(), path, "exec"), scope)
        finally:
            for name, module in before.items():
                if module is None:
                    del sys.modules[name]
                else:
                    sys.modules[name] = module
        package = next(
            value for name, value in scope.items() if isinstance(value, type) and value.__module__ == "package")
        builtins = vars(scope["__builtins__"]) if isinstance(scope["__builtins__"],
                                                             types.ModuleType) else scope["__builtins__"]
        for name in sorted(self._globals_of(compile(path.read_text(), path, "exec"))):
            if name not in scope and name not in builtins and name not in WHILE_BUILDING:
                self.fault(f"{path.name}: no name {name} in Spack's package language")
        return package

    def _globals_of(self, code):
        import dis
        names = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                names |= self._globals_of(constant)
        return names
