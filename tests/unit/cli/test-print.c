/* SPDX-License-Identifier: Apache-2.0 */
#include "help.h"

#include "base/file.h"
#include "cli/overview.h"
#include "cli/print.h"
#include "cli/tar.h"

#include <errno.h>
#include <zlib.h>

struct sink {
	char *text;
	size_t len;
	FILE *out;
};

static void sink_open(struct sink *s)
{
	*s = (struct sink){ 0 };
	s->out = open_memstream(&s->text, &s->len);
}

static const char *sink_text(struct sink *s)
{
	(void)fflush(s->out);
	return s->text;
}

static void sink_done(struct sink *s)
{
	(void)fclose(s->out);
	free(s->text);
}

static void test_grid(void **state)
{
	struct sink s;
	struct grid g = { .indent = 1 };

	sink_open(&s);
	g.out = s.out;
	grid_row(&g, (const char *const[]){ "A", "LONG", "C", NULL });
	grid_row(&g, (const char *const[]){ "äöü", "b\033[31m", "c", NULL });
	grid_flush(&g);
	grid_row(&g, (const char *const[]){ "later", NULL });
	grid_flush(&g);
	grid_done(&g);
	assert_string_equal(sink_text(&s),
			    " A     LONG     C\n äöü   b?[31m   c\n later            \n");
	sink_done(&s);
}

static void test_table(void **state)
{
	cleanup_json json_t *items = json_pack("[{s:{s:s, s:s}, s:s}]", "metadata", "name", "a",
					       "namespace", "n", "type", "Opaque");
	cleanup_json json_t *table = schema_table(&KIND_SECRET, items, NULL, true, 0);
	struct grid g = { 0 };
	struct sink s;

	sink_open(&s);
	g.out = s.out;
	grid_table(&g, table, false, true);
	grid_table(&g, table, false, true); /* the header only once */
	grid_flush(&g);
	grid_done(&g);
	assert_string_equal(sink_text(&s), "NAMESPACE   NAME   TYPE     DATA   AGE\n"
					   "n           a      Opaque   0      <unknown>\n"
					   "n           a      Opaque   0      <unknown>\n");
	sink_done(&s);
}

static void test_tree(void **state)
{
	cleanup_json json_t *o =
		json_pack("{s:{s:[s, {s:i, s:s}, []], s:I, s:{}, s:s, s:b}}", "spec", "list", "x",
			  "a", 1, "b", "two\nlines", "sizeBytes", (json_int_t)10737418240, "none",
			  "empty", "", "yes", 1);
	struct sink s;

	sink_open(&s);
	print_tree(s.out, o, 0);
	assert_string_equal(sink_text(&s), "spec:\n"
					   "  list:\n"
					   "    - x\n"
					   "    - a: 1\n"
					   "      b: two?lines\n"
					   "    - -\n"
					   "  sizeBytes: 10737418240 (10Gi)\n"
					   "  none: -\n"
					   "  empty: \"\"\n"
					   "  yes: true\n");
	sink_done(&s);
}

static void test_colour(void **state)
{
	struct sink s;

	sink_open(&s);
	assert_false(term_has_colour(s.out));
	assert_string_equal(term_style(s.out, STYLE_BAD), "");
	assert_int_equal(style_of_state("ONLINE"), STYLE_GOOD);
	assert_int_equal(style_of_state("Offline"), STYLE_BAD);
	assert_int_equal(style_of_state("Healing"), STYLE_WARN);
	assert_int_equal(style_of_state("some text"), STYLE_PLAIN);
	sink_done(&s);
}

static void test_progress(void **state)
{
	FILE *out = tmpfile();
	struct progress p;
	char text[400];
	size_t n;

	progress_begin(&p, out, "step %d", 1);
	progress_note(&p, "waits for x");
	progress_note(&p, "waits for x");
	progress_note(&p, "%s", "");
	progress_end(&p, true, NULL);
	progress_begin(&p, out, "step %d", 2);
	progress_end(&p, false, "step 2 did not work");
	rewind(out);
	n = fread(text, 1, sizeof(text) - 1, out);
	text[n] = '\0';
	(void)fclose(out);
	assert_string_equal(
		text, "step 1: waits for x\nstep 1 (0.0s)\nstep 2 did not work (0.0s) failed\n");
}

