#!/usr/bin/env bash
# Tries Tern's Spack environment (spack.yaml) and package (spack_repo) with a real Spack. Configuration, environments
# and installed packages are in a separate folder; ~/.spack is neither used nor changed.
#
#   packaging/spack_check.sh [options] [STEP...]
#
# Steps, in this order (default: all):
#   read          Spack reads spack.yaml and the packages: config get, info, audit
#   processors    both concretize for CPUs: spack concretize, spack spec
#   gpus          both concretize for cuda_arch=90, also with cuDNN, and for gfx90a; cuda_arch=80,90 is refused
#   install       builds the package with its tests from the newest commit of this checkout, loads it and runs
#                 trainer --version, trainer --list, man and spack test run
#
# Options:
#   --spack DIR       checkout of Spack 1.0 or newer (default: spack in PATH)
#   --packages DIR    checkout of spack-packages (default: those that Spack fetches from the network)
#   --scope DIR       folder of Spack configuration, e.g. packages.yaml with a site's MPI and CUDA; may be repeated
#   --find            also use the programs and libraries of spack external find
#   --work DIR        folder for all output (default: a new one, removed at the end)
#   --jobs N          build processes (default: 2)
#
# Without a scope that names the system's libraries, the step install builds about seventy packages, which takes hours.
set -euo pipefail
usage() { sed -n '1d; /^#/!q; s/^# \?//p' "$0"; }   # the comment above
case ${1:-} in -h | --help) usage; exit ;; esac
spack_root='' packages='' scopes=() find='' work='' jobs=2 steps=()
while [ $# -gt 0 ]; do
  case $1 in
    --spack) spack_root=$(cd "$2" && pwd); shift ;;
    --packages) packages=$(cd "$2" && pwd); shift ;;
    --scope) scopes+=(-C "$(cd "$2" && pwd)"); shift ;;
    --find) find=1 ;;
    --work) mkdir -p "$2"; work=$(cd "$2" && pwd); shift ;;
    --jobs) jobs=$2; shift ;;
    read | processors | gpus | install) steps+=("$1") ;;
    *) { echo "error: no option or step $1"; usage; } >&2; exit 2 ;;
  esac
  shift
done
checkout=$(cd "$(dirname "$0")/.." && pwd)
[ ${#steps[@]} -gt 0 ] || steps=(read processors gpus install)
[ -z "$spack_root" ] || PATH=$spack_root/bin:$PATH
command -v spack >/dev/null || { echo "error: no spack in PATH; name a checkout with --spack DIR" >&2; exit 2; }
[ -n "$work" ] || { work=$(mktemp -d); trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT; }

listing() { (cd "$checkout" && cksum spack.yaml && ls -A); }
before=$(listing)

# 1. Separate configuration.
export SPACK_USER_CONFIG_PATH=$work/config SPACK_SYSTEM_CONFIG_PATH=$work/system SPACK_USER_CACHE_PATH=$work/cache
mkdir -p "$work/config" "$work/environments"
cat >"$work/config/config.yaml" <<YAML
config:
  build_jobs: $jobs
  install_tree: {root: $work/store}
  build_stage: $work/stage
  source_cache: $work/sources
  misc_cache: $work/misc
YAML
[ -z "$packages" ] || printf 'repos::\n  builtin: %s\n' "$packages/repos/spack_repo/builtin" >"$work/config/repos.yaml"

failures=0
say() { printf '\n$ %s\n' "$*"; }
try() {  # runs a command and shows its end
  say "$*"
  if "$@" >"$work/output" 2>&1; then tail -n 60 "$work/output"; else
    tail -n 60 "$work/output"; echo "FAILED: $*"; failures=$((failures + 1)); fi
}
refuses() {  # WORDS COMMAND...: the command fails and says why
  local words=$1; shift
  say "$*    (is refused)"
  if "$@" >"$work/output" 2>&1 || ! grep -q "$words" "$work/output"; then
    tail -n 20 "$work/output"; echo "FAILED: not refused: $*"; failures=$((failures + 1)); else grep -m1 "$words" "$work/output"; fi
}
environment() {  # BACKEND: a copy of spack.yaml, so that the checkout's file does not change
  mkdir -p "$work/environments/$1"
  cp "$checkout/spack.yaml" "$work/environments/$1/"
  TERN_BACKEND=$1 try spack "${scopes[@]}" -e "$work/environments/$1" concretize --force
}

try spack --version
try spack compiler find
[ -z "$find" ] || try spack external find
try spack repo add "$checkout/spack_repo/tern"

# 2. The steps.
for step in "${steps[@]}"; do
  case $step in
    read)
      mkdir -p "$work/environments/read"
      cp "$checkout/spack.yaml" "$work/environments/read/"
      try spack -e "$work/environments/read" config get
      try spack info tern
      try spack audit packages tern cudnn-frontend
      ;;
    processors)
      environment openmp
      try spack "${scopes[@]}" spec tern
      ;;
    gpus)
      environment cuda
      environment hip
      try spack "${scopes[@]}" spec tern +cuda cuda_arch=90
      try spack "${scopes[@]}" spec tern +cuda +cudnn cuda_arch=90
      try spack "${scopes[@]}" spec tern +rocm amdgpu_target=gfx90a
      refuses "H100 and H200" spack "${scopes[@]}" spec tern +cuda cuda_arch=80,90
      ;;
    install)
      # A clone whose branch main is this commit: the package takes its sources from the checkout that contains it.
      rm -rf "$work/checkout"
      git clone --quiet "$checkout" "$work/checkout"
      git -C "$work/checkout" checkout --quiet -B main
      try spack repo remove tern
      try spack repo add "$work/checkout/spack_repo/tern"
      try spack "${scopes[@]}" install --test=root tern
      if exports=$(spack "${scopes[@]}" load --sh tern); then
        eval "$exports"
        say "spack load tern"
        try command -v trainer
        try trainer --version
        try trainer --list
        try man -w trainer
        try test -d "${TERN_SHARE:-}/jobs"
        try spack "${scopes[@]}" test run --alias tern_check tern
        try spack "${scopes[@]}" test results tern_check
      else
        echo "FAILED: spack load tern"; failures=$((failures + 1))
      fi
      ;;
  esac
done

[ "$(listing)" = "$before" ] || { echo "FAILED: files of the checkout were changed"; failures=$((failures + 1)); }
printf '\n%s\n' "$([ $failures = 0 ] && echo "Spack took everything" || echo "$failures failures")"
exit $((failures > 0))
