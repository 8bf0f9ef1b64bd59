#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# crd.sh [PROGRAM] - are our CustomResourceDefinitions what a real API server wants, and does it
# refuse what we refuse? Prints TAP. PROGRAM is quartermaster (default: the one built).
# timeout: 300
set -u
here=$(cd "$(dirname "$0")" && pwd)
program=$(readlink -f "${1:-$here/../../${QM_BUILD:-build}/src/cli/quartermaster}")
. "$here/../lib/tap.sh"
. "$here/apiserver.sh"
cp_begin "our definitions on a real API server"
dir=$work
k() { cp_kubectl "$@"; }

# ---- the definitions ----

"$program" crds > "$dir/crds.yaml"
crds='storagenodes.coreos.com storagestatuses.coreos.com storagepools.coreos.com'

created() {
	local out
	out=$(k create -f "$dir/crds.yaml" 2>&1) || { echo "$out"; return 1; }
	! grep -i warning <<< "$out"
}
check 'the definitions are accepted, without a warning' created
if [ "$tap_failed" != 0 ]; then plan; exit 1; fi
# shellcheck disable=SC2086 # three names
check 'they are established' k wait --for=condition=Established --timeout=60s crd $crds
# shellcheck disable=SC2086
structural() { ! k get crd $crds -o jsonpath='{.items[*].status.conditions[*].type}' | grep NonStructural; }
check 'their schemas are structural' structural
served() { k get sn,ss,sp && k get quartermaster; }
check 'short names and the category are known' wait_for 60 served

# ---- the seed's example, byte for byte ----

cat > "$dir/seed.yaml" <<'END'
apiVersion: "coreos.com/v1"
kind: StorageNode
metadata:
  name: storage-node1
spec:
  type: glusterfs
  nodeSelector:
    'kubernetes.io/hostname': storage-node1
  storageNetwork:
    ips:
      - 10.10.10.100
  devices:
    - /dev/vdb
    - /dev/vdc
    - /dev/vdd
  glusterfs:
    cluster: cluster1
    zone: 1
END
check "the seed's StorageNode is accepted" k create -f "$dir/seed.yaml"
unchanged() {
	k get sn storage-node1 -o json | jq -e --argjson spec '{"type":"glusterfs","nodeSelector":{"kubernetes.io/hostname":"storage-node1"},
		"storageNetwork":{"ips":["10.10.10.100"]},"devices":["/dev/vdb","/dev/vdc","/dev/vdd"],
		"glusterfs":{"cluster":"cluster1","zone":1}}' '.spec == $spec'
}
check 'and is stored as it stands' unchanged
empty_sections() {
	k create -f - <<-'END' && k get ss seed -o json | jq -e '.spec | has("torus") | not'
		apiVersion: "coreos.com/v1"
		kind: StorageStatus
		metadata:
		  name: seed
		spec:
		  type: glusterfs
		  status: OFFLINE
		  glusterfs:
		  torus:
	END
}
check "the seed's StorageStatus with empty sections is accepted" empty_sections < /dev/null
default_zone() {
	printf '%s\n' 'apiVersion: coreos.com/v1' 'kind: StorageNode' 'metadata: {name: plain}' \
		'spec: {type: glusterfs, glusterfs: {cluster: c}}' | k create -f - &&
		[ "$(k get sn plain -o jsonpath='{.spec.glusterfs.zone}')" = 1 ]
}
check 'a zone that is missing is 1' default_zone
torus_keeps() {
	printf '%s\n' 'apiVersion: coreos.com/v1' 'kind: StorageNode' 'metadata: {name: torus}' \
		'spec: {type: torus, torus: {anything: {at: [all]}}}' | k create -f - &&
		[ "$(k get sn torus -o jsonpath='{.spec.torus.anything.at[0]}')" = all ]
}
check 'what torus holds is kept' torus_keeps

# ---- explain: a text for every field ----

fields() { # KIND: every path, from the definition
	k get crd "$1" -o json | jq -r '
		def walk_fields($p): (.properties // .items.properties // {}) | to_entries[]
			| "\($p).\(.key)" as $q | $q, (.value | walk_fields($q));
		.spec.names.singular as $n | .spec.versions[0].schema.openAPIV3Schema | walk_fields($n)'
}
explained() {
	local field out count=0
	for field in $(fields "$1" | grep -E "^[a-z]+\.$2" | grep -v '\.metadata'); do
		out=$(k explain "$field" 2>&1) || { echo "$field: $out"; return 1; }
		grep -A1 '^DESCRIPTION' <<< "$out" | tail -n 1 | grep -q '[a-z]' || { echo "$field: $out"; return 1; }
		! grep -q '<empty>\|<no description>' <<< "$out" || { echo "$field: $out"; return 1; }
		count=$((count + 1))
	done
	[ "$count" -ge "$3" ] || { echo "only $count fields"; return 1; }
}
check 'kubectl explain has a text for every field of storagenode.spec' explained storagenodes.coreos.com spec 12
described() { # in the definition itself, which is quicker than asking for each
	k get crd -o json | jq -e '[.items[] | .spec.versions[0].schema.openAPIV3Schema.properties | {spec, status} | .. | objects
		| select(has("type") and (.type | type) == "string" and (has("properties") or has("items") or has("format") or has("maxLength")))
		| select(has("description") | not)] | length == 0'
}
check 'no field of the definitions is without one' described

