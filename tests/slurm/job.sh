# shellcheck shell=bash
# Setup and queries of the tests of jobs. To be sourced by NAME.sh TRAINER PREPARE; brings slurm.sh and one_node.sh.
#
#   user_folder      changes to a temporary folder as a user has it, with the programs, job scripts and decks, and removes
#                    it, and Slurm, when the test ends
#   make_sources     there: data/sources, this library's text as bytes
. "$(dirname "${BASH_SOURCE[0]}")/slurm.sh"
. "$(dirname "${BASH_SOURCE[0]}")/one_node.sh"

user_folder() {  # TRAINER PREPARE
  local work root
  root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
  work=$(mktemp -d /tmp/tern_job.XXXXXX)
  # shellcheck disable=SC2064  # its name now
  trap "stop_slurm; rm -rf '$work'" EXIT
  cd "$work"
  ln -s "$1" trainer
  ln -s "$2" prepare
  ln -s "$root/jobs" "$root/input" "$root/lib" .
}

make_sources() {
  ./prepare text --input lib/*/*.hpp lib/*/*.cpp --format text --tokenizer bytes --valid-fraction 0.1 \
    --output data/sources
}

job_is() {  # job, state; empty: gone
  [ "$(squeue --noheader --jobs="$1" --format=%T 2>/dev/null)" = "$2" ]
}
restarts() { scontrol show job "$1" | sed -n 's/.*Restarts=\([0-9]*\).*/\1/p'; }
has_restarted() {  # job, times: and runs again
  [ "$(restarts "$1")" -ge "$2" ] && job_is "$1" RUNNING
}
last_step() {  # of a run
  tail -n 1 "runs/$1/metrics.jsonl" 2>/dev/null | sed -n 's/^{"step":\([0-9]*\),.*/\1/p'
}
beyond() { [ "$(last_step "$1")" -ge "$2" ]; }
