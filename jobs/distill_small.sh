#!/usr/bin/env bash
# A small prompt distillation in minutes, from scratch to the gap table. It trains a teacher, which answers with a
# prompt, trains a student on these answers without the prompt, and scores both on other sentences. From the root of the
# project, after a build:
#
#   jobs/distill_small.sh                 on this machine; on two ranks: RANKS=2 jobs/distill_small.sh
#   sbatch jobs/distill_small.sh          as a job, which is requeued and resumed if it is stopped
#
# Finished parts are not repeated: remove runs/distill_small_* to restart.
#SBATCH --job-name=distill_small
#SBATCH --nodes=1 --ntasks=2 --cpus-per-task=1
#SBATCH --time=00:30:00
#SBATCH --signal=USR1@120
#SBATCH --requeue --open-mode=append --output=%x-%j.log
set -euo pipefail
usage() { sed -n '1d; /^#SBATCH/d; /^#/!q; s/^# \?//p' "$0"; }   # the comment above
case ${1:-} in
  -h | --help) usage; exit ;;
  ?*) echo "error: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
esac
[ -n "${SLURM_JOB_ID:-}" ] || cd "$(dirname "$0")/.."
./prepare languages
exec jobs/distill_chain.sh distill_small data/languages
