# SPDX-License-Identifier: Apache-2.0
# Node services of the CSI driver, for the scripts here to source; several are several nodes, with all that is theirs in /run/NODE.
QM=$PWD/${QM_BUILD:-build}/src/cli/quartermaster
CALL=$PWD/${QM_BUILD:-build}/tests/unit/csi/csi-call

csi_start() { # NODE [FLAG…]: sets service, its pid
	local node=$1; shift
	mkdir -p "/run/$node/kubelet" "/run/$node/run"
	"$QM" node --endpoint "/run/$node/sock" --node-id "$node" --kubelet-dir "/run/$node/kubelet" --no-registration \
		--state-dir "/run/$node/state" --run-dir "/run/$node/run" "$@" >> "/run/$node/log" 2>&1 &
	service=$!
	wait_for 60 "$CALL" "/run/$node/sock" Identity.Probe
}
csi_stage() { # NODE VOLUME CONTEXT [MODE [SECRETS]]: with ext4, at /run/NODE/kubelet/VOLUME; the mode is CSI's number
	"$CALL" "/run/$1/sock" Node.NodeStageVolume "{\"volume_id\":\"$2\",\"staging_target_path\":\"/run/$1/kubelet/$2\",\"volume_context\":$3,
		\"volume_capability\":{\"mount\":{\"fs_type\":\"ext4\"},\"access_mode\":{\"mode\":${4:-1}}},\"secrets\":${5:-{\}}}"
}
csi_unstage() { # NODE VOLUME
	"$CALL" "/run/$1/sock" Node.NodeUnstageVolume "{\"volume_id\":\"$2\",\"staging_target_path\":\"/run/$1/kubelet/$2\"}"
}
