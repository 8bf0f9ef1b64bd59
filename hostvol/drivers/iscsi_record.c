/* SPDX-License-Identifier: Apache-2.0 */
#include "iscsi.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

/* Where open-iscsi keeps its records: Debian and most, then others. */
static const char *database(const struct call *c)
{
	return !sys_exists(c, "/etc/iscsi/nodes") && sys_exists(c, "/var/lib/iscsi/nodes")
		       ? "/var/lib/iscsi"
		       : "/etc/iscsi";
}

/* ---- text ----------------------------------------------------------------------------------- */

/* A record in the making. Secrets go through it: wiped when done. */
struct record {
	char text[32 << 10];
	size_t len;
	bool full;
};

__attribute__((format(printf, 2, 3))) static void put(struct record *t, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(t->text + t->len, sizeof(t->text) - t->len, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof(t->text) - t->len)
		t->full = true;
	else
		t->len += (size_t)n;
}

/* What a record of ours says itself, whatever the configuration's defaults are. */
static bool is_ours(const char *key, bool chap)
{
	static const char *const keys[] = { "node.name",
					    "node.tpgt",
					    "node.startup",
					    "node.leading_login",
					    "node.session.scan",
					    "node.session.initial_login_retry_max",
					    "node.session.nr_sessions",
					    "node.conn[0].address",
					    "node.conn[0].port",
					    "node.conn[0].startup" };

	if (chap && str_has_prefix(key, "node.session.auth."))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strncmp(key, keys[i], strlen(keys[i])) == 0 &&
		    strchr(" \t=", key[strlen(keys[i])]))
			return true;
	return false;
}

/* iscsid.conf holds what new records begin with; a record that is written by hand does not. */
static void put_defaults(const struct call *c, struct record *t, bool chap)
{
	cleanup_free char *path = NULL, *conf = NULL;

	if (text_format(&path, NULL, "%s/etc/iscsi/iscsid.conf", c->host->root) < 0 ||
	    file_read(path, 256 << 10, &conf, NULL, NULL) < 0)
		return;
	for (char *line = conf; *line;) {
		size_t len = strcspn(line, "\n");
		const char *key = line + strspn(line, " \t");

		if (str_has_prefix(key, "node.") && !is_ours(key, chap))
			put(t, "%.*s\n", (int)len, line);
		line += len;
		line += *line == '\n';
	}
}

static void put_auth(struct record *t, const struct attachment *a)
{
	static const struct {
		const char *key, *param;
	} keys[] = { { "username", "authUsername" },
		     { "password", "authPassword" },
		     { "username_in", "authUsernameIn" },
		     { "password_in", "authPasswordIn" } };

	put(t, "node.session.auth.authmethod = CHAP\n");
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (attachment_param(a, keys[i].param))
			put(t, "node.session.auth.%s = %s\n", keys[i].key,
			    attachment_param(a, keys[i].param));
}

bool iscsi_uses_chap(const struct attachment *a)
{
	const char *method = attachment_param(a, "authMethod");

	return attachment_param(a, "authUsername") && (!method || strcasecmp(method, "None") != 0);
}

static const char *transport_of(const char *iface)
{
	return str_has_suffix(iface, "iser") ? "iser" : "tcp";
}

/* ---- files ---------------------------------------------------------------------------------- */

/* The record of our interface says only by which transport to go. */
static int write_iface(const struct call *c, const char *iface, struct error *err)
{
	cleanup_free char *dir = NULL, *path = NULL, *text = NULL;
	int r;

	if (sys_exists(c, "%s/ifaces/%s", database(c), iface))
		return 0;
	r = text_format(&dir, err, "%s%s/ifaces", c->host->root, database(c));
	if (r >= 0)
		r = text_format(&path, err, "%s/%s", dir, iface);
	if (r >= 0)
		r = text_format(&text, err,
				"iface.iscsi_ifacename = %s\niface.transport_name = %s\n", iface,
				transport_of(iface));
	if (r < 0)
		return r;
	r = c->host->make_dir(c->host, dir, 0700);
	if (r >= 0)
		r = c->host->write_file(c->host, path, text, strlen(text));
	return r < 0 ? error_errno(err, -r, "cannot write %s", path) : 0;
}

/* Until its group is known, a record is in a directory for group 0, and says that it is unknown. */
static int record_dir(const struct call *c, const char *iqn, const char *address, unsigned port,
		      int tpgt, char **ret, struct error *err)
{
	return text_format(ret, err, "%s%s/nodes/%s/%s,%u,%d", c->host->root, database(c), iqn,
			   address, port, tpgt);
}

