/* SPDX-License-Identifier: Apache-2.0 */
/* The public functions: JSON and structures outside, attachments inside. */
#include "attach.h"
#include "base/file.h"
#include "base/mem.h"
#include "driver.h"
#include "info.h"
#include "properties.h"

#include <errno.h>

const char *hostvol_version(void)
{
	return HOSTVOL_VERSION;
}

void hostvol_free(char *string)
{
	free(string);
}

static int handle_new(const struct hostvol_options *o, struct hostvol **ret, struct error *err)
{
	const char *state = o->state_dir ? o->state_dir : HOSTVOL_DEFAULT_STATE_DIR;
	const char *run = o->run_dir ? o->run_dir : HOSTVOL_DEFAULT_RUN_DIR;
	struct hostvol *h;

	if (!path_is_clean(state) || !path_is_clean(run))
		return error_set(
			err, EINVAL,
			"state_dir and run_dir must be absolute paths without \".\" and \"..\"");
	if (o->deadline_ms < 0)
		return error_set(err, EINVAL, "deadline_ms is negative");
	h = calloc(1, sizeof(*h));
	if (!h)
		return no_memory(err);
	h->state_dir = strdup(state);
	h->run_dir = strdup(run);
	h->ip = o->ip ? strdup(o->ip) : NULL;
	h->deadline_ms = o->deadline_ms ? o->deadline_ms : HOSTVOL_DEFAULT_DEADLINE_MS;
	h->log = o->log;
	h->log_userdata = o->log_userdata;
	h->host = o->host ? o->host : &host_real;
	if (!h->state_dir || !h->run_dir || (o->ip && !h->ip)) {
		hostvol_close(h);
		return no_memory(err);
	}
	*ret = h;
	return 0;
}

int hostvol_open(const struct hostvol_options *options, struct hostvol **ret,
		 struct hostvol_error *err)
{
	struct hostvol_options o = { 0 };
	struct error problem = ERROR_INIT;

	/* a caller of another version has a shorter or a longer structure */
	if (options && options->size < offsetof(struct hostvol_options, host) + sizeof(o.host))
		return give_error(
			&problem,
			error_set(&problem, EINVAL,
				  "hostvol_options.size is not sizeof(struct hostvol_options)"),
			err);
	if (options)
		memcpy(&o, options, options->size < sizeof(o) ? options->size : sizeof(o));
	return give_error(&problem, handle_new(&o, ret, &problem), err);
}

void hostvol_close(struct hostvol *h)
{
	if (!h)
		return;
	free(h->state_dir);
	free(h->run_dir);
	free(h->ip);
	free(h);
}

int hostvol_get_connector_properties(struct hostvol *h, bool multipath, bool do_local_attach,
				     struct hostvol_connector_properties **ret,
				     struct hostvol_error *err)
{
	struct error problem = ERROR_INIT;

	return give_error(&problem, properties_read(h, multipath, do_local_attach, ret, &problem),
			  err);
}

int hostvol_get_connector_properties_json(struct hostvol *h, bool multipath, bool do_local_attach,
					  char **ret_json, struct hostvol_error *err)
{
	struct hostvol_connector_properties *p;
	int r = hostvol_get_connector_properties(h, multipath, do_local_attach, &p, err);

	if (r < 0)
		return r;
	r = hostvol_connector_properties_to_json(p, ret_json, err);
	hostvol_connector_properties_free(p);
	return r;
}

/* ---- connect -------------------------------------------------------------------------------- */

static int connect_json(struct hostvol *h, const char *json, struct attachment **ret,
			struct error *err)
{
	cleanup_with(info_done) struct info i = { 0 };
	cleanup_attachment struct attachment *a = NULL;
	struct call c = call_begin(h);
	int r = info_parse(json, &i, err);

	if (r < 0)
		return r;
	if (!i.driver || !*i.driver)
		return error_set(err, EINVAL, "driverVolumeType is missing");
	r = attachment_new(&c, i.driver, i.data, i.volume_id, i.consumer, &a, err);
	if (r < 0)
		return r;
	r = attach_connect(&c, &a, err);
	if (r >= 0)
		*ret = TAKE_PTR(a);
	return r;
}

