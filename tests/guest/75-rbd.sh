#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The RBD driver of hostvol against a real Ceph in the guest. A check that bears a trap's number shows that one of the
# known mistakes of such drivers is not made here.
[ -n "${QM_GUEST:-}" ] || exec "$(dirname "$0")/run" "$0" "$@"
set -u -o pipefail
. tests/lib/tap.sh
. tests/guest/ceph.sh
. tests/guest/csi.sh
PATH=$PWD/${QM_BUILD:-build}/hostvol:$PATH
command -v ceph-osd > /dev/null || { skip "RBD" "ceph-osd is not installed"; plan; exit; }

info() { # VOLUME NAME [KEYRING [MORE]]
	jq -n --arg v "$1" --arg n "$2" --arg k "${3:-$ceph_key}" --argjson more "${4:-{\}}" \
		'{driverVolumeType: "rbd", data: ({volume_id: $v, name: $n, hosts: ["127.0.0.1"], ports: ["6789"], cluster_name: "ceph",
		auth_enabled: true, auth_username: "admin", keyring: $k, secret_type: "ceph", secret_uuid: null, do_local_attach: true} + $more)}' > "/run/$1.json"
}
connect() { info "$@" && hostvol connect "/run/$1.json"; }
mappings() { ls /sys/bus/rbd/devices | wc -l; }
count() { [ "$($1)" = "$2" ] || { echo "$($1) $1, not $2"; return 1; }; }
device() { readlink -f "$(hostvol path "$1")"; }
pool_of() { cat "/sys/bus/rbd/devices/$(device "$1" | tr -dc 0-9)/pool"; }
write() { head -c 4M /dev/urandom > "/run/$1.data" && dd if="/run/$1.data" of="$(device "$1")" bs=1M oflag=direct status=none; }
same() { dd if="$(device "$1")" bs=1M count=4 iflag=direct status=none | cmp - "/run/$1.data"; }
no_secret() { ! grep -r -s -l -F -e "$ceph_key" /run/quartermaster /var/lib/quartermaster /sys/bus/rbd/devices/*/config_info; }
nothing_left() { count mappings 0 && [ "$(hostvol list --json)" = "[]" ] && [ -z "$(ls /run/quartermaster/hostvol/rbd)" ]; }

ceph_key=AQAAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAAAA==
check "without the module it is said so" refuses 'load the module rbd' connect a one/img
up() { modprobe rbd && /lib/systemd/systemd-udevd --daemon && ceph_start; }
check "a cluster" up
[ "$tap_failed" = 0 ] || { plan; exit 1; }
ceph_client
check "two pools" eval 'ceph_order pool one && ceph_order pool two'
check "with an image of the same name each" eval 'ceph_order image one img 64 && ceph_order image two img 64'
[ "$tap_failed" = 0 ] || { plan; exit 1; }
check "an image is connected" connect a one/img
check "the other pool's too, by a keyring file's text" connect b two/img "$(printf '[client.admin]\n\tkey = %s\n' "$ceph_key")"
check "they are different ones (trap 6)" eval '[ "$(pool_of a)" = one ] && [ "$(pool_of b)" = two ]'
check "both are written" eval 'write a && write b'
check "and read" eval 'same a && same b'
check "no file, and nothing of the kernel's, shows the key (trap 21)" no_secret
check "connecting again changes nothing" eval 'connect a one/img && count mappings 2'
udevadm settle
check "the path is udev's link by pool and image" eval '[ "$(hostvol path a)" = /dev/rbd/one/img ]'

echo "# --- use, extend, plan"
mounted() { mkfs.ext4 -q "$(device b)" && mkdir -p /mnt/b && mount "$(device b)" /mnt/b; }
check "a file system on one" mounted
check "a mounted image is not taken away (trap 7)" refuses 'in use.*mounted at /mnt/b' hostvol disconnect b
used() { hostvol plan --json b > /run/out && jq -e '.usedBy == ["mounted at /mnt/b"] and (.steps | index("unmap two/img") != null)' /run/out; }
check "plan says who uses it" used
umount /mnt/b
check "the other image grows" ceph_order resize one img 128
grown() { hostvol extend --json a > /run/out && jq -e '.size == 134217728' /run/out && [ "$(blockdev --getsize64 "$(device a)")" = 134217728 ]; }
check "the volume grows with it (trap 20)" grown
check "one ends" hostvol disconnect a
check "just that one (trap 6)" eval 'count mappings 1 && [ "$(pool_of b)" = two ]'
check "the other ends" hostvol disconnect b
check "nothing is left" nothing_left

echo "# --- what fails"
check "an image that is not there" refuses 'has no image one/none' connect x one/none
check "a wrong key" refuses 'does not accept client.admin' connect x one/img AQAAAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAAAA==
check "another cluster than the expected one (trap 1)" refuses 'not of 11111111.* as expected' connect x one/img "$ceph_key" '{"clusterFsid":"11111111-0000-4000-8000-00000000c0de"}'
check "nothing is left of them (trap 18)" nothing_left

echo "# --- another image behind the record, while the host was down"
# What a power cut takes: mappings, the volatile directory. Records stay.
power_cut() { local n; udevadm settle; for n in /sys/bus/rbd/devices/*; do echo "${n##*/}" > /sys/bus/rbd/remove_single_major; done; rm -rf /run/quartermaster/hostvol; count mappings 0; }
sum() { ceph_order sum "$1" "$2" && cat $ceph/sum; }
recorded() { hostvol list --json v | jq -r '.[0].detail | .imageId + " " + .fsid'; }
both="is image .* of cluster $fsid, and was image .* of cluster $fsid when.*hostvol forget v"
check "an image" eval 'ceph_order image two v 64 && connect v two/v && write v'
before=$(recorded)
check "the host is down" power_cut
check "meanwhile the name is another image's" eval 'ceph_order rename two v mine && ceph_order image two v 64 && ceph_order fill two v'
stranger=$(sum two v)
check "another consumer is refused" refuses "$both" hostvol connect --consumer other /run/v.json
check "so is who had it, with both identities (trap 1)" refuses "$both" connect v two/v
check "the recorded one is named" refuses "was image ${before% *} of" connect v two/v
check "nothing of it is on this host" count mappings 0
check "the record says what it was" eval '[ -n "${before% *}" ] && [ "$(recorded)" = "$before" ]'
check "the stranger's image is as it was" eval '[ -n "$stranger" ] && [ "$(sum two v)" = "$stranger" ]'
check "the image is back, and is connected" eval 'ceph_order rename two v stranger && ceph_order rename two mine v && connect v two/v && same v'
check "exchanged once more" eval 'power_cut && ceph_order rename two v mine && ceph_order rename two stranger v && refuses "$both" connect v two/v'
check "a person says that it is meant" hostvol forget v
check "now it is connected" eval 'connect v two/v && [ "$(recorded)" != "$before" ]'
check "it ends" hostvol disconnect v
check "nothing is left" nothing_left

