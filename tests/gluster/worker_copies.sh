# SPDX-License-Identifier: Apache-2.0
# Sourced by worker.sh: volumes of each kind, snapshots of them, and what is made from those; pool b.
acl=$LAB/acl
mkdir -p "$acl"
in_box 1 mount -t glusterfs -o acl,attribute-timeout=0,entry-timeout=0 "$(addr 1):/b" "$acl"
# where a volume is, below the pool's root
at() { (cd "$(brick 1 b)" && find "$1" -mindepth 3 -maxdepth 3 -name "$2"); }
# of a whole volume only its info file is in the pool
where() { if [ "$1" = whole ]; then (cd "$(brick 1 b)/info" && find whole -name "$2.json" | sed 's/\.json$//'); else at "$@"; fi; }
info() { cat "$(brick "${3:-1}" b)/info/$(where "$1" "$2").json"; }
print_tree() { in_box 1 python3 "$PWD/tests/gluster/tree_print.py" "$acl/$1" "$(brick 2 b)/$1"; }
sum() { python3 tests/gluster/tree_print.py "$(brick 2 b)/$1" "$(brick 2 b)/$1"; }
allocated() { du -k "$(brick 1 b)/$1" | cut -f1; }

# ---- each kind --------------------------------------------------------------------------------
out=$(driver <<'EOT'
create b pvc-dir 1048576
create b f:pvc-file 268435456
create b b:pvc-block 134217728
create b f:pvc-file 1048576
find b f:pvc-file
find b pvc-dir
find b pvc-file
resize b f:pvc-file 299892736
resize b f:pvc-file 1048576
resize b pvc-dir 2097152
resize b b:pvc-none 5
create b w:pvc-whole 5
find b b:pvc-block
create b b:pvc-old 4096
archive b b:pvc-old
create b f:pvc-gone 4096
remove b f:pvc-gone
find b f:pvc-gone
list b
EOT
)
is "$(grep -c ': rc 0' <<<"$out")" 16 "volumes of four kinds are made, found, grown, archived, removed" || echo "$out" | sed 's/^/# /'
is "$(grep -c 'rc -2,' <<<"$out")" 3 "one of another kind or name is none"
grep -q '"name":"pvc-file","kind":"f","size":268435456,"ready":true' <<<"$out"
ok "making one again makes it no smaller"
is "$(for i in 1 2 3; do stat -c %s:%a "$(brick $i b)/$(at virtblock pvc-file)"; done | sort -u)" 299892736:600 "the file is as long, on every brick"
[ "$(allocated "$(at virtblock pvc-file)")" -lt 100 ]
ok "and has no blocks"
is "$(info rawblock pvc-block | tr -d '"')" "{size:134217728,path_prefix:$(dirname "$(at rawblock pvc-block)"),kind:b}" "the info file says where and what"
grep -q '"name":"archived-pvc-old","kind":"b"' <<<"$out" && [ -n "$(at rawblock archived-pvc-old)" ]
ok "an archived file stays"

# ---- a tree of everything ---------------------------------------------------------------------
dir=$(at subvol pvc-dir)
in_box 1 bash -c "cd $acl/$dir && chmod 2770 . && chown 33:44 . &&
	mkdir -p many deep/\$(seq -s/ 1 12) empty secret && chmod 700 secret && chmod 1777 empty &&
	for i in \$(seq 15); do echo \$i >many/f\$i; done &&
	head -c 300000 /dev/urandom >random && truncate -s 1G sparse && head -c 100000 /dev/urandom | dd of=sparse bs=1M seek=700 conv=notrunc status=none &&
	echo end | dd of=sparse bs=1 seek=1073741820 conv=notrunc status=none &&
	ln random many/linked && ln random deep/linked && ln -s /etc/passwd absolute && ln -s ../../../.. up && ln absolute many/link2 &&
	mknod null c 1 3 && mknod disk b 7 9 && mkfifo -m 640 fifo && python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")' &&
	echo x >'odd
name' && printf 'y' >suid && chown 12:34 suid && chmod 6755 suid && chown -h 5:6 absolute &&
	setfattr -n user.colour -v blue random && setfattr -n user.dir -v yes deep &&
	setfacl -m u:77:rw random && setfacl -d -m g:88:rx deep && touch deep/inherits && touch -d '2001-02-03 04:05:06.789012345' many/f7 && touch -hd 1999-01-01 up && touch -d 2002-03-04 empty"
