#!/usr/bin/env bash
# Prompt distillation on a node of eight H100 or H200, in one allocation: the teacher answers, the student is trained on
# the answers, and both are scored. From the root of the project, after a build with the cuda preset, on the login node:
#
#   sbatch jobs/h100x8_distill.sh
#
# It needs:
#   models/Qwen3-30B-A3B-Instruct-2507, models/Qwen3-4B    weights, as Transformers directories
#   data/distill/sentences.jsonl, test.jsonl               from ./prepare sentences --input FILE --output data/distill,
#                                                          where FILE has labeled sentences
#   data/distill/prompt.txt                                the prompt, with {text} in place of the sentence
#
# A stopped job is requeued and resumes. Finished parts are not repeated: remove runs/h100x8_distill_* to restart. To
# plan a deck on any machine: ./trainer DECK --dry-run --without-data --device h100. Each rank takes the GPU of its
# local rank: do not use --gpus-per-task.
#SBATCH --job-name=h100x8_distill
#SBATCH --nodes=1 --ntasks=8 --gpus-per-node=8 --cpus-per-task=10
#SBATCH --time=02:00:00
#SBATCH --signal=USR1@120
#SBATCH --requeue --open-mode=append --output=%x-%j.log
set -euo pipefail
usage() { sed -n '1d; /^#SBATCH/d; /^#/!q; s/^# \?//p' "$0"; }   # the comment above
case ${1:-} in
  -h | --help) usage; exit ;;
  ?*) echo "error: unknown argument '$1'" >&2; usage >&2; exit 2 ;;
esac
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-${SLURM_CPUS_PER_TASK:-1}} OMP_PROC_BIND=false
teacher=input/h100x8_distill_teacher.in student=input/h100x8_distill_student.in
judge=(--set campaign.task=evaluate --set generation.input=data/distill/test.jsonl)
run() { jobs/srun_deck.sh "$@"; }
if ! command -v srun >/dev/null; then
  echo "error: srun is missing: this runs in a Slurm job. Without Slurm, on N ranks, one per GPU, run in this order:" >&2
  run() { { printf '  mpirun -n N ./trainer'; printf ' %q' "$@" --resume; echo; } >&2; }
  trap 'exit 1' EXIT
fi

# 1. The teacher's answers to the sentences that the student learns.
run $teacher

# 2. Its answers to other sentences; those of the student before it learns. Engines need whole models: no sharding.
run $teacher "${judge[@]}" --set "campaign.name='teacher with prompt'" \
  --set output.directory=runs/h100x8_distill_teacher_test
run $student "${judge[@]}" --set parallel.shard=none --set "campaign.name='student before training'" \
  --set output.directory=runs/h100x8_distill_before --set evaluation.compare_with=runs/h100x8_distill_teacher_test

# 3. The student, and the gap table.
run $student
run $student "${judge[@]}" --set parallel.shard=none --set "campaign.name='student without prompt'"
