/* SPDX-License-Identifier: Apache-2.0 */
#include "clients/protocols.h"

#include "base/mem.h"

#define WORDS(...) ((const char *const[]){ __VA_ARGS__, NULL })

/*
 * Records are written by hostvol on the machine and read by iscsiadm in the container; the lock is
 * that of an iscsiadm on the machine. multipathd is always the machine's.
 */
static const struct client_path iscsi_paths[] = {
	{ "/sys" },
	{ "/etc/iscsi", .make = true },
	{ "/var/lib/iscsi" },
	{ "/run/lock", .make = true },
	{ "/run/udev", .read_only = true },
	{ "/lib/modules", .read_only = true },
	{ "/etc/multipath" },
	{ "/etc/multipath.conf", .read_only = true, .file = true },
	{ 0 },
};

static const struct client_daemon iscsid = {
	.argv = WORDS("iscsid", "-f"),
	.socket = "ISCSIADM_ABSTRACT_NAMESPACE",
	.users = "/sys/class/iscsi_session",
};

/*
 * Protocols that are missing here need no program: NVMe-oF, Fibre Channel, RBD and AoE are files
 * that hostvol writes to (/dev/nvme-fabrics, sysfs), so the machine's kernel is their client.
 */
const struct client_protocol client_protocols[] = {
	{ .name = "glusterfs",
	  .programs = WORDS("glusterfs"),
	  .packages = "glusterfs-client",
	  .own = WORDS("/var/lib/glusterd", "/var/log/glusterfs"),
	  .pid = true },
	{ .name = "nfs",
	  .programs = WORDS("mount.nfs"),
	  .packages = "nfs-common",
	  .helpers = WORDS("rpc.statd"),
	  .own = WORDS("/var/lib/nfs") },
	{ .name = "smb", .programs = WORDS("mount.cifs"), .packages = "cifs-utils" },
	{ .name = "quobyte", .programs = WORDS("mount.quobyte"), .packages = "quobyte-client" },
	{ .name = "iscsi",
	  .programs = WORDS("iscsiadm", "multipath"),
	  .packages = "open-iscsi, multipath-tools",
	  .paths = iscsi_paths,
	  .daemon = &iscsid,
	  .ipc = true },
	{ 0 },
};

_Static_assert(ARRAY_SIZE(client_protocols) <= CLIENT_PROTOCOLS_MAX + 1, "too many protocols");

const struct client_protocol *client_protocol_find(const char *name)
{
	for (const struct client_protocol *p = client_protocols; p->name; p++)
		if (streq(p->name, name))
			return p;
	return NULL;
}
