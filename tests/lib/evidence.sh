# SPDX-License-Identifier: Apache-2.0
# What an instance on this machine says of itself when a check has failed, for whoever reads the log afterwards: it is
# printed once, below the first "not ok". Source it after tap.sh; needs QM_STATE_DIR, QM_RUN_DIR and quartermaster.
evidence() {
	local box name
	{ quartermaster get sp -o json; quartermaster get sn -o json; } | jq -r '.items[] | "\(.kind) \(.metadata.name) \(.metadata.deletionTimestamp // "") \(.status.phase) \(.status.message // "")",
		(.status.bricks // [] | .[] | "  brick \(.id) online \(.online) pending \(.pending)")'
	quartermaster get lease -o json | jq -r '.items[] | "lease \(.metadata.name) \(.spec.holderIdentity) \(.spec.renewTime)"' | grep cluster-
	for box in "$QM_RUN_DIR"/boxes/*.mnt; do
		name=$(basename "$box" .mnt)
		echo "== $name"
		tail -n 4 "$QM_STATE_DIR/log/agent-$name.log"
		nsenter --net="${box%.mnt}.net" --mount="$box" timeout 20 gluster --mode=script pool list | tail -n +2
		nsenter --net="${box%.mnt}.net" --mount="$box" timeout 20 gluster --mode=script volume status | grep -E '^(Brick|Self-heal|Another|Error|Locking)'
		grep -h ' [EC] \[' "$QM_STATE_DIR/boxes/$name/log/glusterd.log" | grep -v gf_get_hostname_from_ip | tail -n 4 | cut -c 1-300
	done
	pgrep -af 'gluster --mode=script'
}
