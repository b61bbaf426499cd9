#!/usr/bin/env bash
# Prompt distillation in miniature, from scratch to the gap table: a teacher is trained and answers under a prompt, a
# student learns the answers without it, and both are scored on other sentences. After a build, in minutes:
#
#   jobs/distill_small.sh                 from the root of the project, or RANKS=2 jobs/distill_small.sh
#   sbatch jobs/distill_small.sh          as a job; requeued and resumed when stopped
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
  ?*) echo "error: it takes no '$1'" >&2; usage >&2; exit 2 ;;
esac
[ -n "${SLURM_JOB_ID:-}" ] || cd "$(dirname "$0")/.."
./prepare languages
exec jobs/distill_chain.sh distill_small data/languages
