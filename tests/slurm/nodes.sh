#!/usr/bin/env bash
# Training of a GPT and of an HDP, and a file of requests, on two nodes of two ranks each, as jobs of
# jobs/quickstart.sh. Each job loses a node on the way, and with it the ranks, shards and locks there:
#
#   GPT        the second node; its ranks' peers notice, and the job script queues the job again
#   HDP        the node of the job script and of rank 0; Slurm notices
#   requests   the second node; Slurm notices, and ends the ranks that still answer
#
# The jobs resume when the node is back, and end with the same losses and answers, bit for bit, as the same runs
# without interruption.
#
#   nodes.sh TRAINER PREPARE
set -euo pipefail
. "$(dirname "$0")/job.sh"
. "$(dirname "$0")/two_nodes.sh"
enter_login "$@"

# 1. A folder as a user has it, on a file system that both nodes see.
user_folder "$@"
make_sources
./prepare quickstart
common() {  # name, steps
  cat <<DECK
&campaign   name = '$1'   max_steps = $2   seed = 7 /
&batch      per_rank = 4   global = 16 /
&optimizer  lr = 1e-3   warmup_steps = 20 /
&checkpoint every = 50 /
&output     log_every = 1 /
DECK
}
{ # Tensor ranks within a node, data ranks over both; each rank writes a shard of its own.
  common gpt 900   # long enough to be at work when others are started, on a busy machine
  cat <<'DECK'
&model      layers = 2   hidden = 64   heads = 4   context = 64   vocabulary = 264 /
&data       train = 'data/sources/train_*.bin'   valid = 'data/sources/valid_*.bin'   tokenizer = 'bytes'
            threads = 1 /
&parallel   tensor = 2   shard = 'optimizer'   wait_minutes = 1 /
&evaluation every = 60   rows = 8 /
DECK
} >gpt.in
{
  common hdp 300
  cat <<'DECK'
&model      layers = 2   hidden = 64   heads = 4   context = 88   vocabulary = 640   activation = 'swiglu' /
&objective  kind = 'block_diffusion'   hierarchy = 'hdp'   plan_block = 4   execution_block = 4 /
&data       train = 'data/quickstart/train.jsonl'   valid = 'data/quickstart/test.jsonl'   tokenizer = 'data/quickstart'
            question_tokens = 40   plan_tokens = 16   execution_tokens = 32   plan = 'skeleton'   notes = .false.
            threads = 1 /
&evaluation every = 60   rows = 8   problems = 8 /
DECK
} >hdp.in
python3 - <<'PY'
import json
with open("requests.jsonl", "w") as file:
    for at in range(2000):
        file.write(json.dumps({"text": f"/// Returns the {at}th ", "id": at}) + "\n")
PY
cat >answers.in <<'DECK'
&campaign   name = 'answers'   task = 'generate'   seed = 7 /
&model      layers = 2   hidden = 64   heads = 4   context = 128   vocabulary = 264   load = 'runs/gpt_whole' /
&data       tokenizer = 'bytes' /
&generation input = 'requests.jsonl'   prompt_template = 'prompt.txt'   pattern = '^(?s)(.{8})'
            max_tokens = 48   temperature = 1   top_k = 6   max_model_len = 128   batch = 2   prefill_tokens = 64 /
DECK
echo '#pragma once {text}' >prompt.txt
# 2. Slurm, and the runs without interruption. Waiting ranks leave the processors to others.
start_slurm
export OMP_NUM_THREADS=1 OMP_PROC_BIND=false OMPI_MCA_mpi_yield_when_idle=1
two_nodes=(--nodes=2 --ntasks=4 --ntasks-per-node=2)
whole() {  # deck
  local code=0
  srun --mpi=pmix "${two_nodes[@]}" ./trainer "$1.in" --set campaign.name="$1_whole" >"$1_whole.txt" 2>&1 || code=$?
  [ $code = 0 ] || { cat "$1_whole.txt" >&2; slurm_fail "srun of $1.in on two nodes ended with $code"; }
}
for deck in gpt hdp answers; do whole $deck; done
python3 - <<'PY'
import json
record = json.load(open("runs/gpt_whole/run.json"))
assert (record["host"], record["ranks"], record["ranks_per_host"]) == ("tern1, tern2", 4, 2), record
answers = sum((open(f"runs/answers_whole/{name}.jsonl").readlines() for name in ("answers", "answers_rejects")), [])
assert sorted(json.loads(line)["id"] for line in answers) == list(range(2000)), len(answers)
PY
grep -q '4 ranks x 1 thread, 2 per host' gpt_whole.txt || slurm_fail "the log does not know of two hosts"
if grep -n 'warning' gpt_whole.txt hdp_whole.txt answers_whole.txt; then slurm_fail "a run on two nodes warns"; fi