ok "a tree with everything in it" || exit 1
tree=$(print_tree "$dir")
is "$(wc -l <<<"$tree")" 47 "which can be read"
out=$(driver <<<"until snapshot b snap-1 0 pvc-dir
snapshots b
snapshot b snap-1 0 f:pvc-file
snapshot b snap-2 0 pvc-none
snapshot b snap-1 0 pvc-dir")
grep -q '^snapshot b snap-1: rc 0, .*"name":"snap-1","kind":"d","size":2097152,"ready":true,"source":"pvc-dir","created":"20[0-9T:-]*Z"}$' <<<"$out"
ok "a snapshot of it" || echo "# $out"
is "$(grep -c 'rc -17' <<<"$out") $(grep -c 'rc -2,' <<<"$out") $(grep -c 'rc 0' <<<"$out")" "1 1 3" "its name is its own, a missing source is said, and asking again is fine"
print_tree "$(at snap snap-1)" | diff <(echo "$tree") - | head -5 | sed 's/^/# /' ; [ "${PIPESTATUS[1]}" = 0 ]
ok "all of the tree is in the snapshot"
[ "$(allocated "$(at snap snap-1)/sparse")" -lt 1024 ]
ok "a sparse file stays sparse ($(allocated "$(at snap snap-1)/sparse") KiB)"
is "$(for i in 1 2 3; do (cd "$(brick $i b)/$(at snap snap-1)" && find . -type f -size -2M -print0 | sort -z | xargs -0 sha256sum | sha256sum); done | sort -u | wc -l)" 1 "and the same on every brick"

# ---- restore, clone ---------------------------------------------------------------------------
in_box 1 bash -c "cd $acl/$dir && rm -rf many && echo other >random && touch new"
changed=$(print_tree "$dir")
out=$(driver <<<"create b pvc-other 5
copy b pvc-other 2097152 s:snap-1
copy b pvc-small 1000 s:snap-1
copy b f:pvc-kind 2097152 s:snap-1
until copy b pvc-restored 3145728 s:snap-1
until copy b pvc-clone 2097152 pvc-dir
find b pvc-restored
create b pvc-restored 3145728")
is "$(grep -c 'rc 0' <<<"$out") $(grep -c 'rc -17' <<<"$out") $(grep -c 'rc -22' <<<"$out")" "5 1 2" "restored and cloned; not into what is there, smaller or of another kind" || echo "# $out"
grep -q '"name":"pvc-restored","kind":"d","size":3145728,"ready":true,"source":"snap-1","sourceKind":"s"' <<<"$out"
ok "a copy says what it is of"
[ "$(print_tree "$(at subvol pvc-restored)")" = "$tree" ]
ok "what was restored is what was"
[ "$(print_tree "$(at subvol pvc-clone)")" = "$changed" ]
ok "the clone is what is"

# ---- files, and one that is written to --------------------------------------------------------
file=$(at virtblock pvc-file)
in_box 1 bash -c "for i in 0 40 90 150 200 280; do head -c 4M /dev/urandom | dd of=$acl/$file bs=1M seek=\$i conv=notrunc status=none; done"
want=$(sum "$file")
[[ $want =~ ^299892736\ [0-9a-f]{64}$ ]]
ok "a file with something in it"
out=$(driver <<<"until snapshot b snap-file 0 f:pvc-file")
is "$(sum "$(at snap snap-file)")" "$want" "a snapshot of a file" || echo "# $out"
[ "$(allocated "$(at snap snap-file)")" -lt 102400 ]
ok "which stays sparse ($(allocated "$(at snap snap-file)") KiB)"
touch "$LAB/go"
in_box 1 bash -c "while [ -e $LAB/go ]; do echo x | dd of=$acl/$file bs=1 seek=299892700 conv=notrunc status=none; done" &
writer=$!
out=$(driver <<<"until copy b f:pvc-torn 299892736 f:pvc-file")
rm "$LAB/go"; wait $writer
grep -q "rc -16.*written to" <<<"$out"
ok "a file that is written to has no copy" || echo "# $out"
want=$(sum "$file")
out=$(driver <<<"until copy b f:pvc-torn 299892736 f:pvc-file")
is "$(sum "$(at virtblock pvc-torn)")" "$want" "until nobody writes" || echo "# $out"

# ---- kill -9 in the middle --------------------------------------------------------------------
# of a file that takes longer than a quick machine needs to get to it
driver <<<"create b f:pvc-big 299892736" >/dev/null
in_box 1 bash -c "head -c 220M /dev/urandom | dd of=$acl/$(at virtblock pvc-big) bs=1M conv=notrunc iflag=fullblock status=none"
out=$(driver <<<"until snapshot b snap-big 0 f:pvc-big")
want=$(sum "$(at virtblock pvc-big)")
is "$(sum "$(at snap snap-big)")" "$want" "a snapshot of a larger file" || echo "# $out"
# Whenever it is said to be ready it is complete; what was interrupted goes on. Where that is, trap.c tells.
killed() { # NAME SOURCE WANT PRINT WHERE TRAP...
	local name=$1 source=$2 want=$3 print=$4 where=$5 volume=b
	[ "$where" = whole ] && volume=${name#*:}
	shift 5
	printf '%s\n' "$@" >"$LAB/trap"
	out=$(trapped <<<"until copy b $name 299892736 $source")
	is "$(sed 's/: rc \(-*[0-9]*\),.*/ \1/' <<<"$out") $(wc -l <"$LAB/trap")" "copy b $name 0 0" "killed while copying ($# times), it goes on" || echo "# $out"
	# of what a killed client did, a brick may have only half; that is healed every ten minutes, or when somebody asks for it
	gluster 1 volume heal "$volume" >/dev/null
	until_true 30 whole_again
	ok "and is complete in the end" || $print "$(where "$where" "${name#*:}")" | diff <(echo "$want") - | head -5 | sed 's/^/# /'
}
whole_again() { [ "$($print "$(where "$where" "${name#*:}")")" = "$want" ]; }
killed f:pvc-kill-file s:snap-big "$want" sum virtblock "kill glfs_h_creat_open pvc-kill-file 1" "cut glfs_pwrite - 30" "cut glfs_pwrite - 60" "kill glfs_h_rename *.tmp 2"
# what it finds complete it does not make again: of each call there are fewer in the next run
tree_traps=("kill glfs_h_mkdir [!.]* 2" "cut glfs_h_creat_open f* 5" "kill glfs_h_setattrs - 3" "cut glfs_fsync - 3")
killed pvc-kill-tree s:snap-1 "$tree" print_tree subvol "${tree_traps[@]}"
links_gone() { [ -z "$(ls -A "$(brick 1 b)/.quartermaster-copy"; trash_of b)" ] || { driver <<<$'stat b\nsleep 500' >/dev/null; false; }; }

# ---- a worker of an earlier leader ------------------------------------------------------------
# One that is stopped in the middle is passed by; when it goes on, it neither completes nor damages the copy.
inode() { stat -c %i "$(brick 1 b)/$(at "$1" "$2")"; }
overtaken() { # TRAP KIND-PREFIX NAME SOURCE WANT PRINT
	local stopped before
	stop_at 1 "$1" <<<"until copy b $3 299892736 $4"
	ok "a worker is stopped while it makes ${3#*:}"
	before=$(inode "$2" "${3#*:}")
	out=$(QM_EPOCH=2 driver <<<"until copy b $3 299892736 $4")
	is "$(sed 's/: rc \(-*[0-9]*\),.*/ \1/' <<<"$out")" "copy b $3 0" "passed by, the copy is completed by the next leader's worker" || echo "# $out"
	goes_on 1; wait $stopped
	[ "$before" != "$(inode "$2" "${3#*:}")" ] && info "$2" "${3#*:}" | grep -q '"epoch":2.*"ready":true'
	ok "which began anew" || info "$2" "${3#*:}" | sed 's/^/# /'
	[ "$($6 "$(at "$2" "${3#*:}")")" = "$5" ]
	ok "and is what it should be, when the other has gone on"
}
overtaken "stop glfs_pwrite - 40" virtblock f:pvc-fenced s:snap-big "$want" sum
overtaken "stop glfs_h_creat_open f7 1" subvol pvc-fenced-tree s:snap-1 "$tree" print_tree
# One that is stopped right before it throws away what such a worker left does not throw what is completed meanwhile.
late="until copy b f:pvc-late 299892736 s:snap-big"
stop_at 1 "stop glfs_pwrite - 40" <<<"$late"
first=$stopped
stop_at 2 "stop glfs_h_rename pvc-late 1" <<<"$late"
ok "a worker is stopped while it takes over what another was stopped at"
out=$(QM_EPOCH=3 driver <<<"$late")
before=$(inode virtblock pvc-late)
goes_on 2; wait $stopped
goes_on 1; wait $first
is "$(inode virtblock pvc-late) $(sum "$(at virtblock pvc-late)") $(info virtblock pvc-late | grep -c '"epoch":3.*"ready":true')" "$before $want 1" "a third completes it, and when they go on it stays" || { echo "# $out"; sed 's/^/# /' "$LAB/epoch-2.out"; }
driver <<<"remove b f:pvc-late" >/dev/null
given_object() { info virtblock pvc-given 2>/dev/null | grep -q '"object"'; }
QM_EPOCH=3 driver < <(echo "copy b f:pvc-given 299892736 s:snap-big"; soon given_object) >/dev/null
before=$(inode virtblock pvc-given)
given=$(info virtblock pvc-given)
out=$(QM_EPOCH=4 driver <<<"until copy b f:pvc-given 299892736 s:snap-big")
grep -q '"ready":true' <<<"$given" || ! grep -q epoch <<<"$given"
ok "a worker that ends gives back what it was making" || echo "# $given"
is "$(inode virtblock pvc-given) $(sum "$(at virtblock pvc-given)")" "$before $want" "and the next one goes on with it" || echo "# $out"
out=$(QM_EPOCH=1 driver <<<"remove b f:pvc-fenced
archive b pvc-fenced-tree
remove b f:pvc-given")
is "$(grep -c 'rc 0' <<<"$out")" 3 "a lease that counts from the beginning again leaves nothing stuck" || echo "# $out"

. tests/gluster/worker_wholes.sh

# ---- a hostile tree, and a copy that is not wanted any more -----------------------------------
touch "$LAB/go"
in_box 1 bash -c "mkdir $acl/secret-place && echo key >$acl/secret-place/key; cd $acl/$dir && while [ -e $LAB/go ]; do
	mkdir -p swap/in; echo 1 >swap/in/key; mv swap swapped; ln -s ../../../../secret-place swap; ln -s ../../../../secret-place/key swapped/in/k; rm swap; rm -r swapped; done" 2>/dev/null &
writer=$!
out=$(driver <<<"until copy b pvc-hostile-1 2097152 pvc-dir
bg until copy b pvc-hostile-2 2097152 pvc-dir
bg until copy b pvc-hostile-3 2097152 pvc-dir
join")
rm "$LAB/go"; wait $writer
is "$(grep -c 'rc 0' <<<"$out")" 3 "a tree in which links are swapped in is copied" || echo "# $out"
leaked=$(for i in 1 2 3; do find "$(brick 1 b)/$(at subvol pvc-hostile-$i)" -type f -name key -exec grep -l '^key$' {} +; done)
is "$leaked" "" "and nothing from outside of it"

out=$(driver <<<"copy b pvc-unwanted 2097152 s:snap-1
find b pvc-unwanted
create b pvc-unwanted 2097152
resize b pvc-unwanted 3097152
copy b pvc-twice 2097152 pvc-unwanted
remove b pvc-unwanted
find b pvc-unwanted
remove b s:snap-1
remove b s:snap-1
snapshots b
sleep 500")
is "$(sed -n 's/.*: rc \(-*[0-9]*\),.*/\1/p' <<<"$out" | xargs) $(grep -c '^find.*"ready":false' <<<"$out")" "1 0 -17 -17 -11 0 -2 0 0 0 1" "a copy that is removed while it is made is gone" || echo "$out" | sed 's/^/# /'
is "$(at subvol pvc-unwanted)$(at snap snap-1)" "" "with its data, and a snapshot too"
until_true 20 links_gone
ok "nothing else is left of the copies" || ls -laR "$(brick 1 b)/.quartermaster-copy" "$(brick 1 b)/.quartermaster-trash" | head -20 | sed 's/^/# /'
in_box 1 umount "$acl"
