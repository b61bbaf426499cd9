#!/usr/bin/env bash
# One rank's failure ends all ranks, soon, with one message and the documented exit code.
set -u
mpirun=$1 program=$2 failures=0
limited=$(cd "$(dirname "$0")/.." && pwd)/limited.py
check() {  # ranks, who, what, expected code, expected message
  local output code count
  output=$(python3 "$limited" 60 "$mpirun" --allow-run-as-root --oversubscribe -n "$1" "$program" "$2" "$3" 2>&1); code=$?
  count=$(grep -c "$5" <<<"$output")
  if [ "$code" != "$4" ] || { [ -n "$5" ] && [ "$count" != 1 ]; }; then
    echo "FAILED: -n $1 $2 $3: exit code $code (expected $4), message seen $count times (expected once)"; echo "$output"
    failures=$((failures + 1))
  fi
}
check 1 none user 0 ""
check 4 none user 0 ""
check 1 0 user 1 "error: deck.in:3: no such value"
check 4 0 user 1 "error: rank 0: deck.in:3"
check 4 2 user 1 "error: rank 2: deck.in:3"
check 4 3 internal 70 "error: rank 3: .*internal error: session.size"
check 4 all user 1 "error: deck.in:3: no such value"
check 2 all internal 70 "error: .*internal error: session.size"
check 1 0 abort 70 "error: this run was stopped by the failure above"
check 4 2 abort 70 "error: rank 2 of 4 on .* was stopped by the failure above"
[ "$failures" = 0 ] && echo "10 cases passed"
exit "$failures"
