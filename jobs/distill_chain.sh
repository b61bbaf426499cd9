#!/usr/bin/env bash
# Used by jobs/distill_small.sh and jobs/distill_languages.sh: prompt distillation from scratch to the gap table. Trains
# a teacher, which answers with a prompt, trains a student on these answers without the prompt, and scores both on other
# sentences.
#
#   jobs/distill_chain.sh NAME FOLDER [trainer options]     from the root of the project, or within a Slurm job
#
# NAME selects the decks input/NAME_teacher_train.in, _teacher.in and _student.in; FOLDER contains test.jsonl. Every
# deck gets the options. RANKS=2 starts two ranks without Slurm. Finished parts are not repeated.
set -euo pipefail
usage() { sed -n '1d; /^#SBATCH/d; /^#/!q; s/^# \?//p' "$0"; }   # the comment above
case ${1:-} in
  -h | --help) usage; exit ;;
  -* | '') echo "error: NAME and FOLDER come first, not '${1:-}'" >&2; usage >&2; exit 2 ;;
esac
[ $# -ge 2 ] || { echo "error: FOLDER is missing" >&2; usage >&2; exit 2; }
name=$1 folder=$2
shift 2
export OMP_PROC_BIND=${OMP_PROC_BIND:-false}
if [ -n "${SLURM_JOB_ID:-}" ]; then
  export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}
  start() { jobs/srun_deck.sh "$@"; }
elif [ "${RANKS:-1}" = 1 ]; then
  start() { ./trainer "$@" --resume; }
else
  if [ "$(id -u)" = 0 ]; then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
  export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
  start() { mpirun --oversubscribe --bind-to none -n "$RANKS" ./trainer "$@" --resume; }
fi
options=("$@")
run() { start "input/${name}_$1.in" "${@:2}" ${options[@]+"${options[@]}"}; }   # deck, its own options
judge=(--set campaign.task=evaluate --set generation.input="$folder/test.jsonl")

# 1. The teacher, and its answers to the sentences that the student learns.
run teacher_train
run teacher

# 2. Its answers to other sentences; those of the student before it learns.
run teacher "${judge[@]}" --set "campaign.name='teacher with prompt'" --set output.directory="runs/${name}_teacher_test"
run student "${judge[@]}" --set "campaign.name='student before training'" --set output.directory="runs/${name}_before" \
  --set evaluation.compare_with="runs/${name}_teacher_test"

# 3. The student, and the gap table.
run student
run student "${judge[@]}" --set "campaign.name='student without prompt'"
