# SPDX-License-Identifier: Apache-2.0
# NVMe subsystems of the guest's own kernel (nvmet over TCP), for the scripts here to source.
nvmet=/sys/kernel/config/nvmet

nvmet_start() {
	modprobe -a nvmet nvmet_tcp nvme_tcp loop && { mountpoint -q /sys/kernel/config || mount -t configfs config /sys/kernel/config; } &&
		{ [ -S /run/udev/control ] || /lib/systemd/systemd-udevd --daemon; } && mkdir -p /etc/nvme &&
		echo nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555 > /etc/nvme/hostnqn &&
		echo 11111111-2222-3333-4444-555555555555 > /etc/nvme/hostid
}
nvmet_subsystem() { mkdir "$nvmet/subsystems/$1" && echo 1 > "$nvmet/subsystems/$1/attr_allow_any_host"; }
# nvmet_namespace NQN NUMBER DISK SIZE UUID
nvmet_namespace() {
	local ns=$nvmet/subsystems/$1/namespaces/$2 loop
	[ -e "/run/$3.img" ] || truncate -s "$4" "/run/$3.img" || return 1
	loop=$(losetup -j "/run/$3.img" | cut -d : -f 1)
	[ -n "$loop" ] || loop=$(losetup -f --show "/run/$3.img") || return 1
	mkdir "$ns" && printf %s "$loop" > "$ns/device_path" && echo "$5" > "$ns/device_uuid" && echo 1 > "$ns/enable"
}
nvmet_unnamespace() { echo 0 > "$nvmet/subsystems/$1/namespaces/$2/enable" && rmdir "$nvmet/subsystems/$1/namespaces/$2"; }
# nvmet_port NUMBER ADDRESS NQN…; its service is 4420, or $nvmet_service
nvmet_port() {
	local port=$nvmet/ports/$1 family=ipv4 nqn
	[[ $2 != *:* ]] || family=ipv6
	mkdir "$port" && echo tcp > "$port/addr_trtype" && echo $family > "$port/addr_adrfam" && echo "$2" > "$port/addr_traddr" &&
		echo "${nvmet_service:-4420}" > "$port/addr_trsvcid" || return 1
	shift 2
	for nqn; do ln -s "$nvmet/subsystems/$nqn" "$port/subsystems/" || return 1; done
}
nvmet_grow() { # NQN NUMBER DISK SIZE
	truncate -s "$4" "/run/$3.img" && losetup -c "$(losetup -j "/run/$3.img" | cut -d : -f 1)"
}
# nvmet_access PORT STATE: of all namespaces that are reached through the port
nvmet_access() { echo "$2" > "$nvmet/ports/$1/ana_groups/1/ana_state"; }
