/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "kube/http.h"

#include <errno.h>

static char names[200]; /* of the items that came */

static int note(json_t *object, void *userdata)
{
	strcat(strcat(names, object_name(object)), " ");
	assert_null(jget(object, "metadata", "managedFields"));
	return streq(object_name(object), "stop") ? -ECANCELED : 0;
}

/* The list in pieces of that size; ret_rest may be NULL. */
static int feed(const char *text, size_t piece, json_t **ret_rest)
{
	cleanup_with(list_items_done) struct list_items l = { 0 };
	cleanup_free char *plain = xstrdup(text);
	size_t len = strlen(text);
	int rc = 0;

	*names = 0;
	for (char *p = plain; *p; p++) {
		if (*p == '\'')
			*p = '"';
	}
	for (size_t at = 0; at < len && rc == 0; at += piece)
		rc = list_items_feed(&l, plain + at, len - at < piece ? len - at : piece, note,
				     NULL, NULL);
	return rc ? rc : list_items_end(&l, ret_rest, NULL);
}

static void lists(void **state)
{
	static const struct {
		const char *text, *names;
	} cases[] = {
		{ "{'kind':'List','metadata':{'resourceVersion':'7','items':[1]},'items':["
		  "{'metadata':{'name':'a','managedFields':[{}]}},\n{'metadata':{'name':'b'},"
		  "'items':[{'x':']}'}]} ]}",
		  "a b " },
		/* as custom resources come: the items before the metadata */
		{ "{'apiVersion':'v1','items':[{'metadata':{'name':'\\\"]\\\\','x':{}}}],"
		  "'metadata':{'resourceVersion':'7'}}",
		  "\"]\\ " },
		{ "{'items':[],'other':[{'metadata':{'name':'no'}}],"
		  "'metadata':{'resourceVersion':'7'}}",
		  "" },
		{ "{'x':'items','itemx':[{}],'items':null,'metadata':{'resourceVersion':'7'}}",
		  "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (size_t piece = 1; piece < 200; piece += piece < 20 ? 1 : 50) {
			cleanup_json json_t *rest = NULL;

			assert_int_equal(feed(cases[i].text, piece, &rest), 0);
			assert_string_equal(names, cases[i].names);
			assert_string_equal(jstr(rest, "metadata", "resourceVersion"), "7");
		}
	}
}

static void stops(void **state)
{
	assert_int_equal(feed("{'items':[{'metadata':{'name':'stop'}},{'metadata':{'name':'b'}}]}",
			      100, NULL),
			 -ECANCELED);
	assert_string_equal(names, "stop ");
}

static void not_lists(void **state)
{
	static const char *const texts[] = { "",
					     "[]",
					     "<html>",
					     "{'items':[1]}",
					     "{'items':[{}",
					     "{'items':[{]}",
					     "{'items':[{'a':}]}",
					     "{'items':[]}}",
					     "{'items':[]} x",
					     "}" };
	json_t *rest;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		assert_int_equal(feed(texts[i], 3, &rest), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists),
		cmocka_unit_test(stops),
		cmocka_unit_test(not_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
