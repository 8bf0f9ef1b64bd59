#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hostvol against a real GlusterFS volume of one node, in a network and a mount namespace of its own.
# Prints TAP. HOSTVOL names the program.
set -u
# in a mount namespace of its own: those of others that are made meanwhile would copy our mounts, and keep them
[ -n "${QM_HOSTVOL_NS:-}" ] || [ "$(id -u)" != 0 ] || QM_HOSTVOL_NS=1 exec unshare --mount --propagation private "$0" "$@"
HOSTVOL=${HOSTVOL:-$(dirname "$0")/../../build/hostvol/hostvol}
HOSTVOL=$(realpath "$HOSTVOL")
. "$(dirname "$0")/one_node.sh"
. "$(dirname "$0")/../lib/tap.sh"

hv() { "$HOSTVOL" --timeout=30 "$@"; }
one_node

info() { # info NAME ID [OPTIONS]
	printf '{"driverVolumeType":"GLUSTERFS","data":{"export":"%s:/%s","name":"%s","volumeId":"%s","options":"%s"}}' \
		$node $id "$1" "$2" "${3:-}"
}

# the root first, to make directories in it
root=$(info "" root | hv connect -)
check "the whole volume is connected" test -d "$root"
mkdir -p "$root/subvol/a" "$root/subvol/b" && ln -s a "$root/subvol/link" && echo one >"$root/subvol/a/file"
a=$(info subvol/a a | hv connect -)
check "a sub path is connected" grep -q one "$a/file"
check "its path is found again" test "$(hv path a)" = "$a"
b=$(info subvol/b b | hv connect - --consumer=x)
check "another sub path shares the mount" test "$(mounts)" = 1
check "and the client" test "$(clients)" = 1
check "connecting again gives the same path" test "$(info subvol/a a | hv connect -)" = "$a"
info subvol/link l | hv connect - 2>"$dir/err"
check "a symbolic link in the name is refused" grep -q "symbolic link" "$dir/err"
info ../etc l | hv connect - 2>"$dir/err"
check "so is .." grep -q "not allowed" "$dir/err"
info subvol/none l | hv connect - 2>"$dir/err"
check "a missing directory is an error" grep -q "cannot find subvol/none" "$dir/err"
check "which leaves no record" test "$(hv list --json | grep -o '"volumeId":"l"' | wc -l)" = 0
check "and does not unmount under the others" grep -q one "$a/file"
c=$(info subvol/a c acl,noatime | hv connect -)
check "other options are another mount" test "$(mounts)" = 2
check "whose options are in force" grep -q "${c%/subvol/a} .*noatime" /proc/self/mountinfo
check "disconnect the other one" hv disconnect c
check "disconnect the first" hv disconnect root
check "disconnect the second" hv disconnect a
check "the mount stays for the third" test "$(mounts)" = 1
(cd "$b" && hv disconnect b --consumer=x 2>"$dir/err")
check "a mount in use is refused" test $? = 4
check "and stays connected" test "$(hv path b)" = "$b"

# an outage: no brick answers, while somebody holds a file at a place where the volume is shown (a pod).
# The client lives, and whoever connects meanwhile takes nothing away from it.
served_by() { [ "$(client_pid)" = "$1" ] && [ "$(mounts)" = 1 ]; }
no_answer() { ! stat "$b" >/dev/null 2>&1; }
again() { info subvol/b b | hv connect - --consumer=x >"$dir/out" 2>"$dir/err"; }
write_on() { echo after >&9; }
one_client() { [ "$(clients)" = 1 ]; }
mkdir "$dir/pod" && mount --bind "$b" "$dir/pod" && exec 9>>"$dir/pod/held" && echo before >&9
first=$(client_pid)
mv "$root/subvol/b" "$root/subvol/elsewhere"
again
check "a name that is not found for now is an error" grep -q "cannot find subvol/b" "$dir/err"
check "for which nothing is unmounted, and no client ended" served_by "$first"
mv "$root/subvol/elsewhere" "$root/subvol/b"
brick_down
wait_for 10 no_answer
again
check "connecting during an outage is an error" grep -q "not connected" "$dir/err"
check "which leaves mount and client alone" served_by "$first"
check "and the record" sh -c "'$HOSTVOL' list --json | grep '\"volumeId\": *\"b\"'"
umount "$root"
again
check "so it is where the mount has gone" grep -q "not connected" "$dir/err"
check "whose client serves those who are in it still" kill -0 "$first"
check "and nothing is left of the attempt" test "$(mounts)$(clients)" = 01
check "the brick comes back" wait_for 30 brick_up
check "after it, connecting works" wait_for 30 again
check "and the old client finds its brick again" wait_for 30 stat "$dir/pod/held"
check "so that who was there works on" write_on
exec 9>&-
check "in the same file" grep -q after "$b/held"
umount "$dir/pod"
check "the last one out ends the old client" wait_for 10 one_client

kill -9 "$(client_pid)"
sleep 0.2
hv path b 2>"$dir/err"
check "a dead client is noticed" test $? = 3
check "and shown in the list" sh -c "'$HOSTVOL' list | grep -q 'not connected'"
check "connecting again mounts afresh" test "$(info subvol/b b | hv connect - --consumer=x)" = "$b"
check "and works" touch "$b/again"
check "one mount remains" test "$(mounts)" = 1
check "the last disconnect" hv disconnect b --consumer=x
check "unmounts" test "$(mounts)" = 0
check "ends the client" test "$(clients)" = 0
check "removes mount point, log and record" test -z "$(find "$dir/state" -mindepth 2 ! -type d; ls "$dir/state/hostvol/mnt")"
hv disconnect b --consumer=x 2>"$dir/err"
check "disconnecting again is fine" grep -q "was not connected" "$dir/err"

# a volume that is not there, a server that is not there
printf '{"driverVolumeType":"GLUSTERFS","data":{"export":"%s:/nosuch"}}' $node | hv connect - 2>"$dir/err"
check "a volume that does not exist is an error" grep -q "cannot mount $node:/nosuch" "$dir/err"
printf '{"driverVolumeType":"GLUSTERFS","data":{"export":"%s:/%s"}}' $spare $id |
	"$HOSTVOL" --timeout=2 connect - 2>"$dir/err"
check "a server that does not answer ends with the deadline" test $? != 0
info "" r "" | sed "s/$node:/$spare:/; s/\"options\":\"\"/\"options\":\"backup-volfile-servers=$node\"/" | hv connect - >"$dir/out" 2>&1
check "a backup server is asked where the first is gone" test $? = 0
sed 's/^/# /' "$dir/out"
hv disconnect r >/dev/null
check "nothing is left" test "$(mounts)$(clients)" = 00

# kill -9 in the middle: taken up by the next call, or by recover
taken=0
for ms in 005 015 030 045 060 080; do
	info subvol/a k | hv connect - >/dev/null 2>&1 &
	p=$!
	sleep 0.$ms
	kill -9 $p 2>/dev/null
	wait $p 2>/dev/null
	if [ $((taken % 2)) = 0 ]; then
		info subvol/a k | hv connect - >"$dir/out" 2>&1 || break
	else
		hv recover >"$dir/out" 2>&1 || break
	fi
	hv disconnect k >>"$dir/out" 2>&1 || break
	[ "$(mounts)$(clients)" = 00 ] || break
	taken=$((taken + 1))
done
check "killed connects are taken up, nothing is left" test $taken = 6

plan