int hostvol_connect_volume_json(struct hostvol *h, const char *connection_json,
				char **ret_record_json, struct hostvol_error *err)
{
	cleanup_attachment struct attachment *a = NULL;
	cleanup_json json_t *o = NULL;
	struct error problem = ERROR_INIT;
	int r = connect_json(h, connection_json, &a, &problem), done = r;

	if (r >= 0)
		r = attachment_to_json(a, &o, &problem);
	if (r >= 0)
		r = give_json(o, ret_record_json, &problem);
	return give_error(&problem, r < 0 ? r : done, err);
}

int hostvol_connect_volume(struct hostvol *h, const struct hostvol_connection_info *conn,
			   char **ret_path, struct hostvol_error *err)
{
	cleanup_attachment struct attachment *a = NULL;
	cleanup_free char *json = NULL;
	struct error problem = ERROR_INIT;
	int r = hostvol_connection_info_to_json(conn, &json, err);

	if (r < 0)
		return r;
	r = connect_json(h, json, &a, &problem);
	explicit_bzero(json, strlen(json));
	if (r >= 0)
		*ret_path = TAKE_PTR(a->path);
	return give_error(&problem, r, err);
}

/* ---- disconnect ----------------------------------------------------------------------------- */

/*
 * Which volume is meant: said outright, or what its parameters come to. Only then must there be a
 * driver, and the parameters be in order: a record can be disconnected by its id alone.
 */
static int find_volume_id(const struct call *c, const struct info *i, char **ret, struct error *err)
{
	static const char *const keys[] = { "volumeId", "volume_id", "volId", "vol_id" };
	cleanup_attachment struct attachment *a = NULL;
	const char *id = i->volume_id;
	int r;

	for (size_t k = 0; !id && k < ARRAY_SIZE(keys); k++)
		id = jstr(i->data, keys[k]);
	if (!id) {
		if (!i->driver)
			return error_set(err, EINVAL,
					 "neither volumeId nor driverVolumeType is given");
		r = attachment_new(c, i->driver, i->data, NULL, i->consumer, &a, err);
		if (r < 0)
			return r;
		id = a->volume_id;
	}
	*ret = strdup(id);
	return *ret ? 0 : no_memory(err);
}

struct disconnected {
	char *volume_id, *consumer, *path;
};

static void disconnected_done(struct disconnected *d)
{
	free(d->volume_id);
	free(d->consumer);
	free(d->path);
}

static int disconnect_json(struct hostvol *h, const char *json, unsigned flags,
			   struct disconnected *ret, struct error *err)
{
	cleanup_with(info_done) struct info i = { 0 };
	cleanup_attachment struct attachment *a = NULL;
	struct call c = call_begin(h);
	int r = info_parse(json, &i, err);

	if (r >= 0)
		r = find_volume_id(&c, &i, &ret->volume_id, err);
	if (r < 0)
		return r;
	/* before the first step, so that a lack of memory cannot hide what was done */
	ret->consumer = strdup(i.consumer);
	ret->path = strdup("");
	if (!ret->consumer || !ret->path)
		return no_memory(err);
	c.given = i.data;
	r = attach_disconnect(&c, ret->volume_id, i.consumer,
			      flags & HOSTVOL_FORCE ? ATTACH_END_FORCE : ATTACH_END_CAREFUL, &a,
			      err);
	if (r >= 0 && a && a->path) {
		free(ret->path);
		ret->path = TAKE_PTR(a->path);
	}
	return r;
}

int hostvol_disconnect_volume_json(struct hostvol *h, const char *json, unsigned flags,
				   char **ret_json, struct hostvol_error *err)
{
	cleanup_with(disconnected_done) struct disconnected d = { 0 };
	cleanup_json json_t *o = NULL;
	struct error problem = ERROR_INIT;
	int r = disconnect_json(h, json, flags, &d, &problem), done = r;

	if (r >= 0) {
		o = json_pack("{s:s, s:s, s:s}", "volumeId", d.volume_id, "consumer", d.consumer,
			      "path", d.path);
		r = o ? give_json(o, ret_json, &problem) : no_memory(&problem);
	}
	return give_error(&problem, r < 0 ? r : done, err);
}

int hostvol_disconnect_volume(struct hostvol *h, const struct hostvol_connection_info *conn,
			      char **ret_path, struct hostvol_error *err)
{
	cleanup_with(disconnected_done) struct disconnected d = { 0 };
	cleanup_free char *json = NULL;
	struct error problem = ERROR_INIT;
	int r = hostvol_connection_info_to_json(conn, &json, err);

	if (r < 0)
		return r;
	r = disconnect_json(h, json, 0, &d, &problem);
	explicit_bzero(json, strlen(json));
	if (r >= 0)
		*ret_path = TAKE_PTR(d.path);
	return give_error(&problem, r, err);
}