static void test_overview(void **state)
{
	cleanup_json json_t *statuses =
		json_pack("[{s:{s:s}, s:{s:s}, s:{s:i, s:[{s:s, s:s, s:s}]}}]", "metadata", "name",
			  "demo", "spec", "status", "ONLINE", "status", "nodes", 3, "conditions",
			  "type", "Degraded", "status", "True", "message", "a node is gone");
	cleanup_json json_t *nodes = json_pack(
		"[{s:{s:s}, s:{s:[s, s], s:[s]}, s:{s:s, s:{s:[{s:s, s:s, s:I}]}, s:[{s:s, s:s, "
		"s:s}]}}]",
		"metadata", "name", "n1", "spec", "devices", "/dev/a", "/dev/b", "directories",
		"/srv", "status", "phase", "Degraded", "agent", "devices", "device", "/dev/b",
		"state", "Refused", "sizeBytes", (json_int_t)5, "conditions", "type", "Ready",
		"status", "False", "message", "no device is ready");
	cleanup_json json_t *claims =
		json_pack("[{s:{s:s}}, {s:{s:s}, s:{s:s}}]", "status", "phase", "Bound", "metadata",
			  "name", "c", "status", "phase", "Pending");
	cleanup_json json_t *o = overview(statuses, nodes, NULL, claims);
	const json_t *node = json_array_get(json_object_get(o, "nodes"), 0);
	const json_t *deployment = json_array_get(json_object_get(o, "deployments"), 0);

	assert_true(jbool(deployment, "degraded"));
	assert_string_equal(jstr(deployment, "message"), "a node is gone");
	assert_string_equal(jstr(node, "message"), "no device is ready");
	assert_int_equal(json_array_size(json_object_get(node, "devices")), 3);
	assert_string_equal(jstr(json_array_get(json_object_get(node, "devices"), 0), "state"),
			    "Unknown");
	assert_string_equal(jstr(json_array_get(json_object_get(node, "devices"), 1), "state"),
			    "Refused");
	assert_int_equal(jint(o, "claims", "bound"), 1);
	assert_int_equal(jint(o, "claims", "pending"), 1);
	assert_string_equal(jstr(json_array_get(jget(o, "claims", "waiting"), 0), "name"), "c");
}

static void test_tar(void **state)
{
	char dir[] = "/tmp/test-cli-XXXXXX", name[300], block[512];
	cleanup_free char *path = NULL;
	struct error err = ERROR_INIT;
	unsigned sum = 0;
	struct tar *t;
	gzFile gz;

	assert_non_null(mkdtemp(dir));
	path = xasprintf("%s/a.tar.gz", dir);
	assert_int_equal(tar_create(path, &t, &err), 0);
	assert_int_equal(tar_add(t, "x/y.txt", "hello", 5, &err), 0);
	memset(name, 'n', sizeof(name));
	name[299] = '\0';
	assert_int_equal(tar_add(t, name, "", 0, &err), -ENAMETOOLONG);
	name[120] = '/';
	name[200] = '\0';
	assert_int_equal(tar_add(t, name, "", 0, &err), 0);
	assert_int_equal(tar_close(t, &err), 0);

	gz = gzopen(path, "rb");
	assert_int_equal(gzread(gz, block, 512), 512);
	assert_string_equal(block, "x/y.txt");
	assert_memory_equal(block + 124, "00000000005", 12);
	assert_memory_equal(block + 257, "ustar\00000", 8);
	for (size_t i = 0; i < 512; i++)
		sum += i >= 148 && i < 156 ? ' ' : (unsigned char)block[i];
	assert_int_equal(strtoul(block + 148, NULL, 8), sum);
	assert_int_equal(gzread(gz, block, 512), 512);
	assert_memory_equal(block, "hello\0", 6);
	assert_int_equal(gzread(gz, block, 512), 512);
	assert_int_equal(strlen(block), 79); /* what stands behind the slash */
	assert_int_equal(gzread(gz, block, 512), 512);
	assert_int_equal(gzread(gz, block, 512), 512);
	assert_int_equal(gzread(gz, block, 512), 0);
	(void)gzclose(gz);
	assert_int_equal(tar_create("/nonexistent/x", &t, &err), -ENOENT);
	assert_int_equal(remove_tree(dir, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grid),	 cmocka_unit_test(test_table),
		cmocka_unit_test(test_tree),	 cmocka_unit_test(test_colour),
		cmocka_unit_test(test_progress), cmocka_unit_test(test_overview),
		cmocka_unit_test(test_tar),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
