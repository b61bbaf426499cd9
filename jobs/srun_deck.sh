#!/usr/bin/env bash
# Used by the job scripts of this folder. Runs a deck on the ranks of the job, and requeues the job if a signal or the
# end of its time stopped the trainer (exit code 75, checkpoint written), or if a node of the job no longer starts
# processes. The run then resumes from its newest checkpoint.
#
#   jobs/srun_deck.sh DECK [trainer options]     in a Slurm job, from the root of the project, or from a folder with
#                                                copies of input/ and jobs/ and with trainer in PATH
set -u
usage() { sed -n '1d; /^#SBATCH/d; /^#/!q; s/^# \?//p' "$0"; }   # the comment above
requeue() {   # tries again if the controller is busy or reloads its configuration
  for pause in 1 2 5 10 30; do
    scontrol requeue "$SLURM_JOB_ID" && return
    sleep $pause
  done
  echo "error: scontrol requeue $SLURM_JOB_ID failed; submit the job again to resume" >&2
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
  # Ranks may notice a lost node long before Slurm does; Slurm would then see a failed job.
  if ! timeout 60 srun --overlap --nodes="$SLURM_JOB_NUM_NODES" --ntasks-per-node=1 --ntasks="$SLURM_JOB_NUM_NODES" true; then
    echo "a node of $SLURM_JOB_NODELIST does not respond; job $SLURM_JOB_ID is queued again"
    requeue
  fi
fi
exit $code
