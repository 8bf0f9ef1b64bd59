# SPDX-License-Identifier: Apache-2.0
# An SMB server of the guest's own (Samba), for the scripts here to source: share data for root with $password, share
# open for everybody to read, both of /run/share.
samba_start() {
	mkdir -p /run/samba /run/smb/{private,lock,state,cache,rpc} /run/share/vol-a /run/share/vol-b || return
	cat > /run/smb/smb.conf <<-END
		[global]
		server role = standalone server
		server min protocol = SMB2
		private dir = /run/smb/private
		lock directory = /run/smb/lock
		state directory = /run/smb/state
		cache directory = /run/smb/cache
		pid directory = /run/smb
		ncalrpc dir = /run/smb/rpc
		log file = /run/smb/log
		interfaces = lo
		bind interfaces only = yes
		disable netbios = yes
		smb ports = 445
		load printers = no
		disable spoolss = yes
		map to guest = Bad User
		[data]
		path = /run/share
		read only = no
		[open]
		path = /run/share
		guest ok = yes
		read only = yes
	END
	printf '%s\n%s\n' "$password" "$password" | smbpasswd -c /run/smb/smb.conf -a -s root &&
		modprobe cifs && smbd -D -s /run/smb/smb.conf
}
samba_listens() { (: < /dev/tcp/127.0.0.1/445); }
