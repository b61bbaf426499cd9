#!/usr/bin/env bash
# --help and -h of every script of a user print its head comment and run nothing; an option that it does not know ends
# it with its usage and exit code 2, before anything else. Copies run in an empty folder with sed and cat only in the
# path. Scripts of Slurm jobs name the commands to run without it, and local.sh refuses a deck that is not there at
# once.
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

# Without Slurm: every command for mpirun, exit code 1.
mkdir "$work/root"
cp -r jobs input "$work/root"
printf '#!/bin/sh\nsed -n "/baseline/p" "$1"\n' >"$work/root/trainer"   # --print-deck
chmod +x "$work/root/trainer"
ln -s "$(command -v dirname)" "$(command -v sh)" "$work/bin"
cd "$work/root"
without_slurm() {  # number of commands, a deck, script and its arguments
  local code=0
  run "${@:3}" || code=$?
  [[ $code = 1 && ! -s $work/out && $(<"$work/err") == "error: "*"is missing"*"  mpirun -n N ./trainer $2 "*"--resume"* &&
    $(grep -c '^  mpirun -n N ./trainer input/.*\.in .*--resume$' "$work/err") = "$1" ]] ||
    { cat "$work/out" "$work/err"; echo "${*:3} ends with $code without Slurm"; exit 1; }
}
for name in h100_gpt350m h200_bd3lm h200_hdp quickstart; do without_slurm 1 input/$name.in jobs/$name.sh; done
without_slurm 1 input/laptop_gpt.in jobs/srun_deck.sh input/laptop_gpt.in --set "campaign.name='two words'"
grep -qF " --set campaign.name=\'two\ words\' --resume" "$work/err"
without_slurm 4 input/h100x8_trm_fast.in jobs/h100x8_trm.sh
without_slurm 5 input/h100x8_distill_teacher.in jobs/h100x8_distill.sh

code=0
run jobs/local.sh input/quikstart.in || code=$?
[[ $code = 2 && ! -s $work/out && $(<"$work/err") == "error: there is no deck 'input/quikstart.in' in "*"  input/quickstart.in"* ]] ||
  { cat "$work/out" "$work/err"; echo "jobs/local.sh with a deck that is missing ends with $code"; exit 1; }
echo "scripts print their usage"
