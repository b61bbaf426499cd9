#!/usr/bin/env bash
# Two phases of recursive refinement, submitted by jobs/h100x8_trm.sh. Where the first ends with a failed
# verdict (exit code 77) the second never starts and leaves the queue. Where it ends with a good one (exit code
# 0) the second starts from its weights and completes, although the first was stopped and requeued on the way.
#
#   gate.sh TRAINER PREPARE
set -euo pipefail
. "$(dirname "$0")/job.sh"

# 1. A folder as a user has it: program, job scripts, decks, data.
user_folder "$@"
make_sources
# The large init_std makes the model refine from the first steps on.
write_deck() {  # name, steps, expected refinement, weights to start from, baseline
  cat >"$1.in" <<DECK
&campaign   name = '$1'   max_steps = $2   seed = 7 /
&model      layers = 2   hidden = 64   heads = 4   context = 64   vocabulary = 264   inner_steps = 1
            init_std = 0.2   embed_std = 1   load = '$4' /
&objective  kind = 'refinement'   supervision_steps = 2   reward = 4   refinement_range = $3
            norm_range = 0.1, 100   norm_limit = 1000 /
&data       train = 'data/sources/train_*.bin'   valid = 'data/sources/valid_*.bin'   tokenizer = 'bytes'
            threads = 1 /
&batch      per_rank = 8   global = 16 /
&optimizer  lr = 3e-3   warmup_steps = 10 /
&checkpoint every = 0 /
&evaluation every = 100   rows = 32   baseline = '${5:-}' /
&generation samples = 0 /
&output     log_every = 1 /
DECK
}
write_deck failing 30 '0.98, 0.99' '' runs/plain
write_deck never 30 '0.002, 0.9' ''
write_deck good 200 '0.002, 0.9' ''
write_deck second 40 '0.002, 0.9' runs/good

# 2. Slurm. Its node has no GPU, and four processors.
start_slurm
export OMP_NUM_THREADS=1
state() { scontrol show job "$1" | sed -n 's/.*JobState=\([^ ]*\).*/\1/p'; }
reason() { scontrol show job "$1" | sed -n 's/.*Reason=\([^ ]*\).*/\1/p'; }
exit_code() { scontrol show job "$1" | sed -n 's/.*ExitCode=\([^ ]*\).*/\1/p'; }
queued() { squeue --noheader --jobs="$1" --format=%i 2>/dev/null | grep -qx "$1"; }
gone() { ! queued "$1"; }
show() { echo "  job $1 ($2): state $(state "$1"), reason $(reason "$1"), exit code $(exit_code "$1")"; }
verdict() { grep -hE -A 2 '^verdict of' "h100x8_trm-$1.log" | sed 's/^/  /'; }
grade() { grep -A 1 "\"name\": \"$2\"" "runs/$1/verdict.json" | sed -n 's/.*"grade": "\(.*\)".*/\1/p'; }
submit() {  # decks; sets first, second and, of the first deck, baseline
  jobs/h100x8_trm.sh --ntasks=2 --cpus-per-task=1 --gpus-per-node=0 "$1.in" "$2.in" >submitted.txt
  cat submitted.txt
  read -r first second < <(sed -n '/baseline/d; s/^job \([0-9]*\):.*/\1/p' submitted.txt | xargs)
  baseline=$(sed -n 's/^job \([0-9]*\): baseline of .*/\1/p' submitted.txt)
}
expect() {  # what, found, expected
  [ "$2" = "$3" ] || { cat ./*.log >&2; slurm_fail "$1 is '$2', expected '$3'"; }
}

! jobs/h100x8_trm.sh failing.in 2>/dev/null || slurm_fail "a single deck was submitted"

# 3. A failed verdict keeps the gate closed. Its deck asks for a baseline, which is trained before it.
submit failing never
expect "the state of phase one at first" "$(state "$first") $(reason "$first")" "PENDING Dependency"
expect "the state of phase two at first" "$(state "$second") $(reason "$second")" "PENDING Dependency"
wait_for 60 "the end of the baseline" gone "$baseline"
expect "the end of the baseline" "$(state "$baseline") $(exit_code "$baseline")" "COMPLETED 0:0"
grep -q '"val/loss"' runs/plain/metrics.jsonl || slurm_fail "the baseline was not evaluated"
wait_for 60 "the end of phase one" gone "$first"
wait_for 30 "the removal of phase two" gone "$second"
show "$first" "phase one"
verdict "$first"
show "$second" "phase two"
expect "the state of phase one" "$(state "$first")" FAILED
expect "the exit code of phase one" "$(exit_code "$first")" 77:0
expect "the grade of its refinement" "$(grade failing refinement)" failure
[ -n "$(grade failing baseline)" ] || slurm_fail "phase one was not weighed against its baseline"
grep -q "below val/loss of plain" runs/failing/verdict.json || slurm_fail "the baseline is not named"
expect "the state of phase two" "$(state "$second") $(reason "$second")" "CANCELLED DependencyNeverSatisfied"
[ ! -e "h100x8_trm-$second.log" ] && [ ! -e runs/never ] || slurm_fail "phase two has started"

# 4. A good one opens it, and a stop on the way does not close it.
submit good second
wait_for 60 "phase one's step 5" beyond good 5
scancel --signal=USR1 "$first"
wait_for 60 "phase one's second start" has_restarted "$first" 1
expect "the state of phase two meanwhile" "$(state "$second") $(reason "$second")" "PENDING Dependency"
wait_for 240 "the end of phase one" gone "$first"
wait_for 120 "the end of phase two" gone "$second"
grep -hE '^stopped|^resumed' "h100x8_trm-$first.log" | sed 's/^/  /'
for job in "$first" "$second"; do
  show "$job" "phase $([ "$job" = "$first" ] && echo one || echo two)"
  verdict "$job"
  expect "the end of job $job" "$(state "$job") $(exit_code "$job")" "COMPLETED 0:0"
  grep -q '^verdict of recursive refinement .*: good' "h100x8_trm-$job.log" || slurm_fail "job $job has no good verdict"
done
grep -q '^resumed from' "h100x8_trm-$first.log" || slurm_fail "phase one did not resume from its checkpoint"
