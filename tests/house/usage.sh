#!/usr/bin/env bash
# --help and -h of every script of a user print its head comment and run nothing; an option that it does not know ends
# it with its usage and exit code 2, before anything else. Copies run in an empty folder with sed and cat only in the path.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" "$work/empty"
for program in bash sed cat; do ln -s "$(command -v $program)" "$work/bin"; done
run() { PATH=$work/bin bash "$@" >"$work/out" 2>"$work/err"; }
passing='distill_languages|h100_gpt350m|h200_bd3lm|h200_hdp|run'   # options are the trainer's, or ctest's
for script in jobs/*.sh tests/run.sh packaging/*.sh; do
  name=${script##*/} name=${name%.sh}
  cat "$script" >"$work/empty/$name.sh"
  cd "$work/empty"
  for option in --help -h; do
    run "$name.sh" $option || { cat "$work/err"; echo "$script $option fails"; exit 1; }
    usage=$(cat "$work/out")
    [[ ! -s $work/err && $usage == *"$script"* && $usage != *SBATCH* && $usage != *'set -'* && $usage != *$'\n#'* ]] ||
      { cat "$work/out" "$work/err"; echo "$script $option prints this"; exit 1; }
  done
  if [[ ! $name =~ ^($passing)$ ]]; then
    code=0
    run "$name.sh" --no-such-option || code=$?
    said=$(cat "$work/err")
    [[ $code = 2 && ! -s $work/out && $said == "error: "*--no-such-option*"$usage" ]] ||
      { cat "$work/out" "$work/err"; echo "$script --no-such-option ends with $code"; exit 1; }
  fi
  cd "$OLDPWD"
done
echo "scripts print their usage"
