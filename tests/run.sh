#!/usr/bin/env bash
# Builds with warnings as errors and runs the tests, from scratch.
#
#   tests/run.sh                        all of them
#   tests/run.sh -L unit                options of ctest, here one label
#   tests/run.sh --sanitize [options]   under the address and undefined-behavior sanitizers
#
# Kokkos, the compiler cache and the Python environment are outside the source tree in TERN_CACHE (default
# ~/.cache/tern), which makes a second run short. The last line is ctest's summary.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '1d; /^#SBATCH/d; /^#/!q; s/^# \?//p' "$0"; exit ;; esac   # the comment above
cd "$(dirname "$0")/.."
export TERN_CACHE=${TERN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tern}
preset=ci build=build/cpu
if [ "${1:-}" = --sanitize ]; then
  preset=sanitize build=build/sanitize
  shift
fi

# 1. Packages; those of Python in a separate environment.
jobs/install.sh --tests
venv=$TERN_CACHE/venv
if ! cmp -s tests/requirements.txt "$venv/requirements.txt"; then
  echo "making the Python environment of tests/requirements.txt in $venv"
  rm -rf "$venv"
  python3 -m venv "$venv"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement tests/requirements.txt
  cp tests/requirements.txt "$venv/requirements.txt"
fi
export TERN_PYTHON=$venv/bin/python

# 2. Build.
export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja} CCACHE_DIR=${CCACHE_DIR:-$TERN_CACHE/ccache}
cmake --preset $preset
cmake --build $build

# 3. Test. Waiting threads must not spin: several tests run at once. Leaks inside MPI and Python are ignored.
export OMP_WAIT_POLICY=passive GTEST_COLOR=no
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=0}
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$PWD/tests/leaks.supp:print_suppressions=0}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
output=$build/ctest.txt
status=0
# More tests at once than cores, since they mostly wait for ranks, limits and the disk.
ctest --test-dir $build --output-on-failure --no-tests=error --parallel "$((2 * $(nproc)))" "$@" | tee "$output" || status=$?

# 4. Count. ctest's tests are programs; GoogleTest counts the cases within them.
cases=$(grep -hoE '^\[==========\] [0-9]+ tests? from .* ran' $build/Testing/Temporary/LastTest.log | awk '{n += $2} END {print n + 0}')
echo "$cases cases of GoogleTest in $(grep -cE '^ *[0-9]+/[0-9]+ Test +#' "$output") ctest tests"
grep -E '^[0-9]+% tests passed' "$output" || echo "ctest did not run"
exit $status
