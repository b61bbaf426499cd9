#!/usr/bin/env bash
# Ranks that wait longer than the limit for one that does not come say so, and all end, soon.
set -u
mpirun=$1 program=$2 failures=0 cases=0
limited=$(cd "$(dirname "$0")/.." && pwd)/limited.py
check() {  # ranks, late rank, operation, expected code, who says so, what they say
  local output code said seconds
  cases=$((cases + 1))
  # On a busy machine a short limit may end what is only slow, and some ranks may not speak before the first one ends
  # all.
  for seconds in 5 10 20 40; do
    output=$(python3 "$limited" 300 "$mpirun" --allow-run-as-root --oversubscribe -n "$1" "$program" "$2" "$3" $seconds 2>&1); code=$?
    said=$(grep -oE "^error: rank [0-9]+ of $1 on [^ ]+ has waited [0-9.]+ minutes, since [-0-9]+ [:0-9]+, $6: longer than &parallel wait_minutes = 0\.[0-9]+\. " \
      <<<"$output" | grep -oE "^error: rank [0-9]+" | grep -oE "[0-9]+" | sort -n | tr '\n' ' ')
    [ "$code" != "$4" ] || [ "$said" != "$5" ] || return
    echo "-n $1 $2 $3, limit $seconds s: exit code $code (expected $4), said by '$said' (expected '$5')"
  done
  echo "FAILED: at all limits"
  echo "$output"
  failures=$((failures + 1))
}
check 4 none barrier 0 "" ".*"
check 4 2 barrier 70 "0 1 3 " "in barrier among all 4 ranks"
check 2 0 host 70 "1 " "in all_reduce of 8 bytes among all 2 ranks"
check 2 1 device 70 "0 " "(in|for its device to finish) all_reduce of 4096 bytes among all 2 ranks"
check 4 2 exchange 70 "3 " "(in|for its device to finish) exchange of 4096 bytes from its rank 0 among the 2 ranks of 'pipeline' \(2, 3\)"
check 2 1 long 0 "" ".*"
check 4 2 end 70 "0 1 3 " "in MPI shutdown"
[ "$failures" = 0 ] && echo "$cases cases passed"
exit "$failures"
