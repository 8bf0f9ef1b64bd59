#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What may become a brick: every kind of signature is refused, in one sentence, and stays untouched.
# agent_devices.sh [BUILD_DIR]
# timeout: 300
cd "$(dirname "$0")/../.." || exit 1
BUILD=$(realpath "${1:-${QM_BUILD:-build}}")
. tests/gluster/lib.sh
driver=$BUILD/tests/unit/agent/agent-driver
probe() { "$driver" probe device "$1"; }

# What stands in a sparse file, and where.
content() {
	python3 - "$1" <<-'END'
		import hashlib, os, sys
		h, at = hashlib.sha256(), 0
		f = os.open(sys.argv[1], os.O_RDONLY)
		size = os.fstat(f).st_size
		while at < size:
		    try: at = os.lseek(f, at, os.SEEK_DATA)
		    except OSError: break
		    end = os.lseek(f, at, os.SEEK_HOLE)
		    while at < end:
		        block = os.pread(f, min(1 << 20, end - at), at)
		        if block.strip(b'\0'): h.update(b'%d' % at + block)
		        at += len(block)
		print(h.hexdigest())
	END
}

# A RAID superblock, version 1.2, by its format: mdadm makes one only where the kernel has RAID.
md_superblock() {
	python3 - "$1" <<-'END'
		import os, struct, sys
		sb = bytearray(4096)
		struct.pack_into('<IIII16s32s', sb, 0, 0xa92b4efc, 1, 0, 0, os.urandom(16), b'host:0')
		struct.pack_into('<Q', sb, 144, 8)  # where it stands, in sectors
		total = sum(struct.unpack_from('<64I', sb))
		struct.pack_into('<I', sb, 216, ((total & 0xffffffff) + (total >> 32)) & 0xffffffff)
		with open(sys.argv[1], 'r+b') as f:
		    f.seek(4096)
		    f.write(sb)
	END
}

# refused NAME REASON MAKE...: MAKE (with @ for the device) puts something on a fresh device
refused() {
	local name=$1 reason=$2 before after said
	shift 2
	loop_make "$name" 1100M
	if ! "${@//@/$REPLY}" > "$LAB/out" 2>&1; then
		sed 's/^/# /' "$LAB/out"
		false
		ok "$name: made"
		return
	fi
	sync
	before=$(content "$LAB/$name.img")
	said=$(probe "$REPLY")
	[[ $said == "Refused $reason "* ]] || { echo "# said: $said"; false; }
	ok "$name is refused ($reason)"
	after=$(content "$LAB/$name.img")
	is "$after" "$before" "$name is untouched"
}

[ -c /dev/loop-control ] || { echo "1..0 # SKIP no loop devices"; exit 0; }
loop_make empty 1100M
is "$(probe "$REPLY")" "Available  " "an empty device can be used"
empty=$REPLY

refused ext4 Signature mkfs.ext4 -q -F @
refused xfs Signature mkfs.xfs -q -f @
refused btrfs Signature mkfs.btrfs -q -f @
refused vfat Signature mkfs.vfat @
refused gpt Signature sgdisk -o @
refused dos Signature parted -s @ mklabel msdos
refused swap Signature mkswap @
refused luks Signature sh -c 'printf secret | cryptsetup luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 @ -'
refused lvm Signature env DM_DISABLE_UDEV=1 pvcreate -y @
refused md Signature md_superblock @

loop_make small 512M
[[ $(probe "$REPLY") == "Refused TooSmall "* ]]
ok "a device below 1 GiB is refused"
[[ $(probe /dev/no-such-device) == "Missing NotFound "* ]]
ok "a missing device is missing"
[[ $(probe /etc/passwd) == "Refused NotABlockDevice "* ]]
ok "a file is not a device"
loop_make used 1100M
mkfs.xfs -q -f "$REPLY" && mkdir "$LAB/mnt" && mount "$REPLY" "$LAB/mnt"
[[ $(probe "$REPLY") == "Refused InUse "* ]]
ok "a mounted device is in use"
umount "$LAB/mnt"

mkdir "$LAB/dir"
[[ $("$driver" probe directory "$LAB/dir") == Available* ]]
ok "a directory can be used"
[[ $("$driver" probe directory "$LAB/dir/new") == Available* ]]
ok "so can one that is still to be made"
[[ $("$driver" probe directory "$LAB/dir/no/such") == Missing* ]]
ok "but not below a directory that is missing"
ln -s "$LAB/dir" "$LAB/link"
[[ $("$driver" probe directory "$LAB/link") == "Refused SymbolicLink "* ]]
ok "no symbolic link is followed"
[[ $("$driver" probe directory "$LAB/link/new") == "Refused SymbolicLink "* ]]
ok "nor one on the way"
touch "$LAB/file"
[[ $("$driver" probe directory "$LAB/file") == "Refused NotADirectory "* ]]
ok "a file is not a directory"
mkdir -p "$LAB/other/.quartermaster-b-1/brick/x"
echo '{}' > "$LAB/other/.quartermaster-b-1/.quartermaster.json"
[[ $("$driver" probe directory "$LAB/other/.quartermaster-b-1/brick/x") == "Refused InsideBrick "* ]]
ok "nor a directory inside another brick"
is "$(probe "$empty")" "Available  " "looking changed nothing"
plan