echo "# --- the second protocol, others' mappings"
check "through port 3300" connect a one/img "$ceph_key" '{"ports":[3300],"fsid":"'$fsid'"}'
check "it is there" eval '[ "$(pool_of a)" = one ]'
check "it ends" hostvol disconnect a
check "an administrator's mapping" eval 'echo "127.0.0.1:6789 name=admin,secret=$ceph_key one img -" > /sys/bus/rbd/add_single_major'
check "is used" eval 'connect a one/img && count mappings 1'
check "it ends" hostvol disconnect a
check "and stays (trap 9)" count mappings 1

echo "# --- the exclusive lock"
alone='{"exclusive":true}'
check "where somebody mapped the image without it" refuses 'mapped here without its lock' connect a one/img "$ceph_key" "$alone"
check "an image without the feature" refuses 'exclusive-lock' connect b two/img "$ceph_key" "$alone"
check "one with it" ceph_order image one alone 64 5
check "another client holds its lock" ceph_order lock one alone
check "no host can connect it alone" refuses 'another host holds the lock' connect c one/alone "$ceph_key" "$alone"
check "nothing is left of that" eval '[ "$(mappings)" = 1 ]'
check "the other client lets go" ceph_order unlock one alone
check "now it can" connect c one/alone "$ceph_key" "$alone"
check "is written" eval 'write c && same c'
check "the other client does not get the lock" refuses 'lock one alone: ' ceph_order lock one alone
check "it ends" hostvol disconnect c

echo "# --- as a volume with one writer"
stage() { csi_stage n v "{\"driverVolumeType\":\"RBD\",\"name\":\"$1\",\"hosts\":\"127.0.0.1\",\"fencing\":\"${2:-reservation}\"}" 1 "{\"keyring\":\"$ceph_key\"}"; }
check "the node service" csi_start n
check "an image without the feature is refused" refuses 'exclusive-lock' stage two/img
check "unless fencing is none" eval 'stage two/img none && csi_unstage n v'
check "one with it is staged with its lock held" eval 'stage one/alone && grep -q ,exclusive, /sys/bus/rbd/devices/*/config_info'
check "so that nobody else has it" eval 'echo x > /run/n/kubelet/v/x && refuses "lock one alone: " ceph_order lock one alone'
check "it ends" csi_unstage n v
check "others can have it again" ceph_order lock one alone
kill $service $ceph_client
plan
