#!/usr/bin/env bash
# Installs Tern's missing dependencies on Debian 12 and 13 and on Ubuntu 24.04 (or newer).
#
#   jobs/install.sh            what builds and runs need
#   jobs/install.sh --tests    also what tests need: Slurm, Python environments
#
# It prints what it installs, and does nothing if nothing is missing. On other systems it lists the packages and ends
# with exit code 1.
set -euo pipefail
usage() { sed -n '1d; /^#SBATCH/d; /^#/!q; s/^# \?//p' "$0"; }   # the comment above

packages=(
  build-essential cmake ninja-build ccache pkg-config git     # build
  python3 python3-pip                                         # fetches Kokkos' sources
  libopenmpi-dev openmpi-bin                                  # MPI
  libopenblas-openmp-dev librandom123-dev                     # BLAS, random numbers
  libhdf5-dev hdf5-tools                                      # checkpoints
  libboost-program-options-dev nlohmann-json3-dev libpcre2-dev libfmt-dev libgtest-dev
  libxxhash-dev libutf8proc-dev                               # hashes of checkpoints, Unicode
  gnuplot-nox libjs-dygraphs                                  # report
)
case ${1:-} in
  --tests) packages+=(python3-venv slurm-wlm munge iproute2 zsh fish) ;;
  '') ;;
  -h | --help) usage; exit ;;
  *) echo "error: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
esac

if ! command -v apt-get >/dev/null; then
  cat >&2 <<TEXT
This is neither Debian nor Ubuntu. Install the equivalents of these Debian packages:
  ${packages[*]}
or build in a Spack environment:
  spack env create -d ../tern-env spack.yaml && spack env activate ../tern-env && spack install && cmake --preset cpu && cmake --build build/cpu
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
  command -v sudo >/dev/null || { echo "error: sudo is missing; as root, run: apt-get install ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "installing ${#missing[@]} packages: ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# apt-get, retried for 15 minutes while another process (automatic upgrades, another shell) holds one of its locks.
# DPkg::Lock::Timeout does not wait for the locks of package lists and archives.
apt() {
  for attempt in $(seq 180); do
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive LC_ALL=C \
      apt-get -o DPkg::Lock::Timeout=60 "$@" >"$log" 2>&1 && return 0
    grep -qE 'Could not get lock|Unable to (acquire|lock)' "$log" || return 1
    [ "$attempt" != 1 ] || echo "waiting for another process that holds apt's lock"
    sleep 5
  done
  return 1
}
install() { apt install --yes --no-install-recommends "${missing[@]}"; }
# Package lists may be old or missing; they are fetched if the first attempt fails.
install || { apt update && install; } ||
  { tail -n 20 "$log" >&2; echo "error: apt-get could not install these packages" >&2; exit 1; }
