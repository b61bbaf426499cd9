#!/usr/bin/env bash
# A job on two ranks, submitted with sbatch and the job script of the quickstart, is stopped twice: by
# SIGUSR1 (as --signal sends before the job's time ends; the trainer ends with 75 and the script requeues the
# job) and by scontrol requeue (a preemption). It then finishes with the same losses, bit for bit, and
# the same samples, each once, as the same run without interruption.
#
#   requeue.sh TRAINER PREPARE
set -euo pipefail
. "$(dirname "$0")/job.sh"

# 1. A folder as a user has it: program, job scripts, deck, data.
user_folder "$@"
make_sources
cat >deck.in <<'DECK'
&campaign   name = 'job'   max_steps = 400   seed = 7 /
&model      layers = 2   hidden = 64   heads = 4   context = 64   vocabulary = 264 /
&data       train = 'data/sources/train_*.bin'   valid = 'data/sources/valid_*.bin'   tokenizer = 'bytes'
            threads = 1 /
&batch      per_rank = 8   global = 16 /
&optimizer  lr = 1e-3   warmup_steps = 20 /
&checkpoint every = 50 /
&evaluation every = 100   rows = 16 /
&output     log_every = 1 /
DECK

# 2. Slurm, and the run without interruption.
start_slurm
export OMP_NUM_THREADS=1 OMP_PROC_BIND=false
srun --mpi=pmix -n 2 ./trainer deck.in --set campaign.name=whole >whole.txt 2>&1 ||
  { cat whole.txt >&2; slurm_fail "srun -n 2 ./trainer ended with $?"; }

# 3. The job, stopped twice.
job=$(sbatch --parsable jobs/quickstart.sh deck.in)
wait_for 60 "the job's step 30" beyond job 30
scancel --signal=USR1 "$job"
wait_for 60 "the job's second start" has_restarted "$job" 1
stopped_at=$(last_step job)
wait_for 60 "steps after the first stop (at $stopped_at)" beyond job $((stopped_at + 30))
scontrol requeue "$job"
wait_for 60 "the job's third start" has_restarted "$job" 2
wait_for 240 "the end of the job" job_is "$job" ""
scontrol show job "$job" | grep -q JobState=COMPLETED || { cat ./*.log >&2; slurm_fail "the job did not complete"; }

# 4. The same run.
grep -E 'stopped|resumed|queued|validation|REQUEUE' ./quickstart-*.log
python3 - <<'PY'
import json
def read(run):
    entries = [json.loads(line) for line in open(f"runs/{run}/metrics.jsonl")]
    kept = ("step", "train/loss", "train/grad_norm", "val/loss", "samples_hash", "samples_hash_total")
    return [{name: entry[name] for name in kept if name in entry} for entry in entries]
whole, job = read("whole"), read("job")
assert len([e for e in whole if "train/loss" in e]) == 400, "the whole run logged each step once"
assert len([e for e in whole if "val/loss" in e]) >= 4 and all("samples_hash" in e for e in whole if "train/loss" in e)
for a, b in zip(whole, job):
    assert a == b, f"first difference: {a} without interruption, {b} with two"
assert len(whole) == len(job), f"{len(whole)} entries without interruption, {len(job)} with two"
print(f"{len(job)} entries agree bit for bit; last {job[-1]}")
PY
