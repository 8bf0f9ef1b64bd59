# SPDX-License-Identifier: Apache-2.0
# Sourced by worker.sh: what must not be lost. Volumes that are archived under a name that was archived before, and
# files that two workers grow, in each layout. And what must not fill a pool: a tree that changes while it is copied.
files=$LAB/files
mkdir -p "$files"
in_box 1 mount -t glusterfs -o attribute-timeout=0,entry-timeout=0 "$(addr 1):/b" "$files"
# where an entry is, below the pool's root: PREFIX NAME [POOL]
spot() { (cd "$(brick 1 "${3:-b}")" && find "$1" -name "$2"); }

# ---- a name that comes again ------------------------------------------------------------------
put() { # NAME TEXT: into the volumes of that name, of both kinds
	sleep 1.5 # the mount takes a name for what it was for as long as a second
	in_box 1 bash -c "echo $2 | dd of=$files/$(spot virtblock "$1") conv=notrunc status=none && echo $2 >$files/$(spot subvol "$1")/text"
}
kept() { # NAME: what is in both, and of which size their infos say they are
	in_box 1 bash -c "head -n 1 $files/$(spot virtblock "$1") | tr -d '\0'; cat $files/$(spot subvol "$1")/text; jq .size $files/$(spot info/virtblock "$1.json") $files/$(spot info/subvol "$1.json")" | xargs
}
out=
for i in 1 2 3; do
	out+=$(printf '%s\n' "create b f:pvc-name 409$i" "create b pvc-name 409$i" | driver)
	put pvc-name "life-$i"
	out+=$(printf '%s\n' "archive b f:pvc-name" "archive b pvc-name" "archive b f:pvc-name" "archive b pvc-name" | driver)
done
is "$(grep -o ': rc 0' <<<"$out" | wc -l)" 18 "three volumes of one name, one after the other, are archived, each twice" || echo "# $out"
is "$(kept archived-pvc-name)" "life-1 life-1 4091 4091" "what was archived first is kept"
is "$(kept archived-pvc-name-2)" "life-2 life-2 4092 4092" "and what came then, under a name of its own"
is "$(kept archived-pvc-name-3)" "life-3 life-3 4093 4093" "and the third"
# as after a crash between the two renames: the info goes to its data
driver <<<$'create b f:pvc-name 4094\ncreate b pvc-name 4094' >/dev/null
put pvc-name life-4
for kind in virtblock subvol; do
	at=$(spot $kind pvc-name)
	in_box 1 mv -T "$files/$at" "$files/$(dirname "$at")/archived-pvc-name-4"
done
out=$(driver <<<$'archive b f:pvc-name\narchive b pvc-name')
is "$(grep -c ': rc 0' <<<"$out") $(kept archived-pvc-name-4)" "2 life-4 life-4 4094 4094" "one whose archiving was interrupted is archived whole" || echo "# $out"
is "$(cd "$(brick 1 b)" && find . -name '*pvc-name*' | wc -l)" 16 "and nothing else is left of them"
in_box 1 umount "$files"

