/* SPDX-License-Identifier: Apache-2.0 */
#include "systems/glusterfs/cli.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/spawn.h"
#include "systems/glusterfs/xml.h"

#include <errno.h>
#include <stdio.h>

#define READ_TIMEOUT_MS 30000
#define WRITE_TIMEOUT_MS 120000 /* glusterd's own limit for a transaction */

static void gluster_argv(struct strv *argv, bool xml)
{
	strv_add(argv, "gluster");
	strv_add(argv, "--mode=script");
	if (xml)
		strv_add(argv, "--xml");
}

static int failure_code(const struct gluster_reply *r)
{
	if (strstr(r->message, "nother transaction") || strstr(r->message, "Locking failed") ||
	    strstr(r->message, "lock is held"))
		return EBUSY;
	if (strstr(r->message, "does not exist"))
		return ENOENT;
	if (strstr(r->message, "already part of another cluster"))
		return EXDEV;
	if (strstr(r->message, "not connected") || r->op_errno == ENOTCONN)
		return EHOSTUNREACH;
	return EIO;
}

static int failure(const struct strv *argv, const struct gluster_reply *r, struct error *err)
{
	cleanup_with(buf_done) struct buf what = { 0 };
	size_t first = 2;

	while (first < argv->count && str_has_prefix(argv->items[first], "--"))
		first++;
	for (size_t i = first; i < argv->count && i < first + 3; i++)
		buf_printf(&what, " %s", argv->items[i]);
	return error_set(err, failure_code(r), "gluster%s: %s", what.data ? what.data : "",
			 r->message);
}

/* Runs gluster; the reply is there when 0 is returned or gluster reported a failure itself. */
static int run(const struct strv *argv, int timeout_ms, struct spawn_result *ret, struct error *err)
{
	int rc = spawn_run(&(struct spawn){ .argv = (const char *const *)argv->items,
					    .timeout_ms = timeout_ms },
			   ret, err);

	if (rc < 0)
		return rc;
	if (strstr(ret->out.data ? ret->out.data : "", "Connection failed") ||
	    strstr(ret->err.data ? ret->err.data : "", "Connection failed"))
		return error_set(err, ENOTCONN,
				 "glusterd does not answer: see /var/log/glusterfs/glusterd.log");
	return 0;
}

/* For commands of which only success matters. */
static int run_checked(const struct strv *argv, int timeout_ms, struct gluster_reply *ret,
		       struct error *err)
{
	struct spawn_result result cleanup_with(spawn_result_done) = { 0 };
	int rc = run(argv, timeout_ms, &result, err);

	if (rc == 0)
		rc = gluster_xml_reply(result.out.data ? result.out.data : "", result.out.len, ret,
				       err);
	if (rc == 0 && ret->ret != 0)
		rc = failure(argv, ret, err);
	return rc;
}

static int run_words(const char *const *words, int timeout_ms, struct error *err)
{
	struct strv argv cleanup_with(strv_done) = { 0 };
	struct gluster_reply reply;

	gluster_argv(&argv, true);
	for (; *words; words++)
		strv_add(&argv, *words);
	return run_checked(&argv, timeout_ms, &reply, err);
}
#define RUN(timeout, err, ...) run_words((const char *const[]){ __VA_ARGS__, NULL }, timeout, err)

/* ---- peers --------------------------------------------------------------------------------- */
int cli_peers(struct gluster_peers *ret, struct error *err)
{
	struct strv argv cleanup_with(strv_done) = { 0 };
	struct spawn_result result cleanup_with(spawn_result_done) = { 0 };
	struct gluster_reply reply;
	int rc;

	gluster_argv(&argv, true);
	strv_add(&argv, "peer");
	strv_add(&argv, "status");
	rc = run(&argv, READ_TIMEOUT_MS, &result, err);
	if (rc == 0)
		rc = gluster_xml_peers(result.out.data ? result.out.data : "", result.out.len,
				       &reply, ret, err);
	if (rc == 0 && reply.ret != 0) {
		gluster_peers_done(ret);
		rc = failure(&argv, &reply, err);
	}
	return rc;
}

int cli_peer_probe(const char *address, struct error *err)
{
	return RUN(WRITE_TIMEOUT_MS, err, "peer", "probe", address);
}

static int has_bricks(const char *address, bool *ret, struct error *err)
{
	struct strv argv cleanup_with(strv_done) = { 0 };
	struct spawn_result result cleanup_with(spawn_result_done) = { 0 };
	struct gluster_reply reply;
	int rc;

	gluster_argv(&argv, true);
	strv_add(&argv, "volume");
	strv_add(&argv, "info");
	rc = run(&argv, READ_TIMEOUT_MS, &result, err);
	if (rc == 0)
		rc = gluster_xml_has_bricks(result.out.data ? result.out.data : "", result.out.len,
					    address, &reply, ret, err);
	return rc == 0 && reply.ret != 0 ? failure(&argv, &reply, err) : rc;
}

