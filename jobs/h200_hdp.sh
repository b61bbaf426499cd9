#!/usr/bin/env bash
# HDP on GSM8K on one H100 or H200. From the root of the project, after a build with the cuda preset, with the
# data that input/h200_hdp.in names:
#
#   sbatch jobs/h200_hdp.sh [trainer options]
#
# On four GPUs of a node: sbatch --ntasks=4 --gpus-per-node=4 jobs/h200_hdp.sh
# On two nodes of eight GPUs: sbatch --nodes=2 --ntasks=16 --ntasks-per-node=8 --gpus-per-node=8 jobs/h200_hdp.sh
# Each rank takes the GPU of its local rank, or the only visible one. NCCL must see all GPUs: do not use
# --gpus-per-task.
#SBATCH --job-name=h200_hdp
#SBATCH --nodes=1 --ntasks=1 --gpus-per-node=1 --cpus-per-task=10
#SBATCH --time=12:00:00
#SBATCH --signal=USR1@120
#SBATCH --requeue --open-mode=append --output=%x-%j.log
case ${1:-} in -h | --help) sed -n '1d; /^#SBATCH/d; /^#/!q; s/^# \?//p' "$0"; exit ;; esac   # the comment above
export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1} OMP_PROC_BIND=false
exec jobs/srun_deck.sh input/h200_hdp.in "$@"
