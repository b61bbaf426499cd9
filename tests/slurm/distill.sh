#!/usr/bin/env bash
# Prompt distillation in miniature as a job, jobs/distill_small.sh on two ranks: stopped once in the teacher's training
# and once while the teacher answers, it is requeued, resumes, and ends with the gap table: a teacher that is right
# with its prompt, a student that without it guesses before its training and is right after.
#
#   distill.sh TRAINER PREPARE
set -euo pipefail
. "$(dirname "$0")/job.sh"

# 1. A folder as a user has it.
user_folder "$@"

# 2. The job, stopped twice.
start_slurm
export OMP_NUM_THREADS=1
answered() { [ "$(cat runs/distill_small_teacher/parts/*.jsonl 2>/dev/null | wc -l)" -ge "$1" ]; }
job=$(sbatch --parsable jobs/distill_small.sh)
wait_for 120 "the teacher's step 40" beyond distill_small_teacher_train 40
scancel --signal=USR1 "$job"
wait_for 60 "the job's second start" has_restarted "$job" 1
wait_for 300 "a hundred answers" answered 100
scancel --signal=USR1 "$job"
wait_for 60 "the job's third start" has_restarted "$job" 2
wait_for 300 "the end of the job" job_is "$job" ""
scontrol show job "$job" | grep -q JobState=COMPLETED || { cat ./*.log >&2; slurm_fail "the job did not complete"; }

# 3. The gap.
grep -hE '^stopped|^resumed' "distill_small-$job.log"
grep -hq '^resumed: [0-9]* of 2400 requests' "distill_small-$job.log" || slurm_fail "the answers were not resumed"
sed -n '/^gap$/,$p' "distill_small-$job.log" | tail -n 5
python3 - <<'PY'
import json
teacher, before, student = (json.load(open(f"runs/distill_small_{name}/evaluation.json")) for name in ("teacher_test", "before", "student"))
assert teacher["accuracy"] > 0.95, teacher
assert before["accuracy"] < 0.2, before
assert student["accuracy"] > 0.95 and student["agreement"] > 0.95, student
assert student["prompt_tokens_each"] < teacher["prompt_tokens_each"] / 2
assert sum(1 for _ in open("runs/distill_small_teacher/answers.jsonl")) > 2300
PY
