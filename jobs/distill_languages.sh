#!/usr/bin/env bash
# Prompt distillation on one or two H100 or H200, from scratch to the gap table. It trains a teacher of 124M parameters
# to look up codes in its prompt, lets it answer with one prompt, trains a student of the same size on these answers
# without the prompt, and scores both on other sentences. From the root of the project, after a build with the cuda
# preset:
#
#   sbatch jobs/distill_languages.sh [trainer options]     as a job, which is requeued and resumed if it is stopped
#   jobs/distill_languages.sh [trainer options]            on this machine; with RANKS=2 in front, on two GPUs
#
# As a job on two GPUs: sbatch --ntasks=2 --gpus-per-node=2 jobs/distill_languages.sh
# Every deck gets the options. Finished parts are not repeated: remove runs/distill_languages_* to restart.
#SBATCH --job-name=distill_languages
#SBATCH --nodes=1 --ntasks=1 --gpus-per-node=1 --cpus-per-task=8
#SBATCH --time=00:30:00
#SBATCH --signal=USR1@120
#SBATCH --requeue --open-mode=append --output=%x-%j.log
set -euo pipefail
case ${1:-} in -h | --help) sed -n '1d; /^#SBATCH/d; /^#/!q; s/^# \?//p' "$0"; exit ;; esac   # the comment above
[ -n "${SLURM_JOB_ID:-}" ] || cd "$(dirname "$0")/.."
./prepare languages --languages 24 --least-languages 3 --tables 160e3 --conversations 160e3 --sentences 20e3 \
  --test-sentences 2400 --vocabulary 2048 --output data/many_languages
exec jobs/distill_chain.sh distill_languages data/many_languages "$@"