/* A peer that is down leaves only by force, for which gluster does not look for bricks: we do, always. */
int cli_peer_detach(const char *address, struct error *err)
{
	bool bricks;
	int rc = has_bricks(address, &bricks, err);

	if (rc < 0)
		return rc;
	if (bricks)
		return error_set(
			err, EBUSY,
			"Node %s cannot leave the trusted pool: a volume has a brick there",
			address);
	rc = RUN(WRITE_TIMEOUT_MS, NULL, "peer", "detach", address);
	return rc == 0 ? 0 : RUN(WRITE_TIMEOUT_MS, err, "peer", "detach", address, "force");
}

/* ---- looking at a volume ------------------------------------------------------------------- */
static int read_info(const char *name, struct gluster_volume *ret, struct error *err)
{
	struct strv argv cleanup_with(strv_done) = { 0 };
	struct spawn_result result cleanup_with(spawn_result_done) = { 0 };
	struct gluster_reply reply;
	int rc;

	gluster_argv(&argv, true);
	strv_add(&argv, "volume");
	strv_add(&argv, "info");
	strv_add(&argv, name);
	rc = run(&argv, READ_TIMEOUT_MS, &result, err);
	if (rc == 0)
		rc = gluster_xml_volume(result.out.data ? result.out.data : "", result.out.len,
					name, &reply, ret, err);
	/* only glusterd's own word counts for "there is none": anything else might lead to a second one */
	if (rc == -ENOENT && !strstr(reply.message, "does not exist"))
		rc = failure(&argv, &reply, err);
	return rc;
}

static int read_status(struct gluster_volume *v, struct error *err)
{
	struct strv argv cleanup_with(strv_done) = { 0 };
	struct spawn_result result cleanup_with(spawn_result_done) = { 0 };
	struct gluster_reply reply;
	int rc;

	gluster_argv(&argv, true);
	strv_add(&argv, "volume");
	strv_add(&argv, "status");
	strv_add(&argv, v->name);
	strv_add(&argv, "detail");
	rc = run(&argv, READ_TIMEOUT_MS, &result, err);
	if (rc == 0)
		rc = gluster_xml_status(result.out.data ? result.out.data : "", result.out.len,
					&reply, v, err);
	if (rc == 0 && reply.ret != 0)
		rc = failure(&argv, &reply, err);
	return rc;
}

/*
 * What is left to heal: by the indices, which is cheap; or exactly, with what is in flight and in
 * split brain, by gluster's crawler.
 */
static int read_heal(struct gluster_volume *v, bool exact, struct error *err)
{
	struct strv argv cleanup_with(strv_done) = { 0 };
	struct spawn_result result cleanup_with(spawn_result_done) = { 0 };
	struct gluster_reply reply;
	int rc;

	exact |= v->disperse > 0; /* the other knows replicas only */
	gluster_argv(&argv, exact);
	strv_add(&argv, "volume");
	strv_add(&argv, "heal");
	strv_add(&argv, v->name);
	strv_add(&argv, exact ? "info" : "statistics");
	strv_add(&argv, exact ? "summary" : "heal-count");
	rc = run(&argv, exact ? WRITE_TIMEOUT_MS : READ_TIMEOUT_MS, &result, err);
	if (rc < 0)
		return rc;
	if (exact)
		return gluster_xml_heal(result.out.data ? result.out.data : "", result.out.len,
					&reply, v, err);
	/* has no XML in this version of gluster */
	gluster_text_heal(result.out.data ? result.out.data : "", result.out.len, v);
	return 0;
}

static bool some_offline(const struct gluster_volume *v)
{
	for (size_t i = 0; i < v->brick_count; i++)
		if (!v->bricks[i].online)
			return true;
	return false;
}

/*
 * The longer a brick is away, the longer it takes to list what it misses, and in the end longer
 * than anybody waits: then nothing is known of that, but all the rest is.
 */
static void forget_heal(struct gluster_volume *v)
{
	for (size_t i = 0; i < v->brick_count; i++) {
		v->bricks[i].pending = -1;
		v->bricks[i].connected = false;
		v->bricks[i].unasked = true;
	}
}

int cli_volume_get(const char *name, enum volume_look look, struct gluster_volume *ret,
		   struct error *err)
{
	struct gluster_volume v = { 0 };
	int rc = read_info(name, &v, err);
	bool runs = v.state == VOLUME_STARTED && look != VOLUME_LOOK_DEFINITION;

	if (rc < 0)
		return rc;
	if (runs)
		rc = read_status(&v, err);
	if (rc == 0 && runs && (v.replica > 1 || v.disperse > 0)) {
		rc = read_heal(&v, look == VOLUME_LOOK_EXACT, err);
		if (rc < 0 && some_offline(&v)) {
			forget_heal(&v);
			rc = 0;
		}
	}
	if (v.replica <= 1 && v.disperse == 0)
		for (size_t i = 0; i < v.brick_count; i++)
			v.bricks[i].pending = 0; /* a single copy has nothing to heal from */
	if (rc < 0) {
		gluster_volume_done(&v);
		return rc;
	}
	*ret = v;
	return 0;
}

