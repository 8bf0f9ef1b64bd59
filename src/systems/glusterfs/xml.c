/* SPDX-License-Identifier: Apache-2.0 */
#include "systems/glusterfs/xml.h"

#include "base/mem.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <expat.h>
#include <stdio.h>

/*
 * gluster's documents are flat enough to be read leaf by leaf: each leaf is given to a function
 * together with its path ("cliOutput/peerStatus/peer/uuid"), each element once when it begins.
 */
#define XML_DEPTH_MAX 32
#define XML_PATH_MAX 256
#define XML_TEXT_MAX (64 * 1024)
#define XML_ITEMS_MAX 4096 /* peers, bricks, options: more than glusterd itself can have */

struct document {
	XML_Parser parser;
	char path[XML_PATH_MAX];
	size_t path_len;
	int depth;
	struct buf text;
	bool refused;
	void (*begin)(struct document *d); /* may be NULL */
	void (*leaf)(struct document *d, const char *value);
	struct gluster_reply *reply;
	void *data;
};

static void refuse(struct document *d)
{
	d->refused = true;
	XML_StopParser(d->parser, XML_FALSE);
}

static void one_line(char *dst, size_t size, const char *src)
{
	snprintf(dst, size, "%s", src);
	for (; *dst; dst++)
		if (iscntrl((unsigned char)*dst))
			*dst = ' ';
}

static void reply_leaf(struct document *d, const char *value)
{
	if (streq(d->path, "cliOutput/opRet"))
		d->reply->ret = atoi(value);
	else if (streq(d->path, "cliOutput/opErrno"))
		d->reply->op_errno = atoi(value);
	else if (streq(d->path, "cliOutput/opErrstr") && *value)
		one_line(d->reply->message, sizeof(d->reply->message), value);
	else if (streq(d->path, "cliOutput/output") && !d->reply->message[0])
		one_line(d->reply->message, sizeof(d->reply->message), value);
}

static void on_begin(void *userdata, const char *name, const char **attributes)
{
	struct document *d = userdata;
	size_t len = strlen(name);

	if (++d->depth > XML_DEPTH_MAX || d->path_len + len + 2 > sizeof(d->path)) {
		refuse(d);
		return;
	}
	if (d->path_len > 0)
		d->path[d->path_len++] = '/';
	memcpy(d->path + d->path_len, name, len + 1);
	d->path_len += len;
	d->text.len = 0;
	if (d->begin)
		d->begin(d);
}

static void on_text(void *userdata, const char *text, int len)
{
	struct document *d = userdata;

	if (d->text.len + (size_t)len > XML_TEXT_MAX) {
		refuse(d);
		return;
	}
	buf_add(&d->text, text, (size_t)len);
}

static void on_end(void *userdata, const char *name)
{
	struct document *d = userdata;
	char *slash;

	if (d->text.data)
		d->text.data[d->text.len] = '\0';
	reply_leaf(d, d->text.data ? d->text.data : "");
	if (d->leaf)
		d->leaf(d, d->text.data ? d->text.data : "");
	d->text.len = 0;
	d->depth--;
	slash = memrchr(d->path, '/', d->path_len);
	d->path_len = slash ? (size_t)(slash - d->path) : 0;
	d->path[d->path_len] = '\0';
}

/* No document type is ever sent by gluster: refusing one leaves no room for entity tricks. */
static void on_doctype(void *userdata, const char *name, const char *sysid, const char *pubid,
		       int internal)
{
	refuse(userdata);
}

