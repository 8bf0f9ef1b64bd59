/* SPDX-License-Identifier: Apache-2.0 */
/* How clients move from one image to another. */
#include "base/mem.h"
#include "base/str.h"
#include "pods/csi_clients.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define PATIENCE_MS 600000
#define NEW "example.org/gluster:12"
#define OLD "example.org/gluster:11"

static char *new_id, *old_id;
static json_t *daemonsets, *pods, *counts;
static const char *made; /* when the pods that are added now were made */
static struct clients_plan p;

static int begin(void **state)
{
	new_id = client_image_id(NEW);
	old_id = client_image_id(OLD);
	daemonsets = json_array();
	pods = json_array();
	counts = NULL;
	made = "1970-01-01T00:00:10Z";
	return 0;
}

static int end(void **state)
{
	clients_plan_done(&p);
	json_decref(daemonsets);
	json_decref(pods);
	json_decref(counts);
	free(new_id);
	free(old_id);
	return 0;
}

static json_t *add_daemonset(const char *image, const char *created, int desired)
{
	cleanup_free char *id = client_image_id(image);
	json_t *o = json_pack("{s:{s:s, s:i, s:s, s:{s:s}}, s:{s:{s:{s:[{s:s}]}}}, s:{s:i, s:i}}",
			      "metadata", "name", id, "generation", 1, "creationTimestamp", created,
			      "labels", CSI_CLIENT_ID, id, "spec", "template", "spec", "containers",
			      "image", image, "status", "observedGeneration", 1,
			      "desiredNumberScheduled", desired);

	json_array_append_new(daemonsets, o);
	return o;
}

/* state: of its container, stolen. */
static json_t *add_pod(const char *image, const char *node, bool ready, json_t *state)
{
	cleanup_free char *id = client_image_id(image);
	cleanup_json json_t *pod =
		json_pack("{s:{s:s, s:{s:s}}, s:{s:s, s:[{s:s}]}, s:{s:[{s:b, s:o}]}}", "metadata",
			  "creationTimestamp", made, "labels", CSI_CLIENT_ID, id, "spec",
			  "nodeName", node, "containers", "image", image, "status",
			  "containerStatuses", "ready", (int)ready, "state", state);
	json_t *seen = client_pod(pod);

	json_array_append_new(pods, seen);
	return seen;
}

static json_t *running(void)
{
	return json_pack("{s:{}}", "running");
}

static json_t *waiting(const char *reason, const char *message)
{
	return json_pack("{s:{s:s, s:s*}}", "waiting", "reason", reason, "message", message);
}

/* seconds after 1970 */
static void look(int seconds, const json_t *order)
{
	struct clients_view v = { .image = NEW,
				  .daemonsets = daemonsets,
				  .pods = pods,
				  .order = order,
				  .counts = counts,
				  .now_ms = seconds * 1000LL,
				  .patience_ms = PATIENCE_MS };

	clients_plan_done(&p);
	clients_plan(&v, &p);
}

static void assert_order(const char *first, const char *second)
{
	assert_string_equal(json_string_value(json_array_get(p.order, 0)), first);
	assert_int_equal(json_array_size(p.order), second ? 2 : 1);
	if (second)
		assert_string_equal(json_string_value(json_array_get(p.order, 1)), second);
}

static void first_of_all(void **state)
{
	look(0, NULL);
	assert_true(p.create);
	assert_order(new_id, NULL);
	assert_false(p.updated);
}

static void beside_the_old_one(void **state)
{
	add_daemonset(OLD, "1970-01-01T00:00:00Z", 2);
	add_pod(OLD, "a", true, running());
	add_pod(OLD, "b", true, running());
	look(10, NULL);
	assert_true(p.create);
	assert_order(new_id, old_id);
	assert_int_equal(json_array_size(p.remove), 0);

	add_daemonset(NEW, "1970-01-01T00:00:10Z", 2);
	add_pod(NEW, "a", true, running());
	look(5000, NULL); /* one machine does not say anything for long: it may be off */
	assert_false(p.refuse);
	assert_false(p.updated);
	assert_int_equal(json_array_size(p.remove), 0);
	assert_string_equal(p.message, "1 of 2 machines have the client " NEW);
}

/* text: what the machine b says of its clients; stolen. */
static void says_how_many(const json_t *order, char *text, const char *words)
{
	cleanup_free char *said = text;

	json_decref(counts);
	counts = json_pack("{s:{s:s, s:s}}", "data", "a", "{}", "b", said);
	look(30, order);
	assert_string_equal(p.message + strlen(p.message) - strlen(words), words);
}

