#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# qm-gluster and its manager against a real GlusterFS of three boxes. worker.sh BUILD_DIR
cd "$(dirname "$0")/../.." || exit 1
BUILD=$(realpath "${1:-build}")
. tests/gluster/lib.sh

LOGS=$LAB/logs
mkdir -p "$LOGS"
# The driver runs beside the bricks of box 1; its script comes on standard input.
driver() { # [max [idle]]
	in_box 1 timeout 120 "$BUILD/tests/unit/worker/worker-driver" "$BUILD/src/worker/qm-gluster" "$LOGS" \
		"${1:-8}" "${2:-30000}" "$(addr 1)" "$(addr 2)" "$(addr 3)"
}
# workers that are stopped or killed where $LAB/trap says: see trap.c
trapped() {
	QM_DEADLINE_MS=110000 QM_WRAP="env ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0 LD_PRELOAD=$BUILD/tests/unit/worker/trap.so QM_TRAP=$LAB/trap" driver
}
soon() { local i; for ((i = 0; i < 400; i++)); do "$@" && return; sleep 0.05; done; false; }
worker_of() { pgrep -f "^[^ ]*qm-gluster --pool [bcd] .*$LOGS/.*--epoch $1 "; }
is_stopped() { local pid; pid=$(worker_of "$1") && grep -q '^State:.[Tt]' "/proc/$pid/status"; }
# The worker of that epoch is stopped; its driver, whose script is read here, is $stopped.
stop_at() { # EPOCH TRAP
	echo "$2" >"$LAB/trap"
	QM_EPOCH=$1 trapped <&3 >"$LAB/epoch-$1.out" &
	stopped=$!
	soon is_stopped "$1" || { sed 's/^/# /' "$LAB/epoch-$1.out"; false; }
} 3<&0
goes_on() { kill -CONT "$(worker_of "$1")"; }
brick() { echo "$LAB/box$1/state/$2"; }

lab_up 3
for i in 1 2 3; do
	in_box $i glusterd -N -p /run/gluster/glusterd.pid \
		--xlator-option management.glusterd-sockfile=/run/gluster/glusterd.socket </dev/null >/dev/null 2>&1 &
	disown $!
done
until_true 20 gluster 1 peer probe "$(addr 2)" >/dev/null 2>&1
until_true 20 gluster 1 peer probe "$(addr 3)" >/dev/null 2>&1
connected() { [ "$(gluster 1 peer status | grep -c Connected)" = 2 ]; }
until_true 20 connected
for v in a b; do
	gluster 1 volume create $v replica 3 "$(addr 1):$(brick 1 $v)" "$(addr 2):$(brick 2 $v)" \
		"$(addr 3):$(brick 3 $v)" force >/dev/null && gluster 1 volume start $v >/dev/null
	ok "volume $v is there" || { echo "Bail out! no volume"; exit 1; }
done

# ---- create, remove, archive ------------------------------------------------------------------
PV=pvc-b219f250-ff12-49d0-8049-21c69641f87a
out=$(printf '%s\n' "create a $PV 1048576" "create a $PV 2097152" "list a" "stat a" | driver)
is "$(grep -c 'rc 0' <<<"$out")" 4 "create, create again, list, stat"
for i in 1 2 3; do [ -d "$(brick $i a)/subvol/46/fc/$PV" ] || false; done
ok "the directory is where Kadalu has it, on every brick"
is "$(cat "$(brick 2 a)/info/subvol/46/fc/$PV.json")" '{"size":2097152,"path_prefix":"subvol/46/fc","kind":"d"}' "the info file has the new size"
is "$(stat -c %a "$(brick 1 a)/subvol/46/fc/$PV")" 755 "mode 755"
grep -q "\"name\":\"$PV\",\"kind\":\"d\",\"size\":2097152,\"ready\":true" <<<"$out"
ok "list names it"
[ ! -e "$(brick 1 a)/stat.db" ]
ok "no stat.db"

# As after a worker that was killed while two of three bricks had made a directory: it becomes one, not two.
gfid() { getfattr -n trusted.gfid -e hex "$1" 2>/dev/null | sed -n "s/^trusted.gfid=0x//p"; }
printf '%s\n' "create b $PV 1048576" | driver > /dev/null
for d in subvol/46/fc/$PV subvol/46/fc; do
	id=$(gfid "$(brick 3 b)/$d" | sed -E 's/^(.{8})(.{4})(.{4})(.{4})(.{12})$/\1-\2-\3-\4-\5/')
	rm -r "$(brick 3 b)/$d" "$(brick 3 b)/.glusterfs/${id:0:2}/${id:2:2}/$id"
