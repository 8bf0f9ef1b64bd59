#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The life of objects, through the command and a real API.
. "${0%/*}/lib.sh"

run "$QM" get pvc
ok 'without a store the next command is named' all 'exits 5' 'mentions "quartermaster up"'

start_api

cat >"$DIR/node.yaml" <<'YAML'
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
YAML
cat >"$DIR/claim.yaml" <<'YAML'
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: data
spec:
  accessModes: [ReadWriteMany]
  resources:
    requests:
      storage: 1Gi
YAML

run "$QM" apply -f "$DIR/node.yaml" --dry-run
ok 'apply --dry-run says what would be' all 'exits 0' 'says "storagenode.coreos.com/storage-node1 created (dry run)"'
run "$QM" get storagenode storage-node1
ok 'and leaves nothing' exits 3

run "$QM" apply -f "$DIR"
ok 'a directory is applied' all 'exits 0' 'shows "persistentvolumeclaim/data created"' \
	'shows "storagenode.coreos.com/storage-node1 created"'
run "$QM" apply -f "$DIR"
ok 'twice is the same as once' all 'exits 0' 'shows "storage-node1 unchanged"' 'shows "data unchanged"'
run bash -c "sed s/vdd/vde/ '$DIR/node.yaml' | '$QM' apply -f -"
ok 'a change from standard input' all 'exits 0' 'says "storagenode.coreos.com/storage-node1 configured"'
run "$QM" get sn storage-node1 -o json
ok 'takes the old device away' all 'shows /dev/vde' '! shows /dev/vdd'

run "$QM" get storagenodes
ok 'a table' all 'exits 0' 'shows "NAME            TYPE        STATUS    ADDRESS        ZONE   DEVICES   AGE"' \
	'shows "storage-node1   glusterfs   Pending   10.10.10.100   1      0/3"'
run "$QM" get pvc -A
ok 'of all namespaces' shows 'default     data   Pending'
run "$QM" get sn -o name
ok 'names' says storagenode.coreos.com/storage-node1
run "$QM" get sn storage-node1 -o yaml
ok 'YAML that can be applied again' all 'shows "kind: StorageNode"' '! shows managedFields'
run "$QM" describe pvc data
ok 'describe' all 'exits 0' 'shows "Kind:         PersistentVolumeClaim (v1)"' 'shows "Events: none"'
run "$QM" explain storagenode.spec.glusterfs.zone
ok 'explain' all 'exits 0' 'shows "Default: 1"'
run "$QM" status
ok 'status' all 'exits 0' 'shows "storage-node1   Pending"' 'shows "Claims: 0 bound, 1 pending"'
run "$QM" plan
ok 'plan' all 'exits 0' 'shows "has not reported yet"'
run "$QM" support-bundle -o "$DIR/bundle.tar.gz"
ok 'support-bundle' exits 0
run tar tzf "$DIR/bundle.tar.gz"
ok 'can be read by tar' all 'exits 0' 'shows objects/storagenodes.yaml' 'shows versions.txt' '! shows secrets'

run "$QM" wait pvc data --for=phase=Bound --timeout=200ms
ok 'wait times out with what it saw' all 'exits 6' 'mentions "phase is Pending"'
(sleep 0.5; "$QM" delete sn storage-node1 >/dev/null) &
run "$QM" wait sn storage-node1 --for=delete --timeout=10s
wait $!
ok 'wait sees the end of an object' all 'exits 0' 'says "storagenode.coreos.com/storage-node1 is gone"'

timeout 5 "$QM" get pvc -w >"$DIR/watched" 2>&1 &
watcher=$!
sleep 0.5
sed 's/name: data/name: more/' "$DIR/claim.yaml" | "$QM" apply -f - >/dev/null
for _ in $(seq 40); do
	grep -q '^more ' "$DIR/watched" && break
	sleep 0.05
done
kill "$watcher" 2>/dev/null
wait "$watcher" 2>/dev/null
out=$(cat "$DIR/watched") err= code=0
ok 'get -w prints what comes' shows 'more   Pending'

run "$QM" delete -f "$DIR/claim.yaml"
ok 'delete by file' all 'exits 0' 'shows "persistentvolumeclaim/data deleted"'
run "$QM" delete pvc data
ok 'what is not there cannot be deleted' exits 3
run "$QM" delete pvc data --ignore-not-found
ok 'unless that is fine' exits 0

stop_api
run "$QM" get pvc
ok 'a store that is down is told from one that refuses' all 'exits 5' 'mentions "does not answer; run: quartermaster up"'
start_api
run "$QM" get pvc more
ok 'and has forgotten nothing when it is back' exits 0

done_testing