static void everywhere(void **state)
{
	cleanup_json json_t *order = json_pack("[s, s]", new_id, old_id);
	json_t *last;

	add_daemonset(OLD, "1970-01-01T00:00:00Z", 2);
	add_daemonset(NEW, "1970-01-01T00:00:10Z", 2);
	add_pod(NEW, "a", true, running());
	add_pod(NEW, "b", true, running());
	last = add_pod(OLD, "b", true, running());
	look(20, order);
	assert_int_equal(json_array_size(p.remove), 1);
	assert_string_equal(json_string_value(json_array_get(p.remove, 0)), old_id);
	assert_false(p.updated); /* whether its pods go, and when, is not known yet */

	/* gone, but for a pod that is used */
	json_array_remove(daemonsets, 0);
	json_object_set_new(last, "ending", json_true());
	look(30, order);
	assert_false(p.updated);
	assert_string_equal(p.reason, "InUse");
	assert_non_null(strstr(p.message, "2 of 2 machines"));
	assert_non_null(
		strstr(p.message, "b: the client of " OLD " stays while its mounts are used"));
	assert_null(strstr(p.message, "volume"));
	says_how_many(order, xasprintf("{\"x\":1,\"%s\":3}", old_id),
		      " stays while its mounts are used (3 volumes)");
	says_how_many(order, xasprintf("{\"%s\":1}", old_id),
		      " stays while its mounts are used (1 volume)");
	says_how_many(order, xstrdup("{}"), " stays while its mounts are used (0 volumes)");
	says_how_many(order, xstrdup("["),
		      " stays while its mounts are used"); /* no machine wrote that */
	/* what is no longer there is left in the order: the node service need not roll */
	assert_order(new_id, old_id);

	json_array_remove(pods, 2);
	look(40, order);
	assert_true(p.updated);
	assert_int_equal(json_array_size(p.remove), 0);
	assert_order(new_id, old_id);
}

static void bad_image(void **state)
{
	cleanup_json json_t *order = json_pack("[s, s]", new_id, old_id);
	json_t *new;

	add_daemonset(OLD, "1970-01-01T00:00:00Z", 2);
	new = add_daemonset(NEW, "1970-01-01T00:00:10Z", 2);
	add_pod(NEW, "a", true, running());
	add_pod(NEW, "b", false, waiting("ImagePullBackOff", "no such image"));
	look(20, order);
	assert_false(p.refuse);
	assert_string_equal(p.reason, "ClientFails");
	assert_non_null(
		strstr(p.message, "1 of 2 machines have the client " NEW "; b: no such image"));
	assert_order(new_id, old_id);

	look(10 + PATIENCE_MS / 1000, order);
	assert_true(p.refuse);
	assert_string_equal(p.reason, "RolledBack");
	assert_int_equal(json_array_size(p.remove), 0);
	assert_order(old_id, new_id);
	assert_string_equal(p.message, "the client " NEW " was taken back, machines use " OLD
				       ": b: no such image");

	/* it is remembered, until another image is wanted */
	json_object_set_new(json_object_get(new, "metadata"), "annotations",
			    json_pack("{s:s}", CSI_REFUSED, p.message));
	json_array_clear(pods);
	look(9000, order);
	assert_false(p.create);
	assert_false(p.refuse);
	assert_order(old_id, new_id);
	assert_int_equal(json_array_size(p.remove), 0);
	assert_non_null(strstr(p.message, "b: no such image"));

	/* the old one was deleted by somebody: then it is tried again */
	json_array_remove(daemonsets, 0);
	look(9001, order);
	assert_true(p.create);
	assert_int_equal(json_array_size(p.remove), 1);
}

/* A machine that comes late, or whose client fails after all was well, gets as long as the others. */
static void fails_late(void **state)
{
	cleanup_json json_t *order = json_pack("[s, s]", new_id, old_id), *ready = NULL, *seen;
	int late = 10 + 5 * PATIENCE_MS / 1000;

	add_daemonset(OLD, "1970-01-01T00:00:00Z", 2);
	add_daemonset(NEW, "1970-01-01T00:00:10Z", 2);
	add_pod(NEW, "a", true, running());
	made = "1970-01-01T00:50:10Z"; /* `late` */
	add_pod(NEW, "b", false, waiting("ErrImagePull", "no such image"));
	look(late + 1, order);
	assert_string_equal(p.reason, "ClientFails");
	assert_false(p.refuse);
	look(late + PATIENCE_MS / 1000 - 1, order);
	assert_false(p.refuse);
	look(late + PATIENCE_MS / 1000, order);
	assert_true(p.refuse);

	/* the pod is old, but was ready until just now */
	ready = json_pack("{s:{s:s}, s:{s:[{s:s, s:s}, {s:s, s:s}]}}", "metadata",
			  "creationTimestamp", "1970-01-01T00:00:10Z", "status", "conditions",
			  "type", "PodScheduled", "lastTransitionTime", "1970-01-09T00:00:10Z",
			  "type", "Ready", "lastTransitionTime", made);
	seen = client_pod(ready);
	assert_string_equal(jstr(seen, "since"), made);
}

