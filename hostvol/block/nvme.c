/* SPDX-License-Identifier: Apache-2.0 */
#include "nvme.h"

#include "base/mem.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <strings.h>

#define ASK_MS 10000

/* The value of key in "key=value,key=value". */
static void value_of(const char *text, const char *key, char *buf, size_t size)
{
	size_t len = strlen(key);

	buf[0] = '\0';
	for (const char *p = text; *p;) {
		size_t whole = strcspn(p, ",");

		if (whole > len && strncmp(p, key, len) == 0 && p[len] == '=') {
			size_t n = whole - len - 1;

			while (n && isspace((unsigned char)p[len + n]))
				n--;
			snprintf(buf, size, "%.*s", (int)n, p + len + 1);
			return;
		}
		p += whole;
		p += *p == ',';
	}
}

void nvme_address_parse(const char *text, struct nvme_address *ret)
{
	value_of(text, "traddr", ret->traddr, sizeof(ret->traddr));
	value_of(text, "trsvcid", ret->trsvcid, sizeof(ret->trsvcid));
	value_of(text, "host_traddr", ret->host_traddr, sizeof(ret->host_traddr));
}

bool nvme_address_same(const struct nvme_address *a, const struct nvme_address *b)
{
	/* where this host goes out by matters only where both say it */
	if (a->host_traddr[0] && b->host_traddr[0] &&
	    strcasecmp(a->host_traddr, b->host_traddr) != 0)
		return false;
	return streq(a->transport, b->transport) && strcasecmp(a->traddr, b->traddr) == 0 &&
	       streq(a->trsvcid, b->trsvcid);
}

/* ---- controllers ---------------------------------------------------------------------------- */

struct controllers {
	const struct call *c;
	const char *nqn;
	int (*fn)(const struct nvme_controller *n, void *userdata);
	void *userdata;
};

static int visit_controller(const char *name, void *userdata)
{
	struct controllers *all = userdata;
	struct nvme_controller n = { 0 };
	char line[400];

	sys_line(all->c, n.nqn, sizeof(n.nqn), "/sys/class/nvme/%s/subsysnqn", name);
	if (all->nqn && !streq(n.nqn, all->nqn))
		return 0;
	snprintf(n.name, sizeof(n.name), "%.31s", name);
	sys_line(all->c, n.at.transport, sizeof(n.at.transport), "/sys/class/nvme/%s/transport",
		 name);
	sys_line(all->c, line, sizeof(line), "/sys/class/nvme/%s/address", name);
	nvme_address_parse(line, &n.at);
	sys_line(all->c, n.host_nqn, sizeof(n.host_nqn), "/sys/class/nvme/%s/hostnqn", name);
	sys_line(all->c, n.host_id, sizeof(n.host_id), "/sys/class/nvme/%s/hostid", name);
	sys_line(all->c, line, sizeof(line), "/sys/class/nvme/%s/state", name);
	n.live = streq(line, "live");
	return all->fn(&n, all->userdata);
}

int nvme_controllers_each(const struct call *c, const char *nqn,
			  int (*fn)(const struct nvme_controller *n, void *userdata),
			  void *userdata)
{
	struct controllers all = { .c = c, .nqn = nqn, .fn = fn, .userdata = userdata };

	return sys_each(c, "/sys/class/nvme", visit_controller, &all);
}

struct controller_search {
	const struct nvme_address *at;
	struct nvme_controller *found;
};

static int is_there(const struct nvme_controller *n, void *userdata)
{
	struct controller_search *s = userdata;

	if (!nvme_address_same(&n->at, s->at))
		return 0;
	*s->found = *n;
	return 1;
}

int nvme_controller_find(const struct call *c, const char *nqn, const struct nvme_address *at,
			 struct nvme_controller *ret)
{
	return nvme_controllers_each(c, nqn, is_there,
				     &(struct controller_search){ .at = at, .found = ret });
}

/* ---- namespaces ----------------------------------------------------------------------------- */

struct namespaces {
	const struct call *c;
	const char *nqn;
	bool paths; /* nvme0c1n1 is only a path of nvme0n1 */
	int (*fn)(const char *disk, void *userdata);
	void *userdata;
};

static int visit_disk(const char *name, void *userdata)
{
	struct namespaces *all = userdata;
	unsigned subsystem, controller, number;
	char nqn[NQN_MAX];
	int end = 0;

	if (all->paths)
		sscanf(name, "nvme%uc%un%u%n", &subsystem, &controller, &number, &end);
	else
		sscanf(name, "nvme%un%u%n", &controller, &number, &end);
	if (!end || name[end])
		return 0;
	sys_line(all->c, nqn, sizeof(nqn), "/sys/block/%s/device/subsysnqn", name);
	return streq(nqn, all->nqn) ? all->fn(name, all->userdata) : 0;
}