/* ---- changing a volume --------------------------------------------------------------------- */
static void add_number(struct strv *argv, const char *word, int n)
{
	strv_add(argv, word);
	strv_add_take(argv, xasprintf("%d", n));
}

static void add_bricks(struct strv *argv, const struct volume_step *s)
{
	for (size_t i = 0; i < s->bricks.count; i++)
		strv_add(argv, s->bricks.items[i]);
}

static void add_options(struct strv *argv, const struct volume_step *s)
{
	const char *key;
	json_t *value;

	json_object_foreach (s->options, key, value) {
		strv_add(argv, key);
		strv_add(argv, json_string_value(value));
	}
}

static void create_words(struct strv *argv, const struct volume_step *s)
{
	strv_add(argv, s->volume);
	if (s->disperse > 0) {
		add_number(argv, "disperse", s->disperse);
		add_number(argv, "redundancy", s->redundancy);
	} else if (s->replica > 1) {
		add_number(argv, "replica", s->arbiter ? 2 : s->replica);
		if (s->arbiter)
			add_number(argv, "arbiter", 1);
	}
	add_bricks(argv, s);
	/* without it gluster asks back: about directories on the root file system, or unusual disperse counts */
	strv_add(argv, "force");
}

static bool step_words(struct strv *argv, const struct volume_step *s)
{
	static const char *const verbs[] = {
		[STEP_CREATE] = "create",
		[STEP_SET] = "set",
		[STEP_START] = "start",
		[STEP_START_FORCE] = "start",
		[STEP_ADD_BRICK] = "add-brick",
		[STEP_HEAL] = "heal",
		[STEP_REMOVE_BRICK] = "remove-brick",
		[STEP_REPLACE_BRICK] = "replace-brick",
		[STEP_STOP] = "stop",
		[STEP_DELETE] = "delete",
	};

	if (s->kind >= ARRAY_SIZE(verbs) || !verbs[s->kind])
		return false;
	strv_add(argv, "volume");
	strv_add(argv, verbs[s->kind]);
	if (s->kind == STEP_CREATE) {
		create_words(argv, s);
		return true;
	}
	strv_add(argv, s->volume);
	if (s->kind == STEP_ADD_BRICK || s->kind == STEP_REMOVE_BRICK)
		add_number(argv, "replica", s->replica);
	add_bricks(argv, s);
	if (s->kind == STEP_SET)
		add_options(argv, s);
	if (s->kind == STEP_REPLACE_BRICK)
		strv_add(argv, "commit");
	if (s->kind != STEP_SET && s->kind != STEP_HEAL && s->kind != STEP_START &&
	    s->kind != STEP_DELETE)
		strv_add(argv, "force");
	return true;
}

/* heal has no XML answer in this version: its exit status is all there is. */
static int heal(const struct strv *argv, struct error *err)
{
	struct spawn_result result cleanup_with(spawn_result_done) = { 0 };
	struct gluster_reply reply = { 0 };
	int rc = run(argv, WRITE_TIMEOUT_MS, &result, err);

	if (rc < 0 || result.status == 0)
		return rc;
	snprintf(reply.message, sizeof(reply.message), "%s",
		 result.err.len ? result.err.data : "no reason given");
	reply.message[strcspn(reply.message, "\n")] = '\0';
	return failure(argv, &reply, err);
}

/* Right before: what was looked at may be gone, and what is there now another's. */
static int check_volume(const struct volume_step *step, struct error *err)
{
	struct gluster_volume now cleanup_with(gluster_volume_done) = { 0 };
	int rc = step->id[0] ? read_info(step->volume, &now, err) : 0;

	return rc < 0 || !step->id[0] ? rc : volume_step_check(step, &now, err);
}

int cli_volume_apply(const struct volume_step *step, struct error *err)
{
	struct strv argv cleanup_with(strv_done) = { 0 };
	struct gluster_reply reply;
	int rc;

	gluster_argv(&argv, step->kind != STEP_HEAL);
	if (!step_words(&argv, step))
		return error_set(err, EINVAL, "\"%s\" is not a step for gluster",
				 volume_step_name(step->kind));
	rc = check_volume(step, err);
	if (rc < 0)
		return rc;
	log_info("volume %s: %s: %s", step->volume, volume_step_name(step->kind), step->why);
	return step->kind == STEP_HEAL ? heal(&argv, err)
				       : run_checked(&argv, WRITE_TIMEOUT_MS, &reply, err);
}

int cli_version(char *ret, size_t size, struct error *err)
{
	const char *argv[] = { "glusterd", "--version", NULL };
	struct spawn_result result cleanup_with(spawn_result_done) = { 0 };
	int rc = spawn_check(&(struct spawn){ .argv = argv, .timeout_ms = READ_TIMEOUT_MS },
			     &result, err);
	const char *p;

	if (rc < 0)
		return rc;
	p = strpbrk(result.out.data ? result.out.data : "", "0123456789");
	if (!p)
		return error_set(err, EBADMSG, "glusterd --version names no version");
	snprintf(ret, size, "%.*s", (int)strspn(p, "0123456789."), p);
	return 0;
}