# ---- what is refused ----

csplit -q -z -f "$dir/bad-" -b %03d.yaml "$here/../unit/schema/refused.yaml" '/^---$/' '{*}'
for file in "$dir"/bad-*.yaml; do
	grep -q '^kind:' "$file" || continue
	k create --dry-run=client --validate=false -o json -f "$file" > "$dir/object" 2> /dev/null
	sentence=$(jq -r '.metadata.annotations | .server // .says' "$dir/object")
	refused() {
		local out
		if out=$(k create -f "$file" 2>&1); then echo "accepted: $out"; return 1; fi
		[ -n "$sentence" ] && grep -qF -- "$sentence" <<< "$out" || { echo "said: $out"; return 1; }
	}
	check "refused: $sentence" refused
done

change() { k patch sn storage-node1 --type merge -p "$1"; }
for patch in '{"spec":{"type":"torus"}}' '{"spec":{"glusterfs":{"cluster":"other"}}}' \
	'{"spec":{"glusterfs":{"cluster":null}}}' '{"spec":{"glusterfs":null}}'; do
	check "not changed: $patch" refuses 'cannot be changed; delete the object and create it anew' change "$patch"
done
bad_brick() {
	k create -f - <<-END
		apiVersion: coreos.com/v1
		kind: StoragePool
		metadata: {name: bad-1}
		spec: {type: glusterfs, deployment: bad, bricks: [{id: $1, path: $2}]}
	END
}
check "a pool's brick with a path that climbs" refuses '"/srv/../etc" is not a clean path' bad_brick a /srv/../etc
check "a pool's brick with an id that is a path" refuses '"../a" is not a name' bad_brick ../a /srv/a
for patch in '{"spec":{"storageNetwork":{"ips":["10.10.10.101"]}}}' '{"spec":{"devices":["/dev/vdb"]}}' \
	'{"spec":{"glusterfs":{"zone":2}}}' '{"spec":{"maintenance":true}}' '{"metadata":{"labels":{"a":"b"}}}'; do
	check "changed: $patch" change "$patch"
done

# ---- columns ----

k patch sn storage-node1 --subresource status --type merge -p '{"status":{"phase":"Ready","address":"10.10.10.100",
	"nodeName":"m1","display":{"zone":"2","devices":"1/1"}}}' > /dev/null
k patch ss seed --subresource status --type merge -p '{"status":{"pools":1,"message":"1 of 1 pools serve",
	"display":{"nodes":"3/3","capacity":"1.0Gi","used":"12Mi","promised":"0"}}}' > /dev/null
k create -f - > /dev/null <<'END'
apiVersion: coreos.com/v1
kind: StoragePool
metadata: {name: seed-1}
spec: {type: glusterfs, deployment: seed, volumeType: "replicate:3"}
END
k patch sp seed-1 --subresource status --type merge -p '{"status":{"phase":"Online",
	"display":{"bricks":"3/3","heal":"0","capacity":"1.0Gi","used":"12Mi"}}}' > /dev/null
# row KIND NAME HEADER ROW
row() {
	local out
	out=$(k get "$1" "$2" | tr -s ' ')
	[ "$(sed -n 1p <<< "$out")" = "$3" ] && grep -Eq "^$4 [0-9]+m?[0-9]*s\$" <<< "$(sed -n 2p <<< "$out")" || { echo "$out"; return 1; }
}
check 'columns of storagestatus' row storagestatus seed 'NAME TYPE STATUS NODES POOLS CAPACITY USED AGE' \
	'seed glusterfs OFFLINE 3/3 1 1.0Gi 12Mi'
check 'columns of sn' row sn storage-node1 'NAME TYPE STATUS ADDRESS ZONE DEVICES AGE' \
	'storage-node1 glusterfs Ready 10.10.10.100 2 1/1'
check 'columns of sp' row sp seed-1 'NAME TYPE STATUS BRICKS HEAL CAPACITY USED AGE' \
	'seed-1 replicate:3 Online 3/3 0 1.0Gi 12Mi'