done
out=$(printf '%s\n' "create b $PV 1048576" | driver)
is "$(grep -c 'rc 0' <<<"$out")" 1 "a directory that is missing on a brick: the volume is made" || echo "# $out"
same() { [ "$(gfid "$(brick 3 b)/$1")" = "$(gfid "$(brick 1 b)/$1")" ]; }
for d in subvol/46/fc/$PV subvol/46/fc; do
	until_true 30 same "$d"
	ok "it is the same one on all bricks"
done

# ---- in two halves -----------------------------------------------------------------------------
HALF=pvc-00000000-0000-4000-8000-00000000half
where=$(driver <<<"make a $HALF" >/dev/null; cd "$(brick 1 a)/subvol" && find . -name "$HALF")
for i in 1 2 3; do [ -d "$(brick $i a)/subvol/$where" ] || false; done
ok "the first half is the directory, on every brick"
[ -n "$where" ] && [ ! -e "$(brick 1 a)/info/subvol/$where.json" ]
ok "without an info file"
out=$(printf '%s\n' "make a $HALF" "list a" "find a $HALF" "copy a pvc-clone 5 $HALF" "complete a pvc-missing 5" "complete a $HALF 4711" "complete a $HALF 4711" "list a" "make a f:$HALF" | driver)
is "$(grep -c "^list.*$HALF" <<<"$out")" 1 "it is listed when it is complete" || echo "# $out"
is "$(grep -cE "^make a $HALF: rc 0|^complete a $HALF: rc 0" <<<"$out")" 3 "each half can be done again"
is "$(grep -cE "^find a $HALF: rc -2|^copy a pvc-clone: rc -11|^complete a pvc-missing: rc -2|^make a f:$HALF: rc -95" <<<"$out")" 4 "half of one is not found, and not copied yet; what is missing is not completed" || echo "# $out"
is "$(jq -c '[.size, .path_prefix]' "$(brick 3 a)/info/subvol/$where.json")" "[4711,\"$(dirname "subvol/${where#./}")\"]" "the info file has its size"
[ -z "$(find "$(brick 1 a)" -name 'pvc-missing*')" ]
ok "nothing was made of what is missing"
out=$(printf '%s\n' "make a pvc-half-grown" "resize a pvc-half-grown 99" "make a pvc-half-gone" "remove a pvc-half-gone" "complete a pvc-half-gone 5" "list a" "remove a $HALF" "remove a pvc-half-grown" | driver)
is "$(grep -c 'rc 0' <<<"$out")" 7 "half of one is resized, which completes it, and removed" || echo "# $out"
grep -q '"name":"pvc-half-grown","kind":"d","size":99' <<<"$out" && ! grep -q '^list.*pvc-half-gone' <<<"$out"
ok "with that size, and without a trace"

mnt=$LAB/mnt
mkdir -p "$mnt"
in_box 1 mount -t glusterfs "$(addr 1):/a" "$mnt"
deep=$mnt/subvol/46/fc/$PV
in_box 1 bash -c "for i in \$(seq 1 200); do echo x >$deep/f\$i; done; cd $deep; for i in \$(seq 1 40); do mkdir d; cd d; echo y >f; done; ln -s /etc/passwd $deep/link"
out=$(printf '%s\n' "remove a $PV" "remove a $PV" "create a pvc-keep 5" "archive a pvc-keep" "archive a pvc-keep" "sleep 500" | driver)
is "$(grep -c 'rc 0' <<<"$out")" 5 "remove and archive, each twice"
[ ! -e "$(brick 1 a)/subvol/46/fc/$PV" ] && [ ! -e "$(brick 1 a)/info/subvol/46/fc/$PV.json" ]
ok "directory and info file are gone at once"
# but for a worker's own directory
trash_of() { find "$(brick 1 "$1")/.quartermaster-trash" -mindepth 1 ! -name 'worker-*'; }
trash_empty() { [ -z "$(trash_of a 2>/dev/null)" ] || { echo "sleep 1000" | cat - <(echo "stat a") <(echo "sleep 2000") | driver >/dev/null; false; }; }
until_true 60 trash_empty
ok "the trash is emptied, a deep tree and a symbolic link in it too, resumed by the next worker"
[ -e /etc/passwd ] && [ -d "$(find "$(brick 1 a)/subvol" -name archived-pvc-keep)" ]
ok "an archived volume stays, nothing outside was touched"
is "$(find "$(brick 1 a)/subvol" -name pvc-keep | wc -l)" 0 "and not under its old name"

# ---- a planted symbolic link ------------------------------------------------------------------
mkdir -p "$LAB/outside"
in_box 1 bash -c "mkdir -p $mnt/subvol/20 && mkdir $mnt/elsewhere && ln -s ../../elsewhere $mnt/subvol/20/36"
EVIL=pvc-d6e49018-4ddb-40c2-b36c-0e718fee9c26
out=$(printf '%s\n' "create a $EVIL 5" "remove a $EVIL" "create a ../x 5" "create a a/b 5" | driver)
is "$(grep -c "rc -20.*symbolic link" <<<"$out")" 2 "a symbolic link at a hash directory is refused"
is "$(grep -c "rc -22" <<<"$out")" 2 "names with a path in them are refused"
is "$(ls "$(brick 1 a)/elsewhere" | wc -l)" 0 "nothing went through it"
in_box 1 rm "$mnt/subvol/20/36"
in_box 1 bash -c "rm $mnt/.quartermaster-sync && ln -s elsewhere/victim $mnt/.quartermaster-sync"
out=$(driver <<<"make a pvc-unsynced")
grep -q "rc -22.*not a plain file" <<<"$out" && [ -z "$(ls "$(brick 1 a)/elsewhere")" ]
ok "nor is one where a file of ours is" || echo "# $out"
in_box 1 rm "$mnt/.quartermaster-sync"

# ---- ephemeral volumes, which machines make -----------------------------------------------------
# Each is used by a machine whose clock is what it may be; how long one has not been used is what a worker saw, not what that clock says.
eph=$mnt/ephemeral
in_box 1 bash -c "mkdir -p $eph/n1 $eph/n2 && truncate -s 7 $eph/n1/csi-used $eph/n1/csi-behind $eph/n1/csi-ahead $eph/n1/csi-back $eph/n2/csi-lost &&
	touch -d '8 days ago' $eph/n1/csi-behind $eph/n2/csi-lost && touch -d '8 days' $eph/n1/csi-ahead && ln -s /etc $eph/n3"
out=$(printf '%s\n' "list a" "list a" | driver)
is "$(grep -o '"name":"csi-[a-z]*","kind":"e","size":7,"ready":true,"node":"n[12]"' <<<"$out" | sort | uniq -c | grep -c '^ *2 ')" 5 "all that are there count as content, whatever the clock of who uses them says" || echo "# $out"
# as if it had been seen for more than a week, an hour ago
seen_before() { # FILE
	in_box 1 setfattr -n user.quartermaster.seen -v "$(in_box 1 getfattr --only-values -n user.quartermaster.seen "$1" | awk '{ $4 -= 3700; $5 = 604801; print }')" "$1"
}
seen_before "$eph/n2/csi-lost"
seen_before "$eph/n1/csi-back"
in_box 1 touch -d '9 days ago' "$eph/n1/csi-back"
out=$(printf '%s\n' "list a" "list a" | driver)
grep -q csi-lost <<<"$out"
is $? 1 "one whose time has not changed for a week does not" || echo "# $out"
is "$(cd "$(brick 1 a)/ephemeral" && find . -name 'csi-*' | sort | xargs)" "./n1/csi-ahead ./n1/csi-back ./n1/csi-behind ./n1/csi-used" "and is removed; one that is used again is not"
in_box 1 rm -r "$mnt/ephemeral"

# ---- kill -9 in the middle, then again --------------------------------------------------------
# by the log directory, which is this run's alone; fails where there was none
kill_workers() {
	local pids
	pids=$(pgrep -f "^[^ ]*qm-gluster --pool .*$LOGS/") && kill -9 $pids
}
fail=0
for i in 1 2 3 4 5 6; do
	(sleep "0.0$((RANDOM % 9))"; kill_workers) &
	killer=$!
	driver <<<"create a pvc-kill-$i 77" >/dev/null
	wait $killer
	out=$(driver <<<"create a pvc-kill-$i 77")
	grep -q "rc 0" <<<"$out" || { fail=1; echo "# $out"; }
	info=$(find "$(brick 1 a)/info" -name "pvc-kill-$i.json")
	grep -q '"size":77' "$info" || fail=1
	[ "$(find "$(brick 1 a)/subvol" -name "pvc-kill-$i" -type d | wc -l)" = 1 ] || fail=1
done
[ $fail = 0 ]
ok "killed in the middle of a create, the retry completes it"

fail=0
for i in 1 2 3 4; do
	(sleep "0.0$((RANDOM % 9))"; kill_workers) &
	killer=$!
	driver <<<"make a pvc-halved-$i" >/dev/null
	wait $killer
	out=$(printf '%s\n' "make a pvc-halved-$i" "complete a pvc-halved-$i 78" | driver)
	[ "$(grep -c "rc 0" <<<"$out")" = 2 ] || { fail=1; echo "# $out"; }
	grep -q '"size":78' "$(find "$(brick 1 a)/info" -name "pvc-halved-$i.json")" || fail=1
done
[ $fail = 0 ]
ok "killed in the middle of a half, the same"

out=$(driver <<<"bench a 64 16 make")
grep -q "failed 0" <<<"$out" && [ "$(find "$(brick 2 a)/subvol" -name 'pvc-bench-*' | wc -l)" = 64 ]
ok "many at once share their syncs" || echo "# $out"
syncs=$(stat -c %s "$(brick 2 a)/.quartermaster-sync")
[ "$syncs" -gt 0 ] && [ "$syncs" -lt 64 ]
ok "of which there were fewer than volumes ($syncs)"

. tests/gluster/worker_files.sh
. tests/gluster/worker_copies.sh

# ---- idle, and how many -----------------------------------------------------------------------
workers_alive() { pgrep -cf "^[^ ]*qm-gluster --pool .*$LOGS/"; }
alive() { [ "$(workers_alive)" = "$1" ]; }
(printf '%s\n' "create a pvc-idle 5" "create b pvc-idle 5" "sleep 12000") | driver 8 4000 >/dev/null &
until_true 20 alive 2
two=$(workers_alive)
until_true 20 alive 0
none=$(workers_alive)
wait $!
is "$two $none" "2 0" "two workers for two pools, none after the idle time"

# ---- speed ------------------------------------------------------------------------------------
for t in 1 8; do
	out=$(driver <<<"bench b 200 $t")
	echo "# $t threads: $out"
	grep -q "failed 0" <<<"$out"
	ok "200 creates from $t threads"
done

# ---- a hung pool ------------------------------------------------------------------------------
in_box 1 umount "$mnt"
hang=()
for i in 1 2 3; do
	for p in $(lab_pids "${LAB_BOXES[$i]}"); do
		case $(tr '\0' ' ' <"/proc/$p/cmdline" 2>/dev/null) in *glusterfsd*"/state/a "* | *glusterfsd*-s*a.*-state-a*) hang+=("$p") ;; esac
	done
done
[ ${#hang[@]} = 3 ]
ok "found the three bricks of pool a"
start=$SECONDS
out=$( (
	echo "create a pvc-before 5"
	echo "create b pvc-before 5"
	sleep 1
	kill -STOP "${hang[@]}"
	echo "bg create a pvc-hung 5"
	for i in 1 2 3 4 5; do echo "create b pvc-free-$i 5"; done
	echo "join"
) | driver)
kill -CONT "${hang[@]}"
echo "$out" | sed 's/^/# /'
slow=$(grep 'pvc-free' <<<"$out" | sed 's/.*rc 0, \([0-9]*\) ms.*/\1/' | sort -n | tail -1)
[ "${slow:-99999}" -lt 3000 ] && [ "$(grep -c 'pvc-free.*rc 0' <<<"$out")" = 5 ]
ok "a hung pool delays no other (slowest $slow ms)"
grep -q "create a pvc-hung: rc -110" <<<"$out" && [ $((SECONDS - start)) -lt 45 ]
ok "the hung call ends at its deadline"
out=$(driver <<<"create a pvc-hung 5")
grep -q "rc 0" <<<"$out"
ok "and works again once the bricks do"
plan
