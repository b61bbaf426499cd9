#!/usr/bin/env bash
# TRM in two phases on a node of eight H100 or H200. The second is queued behind the first and starts only if that
# ends with a good verdict (exit code 0); else Slurm removes it. From the root of the project, after a build with
# the cuda preset and with token shards in data/openwebtext (./prepare --help), on the login node:
#
#   jobs/h100x8_trm.sh                                submits both, prints their numbers
#   jobs/h100x8_trm.sh FIRST.in SECOND.in             other decks
#   SBATCH_GPUS_PER_NODE=4 ...                        Slurm's own variables go through to both
#
# Within a job (it submits itself) it runs the deck it is given, and goes on from the newest checkpoint if
# the job was stopped.
#SBATCH --job-name=h100x8_trm
#SBATCH --nodes=1 --ntasks=8 --cpus-per-task=10
#SBATCH --time=06:00:00
#SBATCH --signal=USR1@120
#SBATCH --requeue --open-mode=append --output=%x-%j.log
set -euo pipefail
if [ -n "${SLURM_JOB_ID:-}" ]; then
  export OMP_NUM_THREADS=${OMP_NUM_THREADS:-${SLURM_CPUS_PER_TASK:-1}} OMP_PROC_BIND=false
  exec jobs/srun_deck.sh "$@"
fi

export SBATCH_GPUS_PER_NODE=${SBATCH_GPUS_PER_NODE-8}
first_deck=${1:-input/h100x8_trm_fast.in} second_deck=${2:-input/h100x8_trm_extreme.in}
first=$(sbatch --parsable "$0" "$first_deck")
second=$(sbatch --parsable --dependency=afterok:"$first" --kill-on-invalid-dep=yes "$0" "$second_deck")
echo "job $first: $first_deck"
echo "job $second: $second_deck, if the verdict of job $first is good"
