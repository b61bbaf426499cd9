#!/usr/bin/env bash
# jobs/install.sh waits for a lock of apt that another process holds, and ends if apt has another complaint;
# jobs/local.sh builds all programs. Scripts stand in for apt-get and what it needs.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin"
play() { { echo '#!/usr/bin/env bash'; cat; } >"$work/bin/$1"; chmod +x "$work/bin/$1"; }
play dpkg-query <<<'exit 1'   # nothing is installed
play sleep <<<'exit 0'
play sudo <<<'exec "$@"'
play apt-get <<TEXT
echo "\$*" >>"$work/calls"
case \$(wc -l <"$work/calls") in
  1) echo 'E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 77 (unattended-upgr)' >&2; exit 100 ;;
  2) echo 'E: Unable to locate package cmake' >&2; exit 100 ;;
  3) echo 'E: Could not get lock /var/lib/apt/lists/lock. It is held by process 77 (apt-get)' >&2; exit 100 ;;
esac
TEXT
output=$(PATH="$work/bin:$PATH" jobs/install.sh)
grep -q "waiting for another process" <<<"$output"
# install: lock, then no lists; update: lock, then well; install.
[ "$(sed -E 's/.*(install|update).*/\1/' "$work/calls" | xargs)" = "install install update update install" ]

play apt-get <<<'echo "E: broken" >&2; exit 100'
if PATH="$work/bin:$PATH" jobs/install.sh >"$work/out" 2>&1; then exit 1; fi
grep -q "E: broken" "$work/out"

for program in trainer prepare diagnose; do grep -qE "cmake --build .*\b$program\b" jobs/local.sh; done
echo "jobs/install.sh waits for apt, jobs/local.sh builds all programs"
