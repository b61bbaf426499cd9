# Copyright (c) 2026, the Tern authors
#
# SPDX-License-Identifier: BSD-3-Clause
from pathlib import Path

from spack_repo.builtin.build_systems.cmake import CMakePackage, generator
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.rocm import ROCmPackage

from spack.package import *

# The versions that Tern was built with, as in spack.yaml.
KOKKOS = "4.5.01:4.6.01"
KOKKOS_HIP = "4.5.01"

CUDA_ARCH = "90"  # kernels with wgmma and TMA, compiled for 90a
CUDA_ONLY = "Tern's CUDA kernels are for H100 and H200: cuda_arch=90"
AMDGPU_TARGETS = ("gfx90a", "gfx942")

# Tests that need a compiler and MPI only; the others also need Python's packages or Slurm.
HOST_TESTS = ("test_base", "test_deck", "test_text")
KERNEL_TESTS = ("test_ops_elementwise", "test_ops_linear", "test_ops_norm", "test_ops_attention")


class Tern(CMakePackage, CudaPackage, ROCmPackage):
    """Language-model training as an HPC code: MPI ranks that own GPUs, a Fortran namelist per
    campaign, HDF5 checkpoints."""

    # The checkout that this recipe is a part of. A copy in another repository of packages needs an
    # address, and maintainers' names, in its place.
    _checkout = Path(__file__).resolve().parents[4]
    homepage = f"{_checkout.as_uri()}/README.md"
    git = _checkout.as_uri()

    license("BSD-3-Clause")

    version("main", branch="main")

    variant(
        "cudnn", default=False, when="+cuda", description="Attention by cuDNN where it is fastest"
    )

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("googletest", type="test")
    depends_on("gnuplot", type="run")

    depends_on("mpi")
    depends_on("hdf5@1.10: ~mpi")
    depends_on("boost@1.74: +program_options")
    depends_on("openblas threads=openmp")
    depends_on("random123")
    depends_on("nlohmann-json")
    depends_on("pcre2 +jit")
    depends_on("utf8proc")
    depends_on("xxhash")
    depends_on("fmt@9:")

    generator("ninja")

    conflicts("+cuda", when="+rocm", msg="Tern is built for one kind of GPU")

    with when("~cuda ~rocm"):
        depends_on(f"kokkos@{KOKKOS} +openmp +serial +pic cxxstd=20")
        depends_on(
            f"kokkos-kernels@{KOKKOS} +openmp +serial +blas scalars=float,double layouts=right"
        )

    with when("+cuda"):
        requires(f"cuda_arch={CUDA_ARCH}", msg=CUDA_ONLY)
        for arch in CudaPackage.cuda_arch_values:
            if arch != CUDA_ARCH:
                conflicts(f"cuda_arch={arch}", msg=CUDA_ONLY)
        depends_on(
            f"kokkos@{KOKKOS} +cuda cuda_arch={CUDA_ARCH} +cmake_lang +serial +pic cxxstd=20"
        )
        depends_on(
            f"kokkos-kernels@{KOKKOS} +cuda +cublas cuda_arch={CUDA_ARCH} +serial +blas "
            "scalars=float,double layouts=right"
        )
        depends_on("cuda@12.8:12")  # 13 conflicts with Kokkos up to 4.7.0
        depends_on(f"nccl cuda_arch={CUDA_ARCH}")

    with when("+cudnn"):
        depends_on("cudnn@9:")
        depends_on("cudnn-frontend", type="build")

    with when("+rocm"):
        # Without a variant for HIP: ~openmp keeps one of processors out.
        depends_on(
            f"kokkos-kernels@{KOKKOS_HIP} +serial ~openmp +blas scalars=float,double layouts=right"
        )
        depends_on("hip")
        for target in ROCmPackage.amdgpu_targets:
            if target not in AMDGPU_TARGETS:
                conflicts(f"amdgpu_target={target}", msg="Tern is built for gfx90a or gfx942")
        requires(
            *(f"amdgpu_target={target}" for target in AMDGPU_TARGETS),
            policy="one_of",
            msg="Tern is built for one AMD GPU at a time",
        )
    for target in AMDGPU_TARGETS:
        with when(f"+rocm amdgpu_target={target}"):
            depends_on(f"kokkos@{KOKKOS_HIP} +rocm amdgpu_target={target} +serial +pic cxxstd=20")
            depends_on(f"rccl amdgpu_target={target}")

    build_targets = ["trainer", "prepare", "diagnose"]

    sanity_check_is_file = [
        join_path("bin", "trainer"),
        join_path("bin", "prepare"),
        join_path("bin", "diagnose"),
        join_path("share", "man", "man1", "trainer.1"),
        join_path("share", "tern", "input", "quickstart.in"),
    ]

    @property
    def _on_host(self):
        return self.spec.satisfies("~cuda ~rocm")

    def cmake_args(self):
        backend = "openmp"
        args = [
            self.define("TERN_TESTS", self.run_tests),
            # Spack's compiler wrapper adds -march of the target.
            self.define("TERN_ARCH", "none"),
            # Spack has config:ccache.
            self.define("TERN_CCACHE", False),
            # Kokkos is a dependency: one that is not found is an error, not downloaded and built.
            self.define("CMAKE_REQUIRE_FIND_PACKAGE_KokkosKernels", True),
            # Of the tests, check() builds its own.
            self.define("CMAKE_SKIP_INSTALL_ALL_DEPENDENCY", True),
        ]
        if self.spec.satisfies("+cuda"):
            backend = "cuda"
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", f"{CUDA_ARCH}a"))
            args.append(self.define_from_variant("TERN_CUDNN", "cudnn"))
        if self.spec.satisfies("+cudnn"):
            include = self.spec["cudnn-frontend"].prefix.include
            args.append(self.define("CUDNN_FRONTEND_INCLUDE", include))
        if self.spec.satisfies("+rocm"):
            backend = "hip"
            args.append(self.define("CMAKE_HIP_ARCHITECTURES", self._amdgpu_target))
            args.append(self.define("CMAKE_CXX_COMPILER", self.spec["hip"].hipcc))
        args.append(self.define("TERN_BACKEND", backend))
        return args

    @property
    def _amdgpu_target(self):
        return next(t for t in AMDGPU_TARGETS if self.spec.satisfies(f"amdgpu_target={t}"))

    def check(self):
        """Tests of the host's code, and of the kernels where they run on processors."""
        tests = HOST_TESTS + (KERNEL_TESTS if self._on_host else ())
        with working_dir(self.build_directory):
            ninja(*tests)
            ctest = Executable(self.spec["cmake"].prefix.bin.ctest)
            ctest("--output-on-failure", "--no-tests=error", "-R", f"^({'|'.join(tests)})$")

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        env.set("TERN_SHARE", self.prefix.share.tern)

    def test_version(self):
        """trainer, prepare and diagnose start"""
        out = self._output_of("trainer", "--version")
        assert out.startswith("tern "), out
        if not self.spec.version.isdevelop():
            assert str(self.spec.version) in out
        for program in ("prepare", "diagnose"):
            assert program in self._output_of(program, "--help")

    def test_list(self):
        """the installed decks are found, and one of them is read"""
        assert "quickstart.in" in self._output_of("trainer", "--list")
        deck = join_path(self.prefix.share.tern, "input", "quickstart.in")
        assert "&model" in self._output_of("trainer", deck, "--print-deck")

    def test_quickstart(self):
        """data of the quickstart, and ten steps of its training"""
        if not self._on_host:
            raise SkipTest("needs a GPU")
        self._output_of("prepare", "quickstart")
        deck = join_path(self.prefix.share.tern, "input", "quickstart.in")
        assert "finished at step 10" in self._output_of("trainer", deck, "--quick", "10")

    def _output_of(self, program, *arguments):
        return Executable(join_path(self.prefix.bin, program))(
            *arguments, output=str.split, error=str.split
        )