/* ---- the rest ------------------------------------------------------------------------------- */

int hostvol_get_device_path(struct hostvol *h, const char *volume_id, char **ret_path,
			    struct hostvol_error *err)
{
	cleanup_attachment struct attachment *a = NULL;
	struct error problem = ERROR_INIT;
	struct call c = call_begin(h);
	int r = attach_find(&c, volume_id ? volume_id : "", &a, &problem);

	if (r >= 0)
		*ret_path = TAKE_PTR(a->path);
	return give_error(&problem, r, err);
}

int hostvol_list_json(struct hostvol *h, const char *volume_id, char **ret_json,
		      struct hostvol_error *err)
{
	cleanup_json json_t *o = NULL;
	struct error problem = ERROR_INIT;
	struct call c = call_begin(h);
	int r = attach_list(&c, volume_id, &o, &problem);

	if (r >= 0)
		r = give_json(o, ret_json, &problem);
	return give_error(&problem, r, err);
}

int hostvol_forget_json(struct hostvol *h, const char *json, char **ret_json,
			struct hostvol_error *err)
{
	cleanup_with(info_done) struct info i = { 0 };
	cleanup_json json_t *o = NULL;
	cleanup_free char *volume_id = NULL;
	struct error problem = ERROR_INIT;
	struct call c = call_begin(h);
	int r = info_parse(json, &i, &problem), done = 0;

	if (r >= 0)
		r = find_volume_id(&c, &i, &volume_id, &problem);
	c.given = i.data;
	if (r >= 0)
		r = done = attach_forget(&c, volume_id, &o, &problem);
	if (r >= 0)
		r = give_json(o, ret_json, &problem);
	return give_error(&problem, r < 0 ? r : done, err);
}

int hostvol_recover_json(struct hostvol *h, char **ret_json, struct hostvol_error *err)
{
	cleanup_json json_t *o = NULL;
	struct error problem = ERROR_INIT;
	struct call c = call_begin(h);
	int r = attach_recover(&c, &o, &problem), done = r;

	if (r >= 0)
		r = give_json(o, ret_json, &problem);
	return give_error(&problem, r < 0 ? r : done, err);
}

int hostvol_extend_volume_json(struct hostvol *h, const char *volume_id, char **ret_json,
			       struct hostvol_error *err)
{
	cleanup_json json_t *o = NULL;
	struct error problem = ERROR_INIT, other = ERROR_INIT;
	struct call c = call_begin(h);
	int r = attach_extend(&c, volume_id ? volume_id : "", &o, &problem), done = r;

	if (o)
		r = give_json(o, ret_json, &other);
	return give_error(done < 0 ? &problem : &other, done < 0 ? done : r, err);
}

int hostvol_plan_json(struct hostvol *h, const char *json, char **ret_json,
		      struct hostvol_error *err)
{
	cleanup_with(info_done) struct info i = { 0 };
	cleanup_json json_t *o = NULL;
	cleanup_free char *volume_id = NULL;
	struct error problem = ERROR_INIT;
	struct call c = call_begin(h);
	int r = info_parse(json, &i, &problem);

	if (r >= 0)
		r = find_volume_id(&c, &i, &volume_id, &problem);
	if (r >= 0)
		r = attach_plan(&c, volume_id, i.consumer, &o, &problem);
	if (r >= 0)
		r = give_json(o, ret_json, &problem);
	return give_error(&problem, r, err);
}

int hostvol_audit_json(struct hostvol *h, unsigned flags, char **ret_json,
		       struct hostvol_error *err)
{
	cleanup_json json_t *o = NULL;
	struct error problem = ERROR_INIT;
	struct call c = call_begin(h);
	int r = attach_audit(&c, flags & HOSTVOL_REPAIR, &o, &problem), done = r;

	if (r >= 0)
		r = give_json(o, ret_json, &problem);
	return give_error(&problem, r < 0 ? r : done, err);
}

void hostvol_cancel(struct hostvol *h)
{
	atomic_fetch_add(&h->cancelled, 1);
}

int hostvol_drivers_json(char **ret_json, struct hostvol_error *err)
{
	cleanup_json json_t *o = NULL;
	struct error problem = ERROR_INIT;
	int r = drivers_to_json(&o, &problem);

	if (r >= 0)
		r = give_json(o, ret_json, &problem);
	return give_error(&problem, r, err);
}