static int document_read(struct document *d, const char *text, size_t len, struct error *err)
{
	struct gluster_reply unused = { 0 };
	int rc = 0;

	if (!d->reply)
		d->reply = &unused;
	*d->reply = (struct gluster_reply){ 0 };
	if (len > 16 * 1024 * 1024)
		return error_set(err, EBADMSG,
				 "Cannot read gluster's answer: it is larger than 16 MiB");
	d->parser = XML_ParserCreate(NULL);
	if (!d->parser)
		abort();
	XML_SetUserData(d->parser, d);
	XML_SetElementHandler(d->parser, on_begin, on_end);
	XML_SetCharacterDataHandler(d->parser, on_text);
	XML_SetStartDoctypeDeclHandler(d->parser, on_doctype);
	if (XML_Parse(d->parser, text, (int)len, 1) != XML_STATUS_OK || d->refused)
		rc = error_set(err, EBADMSG,
			       "Cannot read gluster's answer: line %lu: %s; is glusterd running?",
			       XML_GetCurrentLineNumber(d->parser),
			       d->refused ? "not a document of gluster's"
					  : XML_ErrorString(XML_GetErrorCode(d->parser)));
	XML_ParserFree(d->parser);
	buf_done(&d->text);
	return rc;
}

int gluster_xml_reply(const char *text, size_t len, struct gluster_reply *ret, struct error *err)
{
	struct document d = { .reply = ret };

	return document_read(&d, text, len, err);
}

/* ---- peer status --------------------------------------------------------------------------- */
static void peers_begin(struct document *d)
{
	struct gluster_peers *p = d->data;

	if (!streq(d->path, "cliOutput/peerStatus/peer"))
		return;
	if (p->count >= XML_ITEMS_MAX) {
		refuse(d);
		return;
	}
	p->items = xrealloc(p->items, (p->count + 1) * sizeof(*p->items));
	p->items[p->count++] = (struct gluster_peer){ 0 };
}

static void set_string(char **dst, const char *value)
{
	free(*dst);
	*dst = xstrdup(value);
}

static void peers_leaf(struct document *d, const char *value)
{
	struct gluster_peers *p = d->data;
	struct gluster_peer *peer = p->count > 0 ? &p->items[p->count - 1] : NULL;
	static const char prefix[] = "cliOutput/peerStatus/peer/";
	const char *field = d->path + sizeof(prefix) - 1;

	if (!peer || !str_has_prefix(d->path, prefix))
		return;
	if (streq(field, "uuid"))
		set_string(&peer->uuid, value);
	else if (streq(field, "hostname"))
		set_string(&peer->address, value);
	else if (streq(field, "hostnames/hostname"))
		strv_add(&peer->names, value);
	else if (streq(field, "connected"))
		peer->connected = atoi(value) == 1;
	else if (streq(field, "state"))
		peer->state = atoi(value);
	else if (streq(field, "stateStr"))
		set_string(&peer->state_text, value);
}

int gluster_xml_peers(const char *text, size_t len, struct gluster_reply *reply,
		      struct gluster_peers *ret, struct error *err)
{
	struct gluster_peers peers = { 0 };
	struct document d = {
		.begin = peers_begin, .leaf = peers_leaf, .reply = reply, .data = &peers
	};
	int rc = document_read(&d, text, len, err);

	if (rc < 0) {
		gluster_peers_done(&peers);
		return rc;
	}
	*ret = peers;
	return 0;
}

/* ---- volume info --------------------------------------------------------------------------- */
struct volume_reading {
	const char *name;
	struct gluster_volume volume; /* the one being read */
	struct gluster_volume found;
	bool have;
	char *option;
};

/* "ADDRESS:/path": an IPv6 address has colons too, but never one before a slash. */
static bool brick_split(const char *name, char **ret_address, char **ret_path)
{
	const char *colon = strstr(name, ":/");

	if (!colon || colon == name)
		return false;
	*ret_address = xstrndup(name, (size_t)(colon - name));
	*ret_path = xstrdup(colon + 1);
	return true;
}

