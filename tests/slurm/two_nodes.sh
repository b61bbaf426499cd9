# shellcheck shell=bash
# A Slurm of two nodes, tern1 and tern2, on this machine. Each node is a set of Linux namespaces:
# own host name, own address on an Ethernet bridge, own processes and own shared memory; the file system is shared. The
# test itself runs on a third host, `login`, with the controller. To be sourced after job.sh, which it extends:
#
#   enter_login "$@"   first: runs the test again within the login host's namespaces; they and everything in them end
#                      with the test, however it ends, and the machine's own network is not touched
#   start_slurm        as that of one_node.sh; returns when both nodes are idle
#   power_off NODE     takes the node off the network, silently, and kills all its processes
#   boot NODE          starts it again
#   notice_after S     time after which Slurm notices a node that does not respond; at first 300 s, Slurm's default
#
# Needs iproute2 and util-linux, and root or user namespaces.
nodes=(tern1 tern2)
declare -A node_process=()   # of `unshare`; its child is the node's process 1
network=10.87.0

own_namespaces() {  # kinds, command...
  local kinds=$1
  shift
  # shellcheck disable=SC2086  # a list
  exec unshare $kinds --uts --net --mount --pid --fork --mount-proc --kill-child "$@"
}

enter_login() {
  [ "${TERN_TEST_HOST:-}" != login ] || { raise_login; return 0; }
  local program kinds=
  for program in unshare ip; do
    command -v $program >/dev/null || slurm_fail "$program is missing: install util-linux and iproute2"
  done
  [ "$(id -u)" = 0 ] || kinds="--user --map-current-user --keep-caps"
  # shellcheck disable=SC2086
  unshare $kinds --uts --net --mount --pid --fork --mount-proc true ||
    slurm_fail "no namespaces for the nodes: run as root, in a container with CAP_SYS_ADMIN and CAP_NET_ADMIN"
  TERN_TEST_HOST=login own_namespaces "$kinds" bash "$0" "$@"
}

raise_login() {
  hostname login
  ip link set lo up
  ip link add name tern0 type bridge 2>/dev/null || slurm_fail "this kernel has no Ethernet bridges (module bridge)"
  ip addr add $network.1/24 dev tern0
  ip link set tern0 up
}

write_nodes() {
  echo "SlurmctldHost=login($network.1)"
  cat <<CONF
SlurmctldPort=6817
SlurmdPort=6818
SlurmdTimeout=300
MessageTimeout=10
TmpFS=$slurm_folder/%n
SelectTypeParameters=CR_CPU
KillWait=10
CONF
  local at
  for at in "${!nodes[@]}"; do echo "NodeName=${nodes[at]} NodeAddr=$network.$((at + 11)) CPUs=4 State=UNKNOWN"; done
  echo "PartitionName=all Nodes=$(IFS=,; echo "${nodes[*]}") Default=YES MaxTime=INFINITE State=UP"
}

start_nodes() {
  local node
  for node in "${nodes[@]}"; do boot "$node"; done
  wait_for 60 "two idle nodes" idle_nodes
}
idle_nodes() { [ "$(sinfo --noheader --Node --states=idle --format='%N %T' | grep -c ' idle$')" = ${#nodes[@]} ]; }

boot() {  # node
  local node=$1 at link child
  for at in "${!nodes[@]}"; do [ "${nodes[at]}" != "$node" ] || break; done
  link=to_$node
  rm -rf "$slurm_folder/$node.up" "$slurm_folder/spool.$node" "$slurm_folder/$node"   # as of a node without disk
  mkdir "$slurm_folder/$node"
  # Process 1 is a shell, which reaps what the node's jobs leave.
  (own_namespaces "" bash -euc '
     node=$1 address=$2 folder=$3
     hostname "$node"
     mount -t tmpfs tmpfs /dev/shm
     : >"$folder/$node.up"
     until ip link set link0 up 2>/dev/null; do sleep 0.05; done
     ip link set lo up
     ip addr add "$address" dev link0
     slurmd -D &
     wait' node "$node" $network.$((at + 11))/24 "$slurm_folder") >>"$slurm_folder/$node.out.log" 2>&1 &
  node_process[$node]=$!
  wait_for 20 "the host $node" test -e "$slurm_folder/$node.up"
  child=$(child_of "${node_process[$node]}")
  ip link add name "$link" type veth peer name link0 netns "$child"
  ip link set "$link" master tern0 up
}

child_of() { tr -d ' ' <"/proc/$1/task/$1/children"; }

power_off() {  # node
  local node=$1
  ip link delete "to_$node" 2>/dev/null || true   # gone if the node ended by itself
  kill -KILL "$(child_of "${node_process[$node]}")" 2>/dev/null || true
  wait "${node_process[$node]}" 2>/dev/null || true
  unset "node_process[$node]"
}

notice_after() {  # seconds
  sed -i "s/^SlurmdTimeout=.*/SlurmdTimeout=$1/" "$SLURM_CONF"
  scontrol reconfigure
}

stop_nodes() {
  local node
  for node in "${!node_process[@]}"; do power_off "$node"; done
}
