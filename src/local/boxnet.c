/* SPDX-License-Identifier: Apache-2.0 */
#include "local/boxnet.h"

#include "base/mem.h"
#include "base/paths.h"
#include "base/spawn.h"
#include "base/str.h"
#include "local/instance.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <xxhash.h>

enum { IP_TIMEOUT_MS = 10000 };

/* This machine's end of a box's veth pair; an interface's name has at most 15 bytes. */
static void veth_name(const char *box, char name[static IF_NAMESIZE])
{
	snprintf(name, IF_NAMESIZE, "%s-%06x", instance_name(),
		 (unsigned)(XXH64(box, strlen(box), 0) & 0xffffff));
}

static void bridge_name(char name[static IF_NAMESIZE])
{
	snprintf(name, IF_NAMESIZE, "%s-br", instance_name());
}

#define MAC_TEXT 18

/*
 * The same each time that a box of this name is made: the others remember for half a minute which
 * one an address had, and would not reach a box that was removed and made again meanwhile. The
 * bridge has one too, or it would take another with every box that comes or goes.
 */
static void mac_of(const char *name, char mac[static MAC_TEXT])
{
	uint64_t h = XXH64(name, strlen(name), (XXH64_hash_t)instance_number());

	snprintf(mac, MAC_TEXT, "02:51:%02x:%02x:%02x:%02x", (unsigned)(h >> 24 & 0xff),
		 (unsigned)(h >> 16 & 0xff), (unsigned)(h >> 8 & 0xff), (unsigned)(h & 0xff));
}

static bool is_v6(const char *address)
{
	return strchr(address, ':') != NULL;
}

static bool same_address(const struct sockaddr *sa, const char *text)
{
	struct in_addr v4;
	struct in6_addr v6;

	if (sa->sa_family == AF_INET && inet_pton(AF_INET, text, &v4) == 1)
		return memcmp(&((const struct sockaddr_in *)sa)->sin_addr, &v4, sizeof(v4)) == 0;
	if (sa->sa_family == AF_INET6 && inet_pton(AF_INET6, text, &v6) == 1)
		return memcmp(&((const struct sockaddr_in6 *)sa)->sin6_addr, &v6, sizeof(v6)) == 0;
	return false;
}

bool boxnet_is_machine(const char *const *addresses)
{
	struct ifaddrs *all, *i;
	bool found = false;

	if (getifaddrs(&all) < 0)
		return false;
	for (i = all; i && !found; i = i->ifa_next)
		for (const char *const *a = addresses; i->ifa_addr && *a && !found; a++)
			found = same_address(i->ifa_addr, *a);
	freeifaddrs(all);
	return found;
}

/* Runs "ip -batch -" with the commands, in the network namespace at net_path (NULL: here). */
static int ip_batch(const char *net_path, const struct buf *commands, struct error *err)
{
	cleanup_free char *netns = net_path ? xasprintf("--net=%s", net_path) : NULL;
	const char *here[] = { "ip", "-batch", "-", NULL };
	const char *there[] = { "nsenter", netns, "ip", "-batch", "-", NULL };

	return spawn_check(&(struct spawn){ .argv = net_path ? there : here,
					    .input = commands->data,
					    .input_len = commands->len,
					    .timeout_ms = IP_TIMEOUT_MS },
			   NULL, err);
}

static int ensure_bridge(const char *bridge, struct error *err)
{
	struct buf commands = { 0 };
	char mac[MAC_TEXT];
	int r;

	if (if_nametoindex(bridge) != 0)
		return 0;
	mac_of(bridge, mac);
	buf_printf(&commands, "link add name %s address %s type bridge\n", bridge, mac);
	buf_printf(&commands, "addr add 10.117.%d.254/32 dev %s\n", instance_number(), bridge);
	buf_printf(&commands, "link set %s up\n", bridge);
	r = ip_batch(NULL, &commands, err);
	buf_done(&commands);
	return r < 0 ? error_prefix(err, "making the bridge %s", bridge) : 0;
}

static int connect_here(const char *bridge, const char *veth, const char *net_path,
			const char *const *addresses, struct error *err)
{
	struct buf commands = { 0 };
	char mac[MAC_TEXT];
	int r;

	mac_of(veth, mac);
	buf_printf(&commands, "link add %s type veth peer name eth0 address %s netns %s\n", veth,
		   mac, net_path);
	buf_printf(&commands, "link set %s master %s up\n", veth, bridge);
	for (const char *const *a = addresses; *a; a++)
		if (is_v6(*a))
			buf_printf(&commands, "-6 route replace %s/128 dev %s\n", *a, bridge);
		else
			buf_printf(&commands, "route replace %s/32 dev %s src 10.117.%d.254\n", *a,
				   bridge, instance_number());
	r = ip_batch(NULL, &commands, err);
	buf_done(&commands);
	return r;
}

static int connect_there(const char *net_path, const char *const *addresses, struct error *err)
{
	struct buf commands = { 0 };
	bool v4 = false, v6 = false;
	int r;

	buf_puts(&commands, "link set lo up\n");
	for (const char *const *a = addresses; *a; a++) {
		if (is_v6(*a))
			buf_printf(&commands, "-6 addr add %s/128 dev eth0 nodad\n", *a);
		else
			buf_printf(&commands, "addr add %s/32 dev eth0\n", *a);
		v6 |= is_v6(*a);
		v4 |= !is_v6(*a);
	}
	buf_puts(&commands, "link set eth0 up\n");
	/* every other address is on the bridge: asked for there, not behind a gateway */
	if (v4)
		buf_puts(&commands, "route add default dev eth0\n");
	if (v6)
		buf_puts(&commands, "-6 route add default dev eth0\n");
	r = ip_batch(net_path, &commands, err);
	buf_done(&commands);
	return r;
}

int boxnet_ensure(const char *name, const char *net_path, const char *const *addresses,
		  struct error *err)
{
	char bridge[IF_NAMESIZE], veth[IF_NAMESIZE];
	int r;

	bridge_name(bridge);
	veth_name(name, veth);
	r = ensure_bridge(bridge, err);
	if (r < 0)
		return r;
	if (if_nametoindex(veth) != 0)
		return 0;
	r = connect_here(bridge, veth, net_path, addresses, err);
	if (r == 0)
		r = connect_there(net_path, addresses, err);
	if (r < 0)
		boxnet_remove(name); /* so that the next try begins anew */
	return r;
}

static void remove_link(const char *link)
{
	const char *argv[] = { "ip", "link", "del", link, NULL };
	struct spawn_result result = { 0 };

	if (if_nametoindex(link) == 0)
		return;
	if (spawn_run(&(struct spawn){ .argv = argv, .timeout_ms = IP_TIMEOUT_MS }, &result,
		      NULL) == 0)
		spawn_result_done(&result);
}

void boxnet_remove(const char *name)
{
	char veth[IF_NAMESIZE];

	veth_name(name, veth);
	remove_link(veth);
}

void boxnet_remove_bridge(void)
{
	char bridge[IF_NAMESIZE];

	bridge_name(bridge);
	remove_link(bridge);
}