int nvme_namespaces_each(const struct call *c, const char *nqn,
			 int (*fn)(const char *disk, void *userdata), void *userdata)
{
	struct namespaces all = { .c = c, .nqn = nqn, .fn = fn, .userdata = userdata };

	return sys_each(c, "/sys/block", visit_disk, &all);
}

/* The same digits, with or without dashes, in any case. */
static bool same_digits(const char *a, const char *b)
{
	for (;; a++, b++) {
		while (*a == '-')
			a++;
		while (*b == '-')
			b++;
		if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
			return false;
		if (!*a)
			return true;
	}
}

struct namespace_search {
	const struct call *c;
	const struct nvme_wanted *want;
	char *disk;
};

static int is_wanted(const char *name, void *userdata)
{
	struct namespace_search *s = userdata;
	const struct nvme_wanted *w = s->want;
	const char *file = w->uuid ? "uuid" : w->nguid ? "nguid" : "nsid";
	const char *value = w->uuid ? w->uuid : w->nguid ? w->nguid : w->nsid;
	char line[128];

	sys_line(s->c, line, sizeof(line), "/sys/block/%s/%s", name, file);
	if (!value || !line[0] || !same_digits(line, value) || strlen(name) >= DISK_NAME_MAX)
		return 0;
	snprintf(s->disk, DISK_NAME_MAX, "%s", name);
	return 1;
}

int nvme_namespace_find(const struct call *c, const char *nqn, const struct nvme_wanted *want,
			char disk[static DISK_NAME_MAX])
{
	return nvme_namespaces_each(
		c, nqn, is_wanted,
		&(struct namespace_search){ .c = c, .want = want, .disk = disk });
}

int nvme_namespace_path(const struct call *c, const char *nqn, const struct nvme_wanted *want,
			char path[static DISK_NAME_MAX], char *state, size_t size)
{
	struct namespace_search s = { .c = c, .want = want, .disk = path };
	struct namespaces all = {
		.c = c, .nqn = nqn, .paths = true, .fn = is_wanted, .userdata = &s
	};
	int r = sys_each(c, "/sys/block", visit_disk, &all);

	if (r == 1)
		sys_line(c, state, size, "/sys/block/%s/ana_state", path);
	return r;
}

struct path_search {
	const struct call *c;
	unsigned subsystem, number; /* of nvme0n1 */
	int paths;
};

static int is_usable_path(const char *name, void *userdata)
{
	struct path_search *s = userdata;
	unsigned subsystem, controller, number;
	char state[32];
	int end = 0;

	if (sscanf(name, "nvme%uc%un%u%n", &subsystem, &controller, &number, &end) != 3 ||
	    name[end] || subsystem != s->subsystem || number != s->number)
		return 0;
	s->paths++;
	sys_line(s->c, state, sizeof(state), "/sys/block/%s/device/state", name);
	if (!streq(state, "live"))
		return 0;
	sys_line(s->c, state, sizeof(state), "/sys/block/%s/ana_state", name);
	/* one that knows no asymmetric access has no such file, or says "optimized" */
	return !state[0] || streq(state, "optimized") || streq(state, "non-optimized");
}

bool nvme_namespace_accessible(const struct call *c, const char *disk)
{
	struct path_search s = { .c = c };
	char state[32];
	int r;

	if (sscanf(disk, "nvme%un%u", &s.subsystem, &s.number) != 2)
		return false;
	r = sys_each(c, "/sys/block", is_usable_path, &s);
	if (r != 0 || s.paths)
		return r > 0;
	/* without the kernel's multipath the disk hangs at its only controller */
	sys_line(c, state, sizeof(state), "/sys/block/%s/device/state", disk);
	return streq(state, "live");
}

int nvme_namespace_size(const struct call *c, const char *disk, uint64_t *ret, struct error *err)
{
	cleanup_free unsigned char *ns = calloc(1, NVME_IDENTIFY_SIZE);
	char path[DISK_NAME_MAX + 8];
	uint64_t blocks = 0;
	unsigned format, shift;
	int r = call_left(c, ASK_MS, err);

	if (r < 0)
		return r;
	if (!ns)
		return no_memory(err);
	snprintf(path, sizeof(path), "/dev/%s", disk);
	r = c->host->nvme_identify(c->host, path, 0, ns, r);
	if (r < 0)
		return error_errno(err, -r, "%s does not say its size", path);
	for (int i = 7; i >= 0; i--)
		blocks = blocks << 8 | ns[i];
	/* the format in use: four bits, and two more of those that came later */
	format = (ns[26] & 0xfu) | (ns[26] >> 1 & 0x30u);
	shift = ns[128 + 4 * format + 2];
	if (shift < 9 || shift > 31)
		return error_set(err, EBADMSG, "%s says that its blocks are of 2^%u bytes", path,
				 shift);
	*ret = blocks << shift;
	return 0;
}
