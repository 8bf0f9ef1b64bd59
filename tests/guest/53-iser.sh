#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The iSER driver of hostvol: the kernel's own target over RDMA, which a veth carries (soft RoCE).
[ -n "${QM_GUEST:-}" ] || exec "$(dirname "$0")/run" "$0" "$@"
set -u -o pipefail
. tests/lib/tap.sh
. tests/guest/lio.sh
PATH=$PWD/${QM_BUILD:-build}/hostvol:$PATH

setup() {
	lio_start && modprobe -a veth rdma_rxe ib_isert ib_iser && ip link add a0 type veth peer name a1 && ip address add 10.9.0.1/24 dev a0 &&
		ip link set a0 up && ip link set a1 up && rdma link add rxe0 type rxe netdev a0 && lio_disk d0 64M 0f1c2a9e-0000-4000-8000-000000000000 &&
		lio_target $t1 10.9.0.1:3260 && echo 1 > "$lio/iscsi/$t1/tpgt_1/np/10.9.0.1:3260/iser" && lio_lun $t1 0 d0
}
info() { # VOLUME
	printf '{"driverVolumeType":"ISER","data":{"volumeId":"%s","targetIqn":"%s","targetLun":"0","targetPortal":"10.9.0.1:3260"}}\n' "$1" $t1 > "/run/$1.json"
}
check "an iSER target" setup
check "a volume is connected" connect a
check "by RDMA" grep -q iser /sys/class/scsi_host/host*/proc_name
check "its session is of the interface for it" grep -q -x hostvol-iser /sys/class/iscsi_session/session1/ifacename
check "what is written reaches the target" written a d0
check "it ends" hostvol disconnect a
check "nothing is left" nothing_left
plan
