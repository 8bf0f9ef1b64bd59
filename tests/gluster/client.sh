#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Local mode with the GlusterFS client in a container of crun or runc: a claim is mounted through it, all that keeps it is
# killed, the image changes, and nothing is left at the end. Prints TAP.
protocol=glusterfs
. "$(dirname "$0")/../lib/local_client.sh"
needs /usr/sbin/glusterd glusterfs-server
mnt=$work/mnt

cat > "$work/node.yaml" << END
apiVersion: coreos.com/v1
kind: StorageNode
metadata: {name: n1}
spec:
  type: glusterfs
  storageNetwork: {ips: [10.118.$((20 + $$ % 200)).1]}
  directories: [$work/dir]
END
up_flags=(-f "$work/node.yaml" --volume-type none)
intact() { [ "$(sha256sum < "$mnt/data")" = "$sum" ] && echo "$RANDOM" > "$mnt/more"; }

image() { client_image "$work/$1.tar" /usr/sbin/glusterfs "$(dirname "$(find /usr/lib -path '*/glusterfs/*' -name 'rpc-transport' | head -n 1)")"; }
check "an image of GlusterFS' client" image one

check "up" up --glusterfs-mount-container="$work/one.tar"
[ "$tap_failed" = 0 ] || { plan; exit 1; } # what follows would only wait
check "the client runs" said '.users == 0'
check "nobody but root reaches what it mounts" [ "$(stat -c %a "$QM_STATE_DIR/hostvol")" = 700 ]
check "from that image" said ".image | startswith(\"$work/one.tar@sha256:\")"
check "a claim" bash -c "sed s/my-claim/data/ docs/examples/claim.yaml | quartermaster apply -f -"
check "is mounted" quartermaster mount data "$mnt"
head -c 3000000 /dev/urandom > "$work/data" && sum=$(sha256sum < "$work/data")
check "and written" cp "$work/data" "$mnt/data"
check "by a daemon in the container" said '.users > 0 and .daemons[0].program == "glusterfs"'
pid=$(client)
daemon=$(pgrep -P "$pid" glusterfs)
check "in a namespace of its own" [ "$(readlink "/proc/$daemon/ns/mnt")" != "$(readlink /proc/self/ns/mnt)" ]
# GlusterFS asks /proc for the groups of whoever calls it
by_group() { (cd "$mnt" && mkdir -m 2770 ours && chgrp 4711 ours && chmod 755 . && setpriv --reuid 1000 --regid 1000 --groups 4711 touch ours/file); }
check "which knows all groups of a caller" by_group
check "in a cgroup of its own" grep -q "quartermaster-" "/proc/$daemon/cgroup"
check "on a root that cannot be written" grep -q ' / / ro\|/rootfs / ro' "/proc/$daemon/mountinfo"

kills intact
check "the client is the same" [ "$(client)" = "$pid" ]
check "and has served all the time" intact

check "the same image under another name" cp "$work/one.tar" "$work/two.tar"
later() { up --glusterfs-mount-container="$work/two.tar" > "$work/said"; cat "$work/said"; grep -q 'when nobody uses the old one' "$work/said"; }
check "a new image while the client is used waits" later
check "the data is there" intact
check "host is refused meanwhile" refuses 'client has [0-9]+ users' up --glusterfs-mount-container=host
check "down with a file held open" refuses 'could not be unmounted' bash -c "exec 7< $mnt/data; quartermaster down"
check "the data is there" intact
check "it is unmounted" quartermaster umount "$mnt"
check "now the new image comes" wait_for 20 said ".image | startswith(\"$work/two.tar@\")"

check "mounted again" quartermaster mount data "$mnt"
check "the data is there" intact
check "kill -9 of the client" kill -9 "$(client)"
check "it comes back" wait_for 20 said '.users == 0'
check "the mount is dead, and goes" quartermaster umount --force "$mnt"
check "mounted once more" quartermaster mount data "$mnt"
check "the data is there" intact

check "down --delete-data" quartermaster down --delete-data
cgroups() { find /sys/fs/cgroup -maxdepth 2 ! -path "*/unified/*" -name "quartermaster-qm*" -newer "$work/node.yaml"; }
check "nothing is left" [ -z "$(left cgroups 2> /dev/null)" ]
plan
