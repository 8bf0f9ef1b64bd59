#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The guest itself: what the other tests here rely on.
[ -n "${QM_GUEST:-}" ] || exec "$(dirname "$0")/run" "$0" "$@"
set -u
. tests/lib/tap.sh

echo "# kernel $(uname -r), up for $(cut -d ' ' -f 1 /proc/uptime) s"
other_kernel() { [ "$(uname -s)" = Linux ] && [ -e "/lib/modules/$(uname -r)/modules.dep" ]; }
private() { echo x > "$1/qm-guest-probe" && [ "$(findmnt -no FSTYPE --target "$1")" != virtiofs ]; }
read_only_host() { [ "$(findmnt -no FSTYPE /)" = overlay ]; }

check "a kernel with its modules" other_kernel
check "the host's root lies below a layer of the guest's own" read_only_host
check "the checkout is there" test -x ./test
check "what is written in / stays in the guest" private /
check "and in the checkout" private .
check "loop and XFS can be loaded" modprobe -a loop xfs
check "NFS, client and server" modprobe -a nfs nfsv4 nfsd
check "its clock needs no calibration" grep -qx hpet /sys/devices/system/clocksource/clocksource0/current_clocksource
check "the loopback interface is up" grep -q 127.0.0.1 <(ip -o -4 address show up dev lo)
plan
