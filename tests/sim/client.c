/* SPDX-License-Identifier: Apache-2.0 */
#include "proc.h"

#include "base/mem.h"

#include <errno.h>

const char *const fault_names[FAULT_COUNT] = {
	[FAULT_NONE] = "none",
	[FAULT_FAIL_BEFORE] = "failed before",
	[FAULT_FAIL_AFTER] = "failed after",
	[FAULT_CONFLICT] = "conflict",
	[FAULT_TIMEOUT] = "timeout",
	[FAULT_LATE] = "late",
	[FAULT_CRASH_BEFORE] = "crash before",
	[FAULT_CRASH_AFTER] = "crash after",
	[FAULT_STALL] = "stall",
	[FAULT_REPEAT] = "repeat",
	[FAULT_DROP] = "drop",
};

#define FOCUS_CRASH 1500
#define FOCUS_CALL 3000

/* ---- what goes wrong --------------------------------------------------------------------------- */

static enum fault choose(struct proc *p, bool write, const char *what)
{
	static const enum fault of_writes[] = { FAULT_FAIL_BEFORE, FAULT_FAIL_AFTER, FAULT_CONFLICT,
						FAULT_TIMEOUT, FAULT_LATE };
	static const enum fault of_reads[] = { FAULT_FAIL_BEFORE, FAULT_TIMEOUT };
	const struct fault_rates *r = &p->world->rates;
	bool focus = write && r->focus && strstr(what, r->focus);
	struct sim *s = p->sim;

	if (p->can_crash && sim_fault(s, focus ? FOCUS_CRASH : r->crash))
		return sim_chance(s, 5000) ? FAULT_CRASH_BEFORE : FAULT_CRASH_AFTER;
	if (!sim_fault(s, focus ? FOCUS_CALL : r->call))
		return FAULT_NONE;
	if (write)
		return of_writes[sim_below(s, ARRAY_SIZE(of_writes))];
	return of_reads[sim_below(s, ARRAY_SIZE(of_reads))];
}

static int dead(struct error *err)
{
	return error_set(err, ECANCELED, "the process is dead");
}

int world_call_begin(struct proc *p, bool write, const char *what, enum fault *ret, struct error *err)
{
	struct sim *s = p->sim;
	enum fault fault;

	*ret = FAULT_NONE;
	if (p->dead)
		return dead(err);
	p->world->calls++;
	while (task_self(s) && s->now_ms < p->frozen_until_ms && !p->dead)
		task_sleep(s, p->frozen_until_ms - s->now_ms);
	if (p->dead)
		return dead(err);
	if (task_self(s))
		task_sleep(s, sim_chance(s, 200) ? sim_below(s, 500) : sim_below(s, 4));
	if (p->dead)
		return dead(err);
	fault = choose(p, write, what);
	p->world->faults[fault]++;
	if (fault != FAULT_NONE)
		sim_trace(s, "%-12s %s: %s", p->name, what, fault_names[fault]);
	else if (write && !strstr(what, " Lease ")) /* there are so many of them */
		sim_trace(s, "%-12s %s", p->name, what);
	switch (fault) {
	case FAULT_CRASH_BEFORE:
		proc_kill(p, 10 + sim_below(s, 5000));
		return dead(err);
	case FAULT_FAIL_BEFORE:
		return error_set(err, EAGAIN, "the connection broke");
	case FAULT_CONFLICT:
		return error_set(err, ESTALE, "somebody else wrote");
	case FAULT_TIMEOUT:
		if (task_self(s))
			task_sleep(s, 5000 + sim_below(s, 25000));
		return error_set(err, ETIMEDOUT, "no answer in time");
	default:
		*ret = fault;
		return 0;
	}
}

int call_end(struct proc *p, enum fault fault, int rc, struct error *err)
{
	struct sim *s = p->sim;

	if (fault == FAULT_CRASH_AFTER)
		proc_kill(p, 10 + sim_below(s, 5000));
	else if (task_self(s))
		task_sleep(s, sim_below(s, 3));
	if (p->dead)
		return dead(err);
	if (fault == FAULT_FAIL_AFTER)
		return error_set(err, EAGAIN, "the connection broke");
	if (fault == FAULT_LATE && task_self(s))
		task_sleep(s, 5000 + sim_below(s, 25000));
	if (fault == FAULT_LATE)
		return error_set(err, ETIMEDOUT, "no answer in time");
	return rc;
}

