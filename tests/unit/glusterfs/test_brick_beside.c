/* SPDX-License-Identifier: Apache-2.0 */
/* Bricks of whole volumes, which lie beside another on its file system. */
#include "base/mem.h"
#include "systems/glusterfs/brick.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define ROOT "/bricks/b-parent"

struct model {
	struct node_host host;
	json_t *records;
	json_t *markers; /* root to marker, of what is mounted */
	int removed;
};

static struct model *model(struct node_host *h)
{
	return (struct model *)h;
}

static int m_marker_read(struct node_host *h, const char *root, json_t **ret, struct error *err)
{
	json_t *marker = json_object_get(model(h)->markers, root);

	if (!marker)
		return error_set(err, ENOENT, "%s has no marker", root);
	*ret = json_incref(marker);
	return 0;
}

static int m_marker_write(struct node_host *h, const char *root, const json_t *marker,
			  struct error *err)
{
	return json_object_set_new(model(h)->markers, root, json_deep_copy(marker));
}

static int m_tree_remove(struct node_host *h, const char *root, const char *id, struct error *err)
{
	json_object_del(model(h)->markers, root);
	model(h)->removed++;
	return 0;
}

static int m_record_get(struct node_host *h, const char *name, json_t **ret, struct error *err)
{
	json_t *record = json_object_get(model(h)->records, name);

	if (!record)
		return error_set(err, ENOENT, "no record %s", name);
	*ret = json_deep_copy(record);
	return 0;
}

static int m_record_put(struct node_host *h, const char *name, const json_t *record,
			struct error *err)
{
	return json_object_set_new(model(h)->records, name, json_deep_copy(record));
}

static int m_record_remove(struct node_host *h, const char *name, struct error *err)
{
	json_object_del(model(h)->records, name);
	return 0;
}

static int m_glusterd(struct node_host *h, bool start, struct glusterd_state *ret,
		      struct error *err)
{
	*ret = (struct glusterd_state){ .running = true };
	return 0;
}

static int m_volume_get(struct node_host *h, const char *name, enum volume_look look,
			struct gluster_volume *ret, struct error *err)
{
	return error_set(err, ENOENT, "no volume %s", name);
}

static const struct node_host_ops ops = {
	.marker_read = m_marker_read,
	.marker_write = m_marker_write,
	.tree_remove = m_tree_remove,
	.record_get = m_record_get,
	.record_put = m_record_put,
	.record_remove = m_record_remove,
	.glusterd_ensure = m_glusterd,
	.volume_get = m_volume_get,
};

static const struct brick_order order = {
	.id = "b-child",
	.directory = ROOT,
	.path = ROOT "/.quartermaster-b-child/brick",
	.pool = "pvc-1",
	.parent = "b-parent",
	.node_uid = "u",
};

static int setup(void **state)
{
	struct model *m = xcalloc(1, sizeof(*m));

	m->host.ops = &ops;
	m->records = json_pack("{s:{s:s}}", "brick.b-parent", "id", "b-parent");
	m->markers = json_pack("{s:{s:s, s:s}}", ROOT, "id", "b-parent", "node", "u");
	*state = m;
	return 0;
}

static int teardown(void **state)
{
	struct model *m = *state;

	json_decref(m->records);
	json_decref(m->markers);
	free(m);
	return 0;
}

static const char *prepare(struct model *m)
{
	static struct brick_result r;
	char uuid[UUID_TEXT_MAX];

	assert_true(brick_order_valid(&order));
	assert_int_equal(brick_choose(&m->host, &order, uuid, NULL), 0);
	brick_prepare(&m->host, &order, &r);
	return r.verdict.state;
}

static void made_and_released(void **state)
{
	struct model *m = *state;

	assert_string_equal(prepare(m), "Ready");
	assert_string_equal(prepare(m), "Ready");
	assert_int_equal(brick_release(&m->host, "b-child", NULL), 0);
	assert_int_equal(m->removed, 1);
	assert_null(json_object_get(m->records, "brick.b-child"));
	assert_non_null(json_object_get(m->markers, ROOT));
}

/* A mount point without its file system is no place for it. */
static void not_where_nothing_is_mounted(void **state)
{
	struct model *m = *state;

	json_object_clear(m->markers);
	assert_string_equal(prepare(m), "Failed");
	assert_int_equal(json_object_size(m->markers), 0);
	jset(m->markers, json_string("b-other"), ROOT, "id");
	assert_string_equal(prepare(m), "Failed");
}

/* Nor is one that cannot be seen gone; it goes when it can. */
static void released_when_it_is_there(void **state)
{
	struct model *m = *state;
	cleanup_json json_t *mounted = NULL;

	assert_string_equal(prepare(m), "Ready");
	mounted = TAKE_PTR(m->markers);
	m->markers = json_object();
	assert_int_equal(brick_release(&m->host, "b-child", NULL), 1);
	assert_int_equal(m->removed, 0);
	assert_true(jbool(m->records, "brick.b-child", "away"));
	json_decref(m->markers);
	m->markers = TAKE_PTR(mounted);
	assert_int_equal(brick_release(&m->host, "b-child", NULL), 0);
	assert_int_equal(m->removed, 1);
	assert_null(json_object_get(m->records, "brick.b-child"));
}

static void gone_with_what_it_lay_on(void **state)
{
	struct model *m = *state;

	assert_string_equal(prepare(m), "Ready");
	json_object_clear(m->markers);
	json_object_del(m->records, "brick.b-parent");
	assert_int_equal(brick_release(&m->host, "b-child", NULL), 0);
	assert_int_equal(m->removed, 0);
	assert_null(json_object_get(m->records, "brick.b-child"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(made_and_released, setup, teardown),
		cmocka_unit_test_setup_teardown(not_where_nothing_is_mounted, setup, teardown),
		cmocka_unit_test_setup_teardown(released_when_it_is_there, setup, teardown),
		cmocka_unit_test_setup_teardown(gone_with_what_it_lay_on, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
