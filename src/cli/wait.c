/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/follow.h"
#include "cli/print.h"

#include "base/mem.h"

#include <errno.h>
#include <strings.h>

#define TICK_MS 1000

struct goal {
	enum { GOAL_CONDITION, GOAL_PHASE, GOAL_STATUS, GOAL_DELETE } type;
	char name[64], value[64];
	bool seen; /* the object has been there */
	char found[400]; /* what was found instead, for the message */
};

static bool parse_goal(const char *text, struct goal *ret)
{
	const char *rest = strchr(text, '='), *value;

	*ret = (struct goal){ 0 };
	if (streq(text, "delete")) {
		ret->type = GOAL_DELETE;
		return true;
	}
	if (!rest || !rest[1] || strlen(rest + 1) >= sizeof(ret->name))
		return false;
	rest++;
	if (str_has_prefix(text, "phase=") || str_has_prefix(text, "status=")) {
		ret->type = text[0] == 'p' ? GOAL_PHASE : GOAL_STATUS;
		(void)snprintf(ret->value, sizeof(ret->value), "%s", rest);
		return true;
	}
	if (!str_has_prefix(text, "condition="))
		return false;
	value = strchr(rest, '=');
	ret->type = GOAL_CONDITION;
	(void)snprintf(ret->name, sizeof(ret->name), "%.*s", (int)strcspn(rest, "="), rest);
	(void)snprintf(ret->value, sizeof(ret->value), "%s", value ? value + 1 : "True");
	return true;
}

static int check_condition(struct goal *g, const json_t *o)
{
	const json_t *c = condition_get(jget(o, "status", "conditions"), g->name);
	const char *status = jstr(c, "status"), *message = jstr(c, "message");

	if (status && strcasecmp(status, g->value) == 0)
		return 1;
	(void)snprintf(g->found, sizeof(g->found), "condition %s is %s%s%s", g->name,
		       status ? status : "not set", message && *message ? ": " : "",
		       message ? message : "");
	return 0;
}

static int check_word(struct goal *g, const char *word, const char *what)
{
	(void)snprintf(g->found, sizeof(g->found), "%s is %s", what, word ? word : "not set");
	return streq(word, g->value);
}

static int is_reached(const json_t *o, void *userdata)
{
	struct goal *g = userdata;

	if (g->type == GOAL_DELETE)
		return o ? 0 : 1;
	if (!o)
		return g->seen ? -ENOENT : 0; /* it may yet come, but not come again */
	g->seen = true;
	if (g->type == GOAL_PHASE)
		return check_word(g, jstr(o, "status", "phase"), "phase");
	if (g->type == GOAL_STATUS)
		return check_word(g, jstr(o, "spec", "status"), "status");
	return check_condition(g, o);
}

int cmd_wait(struct session *s, const struct args *a)
{
	const char *text = args_value(a, "for"), *name = a->words[1];
	const struct kind *k = kind_of_word(a->words[0]);
	cleanup_free char *title = NULL;
	struct error err = ERROR_INIT;
	int64_t timeout_ms;
	struct goal g;
	int rc;

	if (!k || args_duration(a, "timeout", 30000, &timeout_ms) != QM_OK)
		return QM_USAGE;
	if (!text || !parse_goal(text, &g))
		return usage_error(a->verb, "it needs --for=condition=TYPE, --for=phase=PHASE, "
					    "--for=status=ONLINE or --for=delete");
	title = object_title(k, name);
	rc = follow(s, k, session_ns(s, k), name, timeout_ms, TICK_MS, is_reached, &g, &err);
	if (rc > 0) {
		(void)fprintf(s->out, g.type == GOAL_DELETE ? "%s is gone\n" : "%s is %s\n", title,
			      text);
		return QM_OK;
	}
	if (rc == -ENOENT)
		(void)error_set(&err, ENOENT, "%s was deleted meanwhile", title);
	if (rc != -ETIMEDOUT)
		return session_fail(s, rc, &err);
	if (g.type != GOAL_DELETE && !g.seen)
		(void)snprintf(g.found, sizeof(g.found), "there is no %s", title);
	(void)fprintf(stderr, "quartermaster: timed out waiting for %s of %s: %s\n", text, title,
		      g.type == GOAL_DELETE ? "it is still there" : g.found);
	return QM_TIMED_OUT;
}
