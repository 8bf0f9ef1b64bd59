/* SPDX-License-Identifier: Apache-2.0 */
#include "help.h"

#define WORDS_MAX 12

/* Parses a line of words; gives the exit code, the arguments and what was said. */
static int parse(const char *line, struct args *ret, char **ret_said)
{
	static char text[256];
	static char *argv[WORDS_MAX + 1];
	struct capture c;
	int argc = 0, code;

	(void)snprintf(text, sizeof(text), "%s", line);
	for (char *w = strtok(text, " "); w && argc < WORDS_MAX; w = strtok(NULL, " "))
		argv[argc++] = w;
	argv[argc] = NULL;
	c = capture_begin();
	code = args_parse(verb_find(argv[0]), argc, argv, ret);
	*ret_said = capture_end(c);
	return code;
}

static void test_flags(void **state)
{
	cleanup_free char *said = NULL;
	struct args a;

	assert_int_equal(parse("get pvc -n ns1 a --output=yaml b -Aw", &a, &said), QM_OK);
	assert_string_equal(said, "");
	assert_int_equal(a.count, 3);
	assert_string_equal(a.words[0], "pvc");
	assert_string_equal(a.words[2], "b");
	assert_string_equal(args_value(&a, "namespace"), "ns1");
	assert_string_equal(args_value(&a, "output"), "yaml");
	assert_true(args_given(&a, "all-namespaces"));
	assert_true(args_given(&a, "watch"));
	assert_false(args_given(&a, "selector"));
	assert_null(args_value(&a, "kubeconfig"));
	args_done(&a);
}

static void test_repeated(void **state)
{
	cleanup_free char *said = NULL;
	struct args a;

	assert_int_equal(parse("apply -f a -f b --filename c", &a, &said), QM_OK);
	assert_int_equal(args_values(&a, "filename")->count, 3);
	assert_string_equal(args_values(&a, "filename")->items[1], "b");
	assert_string_equal(args_value(&a, "filename"), "c");
	args_done(&a);
}

static void test_wrong(void **state)
{
	static const struct {
		const char *line, *said;
	} wrong[] = {
		{ "get pvc --ouput=yaml", "quartermaster get: there is no flag --ouput=yaml (did "
					  "you mean --output?); see: quartermaster get "
					  "--help\n" },
		{ "get pvc -x",
		  "quartermaster get: there is no flag -x; see: quartermaster get --help\n" },
		{ "get pvc -o",
		  "quartermaster get: -o needs a value; see: quartermaster get --help\n" },
		{ "get",
		  "quartermaster get: it needs KIND [NAME…]; see: quartermaster get --help\n" },
		{ "wait pvc a b",
		  "quartermaster wait: what is \"b\" for?; see: quartermaster wait --help\n" },
		{ "version now", "quartermaster version: what is \"now\" for?; see: quartermaster "
				 "version --help\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		cleanup_free char *said = NULL;
		struct args a;

		assert_int_equal(parse(wrong[i].line, &a, &said), QM_USAGE);
		assert_string_equal(said, wrong[i].said);
	}
}

static void test_values(void **state)
{
	static const struct {
		const char *line;
		int64_t ms;
	} times[] = {
		{ "delete pvc a", 7 },
		{ "delete pvc a --timeout=90", 90000 },
		{ "delete pvc a --timeout=90s", 90000 },
		{ "delete pvc a --timeout 5m", 300000 },
		{ "delete pvc a --timeout=1h", 3600000 },
		{ "delete pvc a --timeout=20ms", 20 },
		{ "delete pvc a --timeout=-1s", -1 },
		{ "delete pvc a --timeout=s", -1 },
		{ "delete pvc a --timeout=1d", -1 },
		{ "delete pvc a --timeout=99999999999999999999", -1 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		cleanup_free char *said = NULL;
		int64_t ms = -1;
		struct args a;
		struct capture c;

		assert_int_equal(parse(times[i].line, &a, &said), QM_OK);
		c = capture_begin();
		(void)args_duration(&a, "timeout", 7, &ms);
		free(capture_end(c));
		assert_int_equal(ms, times[i].ms);
		args_done(&a);
	}
}

static void test_booleans(void **state)
{
	static const struct {
		const char *line;
		int code;
		bool value;
	} booleans[] = {
		{ "delete pvc a", QM_OK, true },
		{ "delete pvc a --wait", QM_OK, true },
		{ "delete pvc a --wait=false", QM_OK, false },
		{ "delete pvc a --wait=perhaps", QM_USAGE, false },
	};

	for (size_t i = 0; i < ARRAY_SIZE(booleans); i++) {
		cleanup_free char *said = NULL;
		bool value = false;
		struct args a;
		struct capture c;

		assert_int_equal(parse(booleans[i].line, &a, &said), QM_OK);
		c = capture_begin();
		assert_int_equal(args_bool(&a, "wait", true, &value), booleans[i].code);
		free(capture_end(c));
		assert_int_equal(value, booleans[i].value);
		args_done(&a);
	}
}

static void test_verbs(void **state)
{
	struct capture c = capture_begin();
	cleanup_free char *said = NULL;

	assert_int_equal(verb_unknown("gte"), QM_USAGE);
	assert_int_equal(verb_unknown("xyzzy"), QM_USAGE);
	said = capture_end(c);
	assert_string_equal(
		said, "quartermaster: there is no verb \"gte\"; did you mean \"get\"?\n"
		      "quartermaster: there is no verb \"xyzzy\"; see: quartermaster --help\n");
	assert_null(verb_find("gte"));
	assert_string_equal(verb_find("get")->name, "get");
}

/* Walks the table: every verb for people has a line, an example, and flags that do not collide. */
static void test_table(void **state)
{
	for (const struct verb *v = verbs; v->name; v++) {
		bool letters[128] = { false };
		const struct flag *f;
		char *text = NULL;
		size_t len, n = 0;
		FILE *out;

		assert_non_null(v->summary);
		assert_true(v->internal || v->example);
		for (; (f = args_flag(v, n)); n++) {
			assert_non_null(f->help);
			assert_false(f->letter && letters[(int)f->letter]);
			letters[(int)f->letter] = true;
			for (size_t j = 0; j < n; j++)
				assert_string_not_equal(args_flag(v, j)->name, f->name);
		}
		assert_true(n <= FLAGS_MAX);
		out = open_memstream(&text, &len);
		verb_help(v, out);
		(void)fclose(out);
		assert_non_null(strstr(text, "--help"));
		assert_non_null(strstr(text, "Exit codes: 0 done;"));
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flags),	 cmocka_unit_test(test_repeated),
		cmocka_unit_test(test_wrong),	 cmocka_unit_test(test_values),
		cmocka_unit_test(test_booleans), cmocka_unit_test(test_verbs),
		cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
