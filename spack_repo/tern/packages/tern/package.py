from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.rocm import ROCmPackage

from spack.package import *

AMDGPU_TARGETS = ("gfx90a", "gfx942")


class Tern(CMakePackage, CudaPackage, ROCmPackage):
    """Language-model training as an HPC code: MPI ranks that own GPUs, a Fortran namelist per campaign, HDF5
    checkpoints."""

    license("BSD-3-Clause")
    maintainers()

    # Built from a checkout: spack develop --path . tern@0.1.0
    version("0.1.0")

    variant("cudnn", default=False, when="+cuda", description="Attention by cuDNN where it is the fastest")
    variant("tests", default=False, description="Build the tests")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25.2:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconf", type="build")
    depends_on("python", type="build")
    depends_on("gnuplot ~cairo ~gd", type="run")

    depends_on("mpi")
    depends_on("hdf5 ~mpi")
    depends_on("boost +program_options")
    depends_on("openblas threads=openmp")
    depends_on("random123")
    depends_on("nlohmann-json")
    depends_on("pcre2 +jit")
    depends_on("fmt")
    depends_on("googletest", when="+tests")

    conflicts("+cuda", when="+rocm", msg="Tern is built for one kind of GPU")
    # Kokkos: the versions that Tern was built with, as in spack.yaml.
    with when("~cuda ~rocm"):
        depends_on("kokkos@4.5.01:4.6.01 +openmp +serial +pic cxxstd=20")
        depends_on("kokkos-kernels@4.5.01:4.6.01 +openmp +serial +blas scalars=float,double layouts=right")

    with when("+cuda"):
        # Kernels with wgmma and TMA: compiled for 90a.
        requires("cuda_arch=90", msg="Tern's CUDA kernels are for H100 and H200: cuda_arch=90")
        depends_on("kokkos@4.5.01:4.6.01 +cuda cuda_arch=90 +cmake_lang +serial +pic cxxstd=20")
        depends_on("kokkos-kernels@4.5.01:4.6.01 +cuda +cublas cuda_arch=90 +serial +blas scalars=float,double layouts=right")
        depends_on("cuda@12.8:12")  # 13 conflicts with Kokkos up to 4.7.0
        depends_on("nccl cuda_arch=90")
        depends_on("cudnn", when="+cudnn")

    with when("+rocm"):
        requires(*(f"amdgpu_target={target}" for target in AMDGPU_TARGETS), policy="one_of",
                 msg="Tern is built for one of " + ", ".join(AMDGPU_TARGETS))
        for target in AMDGPU_TARGETS:
            depends_on(f"kokkos@4.5.01 +rocm amdgpu_target={target} +serial +pic cxxstd=20", when=f"amdgpu_target={target}")
            depends_on(f"rccl amdgpu_target={target}", when=f"amdgpu_target={target}")
        depends_on("kokkos-kernels@4.5.01 +serial +blas scalars=float,double layouts=right")
        depends_on("hip")

    generator("ninja")

    def cmake_args(self):
        backends = [name for variant, name in (("+cuda", "cuda"), ("+rocm", "hip")) if self.spec.satisfies(variant)]
        args = [
            self.define("TERN_BACKEND", *backends or ["openmp"]),
            self.define_from_variant("TERN_TESTS", "tests"),
            self.define("TERN_ARCH", "none"),  # the compiler's wrapper adds -march of the target
        ]
        if self.spec.satisfies("+cuda"):
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", "90a"))
        if self.spec.satisfies("+rocm"):
            targets = [target for target in AMDGPU_TARGETS if self.spec.satisfies(f"amdgpu_target={target}")]
            args.append(self.define("CMAKE_HIP_ARCHITECTURES", targets[0]))
            args.append(self.define("CMAKE_CXX_COMPILER", self.spec["hip"].hipcc))  # as Spack's Kokkos
        return args