/* What was taken back goes when it is not wanted any more. */
static void another_choice(void **state)
{
	json_t *o = add_daemonset(OLD, "1970-01-01T00:00:00Z", 2);

	json_object_set_new(json_object_get(o, "metadata"), "annotations",
			    json_pack("{s:s}", CSI_REFUSED, "bad"));
	look(10, NULL);
	assert_true(p.create);
	assert_order(new_id, NULL);
	assert_int_equal(json_array_size(p.remove), 1);
}

/* One that a class or a volume names is not the old one of all. */
static void named_by_a_class(void **state)
{
	cleanup_json json_t *named = json_pack("{s:s}", old_id, OLD),
			    *order = json_pack("[s]", old_id);
	struct clients_view v = { .image = NEW,
				  .daemonsets = daemonsets,
				  .pods = pods,
				  .named = named,
				  .patience_ms = PATIENCE_MS };

	add_daemonset(OLD, "1970-01-01T00:00:00Z", 1);
	add_daemonset(NEW, "1970-01-01T00:00:10Z", 1);
	add_pod(OLD, "a", true, running());
	add_pod(NEW, "a", true, running());
	clients_plan(&v, &p);
	assert_true(p.updated);
	assert_int_equal(json_array_size(p.remove), 0);
	assert_order(new_id, NULL);

	/* but what was that of all is gone back to, whoever else names it, and stays */
	v.order = order;
	clients_plan_done(&p);
	clients_plan(&v, &p);
	assert_true(p.updated);
	assert_int_equal(json_array_size(p.remove), 0);
	assert_order(new_id, old_id);
	json_array_remove(pods, 1);
	add_pod(NEW, "a", false, waiting("ErrImagePull", NULL));
	v.now_ms = 10000 + PATIENCE_MS;
	clients_plan_done(&p);
	clients_plan(&v, &p);
	assert_true(p.refuse);
	assert_order(old_id, new_id);
}

/* There is nothing to go back to: it is told, and waited for. */
static void bad_from_the_beginning(void **state)
{
	add_daemonset(NEW, "1970-01-01T00:00:00Z", 1);
	add_pod(NEW, "a", false, waiting("CrashLoopBackOff", NULL));
	look(9000, NULL);
	assert_false(p.refuse);
	assert_true(p.create);
	assert_string_equal(p.reason, "ClientFails");
	assert_non_null(strstr(p.message, "a: CrashLoopBackOff"));
}

static void what_a_pod_says(void **state)
{
	cleanup_json json_t *begins = json_pack("{s:{s:[{s:{s:{s:s}}}]}}", "status",
						"containerStatuses", "state", "waiting", "reason",
						"ContainerCreating"),
			    *crashes = json_pack(
				    "{s:{s:[{s:{s:{s:s, s:s}}, s:{s:{s:s}}}]}}", "status",
				    "containerStatuses", "state", "waiting", "reason",
				    "CrashLoopBackOff", "message", "back-off 10s", "lastState",
				    "terminated", "message",
				    "a log\nqm-client: the image has no program glusterfs\n"),
			    *init = json_pack("{s:{s:[{s:{s:{s:s}}}], s:[{s:{s:{s:s}}}]}}",
					      "status", "initContainerStatuses", "state", "waiting",
					      "reason", "ErrImagePull", "containerStatuses",
					      "state", "waiting", "reason", "PodInitializing");
	cleanup_json json_t *a = client_pod(begins), *b = client_pod(crashes),
			    *c = client_pod(init);

	assert_null(jstr(a, "why"));
	assert_string_equal(jstr(b, "why"), "qm-client: the image has no program glusterfs");
	assert_string_equal(jstr(c, "why"), "ErrImagePull");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(first_of_all, begin, end),
		cmocka_unit_test_setup_teardown(beside_the_old_one, begin, end),
		cmocka_unit_test_setup_teardown(everywhere, begin, end),
		cmocka_unit_test_setup_teardown(bad_image, begin, end),
		cmocka_unit_test_setup_teardown(fails_late, begin, end),
		cmocka_unit_test_setup_teardown(another_choice, begin, end),
		cmocka_unit_test_setup_teardown(bad_from_the_beginning, begin, end),
		cmocka_unit_test_setup_teardown(named_by_a_class, begin, end),
		cmocka_unit_test(what_a_pod_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
