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
export OMP_PROC_BIND=${OMP_PROC_BIND:-false}
if [ -n "${SLURM_JOB_ID:-}" ]; then
  export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}
  run() { jobs/srun_deck.sh "$@"; }
else
  cd "$(dirname "$0")/.."
  if [ "${RANKS:-1}" = 1 ]; then
    run() { ./trainer "$@" --resume; }
  else
    if [ "$(id -u)" = 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
    export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
    run() { mpirun --oversubscribe --bind-to none -n "$RANKS" ./trainer "$@" --resume; }
  fi
fi
judge=(--set campaign.task=evaluate --set generation.input=data/languages/test.jsonl)

# 1. The teacher, and its answers to the sentences that the student learns.
./prepare languages
run input/distill_small_teacher_train.in
run input/distill_small_teacher.in

# 2. Its answers to other sentences; those of the student before it learns.
run input/distill_small_teacher.in "${judge[@]}" --set "campaign.name='teacher with prompt'" \
  --set output.directory=runs/distill_small_teacher_test
run input/distill_small_student.in "${judge[@]}" --set "campaign.name='student before training'" \
  --set output.directory=runs/distill_small_before --set evaluation.beside=runs/distill_small_teacher_test

# 3. The student, and the gap table.
run input/distill_small_student.in
run input/distill_small_student.in "${judge[@]}" --set "campaign.name='student without prompt'"