/* ---- calls to the API -------------------------------------------------------------------------- */

enum call_type { CALL_CREATE, CALL_UPDATE, CALL_PATCH, CALL_DELETE };

/* A write with all that it needs, so that it can also happen later. */
struct call {
	struct proc *proc;
	struct kube *store;
	enum call_type type;
	const struct kind *kind;
	char *ns, *name, *subresource;
	enum kube_patch patch_type;
	json_t *object;
	char *uid, *version, *propagation;
	char *meant; /* the uid of the object that a status was decided for; NULL: not known */
};

static char *copy(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

static void call_done(struct call *c)
{
	free(c->ns);
	free(c->name);
	free(c->subresource);
	free(c->uid);
	free(c->version);
	free(c->propagation);
	free(c->meant);
	json_decref(c->object);
}

static int perform(const struct call *c, json_t **ret, struct error *err)
{
	const struct kube_ops *ops = c->store->ops;

	switch (c->type) {
	case CALL_CREATE:
		return ops->create(c->store, c->kind, c->object, ret, err);
	case CALL_UPDATE:
		return ops->update(c->store, c->kind, c->subresource, c->object, ret, err);
	case CALL_PATCH:
		return ops->patch(c->store, c->kind, c->ns, c->name, c->subresource, c->patch_type,
				  c->object, ret, err);
	default:
		return ops->remove(
			c->store, c->kind, c->ns, c->name,
			&(struct kube_delete_options){ c->uid, c->version, c->propagation }, err);
	}
}

/* A status is of the object that it was decided for, not of one that has its name now. */
static void check_meant(const struct call *c, const json_t *result)
{
	if (c->meant && result && !streq(c->meant, object_uid(result)))
		sim_fail(c->proc->sim, "%s writes the status of one %s %s to another of that name",
			 c->proc->name, c->kind->kind, c->name);
}

static void perform_late(void *arg)
{
	struct call *c = arg;
	struct world *w = c->proc->world;
	cleanup_json json_t *result = NULL;
	int rc;

	w->happens_late = true;
	rc = perform(c, &result, NULL);
	w->happens_late = false;
	if (rc >= 0)
		check_meant(c, result);
	sim_trace(c->proc->sim, "%-12s %s %s happens now: %d", c->proc->name, c->kind->kind,
		  c->name ? c->name : "", rc);
	call_done(c);
	free(c);
}

static int late(const struct call *c, struct error *err)
{
	struct sim *s = c->proc->sim;
	struct call *moved = xmalloc(sizeof(*moved));

	*moved = *c;
	moved->store = c->proc->world->late;
	sim_after(s, 100 + sim_below(s, 20000), perform_late, moved);
	if (task_self(s))
		task_sleep(s, 5000 + sim_below(s, 25000));
	return error_set(err, ETIMEDOUT, "no answer in time");
}

static int write_call(struct call *c, json_t **ret, struct error *err)
{
	static const char *const verbs[] = { "create", "update", "patch", "delete" };
	struct proc *p = c->proc;
	cleanup_json json_t *result = NULL;
	enum fault fault;
	char what[200];
	int rc;

	snprintf(what, sizeof(what), "%s %s %s%s%s", verbs[c->type], c->kind->kind,
		 c->name ? c->name : object_name(c->object), c->subresource ? "/" : "",
		 c->subresource ? c->subresource : "");
	rc = world_call_begin(p, true, what, &fault, err);
	if (rc == 0 && fault == FAULT_LATE)
		return late(c, err);
	if (rc == 0) {
		rc = perform(c, &result, err);
		if (rc >= 0)
			check_meant(c, result);
		else
			sim_trace(p->sim, "%-12s %s: answered %s", p->name, what,
				  error_text(err, rc));
		rc = call_end(p, fault, rc, err);
	}
	if (rc >= 0 && ret)
		*ret = TAKE_PTR(result);
	call_done(c);
	return rc;
}

static struct proc *proc_of(struct kube *k)
{
	return (struct proc *)((char *)k - offsetof(struct proc, kube));
}

static int sim_get(struct kube *k, const struct kind *kind, const char *ns, const char *name,
		   json_t **ret, struct error *err)
{
	struct proc *p = proc_of(k);
	cleanup_json json_t *object = NULL;
	enum fault fault;
	int rc = world_call_begin(p, false, "get", &fault, err);

	if (rc < 0)
		return rc;
	rc = call_end(p, fault, p->store->ops->get(p->store, kind, ns, name, &object, err), err);
	if (rc >= 0 && p->world->change_answer)
		p->world->change_answer(p, kind, object);
	if (rc >= 0)
		*ret = TAKE_PTR(object);
	return rc;
}

static int sim_list(struct kube *k, const struct kind *kind, const char *ns,
		    const struct kube_selector *sel, json_t **ret, char **ret_version,
		    struct error *err)
{
	struct proc *p = proc_of(k);
	cleanup_json json_t *items = NULL;
	cleanup_free char *version = NULL;
	enum fault fault;
	int rc = world_call_begin(p, false, "list", &fault, err);

	if (rc < 0)
		return rc;
	rc = p->store->ops->list(p->store, kind, ns, sel, &items, &version, err);
	rc = call_end(p, fault, rc, err);
	if (rc >= 0) {
		*ret = TAKE_PTR(items);
		*ret_version = TAKE_PTR(version);
	}
	return rc;
}

static int sim_create(struct kube *k, const struct kind *kind, const json_t *object, json_t **ret,
		      struct error *err)
{
	struct proc *p = proc_of(k);
	struct call c = { .proc = p, .store = p->store, .type = CALL_CREATE, .kind = kind };

	c.object = json_deep_copy(object);
	if (p->world->change_write)
		p->world->change_write(p->world, kind, c.object);
	return write_call(&c, ret, err);
}

static int sim_update(struct kube *k, const struct kind *kind, const char *subresource,
		      const json_t *object, json_t **ret, struct error *err)
{
	struct proc *p = proc_of(k);
	struct call c = { .proc = p, .store = p->store, .type = CALL_UPDATE, .kind = kind };

	c.subresource = copy(subresource);
	c.object = json_deep_copy(object);
	return write_call(&c, ret, err);
}

static int sim_patch(struct kube *k, const struct kind *kind, const char *ns, const char *name,
		     const char *subresource, enum kube_patch type, const json_t *patch,
		     json_t **ret, struct error *err)
{
	struct proc *p = proc_of(k);
	struct call c = { .proc = p, .store = p->store, .type = CALL_PATCH, .kind = kind };

	c.ns = copy(ns);
	c.name = copy(name);
	c.subresource = copy(subresource);
	c.patch_type = type;
	c.object = json_deep_copy(patch);
	if (subresource)
		c.meant = copy(proc_first_read(p, kind, name));
	if (p->world->change_write)
		p->world->change_write(p->world, kind, c.object);
	mutate_patch(p->world->mutant, kind, p->visible != NULL, c.object);
	return write_call(&c, ret, err);
}

static int sim_remove(struct kube *k, const struct kind *kind, const char *ns, const char *name,
		      const struct kube_delete_options *options, struct error *err)
{
	struct proc *p = proc_of(k);
	struct call c = { .proc = p, .store = p->store, .type = CALL_DELETE, .kind = kind };

	c.ns = copy(ns);
	c.name = copy(name);
	c.uid = copy(options->uid);
	c.version = copy(options->resource_version);
	c.propagation = copy(options->propagation);
	return write_call(&c, NULL, err);
}

static const struct kube_ops sim_ops = {
	.get = sim_get,
	.list = sim_list,
	.create = sim_create,
	.update = sim_update,
	.patch = sim_patch,
	.remove = sim_remove,
};

void proc_client_init(struct proc *p)
{
	p->kube = (struct kube){ .ops = &sim_ops, .clock = &p->sim->clock };
	p->store = store_client(p->world->store, p->name);
}
