# SPDX-License-Identifier: Apache-2.0
# A GlusterFS volume on one node, in a network and a mount namespace of its own. Source it: it makes
# $dir, sets $id (the volume), $node (its server), $spare (an address that nobody has), and cleans up
# at the end. `one_node` starts it; then `gluster …` talks to it.
id=hv$$
dir=$(mktemp -d "/var/tmp/$id.XXXXXX")
host=198.18.$((RANDOM % 250)).1
node=${host%.1}.2
spare=${host%.1}.3
export QM_STATE_DIR=$dir/state QM_RUN_DIR=$dir/run
box='' others=''

mounts() { grep -c " $dir/state/hostvol/mnt/" /proc/self/mountinfo; }
client_pid() { pgrep -f "^glusterfs .*$dir/state/hostvol/mnt/"; }
clients() { client_pid | wc -l; }
in_box() { nsenter --net=/run/netns/$id --mount="/proc/$box/ns/mnt" "$@"; }
gluster() { in_box gluster --mode=script "$@"; }
# The volume's one brick is killed, and started again: by glusterd once it has seen that it is gone.
brick_pid() { pgrep -f "^[^ ]*glusterfsd .*$dir/brick/b"; }
brick_down() { kill -9 $(brick_pid); }
brick_up() { brick_pid || { gluster volume start $id force && brick_pid; }; }

# $others: processes that the test started
cleanup() {
	local m p
	trap - EXIT
	for m in $(awk -v d="$dir/" 'index($5, d) == 1 { print $5 }' /proc/self/mountinfo | tac); do
		umount -l "$m"
	done
	for p in $others $(client_pid) $(ip netns pids $id 2>/dev/null); do kill -9 "$p"; done 2>/dev/null
	ip netns del $id 2>/dev/null
	ip link del $id 2>/dev/null
	sleep 0.3
	rm -rf "$dir"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

box_up() {
	mkdir -p "$dir"/{glusterd,log,brick}
	ip netns add $id &&
		ip link add $id type veth peer name eth0 netns $id &&
		ip addr add $host/29 dev $id && ip link set $id up &&
		ip -n $id addr add $node/29 dev eth0 && ip -n $id link set eth0 up &&
		ip -n $id link set lo up || return 1
	# the box's own directories are bound over those of the machine
	nsenter --net=/run/netns/$id unshare --mount --propagation=private sh -c '
		mount -t tmpfs tmpfs /run && mkdir -p /run/gluster /var/lib/glusterd /var/log/glusterfs &&
		mount --bind "$1/glusterd" /var/lib/glusterd && mount --bind "$1/log" /var/log/glusterfs &&
		exec glusterd -N' sh "$dir" </dev/null >"$dir/glusterd.out" 2>&1 &
	box=$!
	disown
	for _ in $(seq 100); do
		gluster peer status >/dev/null 2>&1 && return 0
		sleep 0.1
	done
	return 1
}

one_node() {
	if [ "$(id -u)" != 0 ] || ! command -v glusterd >/dev/null; then
		echo "1..0 # SKIP needs root and glusterd"
		exit 0
	fi
	box_up && gluster volume create $id $node:"$dir/brick/b" force >/dev/null &&
		gluster volume start $id >/dev/null && return
	echo "Bail out! no GlusterFS volume"
	exit 1
}
