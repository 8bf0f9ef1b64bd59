# SPDX-License-Identifier: Apache-2.0
# iSCSI targets of the guest's own kernel (LIO), for the scripts here to source.
lio=/sys/kernel/config/target
initiator=iqn.2026-01.net.example:host

# udev as a machine has it, and what belongs to an initiator, with a data base of the guest's own
lio_prepare() {
	modprobe -a target_core_mod iscsi_target_mod target_core_iblock loop iscsi_tcp sd_mod dm_multipath \
		dm_round_robin dm_service_time scsi_dh_alua &&
		{ mountpoint -q /sys/kernel/config || mount -t configfs config /sys/kernel/config; } &&
		{ [ -S /run/udev/control ] || /lib/systemd/systemd-udevd --daemon; } && rm -rf /etc/iscsi/nodes /etc/iscsi/ifaces &&
		mkdir -p /etc/iscsi/nodes /run/lock/iscsi && echo "InitiatorName=$initiator" > /etc/iscsi/initiatorname.iscsi
}
lio_start() { lio_prepare && iscsid; } # with the initiator's daemon
# lio_disk NAME SIZE SERIAL: a disk of its own loop device; the serial's first digits are in its WWN
lio_disk() {
	local loop dir=$lio/core/iblock_0/$1
	truncate -s "$2" "/run/$1.img" && loop=$(losetup -f --show "/run/$1.img") && mkdir -p "$dir" &&
		echo "udev_path=$loop" > "$dir/control" && echo 1 > "$dir/enable" && echo "$3" > "$dir/wwn/vpd_unit_serial"
}
# lio_target IQN PORTAL…: open to the guest's initiator
lio_target() {
	local tpg=$lio/iscsi/$1/tpgt_1 portal; shift
	mkdir -p "$tpg/acls/$initiator" || return 1
	for portal; do mkdir -p "$tpg/np/$portal" || return 1; done
	echo 0 > "$tpg/attrib/authentication" && echo 1 > "$tpg/enable"
}
# lio_lun IQN LUN DISK; lio_unlun IQN LUN
lio_lun() {
	local tpg=$lio/iscsi/$1/tpgt_1
	mkdir -p "$tpg/lun/lun_$2" && ln -s "$lio/core/iblock_0/$3" "$tpg/lun/lun_$2/" &&
		mkdir -p "$tpg/acls/$initiator/lun_$2" && ln -s "$tpg/lun/lun_$2" "$tpg/acls/$initiator/lun_$2/"
}
lio_unlun() {
	local tpg=$lio/iscsi/$1/tpgt_1 link
	for link in "$tpg/acls/$initiator/lun_$2/lun_$2" "$tpg/lun/lun_$2"/*; do [ ! -L "$link" ] || rm "$link"; done
	rmdir "$tpg/acls/$initiator/lun_$2" "$tpg/lun/lun_$2"
}
# lio_chap IQN USER PASSWORD [USER_IN PASSWORD_IN]
lio_chap() {
	local tpg=$lio/iscsi/$1/tpgt_1 acl=$lio/iscsi/$1/tpgt_1/acls/$initiator
	printf %s "$2" > "$acl/auth/userid" && printf %s "$3" > "$acl/auth/password" && echo 1 > "$tpg/attrib/authentication" || return 1
	[ $# -lt 5 ] || { printf %s "$4" > "$acl/auth/userid_mutual" && printf %s "$5" > "$acl/auth/password_mutual"; }
}
# lio_cut ADDRESS, lio_mend ADDRESS: a portal's machine is gone without a word, as when its power fails; it is back. Not 127.0.0.1.
lio_cut() { ip route add blackhole "$1/32" table local; }
lio_mend() { ip route del blackhole "$1/32" table local; }
lio_dead() { [ "$(grep -l offline /sys/block/sd*/device/state | wc -l)" = "$1" ]; } # so many paths, to the kernel
lio_grow() { # DISK SIZE
	truncate -s "$2" "/run/$1.img" && losetup -c "$(losetup -j "/run/$1.img" | cut -d : -f 1)"
}
multipathd_config() { # FIND_MULTIPATHS
	printf 'defaults {\n\tuser_friendly_names no\n\tfind_multipaths %s\n\tpolling_interval 1\n}\n' "$1" > /etc/multipath.conf
}
multipathd_start() {
	multipathd_config no && multipathd && wait_for 30 bash -c 'multipathd show daemon | grep -Eq "running|idle"'
}

# The volumes of the tests, and what they leave.
t1=iqn.2026-01.net.example:t1
t2=iqn.2026-01.net.example:t2

info() { # VOLUME TARGET LUN [MORE]
	printf '{"driverVolumeType":"ISCSI","data":{"volumeId":"%s","targetIqn":"%s","targetLun":"%s","targetPortal":"127.0.0.1:3260"%s}}\n' \
		"$1" "$2" "$3" "${4:+,$4}" > "/run/$1.json"
}
connect() { info "$@" && hostvol connect "/run/$1.json"; }
sessions() { ls /sys/class/iscsi_session 2> /dev/null | wc -l; }
disks() { ls -d /sys/block/sd* 2> /dev/null | wc -l; }
count() { [ "$($1)" = "$2" ] || { echo "$($1) $1, not $2"; return 1; }; }
device() { readlink -f "$(hostvol path "$1")"; }
maps() { ls -d /sys/block/dm-* 2> /dev/null | wc -l; }
nothing_left() { count maps 0 && count sessions 0 && count disks 0 && [ "$(hostvol list --json)" = "[]" ] && [ -z "$(find /etc/iscsi/nodes -type f)" ]; }
written() { dd if=/dev/urandom of=/run/data bs=1M count=4 status=none && dd if=/run/data of="$(device "$1")" bs=1M oflag=direct status=none && cmp -n 4194304 /run/data "/run/$2.img"; }
