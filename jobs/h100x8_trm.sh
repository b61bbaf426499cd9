#!/usr/bin/env bash
# TRM in two phases on a node of eight H100 or H200. The second phase starts only if the first passes its verdict (exit
# code 0); otherwise Slurm removes it. If a deck's verdict needs a baseline (&evaluation baseline = RUN), a job before
# it trains that baseline: a plain GPT of equal parameters on the same data. From the root of the project, after a build
# with the cuda preset, with token shards in data/openwebtext (./prepare --help), on the login node:
#
#   jobs/h100x8_trm.sh                                submits all jobs and prints their ids
#   jobs/h100x8_trm.sh FIRST.in SECOND.in             other decks
#   jobs/h100x8_trm.sh --ntasks=4 --gpus-per-node=4   sbatch options of both phases, as --NAME=VALUE before the decks
#
# The script submits itself with --phase. As a job it runs the given deck, from the newest checkpoint if there is one.
# Each rank takes the GPU of its local rank, or the only visible one. NCCL must see all GPUs: do not use
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
[ $# = 2 ] || { echo "error: give two decks or none, not $#" >&2; usage >&2; exit 2; }
trainer=./trainer
[ -x $trainer ] || trainer=trainer   # of an installation
# The plain GPT of a deck.
plain=(--set objective.kind=causal --set objective.preset=none --set objective.detach_from=0 --set model.inner_steps=0
       --set model.recursion=stack --set model.initial_states=learned --set "evaluation.baseline=''")
job=   # last submitted job
mpirun=   # yes: without Slurm, print the commands
if ! command -v sbatch >/dev/null; then
  echo "error: sbatch is missing. Without Slurm, on N ranks, one per GPU, each after the previous one has ended with exit code 0:" >&2
  mpirun=yes
fi
submit() {  # after which jobs (by colons, or none), arguments of --phase
  if [ -n "$mpirun" ]; then
    { printf '  mpirun -n N %s' $trainer; printf ' %q' "${@:2}" --resume; echo; } >&2
    return
  fi
  local after=()
  [ -z "$1" ] || after=(--dependency=afterok:"$1" --kill-on-invalid-dep=yes)
  job=$(sbatch --parsable "${options[@]}" "${after[@]}" "$0" --phase "${@:2}")
}
# Both decks are read before anything is submitted.
baselines=()
for deck in "$@"; do
  printed=$($trainer "$deck" --print-deck) || exit 2
  baselines+=("$(sed -n "s/^ *baseline *= *'\([^']*\)'.*/\1/p" <<<"$printed")")
done
phase=   # job of the previous phase
for i in 0 1; do
  deck=${@:i+1:1} baseline=${baselines[i]} needs=$phase
  if [ -n "$baseline" ]; then
    submit "" "$deck" "${plain[@]}" --set output.directory="$baseline"
    [ -n "$mpirun" ] || echo "job $job: baseline of $deck"
    needs=${phase:+$phase:}$job
  fi
  submit "$needs" "$deck"
  [ -n "$mpirun" ] || echo "job $job: $deck${phase:+, if job $phase passes its verdict}"
  phase=$job
done
[ -z "$mpirun" ] || exit 1
