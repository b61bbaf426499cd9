#!/bin/sh
# Programs read files that users did not write: each is built with the stack protector and checked library calls.
# usage: hardened.sh PROGRAM...
set -u
failed=0
for program; do
  symbols=$(readelf --dyn-syms --wide "$program") || exit 1
  if ! printf '%s\n' "$symbols" | grep -q ' __stack_chk_fail'; then
    echo "$program: no __stack_chk_fail: cmake/Toolchain.cmake asks for -fstack-protector-strong"
    failed=1
  fi
  if ! printf '%s\n' "$symbols" | grep -q ' __[a-rt-z][a-z]*_chk'; then
    echo "$program: no call like __memcpy_chk: cmake/Toolchain.cmake defines _FORTIFY_SOURCE"
    failed=1
  fi
done
exit $failed
