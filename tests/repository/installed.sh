#!/usr/bin/env bash
# cmake --install: the programs run from where the folder was moved to, decks are listed, man pages and completion
# know the programs' options, and the container's %test runs.   installed.sh BUILD
set -euo pipefail
build=$1
source=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# A build for a GPU, or for another processor, may not run here: installing it runs no program.
if grep -n execute_process "$build/cmake_install.cmake" | grep -v 'strip"'; then exit 1; fi
cmake --install "$build" --prefix "$work/first" >"$work/log"
grep -q "$work/first" "$work"/first/share/tern/modulefiles/tern/*.lua
mv "$work/first" "$work/tern"
PATH=$work/tern/bin:$PATH
cd "$work"
has() { grep -c -- "$1" >/dev/null; }   # reads to the end: the programs report a closed pipe

trainer --version | has .
[ "$(command -v trainer)" = "$work/tern/bin/trainer" ]
trainer --list | has "^quickstart "
trainer "$work/tern/share/tern/input/quickstart.in" --print-deck | has "^&model"
prepare --help | has quickstart
diagnose --help | has diagnose
for name in prepare diagnose; do [ "$(readlink "tern/share/bash-completion/completions/$name")" = trainer ]; done

# Man pages are kept as text: the programs' --help, as it is.
python=${TERN_PYTHON:-python3}
"$python" "$source/../../packaging/man_page.py" "$build" --check
for name in trainer prepare diagnose; do
  page=tern/share/man/man1/$name.1
  grep -qF ".TH ${name^^} 1 \"\" \"Tern $(trainer --version | cut -d' ' -f2)\"" "$page"
  grep -q "^.SH SYNOPSIS\|^.SH DESCRIPTION" "$page"
  for option in $($name --help | grep -oE -- '--[a-z][a-z-]+' | sort -u); do
    grep -qF -- "${option//-/\\-}" "$page" || { echo "$page lacks $option"; exit 1; }
  done
  if command -v man >/dev/null; then LC_ALL=C man --warnings -l "$page" 2>&1 >"$work/$name.txt" | { ! grep .; }; fi
done

# What the container's definition runs to test itself.
TERN_SHARE=$work/tern/share/tern sh -c "$("$python" "$source/container.py" test)" >"$work/container.txt" 2>&1 ||
  { cat "$work/container.txt"; exit 1; }
has "finished at step" <"$work/container.txt"

# What the shell offers after some words.
offers() {
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
  _tern
  echo "${COMPREPLY[*]}"
}
compopt() { :; }   # works within a completion only
source tern/share/bash-completion/completions/trainer
[ "$(offers trainer --dry)" = "--dry-run" ]
[ "$(offers trainer --device h)" = "h200 h100" ]
[[ $(offers prepare qui) = quickstart ]]
[[ $(offers prepare text --train-bp) = --train-bpe ]]
[[ $(offers trainer quicks) = *quickstart* ]]
cp tern/share/tern/input/quickstart.in .
[[ $(offers trainer quickstart.in --set batch.per) = "batch.per_rank=" ]]
"$python" "$source/completion.py" "$work/tern/share"
echo "installed, moved, listed, documented and completed"