# 3. The jobs, each of which loses a node.
submit() { sbatch --parsable "${two_nodes[@]}" jobs/quickstart.sh "$1.in"; }   # deck
trained() { beyond "$1" 60 && compgen -G "runs/$1/checkpoints/step_*/checkpoint.h5"; }   # run
answered() { [ "$(cat runs/answers/parts/*.jsonl 2>/dev/null | wc -l)" -ge "$1" ]; }
queued_again() { [ "$(restarts "$1")" -ge "$2" ]; }   # job, times
down() { sinfo --noheader --Node --nodes="$1" --format=%T | grep -q '^down'; }   # node
nothing_unsent() { sdiag | grep -qE '^Agent queue size: *0$'; }
lose() {  # job, node, command that is true when the loss has been noticed
  local before
  before=$(restarts "$1")
  echo "job $1 loses $2"
  power_off "$2"
  wait_for 300 "what follows the loss of $2" "${@:3}"
  # Slurm 22.05 repeats what it could not send: an end of the job on this node would end the restarted job.
  notice_after 30
  wait_for 180 "Slurm to take $2 for down" down "$2"
  wait_for 180 "Slurm to drop its messages to $2" nothing_unsent
  boot "$2"
  wait_for 180 "the restart of job $1" has_restarted "$1" $((before + 1))
}
complete() {  # job
  wait_for 600 "the end of job $1" job_is "$1" ""
  scontrol show job "$1" | grep -q JobState=COMPLETED || { cat ./*.log >&2; slurm_fail "job $1 did not complete"; }
  grep -hE '^resumed|queued' "quickstart-$1.log" | sed 's/^/  /'
  grep -q '^resumed' "quickstart-$1.log" || slurm_fail "job $1 did not resume"
}

job=$(submit gpt)
wait_for 300 "the GPT's step 60 and a checkpoint" trained gpt
# Another process, on the other node, finds the run in use there; its ranks pause meanwhile, lest they end.
scancel --signal=STOP "$job.0"
code=0
srun --nodelist=tern2 --ntasks=1 --mpi=pmix ./trainer gpt.in --set parallel.tensor=1 --resume >refused.txt 2>&1 || code=$?
grep -qE "^error: runs/gpt is in use by process [0-9]+ on tern1 \(Slurm job $job\)" refused.txt && [ $code = 1 ] ||
  { cat refused.txt >&2; slurm_fail "a second run in the same folder ended with $code"; }
scancel --signal=CONT "$job.0"
lose "$job" tern2 grep -q "a node of tern\[1-2\] does not respond; job $job is queued again" "quickstart-$job.log"
grep -E 'error: rank [01] of 4 on tern1 has waited [0-9.]+ minutes' "quickstart-$job.log" ||
  { cat "quickstart-$job.log" >&2; slurm_fail "no rank on tern1 has missed the others"; }
complete "$job"

job=$(submit hdp)
wait_for 300 "the HDP's step 60 and a checkpoint" trained hdp
lose "$job" tern1 queued_again "$job" 1
complete "$job"

job=$(submit answers)
wait_for 300 "a hundred answers" answered 100
lose "$job" tern2 queued_again "$job" 1
complete "$job"

# 4. The same runs.
python3 - <<'PY'
import json
def read(run):
    entries = [json.loads(line) for line in open(f"runs/{run}/metrics.jsonl")]
    kept = ("step", "train/loss", "train/grad_norm", "val/loss", "val/exact_match", "samples_hash", "samples_hash_total")
    return [{name: entry[name] for name in kept if name in entry} for entry in entries]
for run, steps in (("gpt", 900), ("hdp", 300)):
    whole, job = read(f"{run}_whole"), read(run)
    assert len([e for e in whole if "train/loss" in e]) == steps, "the whole run logged each step once"
    assert len([e for e in whole if "val/loss" in e]) >= steps // 60
    for a, b in zip(whole, job):
        assert a == b, f"{run}: first difference: {a} without interruption, {b} with a lost node"
    assert len(whole) == len(job), f"{run}: {len(whole)} entries without interruption, {len(job)} with a lost node"
    print(f"{run}: {len(job)} entries agree bit for bit; last {job[-1]}")
for name in ("answers", "answers_rejects"):
    whole, job = (open(f"runs/{run}/{name}.jsonl").read() for run in ("answers_whole", "answers"))
    assert whole == job, f"{name}.jsonl differs"
    print(f"{name}: {len(job.splitlines())} lines agree")
PY
