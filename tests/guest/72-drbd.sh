#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The DRBD driver of hostvol: both ends of a resource in one guest, this host's and one that calls itself bob.
[ -n "${QM_GUEST:-}" ] || exec "$(dirname "$0")/run" "$0" "$@"
set -u -o pipefail
. tests/lib/tap.sh
PATH=$PWD/${QM_BUILD:-build}/hostvol:$PATH
command -v drbdadm > /dev/null || { skip "DRBD" "drbd-utils is not installed"; plan; exit; }
secret=Shared-5ecret

resource() { # NAME [NET]
	cat <<- END
		global { usage-count no; }
		resource $1 {
			net { protocol C; cram-hmac-alg "sha256"; ${2:-} }
			on guest { device minor 1; disk /dev/loop1; meta-disk internal; address 10.9.0.1:7789; }
			on bob { device minor 2; disk /dev/loop2; meta-disk internal; address 10.9.0.2:7790; }
		}
	END
}
bob() { __DRBD_NODE__=bob drbdadm -c /run/bob.res "$@"; }
pair() {
	local i
	modprobe loop && modprobe drbd usermode_helper=disabled && /lib/systemd/systemd-udevd --daemon || return 1
	for i in 1 2; do
		truncate -s 64M "/run/d$i.img" && losetup "/dev/loop$i" "/run/d$i.img" && ip addr add "10.9.0.$i/32" dev lo || return 1
	done
	resource ra > /run/a.res && resource rb "shared-secret \"$secret\";" > /run/bob.res && drbdadm -c /run/a.res create-md --force ra &&
		bob create-md --force rb && bob up rb
}
info() { # VOLUME NAME DEVICE SECRET
	jq -n --rawfile config /run/a.res --arg v "$1" --arg n "$2" --arg d "$3" --arg s "$4" \
		'{driverVolumeType: "DRBD", data: {volumeId: $v, name: $n, device: $d, config: $config, provider_auth: $s}}' > "/run/$1.json"
}
connect() { info "$@" && hostvol -v connect "/run/$1.json"; }
state() { grep "^ *$1:" /proc/drbd; }
is() { state "$1" | grep -q "$2" || { cat /proc/drbd; return 1; }; }
down() { ! state "$1" || is "$1" Unconfigured; }
clean() { [ "$(hostvol list --json)" = "[]" ] && down 1 && [ -z "$(ls -A /run/quartermaster/hostvol/drbd 2> /dev/null)" ]; }
no_secret() { ! grep -r -l -e "$secret" -e shared-secret /run/quartermaster /var/lib/quartermaster; }

check "two ends" pair
[ "$tap_failed" = 0 ] || { plan; exit 1; }
# neither end has data yet: one of them is told that both are the same
first() { drbdadm -c /run/a2.res up ra && wait_for 20 is 1 cs:Connected && drbdadm -c /run/a2.res new-current-uuid --clear-bitmap ra/0 && wait_for 20 is 1 ds:UpToDate/UpToDate && drbdadm -c /run/a2.res down ra; }
resource ra "shared-secret \"$secret\";" > /run/a2.res
check "with the same data" first
check "an end is connected" connect a ra /dev/drbd1 $secret
check "its path" bash -c '[ "$(hostvol path a)" = /dev/drbd1 ]'
check "it is primary" is 1 ro:Primary
check "the ends know each other by the secret" wait_for 30 is 1 cs:Connected
written() { dd if=/dev/urandom of=/run/data bs=1M count=4 status=none && dd if=/run/data of=/dev/drbd1 bs=1M oflag=direct status=none && cmp -n 4194304 /run/data /run/d2.img; }
check "what is written reaches the other end" written
check "no file holds the secret (trap 21)" no_secret
listed() { hostvol list --json > /run/out && jq -e '.[0].volumeId == "a"' /run/out && ! grep -e "$secret" -e meta-disk /run/out; }
check "nor does what is listed" listed
check "connecting again changes nothing" hostvol connect /run/a.json

echo "# --- use, extend, plan"
mounted() { mkfs.ext4 -q /dev/drbd1 && mkdir -p /mnt/a && mount /dev/drbd1 /mnt/a; }
check "a file system on it" mounted
check "a mounted one is not taken away (trap 7)" refuses 'in use.*mounted at /mnt/a' hostvol disconnect a
used() { hostvol plan --json a > /run/out && jq -e '.usedBy == ["mounted at /mnt/a"] and (.steps | index("take down DRBD resource ra") != null)' /run/out; }
check "plan says who uses it" used
umount /mnt/a
grow() { local i; for i in 1 2; do truncate -s 128M "/run/d$i.img" && losetup -c "/dev/loop$i" || return 1; done; }
check "the disks below grow" grow
grown() { hostvol extend --json a > /run/out && jq -e '.size > 130000000 and .paths[0].before < 70000000' /run/out || { cat /run/out /proc/drbd; return 1; }; }
check "the volume grows with them (trap 20)" grown
check "the ends have the same data again" wait_for 60 is 1 ds:UpToDate/UpToDate
check "it ends" hostvol disconnect a
check "the resource is down, and nothing is left" clean

echo "# --- what fails"
check "a resource that the configuration does not have" refuses 'drbdadm adjust' connect x rx /dev/drbd1 $secret
check "nothing is left of it (trap 18)" clean
check "another device than the resource's is refused (trap 1)" refuses 'is /dev/drbd1, not /dev/drbd7' connect x ra /dev/drbd7 $secret
check "nothing is left of it (trap 18)" clean
check "while the other end is primary" bob primary rb
# it hears of the other first: two primaries would write what cannot be brought together again
alone() { refuses 'drbdadm primary|do not agree' connect a ra /dev/drbd1 $secret || { cat /proc/drbd; return 1; }; }
check "this one does not become it" alone
[ "$tap_failed" = 0 ] || { plan; exit 1; }
check "nothing is left of it (trap 18)" clean
check "the other end gives way" bob secondary rb

echo "# --- an administrator's"
check "a resource that is up" drbdadm -c /run/a2.res up ra
check "the ends meet" wait_for 30 is 1 cs:Connected
check "is used" connect a ra /dev/drbd1 $secret
check "it ends" hostvol disconnect a
check "and stays up, secondary (trap 9)" is 1 ro:Secondary
check "no file holds the secret (trap 21)" no_secret
plan
