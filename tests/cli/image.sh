#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# OCI images as client containers are made of: unpacked once, layer upon layer, each blob only if it is what its digest
# says, and never a file outside of the image's own root, whatever its layers hold. Prints TAP.
set -u
here=$(dirname "$(realpath "$0")")
. "$here/../lib/tap.sh"
build=$(realpath "${QM_BUILD:-$here/../../build}")
IMAGE=$build/src/containers/qm-image
[ $EUID = 0 ] || { skip "images" "needs root"; plan; exit; }
dir=$(mktemp -d /tmp/qm-image.XXXXXX)
trap 'rm -rf "$dir"' EXIT

# layers OUT.tar: members from lines "PATH KIND [TARGET OR TEXT]", in that order and as they are named
layer() {
	/usr/bin/python3 -c '
import io, sys, tarfile
kinds = {"dir": tarfile.DIRTYPE, "link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE, "file": tarfile.REGTYPE}
with tarfile.open(sys.argv[1], sys.argv[2]) as tar:
    for line in sys.stdin:
        path, kind, *rest = line.split()
        info = tarfile.TarInfo(path)
        info.type = kinds[kind]
        info.mode = 0o755 if kind == "dir" else 0o4711 if path.endswith("setuid") else 0o644
        data = (" ".join(rest) + "\n").encode() if kind == "file" else b""
        info.size = len(data)
        info.linkname = rest[0] if kind in ("link", "hard") else ""
        tar.addfile(info, io.BytesIO(data))' "$1" "${2:-w}"
}
image() { "$here/../lib/oci.py" "$@"; }
unpack() { "$IMAGE" "$1" "$dir/store"; }
root() { unpack "$1" | jq -r .rootfs; }
has() { [ "$(cat "$r/$1")" = "$2" ] || { ls -l "$r/$1"; return 1; }; }
lacks() { [ ! -e "$r/$1" ] && [ ! -L "$r/$1" ]; }
count() { [ "$(find "$dir/store" -mindepth 1 -maxdepth 1 | wc -l)" = "$1" ] || { ls "$dir/store"; return 1; }; }

layer "$dir/a.tar" << END
usr dir
usr/lib dir
lib link usr/lib
lib/low file low
keep/deep/file file kept
gone/file file gone
opaque/old file old
opaque/olddir/x file old
file file first
was-dir/x file x
was-file file x
was-link link /etc
setuid file s
naïve file utf8
END
layer "$dir/b.tar.gz" w:gz << END
.wh.gone file
opaque/new file new
opaque/.wh..wh..opq file
file file second
hard hard file
lib/high file high
was-dir file now-a-file
was-file dir
was-file/in file in
was-link dir
was-link/in file in
/absolute file below
END
check "an archive of two layers" image "$dir/one.oci" "$dir/a.tar" "$dir/b.tar.gz"
check "is unpacked" unpack "$dir/one.oci"
r=$(root "$dir/one.oci")
check "the upper layer's file" has file second
check "a hard link" has hard second
check "what only the lower has" has keep/deep/file kept
check "through a link of the lower layer" has usr/lib/high high
check "a whiteout" lacks gone
check "an opaque directory loses what was below" lacks opaque/old
check "with its directories" lacks opaque/olddir
check "and keeps what stands in the layer before its mark" has opaque/new new
check "a directory becomes a file" has was-dir now-a-file
check "a file a directory" has was-file/in in
check "a link a directory, and is not followed" bash -c "[ ! -L $r/was-link ] && [ ! -e /etc/in ] && [ -f $r/was-link/in ]"
check "an absolute name is the image's" has absolute below
check "modes" [ "$(stat -c %a "$r/setuid")" = 4711 ]
check "a name in UTF-8" has naïve utf8
check "whiteouts are no files" [ -z "$(find "$r" -name '.wh.*')" ]
check "its environment is told" bash -c "'$IMAGE' '$dir/one.oci' '$dir/store' | jq -e '.env | index(\"FROM=image\")'"
ino=$(stat -c %i "$r/file")
check "once more: nothing is unpacked again" bash -c "'$IMAGE' '$dir/one.oci' '$dir/store' > /dev/null && [ \$(stat -c %i '$r/file') = $ino ]"
check "nothing else is left in the store" count 1
check "the same image as a directory" image "$dir/layout/" "$dir/a.tar" "$dir/b.tar.gz"
check "is the same" [ "$(root "$dir/layout/")" = "$r" ]

echo "# hostile"
mkdir "$dir/outside" && echo mine > "$dir/outside/victim"
attack() { # NAME PATTERN, layers in $@: refused or harmless, and nothing outside is touched
	local name=$1 pattern=$2; shift 2
	image "$dir/evil.oci" "$@" || return 1
	"$IMAGE" "$dir/evil.oci" "$dir/evil" > "$dir/said" 2>&1
	local rc=$?
	[ "$(cat "$dir/outside/victim") $(ls "$dir/outside")" = "mine victim" ] || { echo "touched"; ls -l "$dir/outside"; return 1; }
	[ ! -e "$dir/evil/escaped" ] && [ ! -e "$dir/escaped" ] && [ ! -e /tmp/qm-image-escaped ] || { echo "escaped"; return 1; }
	if [ "$pattern" ]; then [ $rc != 0 ] && grep -Eq "$pattern" "$dir/said"; else [ $rc = 0 ]; fi || { cat "$dir/said"; return 1; }
	! compgen -G "$dir/evil/new.*" || { echo "left"; return 1; }
}
layer "$dir/dots.tar" <<< "../../escaped file x"
check "a name with .." attack dots '\.\.' "$dir/dots.tar"
layer "$dir/link.tar" << END
out link $dir/outside
up link ../../../../../../../..$dir/outside
END
layer "$dir/through.tar" << END
out/victim file theirs
up/new file theirs
END
check "through links of a layer below" attack through "Failed to create dir" "$dir/link.tar" "$dir/through.tar"
layer "$dir/same.tar" << END
out link $dir/outside
out/victim file theirs
END
check "through a link of the same layer" attack same "Failed to create dir" "$dir/same.tar"
layer "$dir/wipe.tar" << END
out/.wh.victim file
up/.wh..wh..opq file
END
check "whiteouts through links" attack wipe "" "$dir/link.tar" "$dir/wipe.tar"
layer "$dir/parent.tar" <<< "x/.wh... file"
check "a whiteout of .." attack parent 'hides no file' "$dir/link.tar" "$dir/parent.tar"
layer "$dir/hard.tar" <<< "hard hard $dir/outside/victim"
check "a hard link to a file outside" attack hard . "$dir/hard.tar"
layer "$dir/late.tar" << END
d link $dir/outside
f hard d/victim
END
check "a hard link through a link" attack late . "$dir/late.tar"

echo "# damaged"
damaged() { # the last byte of the largest blob changes
	local blob
	rm -rf "$dir/bad" && cp -r "$dir/layout" "$dir/bad" && rm -rf "$dir/evil" || return 1
	blob=$(ls -S "$dir"/bad/blobs/sha256/* | head -n 1) && printf X | dd of="$blob" bs=1 seek=$(($(stat -c %s "$blob") - 1)) conv=notrunc status=none
}
damaged
check "a blob that is not its digest" refuses "damaged" "$IMAGE" "$dir/bad" "$dir/evil"
check "is not kept" [ -z "$(ls "$dir/evil")" ]
rm "$(ls -S "$dir"/bad/blobs/sha256/* | head -n 1)"
check "a blob that is missing" refuses "lacks the blob" "$IMAGE" "$dir/bad" "$dir/evil"
jq '.manifests[0].digest = "sha256:../../../../etc/passwd"' "$dir/layout/index.json" > "$dir/bad/index.json"
check "a digest that is a path" refuses "digest" "$IMAGE" "$dir/bad" "$dir/evil"
jq '.manifests += .manifests' "$dir/layout/index.json" > "$dir/bad/index.json"
check "two images" refuses "holds 2 images" "$IMAGE" "$dir/bad" "$dir/evil"
layer "$dir/other.tar" <<< "file file x"
foreign() { QM_OCI_ARCH=mips64 image "$dir/other.oci" "$dir/other.tar" && "$IMAGE" "$dir/other.oci" "$dir/evil"; }
check "an image for other machines" refuses "is for mips64 machines" foreign
check "no image at all" refuses "no index.json" "$IMAGE" "$dir/a.tar" "$dir/evil"
echo nonsense > "$dir/text"
check "no archive" refuses "$dir/text" "$IMAGE" "$dir/text" "$dir/evil"
check "no file" refuses "No such file" "$IMAGE" "$dir/none" "$dir/evil"
plan
