# SPDX-License-Identifier: Apache-2.0
# Images of client software, made of this machine's own files, for scripts to source.

# client_image OUT PROGRAM|DIRECTORY…: an OCI archive OUT with these and the libraries that they need, and nothing else
client_image() {
	local out=$1 work rc=0; shift
	work=$(mktemp -d /var/tmp/qm-client-image.XXXXXX) || return 1
	mkdir -p "$work/root"/usr/{bin,sbin,lib,lib64} "$work/root"/{etc,proc,dev} &&
		ln -s usr/bin usr/sbin usr/lib usr/lib64 "$work/root/" &&
		echo 'root:x:0:0:root:/root:/bin/sh' > "$work/root/etc/passwd" && # iscsid asks who talks to it
		client_image_files "$@" | sort -u | while read -r file; do
			mkdir -p "$work/root$(dirname "$file")" && cp -a "$file" "$work/root$file" || exit 1
		done && tar -C "$work/root" -cf "$work/layer.tar" . &&
		/usr/bin/python3 "$(dirname "${BASH_SOURCE[0]}")/oci.py" "$out" "$work/layer.tar" || rc=1
	rm -rf "$work"
	return $rc
}
# What the words name, each link on the way with what it leads to, as real paths below /usr.
client_image_files() {
	local word file
	for word; do
		[ ! -d "$word" ] || { find "$word" ! -type d; find "$word" -name '*.so' -exec ldd {} + 2> /dev/null | sed -n 's,.*=> \(/[^ ]*\) .*,\1,p'; continue; }
		echo "$word"
		ldd "$word" 2> /dev/null | sed -n 's,^[^/]*\(/[^ ]*\) .*,\1,p'
	done | sort -u | while read -r file; do
		file=$(realpath "$(dirname "$file")")/${file##*/}
		echo "$file"
		[ ! -L "$file" ] || realpath "$file"
	done
}
