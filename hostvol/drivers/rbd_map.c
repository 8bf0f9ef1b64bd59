/* SPDX-License-Identifier: Apache-2.0 */
#include "rbd.h"

#include "base/mem.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

#define DEVICES "/sys/bus/rbd/devices"
#define PORT_V1 "6789"
#define PORT_V2 "3300"

/* ---- texts ---------------------------------------------------------------------------------- */

int rbd_name_parse(const char *name, struct rbd_image *ret, struct error *err)
{
	struct rbd_image image = { 0 };
	char *const parts[] = { image.pool, image.space, image.image };
	const char *p = name;
	size_t slashes = 0, len;

	for (const char *s = name; *s; s++)
		slashes += *s == '/';
	if (slashes < 1 || slashes > 2)
		return error_set(err, EINVAL,
				 "\"%.100s\" is neither POOL/IMAGE nor "
				 "POOL/NAMESPACE/IMAGE",
				 name);
	for (size_t i = 0; i < 3; i++) {
		if (i == 1 && slashes == 1)
			continue;
		len = strcspn(p, "/");
		/* a blank or comma would be another word to the kernel, an @ a snapshot */
		if (!len || len >= RBD_NAME_MAX || strcspn(p, " ,@") < len)
			return error_set(err, EINVAL,
					 "\"%.100s\": an empty or overlong part, or with a blank, "
					 "comma or @",
					 name);
		memcpy(parts[i], p, len);
		p += len + (p[len] == '/');
	}
	*ret = image;
	return 0;
}

/* The item of a list, the last one where there are fewer; its length. */
static size_t item_of(const char *list, size_t index, const char **ret)
{
	for (; index && strchr(list, ','); index--)
		list = strchr(list, ',') + 1;
	*ret = list;
	return strcspn(list, ",");
}

static bool is_v2(const char *ports, size_t index)
{
	const char *port;
	size_t len = item_of(ports, index, &port);

	return len == strlen(PORT_V2) && strncmp(port, PORT_V2, len) == 0;
}

int rbd_monitors(const char *hosts, const char *ports, char **ret, bool *ret_v2, struct error *err)
{
	cleanup_free char *text = NULL;
	const char *host, *port;
	size_t count = 1, host_len, port_len;
	bool v2 = true;
	int r = text_format(&text, err, "%s", "");

	if (!ports)
		ports = PORT_V1;
	for (const char *p = hosts; *p; p++)
		count += *p == ',';
	for (size_t i = 0; i < count; i++)
		v2 = v2 && is_v2(ports, i);
	for (size_t i = 0; i < count && r >= 0; i++) {
		cleanup_free char *before = NULL;
		bool bare;

		/* a connection speaks one version, and the first is what old clusters have */
		if (!v2 && is_v2(ports, i))
			continue;
		host_len = item_of(hosts, i, &host);
		port_len = item_of(ports, i, &port);
		bare = host[0] != '[' && memchr(host, ':', host_len);
		before = TAKE_PTR(text);
		r = text_format(&text, err, "%s%s%s%.*s%s:%.*s", before, before[0] ? "," : "",
				bare ? "[" : "", (int)host_len, host, bare ? "]" : "",
				(int)port_len, port);
	}
	if (r < 0)
		return r;
	*ret = TAKE_PTR(text);
	*ret_v2 = v2;
	return 0;
}

static int digit_of(char ch)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = ch ? strchr(digits, ch) : NULL;

	return at ? (int)(at - digits) : -1;
}

int rbd_key_parse(const char *keyring, unsigned char *buf, size_t size, struct error *err)
{
	const char *p = strstr(keyring, "key =");
	uint32_t bits = 0;
	size_t n = 0, count = 0;

	if (!p)
		p = strstr(keyring, "key=");
	p = p ? strchr(p, '=') + 1 : keyring;
	while (isspace((unsigned char)*p))
		p++;
	for (; digit_of(*p) >= 0; p++) {
		bits = bits << 6 | (uint32_t)digit_of(*p);
		if (++count % 4 == 1)
			continue;
		if (n == size)
			break;
		buf[n++] = (unsigned char)(bits >> (6 - (count - 1) % 4 * 2));
	}
	p += strspn(p, "=");
	/* type, time and length come before the key itself */
	if (n < 13 || n == size || (*p && !isspace((unsigned char)*p)))
		return error_set(err, EINVAL, "the keyring has no key");
	return (int)n;
}

/* ---- sysfs ---------------------------------------------------------------------------------- */

struct search {
	const struct call *c;
	const struct rbd_image *image;
	const char *fsid, *monitors;
	struct rbd_mapping *ret;
};

static bool attribute_is(const struct search *s, const char *device, const char *name,
			 const char *value)
{
	char line[256];

	sys_line(s->c, line, sizeof(line), DEVICES "/%s/%s", device, name);
	return streq(line, value);
}

/* Whether two lists of "HOST:PORT" have one in common. */
static bool share_item(const char *a, const char *b)
{
	for (const char *p = a; *p;) {
		size_t len = strcspn(p, ", ");

		for (const char *q = b; *q && *q != ' ';) {
			size_t other = strcspn(q, ", ");

			if (len && len == other && strncmp(p, q, len) == 0)
				return true;
			q += other + (q[other] == ',');
		}
		p += len + (p[len] == ',');
		if (*p == ' ')
			break;
	}
	return false;
}

static int consider(const char *device, void *userdata)
{
	struct search *s = userdata;
	struct rbd_mapping m = { 0 };
	char line[2048], disk[DISK_NAME_MAX];

	/* trap: the same image name in another pool, namespace or cluster */
	if (sscanf(device, "%u", &m.id) != 1 || !attribute_is(s, device, "pool", s->image->pool) ||
	    !attribute_is(s, device, "pool_ns", s->image->space) ||
	    !attribute_is(s, device, "name", s->image->image) ||
	    !attribute_is(s, device, "current_snap", "-"))
		return 0;
	sys_line(s->c, m.fsid, sizeof(m.fsid), DEVICES "/%s/cluster_fsid", device);
	sys_line(s->c, m.image_id, sizeof(m.image_id), DEVICES "/%s/image_id", device);
	if (s->fsid[0]) {
		if (!streq(m.fsid, s->fsid))
			return 0;
	} else {
		sys_line(s->c, line, sizeof(line), DEVICES "/%s/config_info", device);
		if (!share_item(line, s->monitors))
			return 0;
	}
	snprintf(disk, sizeof(disk), "rbd%u", m.id);
	if (disk_read(s->c, disk, &m.disk) < 0)
		return 0; /* on its way in or out */
	*s->ret = m;
	return 1;
}

int rbd_find(const struct call *c, const struct rbd_image *image, const char *fsid,
	     const char *monitors, struct rbd_mapping *ret)
{
	struct search s = {
		.c = c, .image = image, .fsid = fsid, .monitors = monitors, .ret = ret
	};

	return sys_each(c, DEVICES, consider, &s);
}
