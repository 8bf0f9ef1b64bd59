/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "systems/glusterfs/glusterd.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <stdio.h>

/*
 * A glusterd that joins a trusted pool first stores the pool's volumes and then its peers. Killed in
 * between it never starts again: it finds bricks on hosts that no peer has ("Failed to resolve
 * brick"). What it holds then is only half a copy of what the others have, so that half is put aside;
 * they still have this node on their lists and finish what they began when it answers again.
 */
#define HOME "/var/lib/glusterd"
#define ASIDE HOME "/unfinished-join"

struct half {
	struct strv peers, local;
	bool ours; /* a volume has a brick here */
	bool unknown; /* or on a host that is nobody's */
};

/* Calls line for each "key=value" of a file. */
static void each_line(const char *path, void (*line)(const char *key, char *value, void *userdata),
		      void *userdata)
{
	cleanup_free char *text = NULL;
	char *next, *value;

	if (file_read(path, 0, &text, NULL, NULL) < 0)
		return;
	for (char *p = text; p && *p; p = next) {
		next = strchr(p, '\n');
		if (next)
			*next++ = '\0';
		value = strchr(p, '=');
		if (value) {
			*value++ = '\0';
			line(p, value, userdata);
		}
	}
}

/* Calls file for each name in a directory but those that begin with a dot. */
static void each_file(const char *dir_path, const char *tail,
		      void (*line)(const char *, char *, void *), void *userdata)
{
	DIR *dir = opendir(dir_path);
	const struct dirent *e;

	while (dir && (e = readdir(dir))) {
		cleanup_free char *path = xasprintf("%s/%s%s", dir_path, e->d_name, tail);

		if (e->d_name[0] != '.')
			each_line(path, line, userdata);
	}
	if (dir)
		closedir(dir);
}

static void note_peer(const char *key, char *value, void *userdata)
{
	struct half *h = userdata;

	if (str_has_prefix(key, "hostname"))
		strv_add(&h->peers, value);
}

static bool is_address(const char *host)
{
	struct in6_addr any;

	return inet_pton(AF_INET, host, &any) == 1 || inet_pton(AF_INET6, host, &any) == 1;
}

/* brick-0=HOST:-path-with-dashes */
static void note_brick(const char *key, char *value, void *userdata)
{
	struct half *h = userdata;
	char *end = strstr(value, ":-");

	if (!str_has_prefix(key, "brick-") || !end)
		return;
	*end = '\0';
	/* a name may be anybody's: it could be found out only by asking name servers */
	if (!is_address(value) || strv_contains(&h->local, value))
		h->ours = true;
	else if (!strv_contains(&h->peers, value))
		h->unknown = true;
}

static void note_local(struct half *h)
{
	struct ifaddrs *all = NULL;
	char text[NI_MAXHOST];

	if (getifaddrs(&all) < 0) {
		h->ours = true; /* better not to know than to be wrong */
		return;
	}
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		bool v6 = i->ifa_addr && i->ifa_addr->sa_family == AF_INET6;

		if (!v6 && !(i->ifa_addr && i->ifa_addr->sa_family == AF_INET))
			continue;
		if (getnameinfo(i->ifa_addr,
				v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in), text,
				sizeof(text), NULL, 0, NI_NUMERICHOST) == 0) {
			text[strcspn(text, "%")] = '\0';
			strv_add(&h->local, text);
		}
	}
	freeifaddrs(all);
}

static int put_aside(struct error *err)
{
	static const char *const parts[] = { "peers", "vols" };
	int rc = remove_tree(ASIDE, err);

	if (rc == 0)
		rc = mkdir_parents(ASIDE, 0700, err);
	/* the peers first: volumes without any are still known for what they are, should this be the end */
	for (size_t i = 0; i < ARRAY_SIZE(parts) && rc == 0; i++) {
		cleanup_free char *from = xasprintf(HOME "/%s", parts[i]);
		cleanup_free char *to = xasprintf(ASIDE "/%s", parts[i]);

		if (rename(from, to) < 0 && errno != ENOENT)
			rc = error_errno(err, errno, "Cannot move %s to %s", from, to);
	}
	return rc;
}

int glusterd_forget_half_join(struct error *err)
{
	struct half h = { 0 };
	int rc = 0;

	note_local(&h);
	each_file(HOME "/peers", "", note_peer, &h);
	each_file(HOME "/vols", "/info", note_brick, &h);
	if (h.unknown && !h.ours) {
		log_warn("glusterd was stopped while it joined a trusted pool and could not start: "
			 "what it had stored of that is in " ASIDE " now, and it joins again");
		rc = put_aside(err);
	}
	strv_done(&h.peers);
	strv_done(&h.local);
	return rc;
}
