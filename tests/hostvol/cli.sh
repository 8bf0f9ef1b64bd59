#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The command hostvol: input, output, exit statuses, and pages that are made from the driver table.
# Needs no privileges. Prints TAP. HOSTVOL names the program.
set -u
here=$(dirname "$(realpath "$0")")
HOSTVOL=$(realpath "${HOSTVOL:-$here/../../build/hostvol/hostvol}")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export QM_STATE_DIR=$dir/state QM_RUN_DIR=$dir/run
n=0 failed=0

tap() { # tap STATUS WORDS
	n=$((n + 1))
	if [ "$1" = 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; failed=$((failed + 1)); fi
}
# gives STATUS OUTPUT-PATTERN WORDS COMMAND…: exit status and a regular expression over all output
gives() {
	local status=$1 pattern=$2 words=$3 got
	shift 3
	"$@" >"$dir/out" 2>&1
	got=$?
	[ $got = "$status" ] && grep -Eq -- "$pattern" "$dir/out"
	local r=$?
	tap $r "$words"
	[ $r = 0 ] || { echo "# status $got, wanted $status and /$pattern/"; sed 's/^/# /' "$dir/out"; }
}
hv() { "$HOSTVOL" "$@"; }
from() { printf '%s' "$1" | "$HOSTVOL" "${@:2}"; }

gives 0 'Usage: hostvol' "--help" hv --help
gives 2 'Commands:' "no command" hv
gives 2 'did you mean "connect"' "a command misspelt" hv conect
for verb in properties connect disconnect path list drivers recover forget completion; do
	gives 0 'Example' "$verb --help has an example" hv $verb --help
done
gives 0 '^hostvol [0-9]' "--version" hv --version
gives 2 'unrecognized option' "an unknown option" hv list --jsn
gives 2 'number of seconds' "a bad --timeout" hv --timeout=x list
gives 2 'absolute paths' "a relative --state-dir" hv --state-dir=x list

gives 0 '"osType":"LINUX"' "properties" hv properties
gives 0 '"doLocalAttach":true.*"ip":"192.0.2.77"' "properties with an address" hv properties --local --ip=192.0.2.77
gives 0 '^VZSTORAGE +yes' "drivers" hv drivers
gives 0 'export \(required\)' "one driver" hv drivers nfs
gives 3 'no driver "nosuch"' "a driver that is not there" hv drivers nosuch
gives 0 'complete .* hostvol' "completion" hv completion bash
hv completion bash | bash -n
tap $? "the completion is a valid script"

mkdir "$dir/data"
cat >"$dir/volume.yaml" <<END
driverVolumeType: LOCAL
data:
  devicePath: $dir/data
  volumeId: data-1
END
gives 0 "^$dir/data$" "connect from YAML prints the path" hv connect -f "$dir/volume.yaml"
gives 0 "^$dir/data$" "path" hv path data-1
gives 0 '"state":"attached"' "connect --json prints the record" hv connect "$dir/volume.yaml" --json
hv connect "$dir/volume.yaml" --json >"$dir/record"
gives 0 "^data-1 +LOCAL +attached +- +$dir/data" "list" hv list
gives 0 '"health":"ok"' "list --json" hv list --json
gives 0 "^$dir/data$" "disconnect by a record prints the path" hv disconnect -f "$dir/record"
gives 0 'was not connected' "disconnect again" hv disconnect data-1
gives 3 'not connected' "path of what is not connected" hv path data-1
gives 0 "$dir/data" "connect for a consumer" hv connect "$dir/volume.yaml" --consumer=pod-1
gives 0 'was not connected' "disconnect without it does nothing" hv disconnect data-1
gives 4 'is what was connected' "what works is not forgotten" hv forget data-1
rmdir "$dir/data" && touch "$dir/data"
gives 3 'is file, and was directory .*hostvol forget data-1' "another one in its place is refused" hv connect "$dir/volume.yaml" --consumer=pod-1
gives 2 'which volume' "which one is forgotten must be said" hv forget
gives 2 'too many' "and once" hv forget -f "$dir/volume.yaml" data-1
gives 0 '^data-1 pod-1' "until a person forgets the old one" hv forget -f "$dir/volume.yaml"
gives 0 "$dir/data" "then it is connected" hv connect "$dir/volume.yaml" --consumer=pod-1
rm "$dir/data"
gives 0 'cannot use' "list tells what is wrong" hv list
gives 3 'cannot use' "so does path" hv path data-1
gives 0 . "disconnect for the consumer" hv disconnect data-1 --consumer=pod-1
gives 0 '^\[\]' "nothing is left" hv list --json
gives 0 '^\[\]' "recover finds nothing" hv recover --json

printf 'driverVolumeType: LOCAL\ndata:\n  devicePath: "x' >"$dir/half.yaml"
gives 2 'half.yaml:3: ' "half a file names the line" hv connect "$dir/half.yaml"
gives 2 'driverVolumeType is missing' "no driver" from '{}' connect -
gives 2 'no driver "NSF" \(did you mean "NFS"' "a driver misspelt" from '{"driverVolumeType":"NSF"}' connect -
gives 2 'no parameter "exprot" \(did you mean "export"' "a parameter misspelt" from '{"driverVolumeType":"NFS","data":{"exprot":"h:/e"}}' connect -
gives 6 'encrypted volumes are not supported in this version' "what is not there yet" from '{"driverVolumeType":"NFS","data":{"export":"h:/e","encrypted":true}}' connect -
gives 3 'cannot use /dev/nosuch' "a device that is not there" from '{"driverVolumeType":"LOCAL","data":{"devicePath":"/dev/nosuch"}}' connect -
gives 2 'documents' "two documents" from $'a: 1\n---\nb: 2' connect -
gives 2 . "binary" from $'\x01\x02' connect -
gives 2 'cannot open' "a file that is not there" hv connect -f "$dir/none"

mkdir "$dir/docs"
hv drivers --markdown="$dir/docs" && diff -r "$dir/docs" "$here/../../docs/connectors" >"$dir/out" 2>&1
r=$?
tap $r "docs/connectors is what the driver table says"
[ $r = 0 ] || sed 's/^/# /' "$dir/out"

echo "1..$n"
[ $failed = 0 ]
