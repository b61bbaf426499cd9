#!/usr/bin/env bash
# TRM in two phases on a node of eight H100 or H200. The second starts only if the first ends with a good verdict
# (exit code 0); otherwise Slurm removes it. From the root of the project, after a build with the cuda preset and with
# token shards in data/openwebtext (./prepare --help), on the login node:
#
#   jobs/h100x8_trm.sh                                submits both, prints their job ids
#   jobs/h100x8_trm.sh FIRST.in SECOND.in             other decks
#   jobs/h100x8_trm.sh --ntasks=4 --gpus-per-node=4   sbatch options for both, as --NAME=VALUE before the decks
#
# As a job (it submits itself, with --phase) it runs the given deck, and resumes from the newest checkpoint if the job
# was stopped. Each rank takes the GPU of its local rank, or the only one visible. NCCL needs all GPUs visible: no
# --gpus-per-task.
#SBATCH --job-name=h100x8_trm
#SBATCH --nodes=1 --ntasks=8 --gpus-per-node=8 --cpus-per-task=10
#SBATCH --time=06:00:00
#SBATCH --signal=USR1@120
#SBATCH --requeue --open-mode=append --output=%x-%j.log
set -euo pipefail
usage() { sed -n '1d; /^#SBATCH/d; /^#/!q; s/^# \?//p' "$0"; }   # the comment above
case ${1:-} in -h | --help) usage; exit ;; esac
if [ "${1:-}" = --phase ]; then
  shift
  export OMP_NUM_THREADS=${OMP_NUM_THREADS:-${SLURM_CPUS_PER_TASK:-1}} OMP_PROC_BIND=false
  exec jobs/srun_deck.sh "$@"
fi

options=()
while [[ ${1:-} == -* ]]; do
  [[ $1 == --?*=* ]] || { echo "error: '$1' is not --NAME=VALUE" >&2; usage >&2; exit 2; }
  options+=("$1")
  shift
done
[ $# -gt 0 ] || set -- input/h100x8_trm_fast.in input/h100x8_trm_extreme.in
[ $# = 2 ] || { echo "error: two decks, not $#" >&2; usage >&2; exit 2; }
first=$(sbatch --parsable "${options[@]}" "$0" --phase "$1")
second=$(sbatch --parsable "${options[@]}" --dependency=afterok:"$first" --kill-on-invalid-dep=yes "$0" --phase "$2")
echo "job $first: $1"
echo "job $second: $2, if the verdict of job $first is good"
