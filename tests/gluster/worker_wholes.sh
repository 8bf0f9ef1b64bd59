# SPDX-License-Identifier: Apache-2.0
# Sourced by worker_copies.sh: whole volumes, which are Gluster volumes of their own, as source and target of copies; pool b.
whole_up() {
	gluster 1 volume create "$1" replica 3 "$(addr 1):$(brick 1 "$1")" "$(addr 2):$(brick 2 "$1")" "$(addr 3):$(brick 3 "$1")" force &&
		gluster 1 volume start "$1" && mkdir "$LAB/$1" &&
		in_box 1 mount -t glusterfs -o acl,attribute-timeout=0,entry-timeout=0 "$(addr 1):/$1" "$LAB/$1"
}
# called with the path of its info file, or with its name
print_whole() { local v=${1##*/}; in_box 1 python3 "$PWD/tests/gluster/tree_print.py" "$LAB/$v" "$(brick 2 "$v")"; }
wholes=(pvc-w1 pvc-w2 pvc-w3 pvc-w4)
for v in "${wholes[@]}"; do whole_up $v >/dev/null || break; done
ok "four Gluster volumes beside the pool"

out=$(driver <<<"until copy b w:pvc-w1 3145728 s:snap-1
until copy b w:pvc-w2 3145728 w:pvc-w1
until snapshot b snap-w 0 w:pvc-w2
until copy b pvc-of-snap 3145728 s:snap-w
until copy b pvc-of-w 3145728 w:pvc-w1
find b w:pvc-w1
snapshots b
copy b f:pvc-no 299892736 w:pvc-w1
copy b w:pvc-no 299892736 f:pvc-file
copy b w:pvc-w1 3145728 w:pvc-w2")
is "$(grep -c 'rc 0' <<<"$out") $(grep -c 'rc -22' <<<"$out") $(grep -c 'rc -17' <<<"$out")" "7 2 1" "trees are copied into whole volumes, from one to another, and out of them; files are not" || echo "$out" | sed 's/^/# /'
grep -q '"name":"pvc-w1","kind":"w","size":3145728,"ready":true,"source":"snap-1","sourceKind":"s"' <<<"$out" && grep -q '"name":"snap-w","kind":"w"' <<<"$out"
ok "what they are of is said"
for v in pvc-w1 pvc-w2; do
	print_whole $v | diff <(echo "$tree") - | head -5 | sed 's/^/# /'; [ "${PIPESTATUS[1]}" = 0 ]
	ok "$v is the tree, its root too"
	is "$(in_box 1 ls -A "$LAB/$v" | grep -c quartermaster)" 0 "with nothing of ours in it"
done
for v in snap/snap-w subvol/pvc-of-snap subvol/pvc-of-w; do
	[ "$(print_tree "$(at ${v%/*} ${v#*/})")" = "$tree" ]
	ok "and so is $v"
done

killed w:pvc-w3 s:snap-1 "$tree" print_whole whole "${tree_traps[@]}" "cut glfs_h_rename [!.p]* 3" "kill glfs_h_rename [!.p]* 3" "kill glfs_h_unlink [!.p]* 1" "kill glfs_h_unlink .quartermaster-copy 1" "kill glfs_h_setattrs - 1"

# One that is stopped and passed by damages nothing when it goes on, wherever it was: not what another worker makes, and not what
# is written to the volume when that one is done.
alike() { for i in 1 2 3; do (cd "$(brick $i "$1")" && find . -path ./.glusterfs -prune -o -printf '%P %y %m %U %G\n' | sort && find . -path ./.glusterfs -prune -o -type f -size -2M -print0 | sort -z | xargs -0 sha256sum) | sha256sum; done | sort -u | wc -l; }
rooted() { # all but the root's time, which a directory of ours that is made too late and removed again changes
	print_whole pvc-w4 | sed "1s/ [0-9]* \$//"
}
w4="remove b w:pvc-w4
until copy b w:pvc-w4 299892736 s:snap-1"
passed_by() { # WHERE TRAP
	local stopped before
	stop_at 1 "$2" <<<"$w4"
	out=$(QM_EPOCH=2 driver <<<"until copy b w:pvc-w4 299892736 s:snap-1")
	[[ $out =~ ^copy\ b\ w:pvc-w4:\ rc\ 0, ]] && [ "$(print_whole pvc-w4)" = "$tree" ]
	ok "stopped $1: another worker completes it" || echo "# $out"
	in_box 1 bash -c "cd $LAB/pvc-w4 && echo mine >random && echo too >suid && rm many/f1 && mkdir app && touch app/new && rmdir secret"
	before=$(rooted)
	goes_on 1; wait $stopped
	is "$(rooted | diff <(echo "$before") -) $(in_box 1 ls -A "$LAB/pvc-w4" | grep -c quartermaster) $(alike pvc-w4) $(info whole pvc-w4 | grep -c '"epoch":2.*"ready":true')" " 0 1 1" "when it goes on nothing changes" || sed 's/^/# /' "$LAB/epoch-1.out"
}
passed_by "before it has written the info" "stop glfs_h_rename *.json.1.tmp 1"
passed_by "before it makes its place" "stop glfs_h_mkdir .quartermaster-copy 1"
passed_by "while it clears the root" "stop glfs_h_rename [!.p]* 3"
passed_by "while it copies" "stop glfs_h_creat_open f7 1"
passed_by "before it says that it moves" "stop glfs_h_rename *.json.1.tmp 3"
# The root is empty from here on: the first renames are those of the move.
clear_w4() { in_box 1 find "$LAB/pvc-w4" -mindepth 1 -delete; }
clear_w4
passed_by "after 4 renames" "stop glfs_h_rename [!.p]* 5"
clear_w4
passed_by "before it says that it is ready" "stop glfs_h_rename *.json.1.tmp 4"
# One that ends gives its copy back, and the next goes on at the same place.
touch "$LAB/go"
stop_at 3 "stop glfs_h_creat_open f7 1" < <(echo "${w4/until /}"; while [ -e "$LAB/go" ]; do sleep 0.2; done)
rm "$LAB/go"; sleep 1; goes_on 3; wait $stopped
given=$(info whole pvc-w4)
out=$(QM_EPOCH=4 driver <<<"until copy b w:pvc-w4 299892736 s:snap-1")
is "$(jq -c '[has("place"), has("epoch"), .ready]' <<<"$given") $(info whole pvc-w4 | jq -c '[.object, .ready, has("place")]')" "[true,false,false] $(jq -c '[.object, true, false]' <<<"$given")" "what is given back is gone on with" || echo "# $out"
[ "$(print_whole pvc-w4)" = "$tree" ]
ok "and complete in the end"
# Both are stopped while they move, and the first, which is not asked again, goes on first.
clear_w4
touch "$LAB/go"
stop_at 1 "stop glfs_h_rename [!.p]* 5" < <(echo "${w4/until /}"; while [ -e "$LAB/go" ]; do sleep 0.2; done)
first=$stopped
stop_at 2 "stop glfs_h_rename [!.p]* 9" <<<"until copy b w:pvc-w4 299892736 s:snap-1"
ok "two are stopped while they move"
goes_on 1; sleep 2; rm "$LAB/go"; wait $first
goes_on 2; wait $stopped
is "$(sed 's/: rc \(-*[0-9]*\),.*/ \1/' "$LAB/epoch-2.out") $(alike pvc-w4) $(print_whole pvc-w4 | diff <(echo "$tree") - | head -5)" "copy b w:pvc-w4 0 1 " "and the later one's copy is complete" || sed 's/^/# /' "$LAB/epoch-2.out"

in_box 1 mkdir "$LAB/pvc-w2/.quartermaster-copy"
out=$(driver <<<"create b w:pvc-w5 5
resize b w:pvc-w5 3145728
archive b w:pvc-w5
find b w:pvc-w5
remove b w:pvc-w4
until copy b w:pvc-w4 3145728 w:pvc-w2
$(for v in "${wholes[@]}"; do echo "remove b w:$v"; done)
remove b s:snap-w
list b")
is "$(sed -n 's/.*: rc \(-*[0-9]*\),.*/\1/p' <<<"$out" | xargs)" "0 0 0 -2 0 -22 0 0 0 0 0 0" "names of ours at the top of a source are refused; what the pool knows of them is removed, and kept of one that is archived" || echo "$out" | sed 's/^/# /'
grep -q '"name":"archived-pvc-w5","kind":"w","size":3145728' <<<"$out" && [ -z "$(where whole pvc-w1)" ]
ok "the Gluster volumes are not the worker's to remove"
for v in "${wholes[@]}"; do in_box 1 umount "$LAB/$v"; gluster 1 volume stop $v force >/dev/null && gluster 1 volume delete $v >/dev/null; done
