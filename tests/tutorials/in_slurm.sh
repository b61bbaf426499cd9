#!/usr/bin/env bash
# Runs a command where sbatch, srun and scontrol are those of a private Slurm of one node (tests/slurm/slurm.sh), and
# ends it.
#
#   in_slurm.sh COMMAND...
set -euo pipefail
slurm=$(cd "$(dirname "$0")/../slurm" && pwd)
. "$slurm/slurm.sh"
. "$slurm/one_node.sh"
trap stop_slurm EXIT
start_slurm
"$@"
