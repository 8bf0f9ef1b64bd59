#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Bad input: each is one line with file, line and field, and nothing is stored.
. "${0%/*}/lib.sh"
start_api

# bad NAME LINE-AND-MESSAGE < TEXT: the text is refused so
bad() {
	cat >"$DIR/$1.yaml"
	run "$QM" apply -f "$DIR/$1.yaml"
	ok "$1" all 'exits 1' "complains \"$DIR/$1.yaml:$(printf '%s' "$2" | sed 's/[\\"]/\\&/g')\""
}

node() { printf 'apiVersion: coreos.com/v1\nkind: StorageNode\nmetadata: {name: n}\nspec:\n  type: glusterfs\n%s\n' "$1"; }
claim() {
	printf 'apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: c}\nspec:\n  accessModes: [ReadWriteOnce]\n'
	printf '  resources:\n    requests:\n      storage: %s\n' "$1"
}

bad version '1: apiVersion: "coreos.com/v2" is not served for StorageNode; use coreos.com/v1' < <(node '' | sed 's|com/v1|com/v2|')
bad kind '2: kind: "StorageNod" is unknown (did you mean "StorageNode"?)' < <(node '' | sed 's|StorageNode|StorageNod|')
bad type '5: spec.type: "gluster" is not supported (did you mean "glusterfs"?); supported: glusterfs, torus' < <(node '' | sed 's|type: glusterfs|type: gluster|')
bad field '6: spec.devicess: unknown field (did you mean "devices"?)' < <(node '  devicess: [/dev/vdb]')
bad path '6: spec.directories[0]: "/srv/../etc" is not a clean path; write it without "." and ".." parts, doubled or final slashes and control characters' < <(node '  directories: [/srv/../etc]')
bad long "3: metadata.name: \"$(printf 'n%.0s' $(seq 60))…\" is longer than the 63 bytes that StorageNode allows" < <(node '' | sed "s/name: n/name: $(printf 'n%.0s' $(seq 300))/")
bad zero '8: spec.resources.requests.storage: must be more than 0' < <(claim 0)
bad negative '8: spec.resources.requests.storage: must not be negative' < <(claim -1Gi)
bad overflow '8: spec.resources.requests.storage: "16Ei" is too large; at most 9223372036854775807 bytes can be asked for' < <(claim 16Ei)

# what the reader of YAML refuses: its words are its own
refused() {
	run "$QM" apply -f "$DIR/$1"
	ok "$1 is refused in one line" all 'exits 1' "mentions '$DIR/$1'" '[ "$(wc -l <"$DIR/err")" -eq 1 ]'
}
{
	echo 'a: &a [x, x, x, x, x, x, x, x, x, x]'
	p=a
	for l in b c d e f g h i; do
		echo "$l: &$l [*$p, *$p, *$p, *$p, *$p, *$p, *$p, *$p, *$p, *$p]"
		p=$l
	done
} >"$DIR/bomb.yaml"
refused bomb.yaml
head -c 4096 /dev/urandom >"$DIR/binary.yaml"
refused binary.yaml
node '  devices: [/dev/vdb' >"$DIR/half.yaml"
refused half.yaml
printf '{"apiVersion": "coreos.com/v1", "kind": "Stor' >"$DIR/half.json"
refused half.json
: >"$DIR/empty.yaml"
refused empty.yaml
refused missing.yaml

{
	claim 1Gi
	echo ---
	node '  devices: 7'
} >"$DIR/mixed.yaml"
run "$QM" apply -f "$DIR/mixed.yaml"
ok 'one bad object keeps the good ones back' exits 1
run "$QM" get pvc,sn
ok 'kinds are one at a time' exits 2
for kind in pvc sn; do
	run "$QM" get $kind -o name
	ok "no $kind was stored" all 'exits 0' 'says ""'
done

run "$QM"
ok 'no verb at all' all 'exits 2' 'mentions "Usage:"'
run "$QM" aply
ok 'a verb that is nearly one' all 'exits 2' 'mentions "did you mean \"apply\"?"'
run "$QM" get storagenod
ok 'a kind that is nearly one' all 'exits 2' 'mentions "did you mean \"storagenode\"?"'
run "$QM" get pvc --ouptut=yaml
ok 'a flag that is nearly one' all 'exits 2' 'mentions "did you mean --output?"'
run "$QM" get pvc --kubeconfig "$DIR/none"
ok 'a kubeconfig that is not there' all 'exits 5' "mentions '$DIR/none'"
sed 's/token: .*/token: wrong/' "$QM_STATE_DIR/admin.kubeconfig" >"$DIR/wrong.kubeconfig"
run "$QM" get pvc --kubeconfig "$DIR/wrong.kubeconfig"
ok 'a wrong token' exits 4
for verb in status apply get describe delete wait plan explain support-bundle completion version; do
	run "$QM" $verb --help
	ok "$verb --help has an example" all 'exits 0' 'shows "Examples:"' 'shows "  quartermaster"'
done
for shell in bash zsh fish; do
	run "$QM" completion $shell
	ok "completion for $shell" all 'exits 0' 'shows storagenodes' 'shows dry-run'
done
"$QM" completion bash >"$DIR/completion"
run bash -c ". '$DIR/completion'; COMP_WORDS=(quartermaster get st); COMP_CWORD=2; _quartermaster; echo \"\${COMPREPLY[@]}\""
ok 'bash completes kinds' says 'storagenodes storagestatuses storagepools storageclasses'

done_testing
