#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Client containers of `quartermaster up` on a machine that only mounts: which images are refused, that nobody's end is
# theirs, that images change, and that nothing is left. What is mounted through them: tests/gluster/client.sh, tests/guest/22-clients.sh.
protocol=nfs
. "$(dirname "$0")/../lib/local_client.sh"
needs /usr/sbin/mount.nfs nfs-common

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
kills
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
check "nothing is left" [ -z "$(left 2> /dev/null)" ]
plan