static void volume_number(struct gluster_volume *v, const char *field, const char *value)
{
	static const struct {
		const char *field;
		size_t offset;
	} numbers[] = {
		{ "replicaCount", offsetof(struct gluster_volume, replica) },
		{ "arbiterCount", offsetof(struct gluster_volume, arbiter) },
		{ "disperseCount", offsetof(struct gluster_volume, disperse) },
		{ "redundancyCount", offsetof(struct gluster_volume, redundancy) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (streq(field, numbers[i].field))
			*(int *)((char *)v + numbers[i].offset) = atoi(value);
}

static void volume_brick(struct document *d, struct gluster_volume *v, const char *value)
{
	cleanup_free char *address = NULL, *path = NULL;

	if (v->brick_count >= XML_ITEMS_MAX || !brick_split(value, &address, &path)) {
		refuse(d);
		return;
	}
	gluster_volume_add_brick(v, address, path);
}

static void volume_option(struct volume_reading *r, const char *field, const char *value)
{
	if (streq(field, "options/option/name")) {
		set_string(&r->option, value);
	} else if (streq(field, "options/option/value") && r->option) {
		if (!r->volume.options)
			r->volume.options = json_object();
		if (json_object_size(r->volume.options) < XML_ITEMS_MAX)
			json_object_set_new(r->volume.options, r->option, json_string(value));
	}
}

static void volume_keep(struct volume_reading *r)
{
	if (!r->have && streq(r->volume.name, r->name)) {
		r->found = r->volume;
		r->volume = (struct gluster_volume){ 0 };
		r->have = true;
	} else {
		gluster_volume_done(&r->volume);
	}
}

static void volume_leaf(struct document *d, const char *value)
{
	struct volume_reading *r = d->data;
	struct gluster_volume *v = &r->volume;
	static const char prefix[] = "cliOutput/volInfo/volumes/volume";
	const char *field = d->path + sizeof(prefix);

	if (streq(d->path, prefix)) {
		volume_keep(r);
		return;
	}
	if (!str_has_prefix(d->path, prefix) || d->path[sizeof(prefix) - 1] != '/')
		return;
	if (streq(field, "name"))
		set_string(&v->name, value);
	else if (streq(field, "id"))
		set_string(&v->id, value);
	else if (streq(field, "status"))
		v->state = atoi(value) == 1   ? VOLUME_STARTED
			   : atoi(value) == 2 ? VOLUME_STOPPED
					      : VOLUME_CREATED;
	else if (streq(field, "bricks/brick/name"))
		volume_brick(d, v, value);
	else if (streq(field, "bricks/brick/isArbiter") && v->brick_count > 0)
		v->bricks[v->brick_count - 1].arbiter = atoi(value) == 1;
	else if (str_has_prefix(field, "options/"))
		volume_option(r, field, value);
	else
		volume_number(v, field, value);
}

int gluster_xml_volume(const char *text, size_t len, const char *name, struct gluster_reply *reply,
		       struct gluster_volume *ret, struct error *err)
{
	struct volume_reading r = { .name = name };
	struct document d = { .leaf = volume_leaf, .reply = reply, .data = &r };
	int rc = document_read(&d, text, len, err);

	gluster_volume_done(&r.volume);
	free(r.option);
	if (rc == 0 && !r.have)
		rc = error_set(err, ENOENT, "gluster knows no volume \"%s\"", name);
	if (rc < 0) {
		gluster_volume_done(&r.found);
		return rc;
	}
	*ret = r.found;
	return 0;
}

struct address_reading {
	const char *address;
	bool found;
};

static void address_leaf(struct document *d, const char *value)
{
	struct address_reading *r = d->data;
	cleanup_free char *address = NULL, *path = NULL;

	if (streq(d->path, "cliOutput/volInfo/volumes/volume/bricks/brick/name") &&
	    brick_split(value, &address, &path))
		r->found |= streq(address, r->address);
}

int gluster_xml_has_bricks(const char *text, size_t len, const char *address,
			   struct gluster_reply *reply, bool *ret, struct error *err)
{
	struct address_reading r = { .address = address };
	struct document d = { .leaf = address_leaf, .reply = reply, .data = &r };
	int rc = document_read(&d, text, len, err);

	if (rc == 0)
		*ret = r.found;
	return rc;
}

/* ---- volume status detail ------------------------------------------------------------------ */
struct status_reading {
	struct gluster_volume *volume;
	char *address, *path;
	struct gluster_brick *brick;
};

static int64_t number(const char *value)
{
	long long n = atoll(value);

	return n > 0 ? n : 0;
}

static void status_leaf(struct document *d, const char *value)
{
	struct status_reading *r = d->data;
	static const char prefix[] = "cliOutput/volStatus/volumes/volume/node/";
	const char *field = d->path + sizeof(prefix) - 1;

	if (!str_has_prefix(d->path, prefix))
		return;
	if (streq(field, "hostname")) {
		set_string(&r->address, value);
		r->brick = NULL;
	} else if (streq(field, "path")) {
		set_string(&r->path, value);
		r->brick = gluster_brick_find(r->volume, r->address, r->path);
	} else if (!r->brick) {
		return;
	} else if (streq(field, "status")) {
		r->brick->online = atoi(value) == 1;
	} else if (streq(field, "pid")) {
		r->brick->pid = atoi(value) > 0 ? atoi(value) : 0;
	} else if (streq(field, "sizeTotal")) {
		r->brick->size = number(value);
	} else if (streq(field, "sizeFree")) {
		r->brick->free = number(value);
	}
}

int gluster_xml_status(const char *text, size_t len, struct gluster_reply *reply,
		       struct gluster_volume *volume, struct error *err)
{
	struct status_reading r = { .volume = volume };
	struct document d = { .leaf = status_leaf, .reply = reply, .data = &r };
	int rc = document_read(&d, text, len, err);

	free(r.address);
	free(r.path);
	return rc;
}

/* ---- heal counts --------------------------------------------------------------------------- */
static void heal_leaf(struct document *d, const char *value)
{
	struct status_reading *r = d->data;
	static const char prefix[] = "cliOutput/healInfo/bricks/brick/";
	const char *field = d->path + sizeof(prefix) - 1;

	if (!str_has_prefix(d->path, prefix))
		return;
	if (streq(field, "name")) {
		cleanup_free char *address = NULL, *path = NULL;

		r->brick = brick_split(value, &address, &path)
				   ? gluster_brick_find(r->volume, address, path)
				   : NULL;
		if (r->brick)
			r->brick->pending = -1;
	} else if (streq(field, "status") && r->brick) {
		r->brick->connected = streq(value, "Connected");
	} else if (streq(field, "totalNumberOfEntries") && r->brick &&
		   isdigit((unsigned char)*value)) {
		r->brick->pending = number(value);
	}
}

int gluster_xml_heal(const char *text, size_t len, struct gluster_reply *reply,
		     struct gluster_volume *volume, struct error *err)
{
	struct status_reading r = { .volume = volume };
	struct document d = { .leaf = heal_leaf, .reply = reply, .data = &r };

	/* counts of an earlier, less exact look do not stand in for those that are not given */
	for (size_t i = 0; i < volume->brick_count; i++)
		volume->bricks[i].pending = -1;
	return document_read(&d, text, len, err);
}

static const char *after(const char *line, const char *prefix)
{
	return str_has_prefix(line, prefix) ? line + strlen(prefix) : NULL;
}

void gluster_text_heal(const char *text, size_t len, struct gluster_volume *volume)
{
	struct gluster_brick *brick = NULL;

	for (const char *p = text, *end = text + len; p < end;) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		cleanup_free char *line = xstrndup(p, (size_t)((newline ? newline : end) - p));
		cleanup_free char *address = NULL, *path = NULL;
		const char *value;

		if ((value = after(line, "Brick "))) {
			brick = brick_split(value, &address, &path)
					? gluster_brick_find(volume, address, path)
					: NULL;
			if (brick)
				brick->pending = -1;
		} else if (brick && (value = after(line, "Number of entries: "))) {
			if (isdigit((unsigned char)*value))
				brick->pending = number(value);
		}
		p = newline ? newline + 1 : end;
	}
}