# ---- a name that comes again while its remover is stopped ----------------------------------------
# One of an earlier leader is about to remove, grow or archive a volume, is frozen, and goes on when a later one's has removed it and made its
# successor: that stays what it is.
in_box 1 mount -t glusterfs -o attribute-timeout=0,entry-timeout=0 "$(addr 1):/b" "$files"
succeeded() { # WHERE KIND NAME TRAP ORDER
	local stopped
	driver <<<"create b $2$3@first 4096" >/dev/null
	stop_at 1 "$4" <<<"$5"
	ok "$3: a worker is stopped $1"
	out=$(QM_EPOCH=2 driver <<<"remove b $2$3@first
create b $2$3@second 8192")
	is "$(grep -c ': rc 0' <<<"$out")" 2 "$3: another removes it, and makes another of that name" || echo "# $out"
	sleep 1.5 # the mount takes a name for what it was for as long as a second
	[ -n "$2" ] && at=$(spot virtblock "$3") || at=$(spot subvol "$3")/text
	in_box 1 bash -c "echo successor | dd of=$files/$at conv=notrunc status=none"
	goes_on 1; wait $stopped
	sleep 1.5
	is "$(in_box 1 head -n 1 "$files/$at" | tr -d '\0') $(jq -c '[.size, .owner]' "$(brick 2 b)/$(spot info "$3.json")")" 'successor [8192,"second"]' "$3: when it goes on its successor stays" || sed 's/^/# /' "$LAB/epoch-1.out"
	out=$(QM_EPOCH=3 driver <<<"remove b $2$3@first
resize b $2$3@first 16384
create b $2$3@first 16384
resize b $2$3@second 9000
remove b $2$3@second
find b $2$3")
	is "$(sed -n 's/.*: rc \(-*[0-9]*\),.*/\1/p' <<<"$out" | xargs)" "0 -116 -116 0 0 -2" "$3: an order for the first does nothing to the second" || echo "# $out"
}
succeeded "before it moves the directory away" "" csi-data "stop glfs_h_rename csi-data 1" "remove b csi-data@first"
succeeded "before it moves the file away" f: csi-file "stop glfs_h_rename csi-file 1" "remove b f:csi-file@first"
succeeded "before it moves the info away" "" csi-info "stop glfs_h_rename csi-info.json 1" "remove b csi-info@first"
succeeded "before it writes a larger info" "" csi-grow "stop glfs_h_rename csi-grow.json.1.tmp 1" "resize b csi-grow@first 5000"
out=$(driver <<<"create b csi-old 4096
remove b csi-old@any
find b csi-old")
is "$(sed -n 's/.*: rc \(-*[0-9]*\),.*/\1/p' <<<"$out" | xargs)" "0 0 -2" "what versions before made has no owner, and is removed" || echo "# $out"
out=$(driver <<<"create b pvc-of-csi 4096
until snapshot b csi-snap@first 0 pvc-of-csi
remove b s:csi-snap@second
find b s:csi-snap
snapshot b csi-snap@second 0 pvc-of-csi
remove b s:csi-snap@first
find b s:csi-snap
remove b pvc-of-csi")
is "$(sed -n 's/.*: rc \(-*[0-9]*\),.*/\1/p' <<<"$out" | xargs)" "0 0 0 0 -116 0 -2 0" "a snapshot whose name comes again is its owner's too" || echo "# $out"
trash_settled() { [ -z "$(trash_of b)" ] && [ "$(find "$(brick 1 b)/.quartermaster-trash" -mindepth 1 | wc -l)" -le 1 ] || { driver <<<$'stat b\nsleep 500' >/dev/null; false; }; }
until_true 30 trash_settled
ok "of all these workers one place in the trash is left, and it is empty" || find "$(brick 1 b)/.quartermaster-trash" | sed 's/^/# /'
in_box 1 umount "$files"

# ---- a file that two workers grow --------------------------------------------------------------
for v in c d; do
	layout=$([ $v = c ] && echo "replica 3 arbiter 1" || echo "disperse 3 redundancy 1")
	gluster 1 volume create $v $layout "$(addr 1):$(brick 1 $v)" "$(addr 2):$(brick 2 $v)" "$(addr 3):$(brick 3 $v)" force >/dev/null &&
		gluster 1 volume start $v >/dev/null
	ok "volume $v: $layout"
done
MIB=1048576
# One of an earlier leader has seen the file, is frozen, and goes on when a later one's has grown it further.
grown_by_two() { # POOL: leaves $LAB/epoch-1.out
	local stopped
	stop_at 1 "stop glfs_h_open rw 1" <<<"resize $1 f:pvc-grown $((20 * MIB))" && driver <<<"resize $1 f:pvc-grown $((30 * MIB))"
	in_box 1 dd if=/dev/urandom of="$files/$(spot virtblock pvc-grown "$1")" bs=1M seek=29 count=1 conv=notrunc status=none
	in_box 1 sha256sum "$files/$(spot virtblock pvc-grown "$1")"
	goes_on 1
	wait $stopped
}
# the mount also takes a file for as long as it was for a second, so its length is asked for after that
for v in b c d; do
	in_box 1 mount -t glusterfs -o attribute-timeout=0,entry-timeout=0 "$(addr 1):/$v" "$files"
	out=$(driver <<<"create $v f:pvc-grown $((10 * MIB + 1))
create $v f:pvc-grown $((10 * MIB + 4097))
resize $v f:pvc-grown $((10 * MIB))")
	length() { sleep 1.5; in_box 1 stat -c %s "$files/$(spot virtblock pvc-grown $v)"; }
	is "$(grep -c ': rc 0' <<<"$out") $(length)" "3 $((10 * MIB + 4097))" "$v: a file is made, made longer to the byte, and not shorter" || echo "# $out"
	[ "$(du -k "$(brick 1 $v)/$(spot virtblock pvc-grown $v)" | cut -f1)" -lt 100 ]
	ok "$v: and has next to no blocks"
	in_box 1 cmp -n $((10 * MIB + 4097)) /dev/zero "$files/$(spot virtblock pvc-grown $v)"
	ok "$v: it is all zeros"
	out=$(grown_by_two $v)
	is "$(cat "$LAB/epoch-1.out" - <<<"$out" | grep -c 'rc 0') $(length)" "2 $((30 * MIB))" "$v: one that comes late does not cut what another made longer" || { echo "# $out"; sed 's/^/# /' "$LAB/epoch-1.out"; }
	grep -q "$(in_box 1 sha256sum "$files/$(spot virtblock pvc-grown $v)")" <<<"$out"
	ok "$v: nor what was written there"
	out=$(driver <<<"resize $v f:pvc-grown $((40 * MIB))")
	is "$(length)" $((40 * MIB)) "$v: and it grows further" || echo "# $out"
	in_box 1 umount "$files"
done

# ---- a tree that has no end -------------------------------------------------------------------
# Files that are moved ahead of the copy are in it again and again. Here nothing holds the volume to its size, so that
# many files stand for one that was met many times.
in_box 1 mount -t glusterfs -o attribute-timeout=0,entry-timeout=0 "$(addr 1):/b" "$files"
driver <<<"create b pvc-endless $MIB" >/dev/null
tree=$files/$(spot subvol pvc-endless)
in_box 1 bash -c "for i in \$(seq 7); do mkdir $tree/d\$i && head -c 3M /dev/urandom >$tree/d\$i/file; done; truncate -s 1G $tree/sparse"
out=$(driver <<<"until snapshot b snap-endless 0 pvc-endless
until snapshot b snap-endless 0 pvc-endless
find b s:snap-endless")
is "$(grep -c 'rc -16.*moved within the source' <<<"$out") $(grep -c '"ready":false' <<<"$out")" "2 1" "a tree that comes to far more than its size is not copied, nor when it goes on" || echo "# $out"
in_box 1 rm -r "$tree/d1" "$tree/d2"
out=$(driver <<<"until snapshot b snap-endless 0 pvc-endless")
is "$(grep -c 'rc 0' <<<"$out") $(find "$(brick 1 b)/$(spot snap snap-endless)" -name file | wc -l)" "1 5" "until it fits; what has gone from it is not in the copy" || echo "# $out"
driver <<<$'remove b s:snap-endless\nremove b pvc-endless' >/dev/null
in_box 1 umount "$files"
