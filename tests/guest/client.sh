# SPDX-License-Identifier: Apache-2.0
# Client containers in the guest, for the scripts here to source: on this machine before the guest is started, and in it.
#   client_images SCRIPT NAME:FILE[,FILE]…   on this machine: makes $QM_IMAGES/NAME.tar of these files, runs SCRIPT in the guest, and ends
# In the guest:
#   context[VOLUME], kind[VOLUME] (mount, or block), secrets[VOLUME]   what NodeStageVolume is told of it
#   stage, publish, unpublish, unstage, bring, take VOLUME; it is at /run/k/VOLUME
state=/var/lib/quartermaster run=/run/quartermaster

client_images() {
	local script=$1 one
	shift
	. tests/lib/client_image.sh
	command -v crun > /dev/null || { echo "1..0 # SKIP needs crun"; exit 0; }
	# made here, where it takes a second; the guest sees this machine's files
	QM_IMAGES=$(mktemp -d /tmp/qm-clients.XXXXXX)
	export QM_IMAGES QM_GUEST_TIMEOUT=${QM_GUEST_TIMEOUT:-580}
	trap 'rm -rf "$QM_IMAGES"' EXIT
	for one; do
		# shellcheck disable=SC2046 # words
		client_image "$QM_IMAGES/${one%%:*}.tar" $(tr , ' ' <<< "${one#*:}") || exit 1
	done
	tests/guest/run "$script"
	exit
}
[ -n "${QM_GUEST:-}" ] || return 0

set -u -o pipefail
. tests/lib/tap.sh
PATH=$PWD/${QM_BUILD:-build}/src/cli:$PWD/${QM_BUILD:-build}/src/clients:$PATH
CALL=$PWD/${QM_BUILD:-build}/tests/unit/csi/csi-call
declare -A context kind secrets

# cgroups as most machines have them
machine() { mount -t cgroup2 cgroup /sys/fs/cgroup; }
hide() { local f; for f; do mount --bind /dev/null "$f" || return 1; done; }
# nfs_state: the NFS server's own state is on memory, as the guest's root is an overlay
nfs_state() {
	modprobe -a nfsd nfs nfsv3 nfsv4 && mkdir -p /run/export/vol-a /run/rpcbind && mount -t tmpfs state /var/lib/nfs &&
		mkdir -p /var/lib/nfs/{rpc_pipefs,v4recovery,sm} && touch /var/lib/nfs/{etab,rmtab} && mount -t nfsd nfsd /proc/fs/nfsd &&
		exportfs -i -o rw,no_root_squash,no_subtree_check,insecure,fsid=0 '*:/run/export'
}
nfs_mounts() { awk '$3 ~ /^nfs4?$/' /proc/mounts | wc -l; }

call() { "$CALL" $run/node.sock "Node.$1" "$2"; }
# args VOLUME KEY…: those of its arguments
args() {
	local volume=$1
	shift
	jq -cn --arg v "$volume" --arg kind "${kind[$volume]:-mount}" --argjson context "${context[$volume]}" --argjson secrets "${secrets[$volume]:-{\}}" '
		{volume_id: $v, staging_target_path: "/run/k/stage-\($v)", target_path: "/run/k/\($v)", volume_context: $context, secrets: $secrets,
			volume_capability: {($kind): {}, access_mode: {mode: 5}}} | with_entries(select(.key | IN($ARGS.positional[])))' --args "$@"
}
stage() { mkdir -p "/run/k/stage-$1" && call NodeStageVolume "$(args "$1" volume_id staging_target_path volume_capability volume_context secrets)"; }
publish() { call NodePublishVolume "$(args "$1" volume_id staging_target_path target_path volume_capability volume_context)"; }
unpublish() { call NodeUnpublishVolume "$(args "$1" volume_id target_path)"; }
unstage() { call NodeUnstageVolume "$(args "$1" volume_id staging_target_path)"; }
bring() { stage "$1" && publish "$1"; }
take() { unpublish "$1" && unstage "$1"; }

# share_written VOLUME TEXT [DIRECTORY]: which is the server's
share_written() { echo "$2" > "/run/k/$1/file" && [ "$(cat "${3:-/run/export/vol-a}/file")" = "$2" ]; }
# of the disk d0 (lio.sh)
lun_written() { dd if=/dev/urandom of=/run/data bs=1M count=2 status=none && dd if=/run/data of=/run/k/lun bs=1M oflag=direct conv=notrunc status=none && cmp -n 2097152 /run/data /run/d0.img; }

client_info() { qm-client --info "$run/clients/$1"; }
said() { client_info "$1" | jq -e "$2"; }
client() { pgrep -f "^/qm/qm-client .*/clients/$1\$"; }
answers() { wait_for 60 "$CALL" $run/node.sock Identity.Probe; }
# give_up: ends the script where something failed, and says what the instance did
give_up() { [ "$tap_failed" = 0 ] || { tail -n 20 $state/log/*.log | sed 's/^/# /'; plan; exit 1; }; }
