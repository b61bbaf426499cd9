# shellcheck shell=bash
# The nodes of slurm.sh: this machine, on loopback.
free_ports() {  # count
  python3 - "$1" <<'PY'
import socket, sys
sockets = [socket.socket() for _ in range(int(sys.argv[1]))]
for s in sockets: s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in sockets))
PY
}

write_nodes() {
  local node controller_port node_port
  node=$(hostname -s)
  read -r controller_port node_port < <(free_ports 2)
  cat <<CONF
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=$controller_port
SlurmdPort=$node_port
KillWait=30
NodeName=$node NodeAddr=127.0.0.1 CPUs=4 State=UNKNOWN
PartitionName=all Nodes=$node Default=YES MaxTime=INFINITE State=UP
CONF
}

start_nodes() {
  start_daemon slurmd -D
  wait_for 60 "an idle node" sh -c 'sinfo --noheader --format=%T | grep -qx idle'
}

stop_nodes() { :; }   # its slurmd ends as the other daemons do
