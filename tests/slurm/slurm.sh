# shellcheck shell=bash
# A Slurm from Debian's and Ubuntu's slurm-wlm and munge, in a temporary folder: own
# configuration, key, ports and spool; nothing of the system's is read or changed. To be sourced, before one_node.sh or
# two_nodes.sh, which name the nodes:
#
#   start_slurm      sets SLURM_CONF and slurm_folder; returns when all nodes are idle
#   stop_slurm       cancels all jobs and ends, by its process number, each daemon that was started
slurm_folder=
slurm_daemons=()

slurm_fail() {
  echo "error: $*" >&2
  [ -z "$slurm_folder" ] || tail -n 15 "$slurm_folder"/*.log >&2
  exit 1
}

start_daemon() {  # command...: in the background; its process number is kept
  "$@" >>"$slurm_folder/$(basename "$1").out.log" 2>&1 &
  slurm_daemons+=($!)
}

# Adds to `counted` the microseconds since `last`, divided by the number of processes that want each processor.
own_time() {  # sets last, counted
  local now=${EPOCHREALTIME/[.,]/} running processors
  read -r _ _ _ running _ </proc/loadavg
  processors=$(nproc) running=${running%/*}
  [ "$running" -ge "$processors" ] || running=$processors
  counted=$((counted + (now - last) * processors / running)) last=$now
}

wait_for() {  # seconds of a machine of its own, what, command...
  local limit=$1 what=$2 last=${EPOCHREALTIME/[.,]/} counted=0 begin=$SECONDS
  shift 2
  until "$@" >/dev/null 2>&1; do
    own_time
    [ $counted -lt $((limit * 1000000)) ] ||
      slurm_fail "waited in vain for $what: $((SECONDS - begin)) s, load $(cut -d ' ' -f 1-4 /proc/loadavg)"
    sleep 0.2
  done
}

write_configuration() {
  local me
  me=$(id -un)
  mkdir "$slurm_folder/state"
  dd if=/dev/urandom of="$slurm_folder/munge.key" bs=1024 count=1 status=none
  chmod 600 "$slurm_folder/munge.key"
  # cred_expire is also the time that a requeued job waits; Slurm takes 5 s at least. No cgroups: a container
  # has none to give.
  cat >"$slurm_folder/slurm.conf" <<CONF
ClusterName=tern_test
SlurmUser=$me
SlurmdUser=$me
AuthType=auth/munge
AuthInfo=socket=$slurm_folder/munge.socket,cred_expire=5
StateSaveLocation=$slurm_folder/state
SlurmdSpoolDir=$slurm_folder/spool.%n
SlurmctldPidFile=$slurm_folder/slurmctld.pid
SlurmdPidFile=$slurm_folder/slurmd.%n.pid
SlurmctldLogFile=$slurm_folder/slurmctld.log
SlurmdLogFile=$slurm_folder/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SchedulerParameters=sched_interval=1,bf_interval=1
SlurmdParameters=config_overrides
ReturnToService=2
JobRequeue=1
$(write_nodes)
CONF
}

start_slurm() {
  local program
  PATH=$PATH:/usr/sbin
  for program in munged slurmctld slurmd sbatch; do
    command -v $program >/dev/null || slurm_fail "$program is missing: install slurm-wlm and munge"
  done
  slurm_folder=$(mktemp -d /tmp/tern_slurm.XXXXXX)   # short: sockets' names have at most 107 bytes
  chmod 755 "$slurm_folder"
  export SLURM_CONF=$slurm_folder/slurm.conf
  write_configuration
  start_daemon munged --foreground --force --key-file="$slurm_folder/munge.key" \
    --socket="$slurm_folder/munge.socket" --pid-file="$slurm_folder/munge.pid" \
    --log-file="$slurm_folder/munge.log" --seed-file="$slurm_folder/munge.seed"
  wait_for 20 "munge's socket" test -S "$slurm_folder/munge.socket"
  start_daemon slurmctld -D
  start_nodes
}

stop_slurm() {
  [ -n "$slurm_folder" ] || return 0
  scancel --user="$(id -un)" 2>/dev/null || true
  local last=${EPOCHREALTIME/[.,]/} counted=0
  while [ -n "$(squeue --noheader 2>/dev/null)" ] && [ $counted -lt 40000000 ]; do
    sleep 0.3
    own_time
  done
  stop_nodes
  local at
  for ((at = ${#slurm_daemons[@]} - 1; at >= 0; --at)); do
    kill "${slurm_daemons[at]}" 2>/dev/null || true
    wait "${slurm_daemons[at]}" 2>/dev/null || true
  done
  rm -rf "$slurm_folder"
  slurm_folder=
}
