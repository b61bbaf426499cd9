#!/usr/bin/env bash
# Installs what Tern needs and is not there, on Debian 12 and Ubuntu 24.04 (or newer).
#
#   jobs/install.sh            to build and run
#   jobs/install.sh --tests    and to test: formatter, a one-node Slurm, Python environments
#
# Says what it does; does nothing when everything is there. Elsewhere it names the packages and ends with 1.
set -euo pipefail

packages=(
  build-essential cmake ninja-build ccache pkg-config git     # build
  python3 python3-pip                                         # fetches Kokkos' sources
  libopenmpi-dev openmpi-bin                                  # processes
  libopenblas-openmp-dev librandom123-dev                     # products, random numbers
  libhdf5-dev hdf5-tools                                      # checkpoints
  libboost-program-options-dev nlohmann-json3-dev libpcre2-dev libfmt-dev libgtest-dev
  gnuplot-nox                                                 # report
)
case ${1:-} in
  --tests) packages+=(python3-venv slurm-wlm munge) ;;
  '') ;;
  *) echo "usage: jobs/install.sh [--tests]" >&2; exit 2 ;;
esac

if ! command -v apt-get >/dev/null; then
  cat >&2 <<TEXT
This is neither Debian nor Ubuntu. Install what provides these packages of Debian:
  ${packages[*]}
or build in the Spack environment of this folder:
  spack env activate . && spack install && cmake --preset cpu && cmake --build --preset cpu
TEXT
  exit 1
fi

installed=$(dpkg-query --show --showformat='${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null || true)
missing=()
for package in "${packages[@]}"; do
  grep -qx "installed $package" <<<"$installed" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "error: as root, run: apt-get install ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "installing ${#missing[@]} packages: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install --yes --no-install-recommends "${missing[@]}" >"$log" 2>&1
}
# Package lists may be old or absent: they are fetched if the first attempt fails.
install || { "${as_root[@]}" apt-get update >"$log" 2>&1 && install; } ||
  { tail -n 20 "$log" >&2; echo "error: apt-get could not install them" >&2; exit 1; }
