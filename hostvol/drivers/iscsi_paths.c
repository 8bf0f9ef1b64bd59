/* SPDX-License-Identifier: Apache-2.0 */
#include "iscsi.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>

#define PORT 3260

/* The n-th of "a,b,c", or the only one; "" where there is none. */
static void item(const char *list, int n, char *buf, size_t size)
{
	if (!strchr(list, ','))
		n = 0;
	for (; n > 0 && *list; n--) {
		list += strcspn(list, ",");
		list += *list == ',';
	}
	snprintf(buf, size, "%.*s", (int)strcspn(list, ","), list);
}

static int count(const char *list)
{
	int n = 1;

	for (; *list; list++)
		n += *list == ',';
	return n;
}

int iscsi_portal_parse(const char *text, struct iscsi_path *ret, struct error *err)
{
	const char *host = text, *port = NULL, *colon = strrchr(text, ':');
	size_t len = strlen(text);
	unsigned long number = PORT;
	char *end;

	if (text[0] == '[') {
		host = text + 1;
		len = strcspn(host, "]");
		if (!host[len])
			return error_set(err, EINVAL, "\"%.100s\": the bracket is not closed",
					 text);
		port = host[len + 1] == ':' ? host + len + 2 : host[len + 1] ? "" : NULL;
	} else if (colon && strchr(text, ':') == colon) {
		len = (size_t)(colon - text);
		port = colon + 1;
	}
	if (port) {
		number = strtoul(port, &end, 10);
		if (*port < '0' || *port > '9' || *end || number < 1 || number > 65535)
			return error_set(err, EINVAL, "\"%.100s\" has no port from 1 to 65535",
					 text);
	}
	if (!len || len >= sizeof(ret->host) ||
	    strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%") <
		    len)
		return error_set(err, EINVAL, "\"%.100s\" is not HOST:PORT", text);
	snprintf(ret->host, sizeof(ret->host), "%.*s", (int)len, host);
	ret->port = (unsigned)number;
	return 0;
}

int iscsi_paths_read(const struct attachment *a, struct iscsi_paths *ret, struct error *err)
{
	const char *portals = attachment_param(a, "targetPortal"),
		   *iqns = attachment_param(a, "targetIqn"),
		   *luns = attachment_param(a, "targetLun");
	const char *mode = attachment_param(a, "addressingMode");
	int n = count(portals);
	char text[300];
	int r;

	if (n > ISCSI_PATHS_MAX)
		return error_set(err, EINVAL, "targetPortal: more than %d", ISCSI_PATHS_MAX);
	if ((count(iqns) != 1 && count(iqns) != n) || (count(luns) != 1 && count(luns) != n))
		return error_set(err, EINVAL,
				 "%d portals, %d IQNs and %d LUNs do not go together: give one of "
				 "each, or as many as portals",
				 n, count(iqns), count(luns));
	*ret = (struct iscsi_paths){ .count = n };
	for (int i = 0; i < n; i++) {
		struct iscsi_path *p = &ret->items[i];

		item(portals, i, text, sizeof(text));
		r = iscsi_portal_parse(text, p, err);
		if (r < 0)
			return error_prefix(err, "targetPortal");
		item(iqns, i, text, sizeof(text));
		if (!text[0] || strlen(text) >= sizeof(p->iqn) || strchr(text, '/') ||
		    strchr(text, ' ') || text[0] == '.' || text[0] == '-')
			return error_set(err, EINVAL,
					 "targetIqn: \"%.100s\" is no name of a target", text);
		snprintf(p->iqn, sizeof(p->iqn), "%s", text);
		item(luns, i, text, sizeof(text));
		r = scsi_lun(text, mode, &p->lun, err);
		if (r < 0)
			return error_prefix(err, "targetLun");
	}
	return 0;
}

/* An address in the form in which the kernel shows it. */
static int resolve(const char *host, char *buf, size_t size)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list;
	int r = getaddrinfo(host, NULL, &hints, &list);

	if (r)
		return -EHOSTUNREACH;
	r = getnameinfo(list->ai_addr, list->ai_addrlen, buf, (socklen_t)size, NULL, 0,
			NI_NUMERICHOST);
	freeaddrinfo(list);
	return r ? -EHOSTUNREACH : 0;
}

int iscsi_paths_resolve(const struct call *c, struct iscsi_paths *paths, struct error *err)
{
	int n = 0;

	for (int i = 0; i < paths->count; i++) {
		struct iscsi_path *p = &paths->items[i];

		if (resolve(p->host, p->address, sizeof(p->address)) < 0) {
			call_log(c, HOSTVOL_LOG_WARNING, "the portal %s has no address", p->host);
			continue;
		}
		if (n != i)
			paths->items[n] = *p;
		n++;
	}
	if (!n)
		return error_set(err, EHOSTUNREACH, "the portal %s has no address",
				 paths->items[0].host);
	paths->count = n;
	return 0;
}

bool iscsi_uses_target(const struct attachment *a, const char *iqn)
{
	struct iscsi_paths paths;

	if (!a->driver->name ||
	    (!streq(a->driver->name, "ISCSI") && !streq(a->driver->name, "ISER")) ||
	    iscsi_paths_read(a, &paths, NULL) < 0)
		return false;
	for (int i = 0; i < paths.count; i++)
		if (streq(paths.items[i].iqn, iqn))
			return true;
	return false;
}

bool iscsi_shares_unit(const struct attachment *a, const struct iscsi_paths *paths)
{
	struct iscsi_paths theirs;

	if (iscsi_paths_read(a, &theirs, NULL) < 0)
		return false;
	for (int i = 0; i < theirs.count; i++)
		for (int j = 0; j < paths->count; j++)
			if (theirs.items[i].lun == paths->items[j].lun &&
			    streq(theirs.items[i].iqn, paths->items[j].iqn))
				return true;
	return false;
}