int iscsi_record_write(const struct call *c, const struct attachment *a, const struct iscsi_path *p,
		       struct error *err)
{
	const char *iface = iscsi_iface(a->driver);
	bool chap = iscsi_uses_chap(a);
	cleanup_free char *dir = NULL, *path = NULL;
	cleanup_free struct record *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return no_memory(err);
	r = write_iface(c, iface, err);
	if (r >= 0)
		r = record_dir(c, p->iqn, p->address, p->port, 0, &dir, err);
	if (r >= 0)
		r = text_format(&path, err, "%s/%s", dir, iface);
	if (r < 0)
		return r;
	put(t,
	    "node.name = %s\nnode.tpgt = -1\nnode.startup = manual\nnode.leading_login = No\n"
	    "iface.iscsi_ifacename = %s\niface.transport_name = %s\n"
	    "node.conn[0].address = %s\nnode.conn[0].port = %u\nnode.conn[0].startup = manual\n",
	    p->iqn, iface, transport_of(iface), p->address, p->port);
	/* units are asked for by name; a portal that does not answer is told, not tried for minutes */
	put(t, "node.session.scan = manual\nnode.session.nr_sessions = 1\n"
	       "node.session.initial_login_retry_max = 1\n");
	if (chap)
		put_auth(t, a);
	put_defaults(c, t, chap);
	if (t->full)
		r = error_set(err, EFBIG, "iscsid.conf is too large");
	if (r >= 0) {
		r = c->host->make_dir(c->host, dir, 0700);
		if (r >= 0)
			r = c->host->write_file(c->host, path, t->text, t->len);
		if (r < 0)
			error_errno(err, -r, "cannot write %s", path);
	}
	explicit_bzero(t, sizeof(*t));
	return r;
}

int iscsi_record_settle(const struct call *c, const struct iscsi_session *s, const char *iface)
{
	cleanup_free char *from_dir = NULL, *dir = NULL, *from = NULL, *to = NULL;

	if (s->tpgt <= 0 || record_dir(c, s->iqn, s->address, s->port, 0, &from_dir, NULL) < 0 ||
	    record_dir(c, s->iqn, s->address, s->port, s->tpgt, &dir, NULL) < 0 ||
	    text_format(&from, NULL, "%s/%s", from_dir, iface) < 0 ||
	    text_format(&to, NULL, "%s/%s", dir, iface) < 0)
		return 0;
	c->host->make_dir(c->host, dir, 0700);
	if (rename(from, to) < 0)
		return -errno;
	c->host->remove_dir(c->host, from_dir);
	return 0;
}

/* ---- all of a target ------------------------------------------------------------------------ */

struct records {
	const struct call *c;
	const char *iface, *iqn, *portal; /* "address,port," or NULL */
	bool remove;
	int count;
};

static int visit(const char *name, void *userdata)
{
	struct records *s = userdata;
	cleanup_free char *dir = NULL, *path = NULL;

	if (s->portal && !str_has_prefix(name, s->portal))
		return 0;
	s->count += sys_exists(s->c, "%s/nodes/%s/%s/%s", database(s->c), s->iqn, name, s->iface);
	if (!s->remove)
		return 0;
	if (text_format(&dir, NULL, "%s%s/nodes/%s/%s", s->c->host->root, database(s->c), s->iqn,
			name) < 0 ||
	    text_format(&path, NULL, "%s/%s", dir, s->iface) < 0)
		return -ENOMEM;
	s->c->host->remove_file(s->c->host, path);
	s->c->host->remove_dir(s->c->host, dir); /* stays where others have a record there */
	return 0;
}

static int each_record(struct records *s)
{
	cleanup_free char *dir = NULL, *full = NULL;
	int r = text_format(&dir, NULL, "%s/nodes/%s", database(s->c), s->iqn);

	if (r < 0)
		return r;
	r = sys_each(s->c, dir, visit, s);
	if (r >= 0 && s->remove && text_format(&full, NULL, "%s%s", s->c->host->root, dir) >= 0)
		s->c->host->remove_dir(s->c->host, full);
	return r < 0 ? r : s->count;
}

int iscsi_record_remove(const struct call *c, const char *iface, const char *iqn,
			const char *address, unsigned port)
{
	struct records s = { .c = c, .iface = iface, .iqn = iqn, .remove = true };
	char portal[100];

	if (address) {
		snprintf(portal, sizeof(portal), "%s,%u,", address, port);
		s.portal = portal;
	}
	return each_record(&s);
}

int iscsi_record_count(const struct call *c, const char *iface, const char *iqn)
{
	return each_record(&(struct records){ .c = c, .iface = iface, .iqn = iqn });
}
