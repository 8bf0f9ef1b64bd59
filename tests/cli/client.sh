#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Client containers of `quartermaster up` on a machine that only mounts: which images are refused, that nobody's end is
# theirs, that images change, and that nothing is left. What is mounted through them: tests/gluster/client.sh, tests/guest/22-clients.sh.
set -u -o pipefail
[ -n "${QM_CLIENT_NS:-}" ] || QM_CLIENT_NS=1 exec unshare --mount --propagation private "$0" "$@"
# so that crun can be used: where a machine mixes cgroups of version 1 and 2 the second is hidden
[ ! -e /sys/fs/cgroup/unified ] || mount -t tmpfs tmpfs /sys/fs/cgroup/unified
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/client_image.sh
build=${QM_BUILD:-build}
work=$(mktemp -d /var/tmp/qm-client.XXXXXX)
export QM_STATE_DIR=$work/state QM_RUN_DIR=/run/qm-client.$$
PATH=$PWD/$build/src/cli:$PWD/$build/src/clients:$PATH
socket=$QM_RUN_DIR/clients/nfs
if [ "$(id -u)" != 0 ] || ! { command -v crun || command -v runc; } > /dev/null || [ ! -e /usr/sbin/mount.nfs ]; then
	echo "1..0 # SKIP needs root, crun or runc, and nfs-common"
	exit 0
fi
cleanup() {
	quartermaster down --delete-data --force > /dev/null 2>&1
	rm -rf "$work" "$QM_RUN_DIR"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

up() { timeout 120 quartermaster up "$@"; }
said() { qm-client --info "$socket" | jq -e "$1"; }
client() { pgrep -f "^/qm/qm-client .*$socket\$"; }
pid_of() { pgrep -f "^([^ ]*/)?quartermaster $1( .*)?\$" | while read -r p; do grep -qzx "QM_RUN_DIR=$QM_RUN_DIR" "/proc/$p/environ" && echo "$p"; done; }

echo "# refused"
check "an image with mount.nfs" client_image "$work/nfs.tar" /usr/sbin/mount.nfs
check "one without" client_image "$work/none.tar" /usr/bin/true
cp "$work/none.tar" "$work/torn.tar" && truncate -s 100000 "$work/torn.tar"
foreign() { QM_OCI_ARCH=mips64 client_image "$work/foreign.tar" /usr/bin/true && up --nfs-mount-container="$work/foreign.tar"; }
check "an image without the program" refuses 'has no program mount.nfs.*nfs-common' up --nfs-mount-container="$work/none.tar"
check "one for other machines" refuses 'is for mips64 machines' foreign
check "an archive that is torn" refuses "$work/torn.tar" up --nfs-mount-container="$work/torn.tar"
check "one that is not there" refuses 'cannot read the image .*No such file' up --nfs-mount-container="$work/missing.tar"
check "no name at all" refuses 'use an OCI archive, or host' up --nfs-mount-container=
no_runtime() { unshare --mount sh -c 'for f in /usr/bin/crun /usr/sbin/runc /usr/bin/runc; do [ ! -e $f ] || mount --bind /etc/passwd $f; done; "$@"' sh "$(command -v quartermaster)" up --nfs-mount-container="$work/nfs.tar"; }
check "a machine without crun and runc" refuses 'apt-get install crun' no_runtime
check "nothing was started by any of these" [ -z "$(pid_of supervise)" ]

echo "# its life"
check "up, in the seed's spelling" up --nfs_mount_container="$work/nfs.tar"
[ "$tap_failed" = 0 ] || { plan; exit 1; } # what follows would only wait
check "the client runs, from that image" said ".image | startswith(\"$work/nfs.tar@sha256:\")"
pid=$(client)
check "in namespaces of its own" [ "$(readlink "/proc/$pid/ns/pid")" != "$(readlink /proc/self/ns/pid)" ]
check "with the machine's network" [ "$(readlink "/proc/$pid/ns/net")" = "$(readlink /proc/self/ns/net)" ]
check "in a cgroup of its own" grep -q "quartermaster-" "/proc/$pid/cgroup"
check "on a root that cannot be written" refuses 'Read-only' touch "/proc/$pid/root/etc/new"
again() { local now; now=$(pid_of "$1") && [ -n "$now" ] && [ "$now" != "$2" ]; }
# one after the other: supervisor and operator start each other, so who kills both at once has ended them
for victim in supervise operator node api; do
	old=$(pid_of $victim)
	check "kill -9 of $victim" kill -9 "$old"
	check "it comes back" wait_for 30 again $victim "$old"
done
check "the client is the same" [ "$(client)" = "$pid" ]
check "kill -9 of the client" kill -9 "$pid"
check "it comes back" wait_for 20 said '.users == 0'
cp "$work/nfs.tar" "$work/two.tar"
check "another image" up --nfs-mount-container="$work/two.tar"
check "is there" said ".image | startswith(\"$work/two.tar@\")"
check "up without a word of it" up
check "keeps it" said ".image | startswith(\"$work/two.tar@\")"
check "host" up --nfs-mount-container=host
check "ends the client" [ -z "$(client)$(ls "$QM_RUN_DIR/clients")" ]
check "an image again" up --nfs-mount-container="$work/nfs.tar"
check "down" quartermaster down
check "ends the client" [ -z "$(client)" ]
check "up" up
check "has the client" said '.users == 0'
check "down --delete-data" quartermaster down --delete-data
left() { grep " $work/\| $QM_RUN_DIR" /proc/self/mountinfo; ls -d "$QM_RUN_DIR" "$QM_STATE_DIR"; pgrep -f "$QM_RUN_DIR"; }
check "nothing is left" [ -z "$(left 2> /dev/null)" ]
plan
