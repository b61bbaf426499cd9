#!/usr/bin/env bash
# Builds Kokkos and Kokkos Kernels 4.5.1 from one source archive, once, outside the source tree.
#
#   cmake/install_kokkos.sh openmp|serial|cuda|hip PREFIX ARCH [GPU_ARCHITECTURE [HIP_FLAGS]]
#
# ARCH is the processor (-march=ARCH): native, a name, or none. GPU_ARCHITECTURE: 90, ... or gfx90a, gfx942.
# With hip the environment's CXX must be a clang++ that compiles HIP with HIP_FLAGS.
# The archive is the source package of pycompadre 1.7.6, which carries both; its SHA-256 is checked.
# Nothing is done when PREFIX is complete. CMake calls this when find_package(KokkosKernels) fails.
set -euo pipefail
backend=$1 prefix=$2 arch=$3 architecture=${4:-} hip_flags=${5:-}
here=$(cd "$(dirname "$0")" && pwd)
archive=pycompadre-1.7.6.tar.gz
sha256=c766ec4d445ce076069be4b8c51a23ffac4ee79ea949ca86446bfd8c299b154c

# What native stands for on this machine: PREFIX may be on a file system that other machines see.
machine() {
  [ "$arch" = native ] || return 0
  ${CXX:-c++} -march=native -x c++ -dM -E /dev/null |
    { grep -oE '__(S?SSE|POPCNT|AVX|BMI|FMA|F16C|LZCNT|MOVBE|GFNI|XOP)[A-Z0-9_]*' || true; } | sort | xargs
}
is_complete() {
  [ -f "$prefix/.complete" ] || return 1
  local built; built=$(cat "$prefix/.complete")
  [ -z "$built" ] || [ "$built" = "$(machine)" ] || {
    echo "error: $prefix was built on another kind of processor; set TERN_ARCH to a name for both (e.g. x86-64-v3)" >&2; exit 1; }
}
is_complete && exit 0

mkdir -p "$(dirname "$prefix")"
exec 9>"$prefix.lock"; flock 9                       # two configures at once: one builds, one waits
is_complete && exit 0
work=$(mktemp -d "$(dirname "$prefix")/build.XXXXXX"); trap 'rm -rf "$work"' EXIT

fetch() {
  local cached; cached=$(dirname "$prefix")/$archive
  if [ ! -f "$cached" ]; then
    # pip asks the package for its metadata before it returns the archive, which takes two Python packages.
    { python3 -m pip install --quiet --disable-pip-version-check --target "$work/python" packaging setuptools &&
      PYTHONPATH=$work/python python3 -m pip download --quiet --disable-pip-version-check --no-deps \
        --no-build-isolation --no-binary pycompadre pycompadre==1.7.6 --dest "$work"; } >"$work/pip.log" 2>&1 || true
    [ -f "$work/$archive" ] || { cat "$work/pip.log" >&2; echo "error: could not download $archive; place it at $cached" >&2; exit 1; }
    mv "$work/$archive" "$cached"
  fi
  echo "$sha256  $cached" | sha256sum --check --quiet || { echo "error: $cached has the wrong SHA-256; remove it and try again" >&2; exit 1; }
  tar -xzf "$cached" -C "$work"
}

generator=(); command -v ninja >/dev/null && generator=(-G Ninja)
common=(-DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_CXX_STANDARD=20
        -DCMAKE_POSITION_INDEPENDENT_CODE=ON)
command -v ccache >/dev/null && common+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
cxx_flags=$hip_flags cuda_flags="-include $here/cuda13_for_kokkos45.hpp"
case $arch in
  native) common+=(-DKokkos_ARCH_NATIVE=ON) ;;
  none) ;;
  *) cxx_flags+=" -march=$arch"; cuda_flags+=" -Xcompiler=-march=$arch" ;;
esac
common+=("-DCMAKE_CXX_FLAGS=$cxx_flags")
case $backend in
  serial) backends=(-DKokkos_ENABLE_SERIAL=ON) ;;
  openmp) backends=(-DKokkos_ENABLE_SERIAL=ON -DKokkos_ENABLE_OPENMP=ON) ;;
  # CUDA 13 removed signatures that Kokkos 4.5 calls; the forced header restores them (Kokkos >= 4.7.1 needs none of
  # it).
  cuda)   backends=(-DKokkos_ENABLE_SERIAL=ON -DKokkos_ENABLE_CUDA=ON -DKokkos_ENABLE_COMPILE_AS_CMAKE_LANGUAGE=ON
                    -DKokkos_ARCH_HOPPER90=ON -DKokkos_ENABLE_IMPL_MDSPAN=OFF)
          common+=(-DCMAKE_CUDA_STANDARD=20 -DCMAKE_CUDA_ARCHITECTURES="${architecture:-90}"
                   "-DCMAKE_CUDA_FLAGS=$cuda_flags")
          command -v ccache >/dev/null && common+=(-DCMAKE_CUDA_COMPILER_LAUNCHER=ccache) ;;
  hip)    backends=(-DKokkos_ENABLE_SERIAL=ON -DKokkos_ENABLE_HIP=ON "-DKokkos_ARCH_AMD_${architecture^^}=ON"
                    -DKokkos_ENABLE_ROCTHRUST=OFF -DKokkos_ENABLE_IMPL_MDSPAN=OFF) ;;
  *) echo "usage: $0 openmp|serial|cuda|hip PREFIX ARCH [GPU_ARCHITECTURE [HIP_FLAGS]]" >&2; exit 2 ;;
esac

build() {  # name, options...
  local name=$1; shift
  echo "building $name ($backend) into $prefix"
  { cmake -S "$work/pycompadre-1.7.6/$name" -B "$work/$name" "${generator[@]}" "${common[@]}" "$@" &&
    cmake --build "$work/$name" --parallel "$(nproc)" && cmake --install "$work/$name"; } >"$work/$name.log" 2>&1 ||
    { tail -40 "$work/$name.log" >&2; echo "error: building $name failed" >&2; exit 1; }
}

fetch
rm -rf "$prefix"
build kokkos "${backends[@]}" -DKokkos_ENABLE_DEPRECATED_CODE_4=OFF -DKokkos_ENABLE_TESTS=OFF
# How C calls the BLAS is stated, so that no Fortran compiler is needed to find it out.
build kokkos-kernels -DKokkos_ROOT="$prefix" -DCMAKE_PREFIX_PATH="$prefix" \
  "-DF77_BLAS_MANGLE=(name,NAME) name ## _" \
  -DKokkosKernels_ENABLE_ALL_COMPONENTS=OFF -DKokkosKernels_ENABLE_COMPONENT_BLAS=ON \
  -DKokkosKernels_ENABLE_TPL_BLAS=ON -DKokkosKernels_ENABLE_TPL_CUSPARSE=OFF \
  -DKokkosKernels_ENABLE_TPL_CUSOLVER=OFF -DKokkosKernels_ADD_DEFAULT_ETI=OFF \
  -DKokkosKernels_INST_DOUBLE=OFF -DKokkosKernels_INST_FLOAT=OFF -DKokkosKernels_ENABLE_TESTS=OFF
machine >"$prefix/.complete"
