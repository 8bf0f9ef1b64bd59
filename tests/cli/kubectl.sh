#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A stock kubectl against the embedded API.
. "${0%/*}/lib.sh"
if ! command -v kubectl >/dev/null; then
	echo '1..0 # SKIP kubectl is missing'
	exit 0
fi
start_api
k() { run kubectl --kubeconfig "$QM_STATE_DIR/admin.kubeconfig" "$@"; }

cat >"$DIR/node.yaml" <<'YAML'
apiVersion: "coreos.com/v1"
kind: StorageNode
metadata:
  name: storage-node1
spec:
  type: glusterfs
  devices: [/dev/vdb]
YAML
cat >"$DIR/claim.yaml" <<'YAML'
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
YAML

k api-resources
ok 'api-resources' all 'exits 0' 'shows storagenodes' 'shows storageclasses'
k apply -f "$DIR/node.yaml" -f "$DIR/claim.yaml"
ok 'apply creates' all 'exits 0' 'shows "storage-node1 created"' 'shows "data created"' 'says "$out"'
sed -i s/vdb/vdc/ "$DIR/node.yaml"
sed -i s/1Gi/2Gi/ "$DIR/claim.yaml"
k apply -f "$DIR/node.yaml" -f "$DIR/claim.yaml"
ok 'apply changes, by merge patch and by strategic merge patch' all 'exits 0' 'shows "storage-node1 configured"' \
	'shows "data configured"' '! mentions warning'
k apply --server-side --force-conflicts -f "$DIR/claim.yaml"
ok 'server-side apply' exits 0
sed 's/devices/devicess/' "$DIR/node.yaml" >"$DIR/strict.yaml"
k apply -f "$DIR/strict.yaml"
ok 'unknown fields are refused' all '! exits 0' 'mentions devicess'
k get storagenodes
ok 'get prints our columns' shows 'NAME            TYPE        STATUS    ADDRESS   ZONE   DEVICES   AGE'
k get pvc data
ok 'and those of its own kinds' shows 'NAME   STATUS    VOLUME   CAPACITY   ACCESS MODES   STORAGECLASS   VOLUMEATTRIBUTESCLASS   AGE'
k explain storagenode.spec.glusterfs
ok 'explain' all 'exits 0' 'shows "zone	<integer>"'
k explain pvc.spec.resources
ok 'explain of a built-in kind' all 'exits 0' 'shows "requests	<map[string]Quantity>"'
k describe storagenode storage-node1
ok 'describe' all 'exits 0' 'shows /dev/vdc'
k describe pvc data
ok 'describe of a claim' all 'exits 0' 'shows "Used By:       <none>"'
export EDITOR="sed -i s/vdc/vdd/"
k edit storagenode storage-node1
ok 'edit' all 'exits 0' 'shows edited'
k wait pvc data --for=jsonpath='{.status.phase}'=Pending --timeout=5s
ok 'wait' exits 0
k label storagenode storage-node1 a=b
k get sn -l a=b -o name
ok 'labels' says storagenode.coreos.com/storage-node1
k delete storagenode storage-node1
ok 'delete' exits 0
k get storagenode storage-node1
ok 'and gone it is' all 'exits 1' 'mentions NotFound'

done_testing
