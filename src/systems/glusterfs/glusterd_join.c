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
 * A glusterd that joins a trusted pool first stores the pool's volumes, file by file, and then its
 * peers. Killed in between it never starts again: a volume is not whole, or has bricks on hosts that
 * no peer has ("Failed to resolve brick"). What it holds then is only half a copy of what the others
 * have, so that half is put aside; they still have this node on their lists and finish what they
 * began when it answers again, or are told to begin anew.
 */
#define HOME "/var/lib/glusterd"
#define ASIDE HOME "/unfinished-join"
#define BEFRIENDED "3" /* in a peer's file */

struct half {
	struct strv peers, local;
	bool befriended; /* with one of them: that comes last */
	bool volumes; /* there are some, whole or not */
	bool ours; /* a volume has a brick here */
};

/* Calls line for each "key=value" of a file. */
static void each_line(const char *path, void (*line)(struct half *h, const char *key, char *value),
		      struct half *h)
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
			line(h, p, value);
		}
	}
}

/* Calls entry for each name in a directory but those that begin with a dot. */
static void each_entry(const char *dir_path,
		       void (*entry)(struct half *h, const char *path, const char *name),
		       struct half *h)
{
	DIR *dir = opendir(dir_path);
	const struct dirent *e;

	while (dir && (e = readdir(dir))) {
		cleanup_free char *path = xasprintf("%s/%s", dir_path, e->d_name);

		if (e->d_name[0] != '.')
			entry(h, path, e->d_name);
	}
	if (dir)
		closedir(dir);
}

static void note_peer(struct half *h, const char *key, char *value)
{
	if (str_has_prefix(key, "hostname"))
		strv_add(&h->peers, value);
	if (streq(key, "state") && streq(value, BEFRIENDED))
		h->befriended = true;
}

static bool is_address(const char *host)
{
	struct in6_addr any;

	return inet_pton(AF_INET, host, &any) == 1 || inet_pton(AF_INET6, host, &any) == 1;
}

/* "HOST:-path-with-dashes" */
static void note_host(struct half *h, const char *brick)
{
	const char *end = strstr(brick, ":-");
	cleanup_free char *host = end ? xstrndup(brick, (size_t)(end - brick)) : NULL;

	if (!host)
		return;
	/* a name may be anybody's: it could be found out only by asking name servers */
	if (!is_address(host) || strv_contains(&h->local, host))
		h->ours = true;
}

static void note_brick(struct half *h, const char *key, char *value)
{
	if (str_has_prefix(key, "brick-"))
		note_host(h, value);
}

static void note_brick_file(struct half *h, const char *path, const char *name)
{
	note_host(h, name);
}

static void note_peer_file(struct half *h, const char *path, const char *name)
{
	each_line(path, note_peer, h);
}

static void note_volume(struct half *h, const char *path, const char *name)
{
	cleanup_free char *info = xasprintf("%s/info", path),
			  *bricks = xasprintf("%s/bricks", path);

	h->volumes = true;
	each_line(info, note_brick, h);
	each_entry(bricks, note_brick_file, h);
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
	each_entry(HOME "/peers", note_peer_file, &h);
	each_entry(HOME "/vols", note_volume, &h);
	/*
	 * One that was ever a member has a friend, or no peers at all: its bricks' address may only not
	 * be up yet, and it must never be taken for a newcomer.
	 */
	if (h.volumes && !h.ours && h.peers.count > 0 && !h.befriended) {
		log_warn("glusterd was stopped while it joined a trusted pool and could not start: "
			 "what it had stored of that is in " ASIDE " now, and it joins again");
		rc = put_aside(err);
	}
	strv_done(&h.peers);
	strv_done(&h.local);
	return rc;
}