spec_kept() { [ "$(k get sn storage-node1 -o jsonpath='{.metadata.generation}')" = "$1" ]; }
generation=$(k get sn storage-node1 -o jsonpath='{.metadata.generation}')
k patch sn storage-node1 --subresource status --type merge -p '{"status":{"phase":"Degraded"}}' > /dev/null
check 'status is a subresource: no new generation' spec_kept "$generation"

# ---- as large as the limits allow: rules must stay within what the server lets a request cost ----

largest() {
	jq -n '
		def text(n): [range(n)] | map("x") | join("");
		[range(128) | ("/dev/" + text(247)) + ("00" + tostring)[-3:]] as $devices |
		[range(64) | ("/srv/" + text(200) + "/" + text(200) + "/" + text(103)) + ("0" + tostring)[-2:]] as $directories |
		{apiVersion: "coreos.com/v1", kind: "StorageNode", metadata: {name: "largest"},
		 spec: {type: "glusterfs", devices: $devices, directories: $directories,
			nodeSelector: ([range(16) | {key: "k\(.)", value: text(63)}] | from_entries),
			storageNetwork: {ips: [range(16) | "fd00:1111:2222:3333:4444:5555:6666:77\(10 + .)"]},
			glusterfs: {cluster: "c", wipe: $devices}}}' > "$dir/largest.json"
	jq -e '(.spec.devices[0] | length) == 255 and (.spec.directories[0] | length) == 512' "$dir/largest.json" &&
		k create -f "$dir/largest.json" && k patch sn largest --type merge -p '{"spec":{"maintenance":true}}'
}
check 'the largest StorageNode is accepted, and can be changed' largest
k delete sn largest > /dev/null 2>&1

# ---- absurd, but valid ----

csplit -q -z -f "$dir/poison-" -b %03d.yaml "$here/poison.yaml" '/^---$/' '{*}'
for file in "$dir"/poison-*.yaml; do
	grep -q '^kind:' "$file" || continue
	check "passes: $(sed -n 's/.*poison: *//p' "$file" | tr -d '}"')" k create -f "$file"
done
reads() { "$program" get storagenodes -o yaml --kubeconfig "$cp_dir/admin.kubeconfig"; }
check 'our client reads a list that holds them' reads
k delete sn --all > /dev/null
k create -f "$dir/seed.yaml" > /dev/null

# ---- what an operator does with definitions that are there, or not ----

register() { "$program" crds --register --kubeconfig "${1:-$cp_dir/admin.kubeconfig}"; }
version() { k get crd "$1" -o jsonpath='{.metadata.resourceVersion}'; }
label() { k label crd storagenodes.coreos.com --overwrite "quartermaster.storage/schema-version$1" > /dev/null; }

before=$(version storagenodes.coreos.com)
check 'definitions of our version: nothing to do' register
check 'and nothing is written' [ "$(version storagenodes.coreos.com)" = "$before" ]

older() {
	k patch crd storagenodes.coreos.com --type json -p '[
		{"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/maintenance"},
		{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/former", "value": {"type": "string"}},
		{"op": "remove", "path": "/spec/versions/0/additionalPrinterColumns"}]' > /dev/null && label =0 &&
		k annotate crd storagenodes.coreos.com example.com/note=kept > /dev/null && register || return
	k get crd storagenodes.coreos.com -o json | jq -e --argjson ours "$("$program" crds | cp_kubectl create --dry-run=client -o json -f - |
		jq 'select(.metadata.name == "storagenodes.coreos.com")')" '
		.spec.versions == $ours.spec.versions and .metadata.annotations["example.com/note"] == "kept" and
		.metadata.labels["quartermaster.storage/schema-version"] == $ours.metadata.labels["quartermaster.storage/schema-version"]' ||
		return
	k get sn storage-node1
}
check 'an older definition is replaced, what others wrote on it and the objects stay' older
newer() {
	label =99 && k patch crd storagenodes.coreos.com --type json -p '[{"op": "remove", "path": "/spec/versions/0/additionalPrinterColumns"}]' > /dev/null
	before=$(version storagenodes.coreos.com)
	register && [ "$(version storagenodes.coreos.com)" = "$before" ]
}
check 'a newer one is left alone' newer
label -
check 'one without our label is refused' refuses 'is there, but without our label' register
label =0
check 'and replaced once it is labelled' register

# shellcheck disable=SC2086
k delete crd $crds > /dev/null
both() {
	local first second
	register & first=$!
	register & second=$!
	wait "$first" && wait "$second" && k get sn,sp,ss -A
}
check 'two operators at once register them' both
nobody() {
	cp_kubeconfig nobody "$cp_port" "token: $(cp_jwt default default 600)" > "$work/nobody.kubeconfig"
	refuses 'our account may not; allow it, or apply' register "$work/nobody.kubeconfig"
}
# shellcheck disable=SC2086
k delete crd $crds > /dev/null
check 'an account that may not says what to do' nobody

plan
