#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 2400
# csi-sanity against an instance of this machine, on a real pool: controller and node service together, for volumes
# that are directories, files with a file system of their own, block devices, and whole volumes. Every spec has to pass; what it may
# skip is listed below with the reason. A whole volume is a Gluster volume, which takes seconds to make and to remove: without
# QM_LONG only some specs run for it. csi-sanity is built into the cache where it is missing (three minutes).
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/lib/tap.sh
. tests/lib/evidence.sh
build=${QM_BUILD:-build}
dir=${QM_TEST_DIR:-$(mktemp -d /var/tmp/qm-sanity.XXXXXX)}
export QM_STATE_DIR=$dir/state QM_RUN_DIR=/run/qm-sanity.$$
PATH=$PWD/$build/src/cli:$PWD/$build/hostvol:$PATH
sanity=${QM_CSI_SANITY:-${QM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/quartermaster}/bin/csi-sanity}
specs_least=82 # that run for each kind: less means that a capability is no longer offered

cleanup() {
	quartermaster down --delete-data --force > /dev/null 2>&1
	rm -rf --one-file-system "$dir" "$QM_RUN_DIR"
}
trap cleanup EXIT

# What may be skipped, and why: a part of the spec's name, and the reason.
may_skip=(
	'ControllerPublishVolume ' 'volumes are connected by the node service alone: nothing is attached'
	'ControllerUnpublishVolume ' 'likewise'
	'volume lifecycle ' 'likewise: it is the life of an attached volume'
	'GroupController Service ' 'there is no moment at which several volumes could be copied together'
	'creating a snapshot with accessibility requirements' 'every node reaches every pool: topology is not offered'
	'pagination should detect volumes added between pages' 'csi-sanity itself has it disabled'
)

# The specs that run for whole volumes in any case: making, from nothing and from others, growing, using, removing.
some_specs=(
	'CreateVolume should create volume from an existing source (snapshot|volume)' 'CreateVolume should return appropriate values SingleNodeWriter WithCapacity'
	'DeleteVolume should return appropriate values' 'CreateSnapshot .* already existing name and same source' 'ExpandVolume .* should work'
	'Node Service should work' 'NodeExpandVolume should work'
)
some_least=8

[ -x "$sanity" ] || tests/tools/build-peers csi-sanity > "$dir/build-peers.log" 2>&1
check "csi-sanity is there" "$sanity" --version
check "up --demo" quartermaster up --demo
check "both services answer" wait_for 10 test -S "$QM_RUN_DIR/csi.sock" -a -S "$QM_RUN_DIR/node.sock"

# specs REPORT STATES: the names of those in one of these states, with the first line of why
specs() {
	jq -r --arg states "$2" '.[0].SpecReports[] | select(.LeafNodeType == "It" and (.State | IN($states | split(" ")[])))
		| (.ContainerHierarchyTexts + [.LeafNodeText] | join(" ")) + (if .Failure.Message then " | " + (.Failure.Message | split("\n")[0:12] | join(" ") | .[0:900]) else "" end)' "$1"
}
all_pass() { ! specs "$1" "failed panicked timedout interrupted aborted" | grep .; }
enough() { local n; n=$(specs "$1" passed | wc -l); echo "$n specs passed"; [ "$n" -ge "$2" ]; }
no_other_skips() {
	local name i bad=0
	while read -r name; do
		for ((i = 0; i < ${#may_skip[@]}; i += 2)); do
			[[ $name != *"${may_skip[i]}"* ]] || continue 2
		done
		echo "skipped: $name"
		bad=1
	done < <(specs "$1" "skipped pending")
	return $bad
}

# sanity_run KIND ARGUMENT…: one run, its report in $dir/KIND.json
sanity_run() {
	local kind=$1
	shift
	echo 'reclaim: delete' > "$dir/mutable.yaml"
	timeout "${limit:-300}" "$sanity" --csi.testvolumemutableparameters "$dir/mutable.yaml" --csi.endpoint "unix://$QM_RUN_DIR/node.sock" --csi.controllerendpoint "unix://$QM_RUN_DIR/csi.sock" \
		--csi.testvolumesize $((10 << 20)) --csi.testvolumeexpandsize $((20 << 20)) --csi.mountdir "$dir/$kind-target" \
		--csi.stagingdir "$dir/$kind-staging" --ginkgo.no-color --ginkgo.json-report "$dir/$kind.json" "$@" > "$dir/$kind.log" 2>&1 < /dev/null
	[ -s "$dir/$kind.json" ] || tail -n 20 "$dir/$kind.log"
}
sanity_whole() {
	echo "kind: whole" > "$dir/whole.yaml"
	if [ "${QM_LONG:-}" ]; then
		limit=1500 sanity_run whole --csi.testvolumeparameters "$dir/whole.yaml"
	else
		sanity_run whole --csi.testvolumeparameters "$dir/whole.yaml" --ginkgo.focus "$(IFS='|'; echo "${some_specs[*]}")"
	fi
}
volumes_left() { quartermaster get pv -o json | jq -r '.items[].metadata.name | select(startswith("csi-"))'; }
nothing_left() { ! { volumes_left; grep -F "$dir/$1-" /proc/self/mountinfo; losetup -a | grep -E 'virtblock|rawblock' | grep -F "$QM_STATE_DIR"; } | grep .; }

for kind in ${QM_SANITY_KINDS:-directory file block whole}; do
	started=$SECONDS
	least=$specs_least
	[ $kind != whole ] || [ "${QM_LONG:-}" ] || least=$some_least
	case $kind in
	directory) sanity_run $kind ;;
	file) echo "kind: file" > "$dir/file.yaml" && sanity_run $kind --csi.testvolumeparameters "$dir/file.yaml" ;;
	block) sanity_run $kind --csi.testvolumeaccesstype block ;;
	whole) sanity_whole ;;
	esac
	echo "# $kind: $(specs "$dir/$kind.json" passed | wc -l) specs passed in $((SECONDS - started)) s"
	check "$kind: every spec passes" all_pass "$dir/$kind.json"
	check "$kind: at least $least ran" enough "$dir/$kind.json" $least
	if [ $least = $some_least ]; then
		skip "$kind: the other specs" "take minutes: with --long"
	else
		check "$kind: nothing was skipped but what is known" no_other_skips "$dir/$kind.json"
	fi
	check "$kind: nothing is left" wait_for 10 nothing_left $kind
done
for ((i = 0; i < ${#may_skip[@]}; i += 2)); do echo "# skipped: ${may_skip[i]}: ${may_skip[i + 1]}"; done
check "down" quartermaster down --delete-data --force
plan
