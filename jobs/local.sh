#!/usr/bin/env bash
# Runs a deck on this machine, from scratch: installs missing packages, builds, prepares the data of small decks, runs.
#
#   jobs/local.sh                                   input/quickstart.in: a small HDP, in minutes
#   jobs/local.sh DECK [trainer options]            e.g. jobs/local.sh input/quickstart.in --resume
#   RANKS=2 jobs/local.sh DECK                      on two MPI ranks
#   jobs/local.sh distill                           jobs/distill_small.sh: a small prompt distillation, in minutes
#
# It builds for CUDA if nvcc and a GPU are found; PRESET=cpu selects the CPU build.
set -euo pipefail
usage() { sed -n '1d; /^#SBATCH/d; /^#/!q; s/^# \?//p' "$0"; }   # the comment above
case ${1:-} in
  -h | --help) usage; exit ;;
  -*) echo "error: DECK comes first, not '${1:-}'" >&2; usage >&2; exit 2 ;;
esac
cd "$(dirname "$0")/.."
deck=${1:-input/quickstart.in}
if [ "$deck" != distill ] && [ ! -f "$deck" ]; then
  { echo "error: there is no deck '$deck' in $PWD; input/ has:"; printf '  %s\n' input/*.in; } >&2
  exit 2
fi

# 1. Packages.
jobs/install.sh

# 2. Build.
if [ -z "${PRESET:-}" ]; then
  PRESET=cpu
  if command -v nvcc >/dev/null && nvidia-smi -L >/dev/null 2>&1; then PRESET=cuda; fi
fi
export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}
cmake --preset "$PRESET"
cmake --build "build/$PRESET" --target trainer prepare diagnose

# 3. Data.
if [ $# = 0 ]; then
  set -- input/quickstart.in --fresh   # an earlier run is moved aside, not overwritten
fi
case $1 in
  distill) exec jobs/distill_small.sh ;;
  input/quickstart.in) ./prepare quickstart ;;      # does nothing if the data exist
  input/laptop_gpt.in | input/trm_small.in) ./prepare cpp-headers ;;
  input/distill_small_*.in) ./prepare languages ;;
esac

# 4. Run.
export OMP_PROC_BIND=${OMP_PROC_BIND:-false}
if [ "${RANKS:-1}" = 1 ]; then exec ./trainer "$@"; fi
if [ "$(id -u)" = 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
threads=$(($(nproc) / RANKS))
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$((threads > 0 ? threads : 1))}
exec mpirun --oversubscribe --bind-to none -n "$RANKS" ./trainer "$@"
