#!/usr/bin/env bash
# Shared by the job scripts of this folder: runs a deck on the job's ranks and requeues the job if the trainer was
# stopped by a signal or the end of the job's time (exit code 75, checkpoint written), or if a node of the job no longer
# starts processes. The run then resumes from its newest checkpoint.
#
#   jobs/srun_deck.sh DECK [trainer options]     within a Slurm job, from the root of the project, or a copy of
#                                                input/ and jobs/ with trainer in the path
set -u
usage() { sed -n '1d; /^#SBATCH/d; /^#/!q; s/^# \?//p' "$0"; }   # the comment above
requeue() {   # again, if the controller is busy or reloads its configuration
  for pause in 1 2 5 10 30; do
    scontrol requeue "$SLURM_JOB_ID" && return
    sleep $pause
  done
  echo "error: scontrol requeue $SLURM_JOB_ID failed: submit the job again, which resumes" >&2
}
case ${1:-} in
  -h | --help) usage; exit ;;
  -* | '') echo "error: DECK comes first, not '${1:-}'" >&2; usage >&2; exit 2 ;;
esac
trainer=./trainer
[ -x $trainer ] || trainer=trainer   # of an installation
if ! command -v srun >/dev/null; then
  { printf 'error: srun is missing: this runs in a Slurm job. Without Slurm, on N ranks, one per GPU:\n  mpirun -n N %s' $trainer
    printf ' %q' "$@" --resume; echo; } >&2
  exit 1
fi
srun --mpi="${SLURM_MPI_TYPE:-pmix}" $trainer "$@" --resume
code=$?
if [ $code = 75 ]; then
  echo "stopped with a checkpoint; job $SLURM_JOB_ID is queued again"
  requeue
elif [ $code = 74 ]; then
  echo "a checkpoint, an evaluation or metrics could not be written: free space, then submit the job again"
elif [ $code != 0 ] && [ "${SLURM_JOB_NUM_NODES:-1}" -gt 1 ] && [[ ! $code =~ ^7[67]$ ]]; then
  # Ranks may notice that others are gone long before Slurm does, which then finds a job that failed, not a lost node.
  if ! timeout 60 srun --overlap --nodes="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 --ntasks="$SLURM_JOB_NUM_NODES" true; then
    echo "a node of $SLURM_JOB_NODELIST does not respond; job $SLURM_JOB_ID is queued again"
    requeue
  fi
fi
exit $code
