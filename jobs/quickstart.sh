#!/usr/bin/env bash
# Runs the quickstart on two ranks of one node, in minutes. From the root of the project, after a build:
#
#   ./prepare quickstart && sbatch jobs/quickstart.sh
#
# Another small deck: sbatch jobs/quickstart.sh DECK [trainer options]
#SBATCH --job-name=quickstart
#SBATCH --nodes=1 --ntasks=2 --cpus-per-task=1
#SBATCH --time=00:30:00
#SBATCH --signal=USR1@120
#SBATCH --requeue --open-mode=append --output=%x-%j.log
usage() { sed -n '1d; /^#SBATCH/d; /^#/!q; s/^# \?//p' "$0"; }   # the comment above
case ${1:-} in
  -h | --help) usage; exit ;;
  -*) echo "error: DECK comes first, not '${1:-}'" >&2; usage >&2; exit 2 ;;
esac
export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1} OMP_PROC_BIND=false
[ $# -gt 0 ] || set -- input/quickstart.in
exec jobs/srun_deck.sh "$@"
