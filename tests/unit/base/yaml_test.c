/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rand.h"
#include "base/str.h"
#include "base/yaml.h"
#include "unit.h"

static struct yaml_docs parsed(const char *text)
{
	struct error err = ERROR_INIT;
	struct yaml_docs docs = { 0 };

	if (yaml_parse(text, strlen(text), "f.yaml", &docs, &err) < 0)
		fail_msg("%s: %s", text, err.message);
	return docs;
}

static void gives(const char *yaml, const char *json)
{
	cleanup_with(yaml_docs_done) struct yaml_docs docs = parsed(yaml);
	cleanup_free char *text = NULL;

	assert_int_equal(docs.count, 1);
	text = json_text(docs.items[0].value);
	assert_string_equal(text, json);
}

static void refused_bytes(const char *text, size_t len, const char *message)
{
	struct yaml_docs docs = { .count = 77 };
	struct error err = ERROR_INIT;

	assert_in_range(-yaml_parse(text, len, "f.yaml", &docs, &err), 1, 4095);
	assert_int_equal(docs.count, 77); /* untouched */
	if (!strstr(err.message, message))
		fail_msg("\"%s\" does not say \"%s\"", err.message, message);
	assert_null(strchr(err.message, '\n'));
}

static void refused(const char *text, const char *message)
{
	refused_bytes(text, strlen(text), message);
}

static void scalars_follow_the_core_schema(void **state)
{
	gives("[~, null, Null, NULL, ]", "[null,null,null,null]");
	gives("a:\nb: x", "{\"a\":null,\"b\":\"x\"}");
	gives("[true, True, TRUE, false, False, FALSE]", "[true,true,true,false,false,false]");
	gives("[yes, no, on, off, y, n, tRUE]",
	      "[\"yes\",\"no\",\"on\",\"off\",\"y\",\"n\",\"tRUE\"]");
	gives("[0, -5, +7, 010, 0x1F, 0o17]", "[0,-5,7,10,31,15]");
	gives("[9223372036854775807, -9223372036854775808]",
	      "[9223372036854775807,-9223372036854775808]");
	gives("[1.5, .5, -2.5e3, 1e2, 2.]", "[1.5,0.5,-2500.0,100.0,2.0]");
	gives("['5', \"5\", \"true\", 'null', !!str 5]", "[\"5\",\"5\",\"true\",\"null\",\"5\"]");
	gives("[0x, 1.2.3, 10Gi, 1_000, 2024-01-02, e5, ., -, +]",
	      "[\"0x\",\"1.2.3\",\"10Gi\",\"1_000\",\"2024-01-02\",\"e5\",\".\",\"-\",\"+\"]");
	gives("a: |\n  x\n  y\nb: >-\n  x\n  y\n", "{\"a\":\"x\\ny\\n\",\"b\":\"x y\"}");
	gives("\xef\xbb\xbf"
	      "a: ü\n",
	      "{\"a\":\"ü\"}");
}

static void numbers_that_do_not_fit(void **state)
{
	refused("a: 1\nb: 9223372036854775808\n",
		"f.yaml:2: the number 9223372036854775808 cannot");
	refused("[0xffffffffffffffffff]", "cannot be represented");
	refused("[.inf]", "f.yaml:1: the number .inf");
	refused("[-.INF]", "cannot be represented");
	refused("[.nan]", "cannot be represented");
	refused("[1e999]", "cannot be represented");
}

static void tags(void **state)
{
	gives("[!!int 5, !!float 1.5, !!bool true, !!null ~, !!seq [], !!map {}]",
	      "[5,1.5,true,null,[],{}]");
	gives("[!!int \"5\"]", "[5]");
	refused("a: !!binary aGk=\n", "f.yaml:1: a value does not fit its tag !!binary");
	refused("a: !local x\n", "the tag !local is not supported");
	refused("a: !!int x\n", "does not fit its tag !!int");
	refused("a: !!map [1]\n", "is not supported here");
	refused("a: !x {}\n", "is not supported here");
}

static void json_is_yaml(void **state)
{
	gives("{\"a\": [1, 2.5, \"x\\n\\u00e4\\/\"], \"b\": {\"c\": null}}",
	      "{\"a\":[1,2.5,\"x\\nä/\"],\"b\":{\"c\":null}}");
	gives("{\n\t\"a\": 1,\n\t\"b\": [\n\t\ttrue\n\t]\n}\n", "{\"a\":1,\"b\":[true]}");
	gives("{\"a\": \"\\ud83d\\ude00\"}", "{\"a\":\"😀\"}");
	refused("{\"a\": \"\\ud83d\"}", "f.yaml:1: not valid YAML");
}

static void documents_know_their_lines(void **state)
{
	cleanup_with(yaml_docs_done) struct yaml_docs docs = parsed("# first\n"
								    "---\n"
								    "---\n"
								    "kind: A\n"
								    "spec:\n"
								    "  devices:\n"
								    "  - /dev/sda\n"
								    "  - path: /dev/sdb\n"
								    "    wipe: true\n"
								    "  labels: {a.b/c: x,\n"
								    "     d: y}\n"
								    "...\n"
								    "---\n"
								    "kind: B\n");

	assert_int_equal(docs.count, 2);
	assert_int_equal(docs.items[0].line, 4);
	assert_int_equal(docs.items[1].line, 14);
	assert_int_equal(yaml_line_of(&docs.items[0], "kind"), 4);
	assert_int_equal(yaml_line_of(&docs.items[0], "spec"), 5);
	assert_int_equal(yaml_line_of(&docs.items[0], "spec.devices"), 6);
	assert_int_equal(yaml_line_of(&docs.items[0], "spec.devices[0]"), 7);
	assert_int_equal(yaml_line_of(&docs.items[0], "spec.devices[1].wipe"), 9);
	assert_int_equal(yaml_line_of(&docs.items[0], "spec.labels.a.b/c"), 10);
	assert_int_equal(yaml_line_of(&docs.items[0], "spec.labels.d"), 11);
	/* what is missing is looked for at its parent */
	assert_int_equal(yaml_line_of(&docs.items[0], "spec.devices[7].x.y"), 6);
	assert_int_equal(yaml_line_of(&docs.items[0], "metadata.name"), 4);
	assert_int_equal(yaml_line_of(&docs.items[1], ""), 14);
}

static void nothing_is_no_document(void **state)
{
	static const char *const texts[] = { "",	   "\n",  "# just a comment\n",
					     "---\n---\n", "~\n", "--- \n...\n",
					     NULL };

	for (const char *const *text = texts; *text; text++) {
		cleanup_with(yaml_docs_done) struct yaml_docs docs = parsed(*text);

		assert_int_equal(docs.count, 0);
	}
}

static void aliases_are_expanded(void **state)
{
	gives("a: &x {b: [1, 2]}\nc: *x\nd: [*x, *x]\n",
	      "{\"a\":{\"b\":[1,2]},\"c\":{\"b\":[1,2]},\"d\":[{\"b\":[1,2]},{\"b\":[1,2]}]}");
	gives("- &x 1\n- &x 2\n- *x\n", "[1,2,2]");
	refused("a: *nobody\n", "f.yaml:1: alias *nobody has no anchor before it");
	refused("a: 1\nb: &x [*x]\n", "f.yaml:2: alias *x has no anchor");
	refused("a: &x 1\n---\nb: *x\n", "f.yaml:3: alias *x has no anchor");
	refused("&x a: 1\n*x : 2\n", "a key must be plain text");
}

static void mappings(void **state)
{
	refused("a: 1\nb: 2\na: 3\n", "f.yaml:3: the key \"a\" stands twice");
	refused("x:\n  {q: 1, \"q\": 2}\n", "f.yaml:2: the key \"q\" stands twice");
	refused("<<: {a: 1}\n", "f.yaml:1: merge keys (<<) are not supported");
	refused("? [a]\n: 1\n", "a key must be plain text");
	refused("?\n: 1\n", "a key is missing");
	gives("\"<<\": 1\n\"\": 2\n5: 3\ntrue: 4\n", "{\"<<\":1,\"\":2,\"5\":3,\"true\":4}");
}

static void half_a_file(void **state)
{
	refused("a: [1, 2\n", "f.yaml:2: not valid YAML");
	refused("a: {b: 1,\n", "f.yaml:");
	refused("a: \"text\n", "f.yaml:");
	refused("{\"a\": [1, 2", "f.yaml:");
	refused("a: 1\n b: 2\n", "f.yaml:2: not valid YAML");
	refused("a: 'x\n\n\n", "that begins in line 1");
	refused("a:\n\t- b\n", "f.yaml:2: not valid YAML");
}

static void binary(void **state)
{
	static const char elf[] = "\177ELF\2\1\1";
	static const char zero[] = "a: 1\nb: \0\n";

	refused_bytes(elf, sizeof(elf), "f.yaml:1: not a text file (byte 0x7f)");
	refused_bytes(zero, sizeof(zero) - 1, "f.yaml:2: not a text file (byte 0x00)");
	refused("a: \xff\n", "f.yaml:1: not a text file (byte 0xff)");
	refused("a: \xc0\xaf\n", "not a text file");
	refused("a: \xed\xa0\x80\n", "not a text file"); /* a surrogate */
	refused("a: \xf4\x90\x80\x80\n", "not a text file");
	refused("a: \xe2\x82", "not a text file");
	refused_bytes("\xff\xfe\x61\0", 4, "not a text file");
	refused("a: \"x\\0y\"\n", "f.yaml:1: a text contains a NUL character");
	refused("\"x\\0y\": 1\n", "f.yaml:1: a key contains a NUL character");
}

static void deep(void **state)
{
	struct buf b = { 0 };

	for (int i = 0; i < 64; i++)
		buf_puts(&b, "[");
	for (int i = 0; i < 64; i++)
		buf_puts(&b, "]");
	cleanup_with(yaml_docs_done) struct yaml_docs docs = parsed(b.data);
	assert_int_equal(docs.count, 1);
	buf_done(&b);
	for (int i = 0; i < 65; i++)
		buf_puts(&b, "[");
	refused(b.data, "nested deeper than 64 levels");
	buf_done(&b);
	for (int i = 0; i < 100000; i++)
		buf_puts(&b, "{a: ");
	refused(b.data, "nested deeper than 64 levels");
	buf_done(&b);
}

static void bombs(void **state)
{
	struct buf b = { 0 };

	buf_puts(&b, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
	for (int i = 1; i < 12; i++) {
		buf_printf(&b, "a%d: &a%d [", i, i);
		for (int j = 0; j < 10; j++)
			buf_printf(&b, "%s*a%d", j ? ", " : "", i - 1);
		buf_puts(&b, "]\n");
	}
	refused(b.data, "f.yaml:5: more than 100000 values");
	buf_done(&b);

	/* few values, much text */
	buf_puts(&b, "a: &a ");
	for (int i = 0; i < 100000; i++)
		buf_puts(&b, "abcdefghij");
	for (int i = 0; i < 100; i++)
		buf_printf(&b, "\nb%d: *a", i);
	refused(b.data, "bytes of text (aliases expanded)");
	buf_done(&b);

	buf_puts(&b, "[");
	for (int i = 0; i < 100001; i++)
		buf_puts(&b, "1,");
	buf_puts(&b, "]");
	refused(b.data, "more than 100000 values");
	/* nor through the door that is there for JSON's surrogates */
	b.data[b.len - 2] = ' ';
	b.len--;
	buf_puts(&b, ",\"\\ud83d\\ude00\"]");
	refused(b.data, "more than 100000 values");
	buf_done(&b);

	/* a long key above many fields: field paths must not multiply it */
	buf_puts(&b, "? ");
	for (int i = 0; i < 2000; i++)
		buf_puts(&b, "k");
	buf_puts(&b, "\n: {a: 1}\n");
	refused(b.data, "a key is longer than 1024 bytes");
	buf_done(&b);

	for (int i = 0; i < (4 << 20) / 8 + 1; i++)
		buf_puts(&b, "# 45678\n");
	refused(b.data, "f.yaml is bigger than");
	buf_done(&b);
}

static void text_as_kubectl_prints_it(void **state)
{
	cleanup_with(yaml_docs_done) struct yaml_docs docs =
		parsed("{kind: X, spec: {list: [a, {b: 1, c: [2]}], none: {}, empty: [], s: '', n: "
		       "null, f: 1.5, g: 2.0, t: true,"
		       " num: '5', yes: 'yes', oct: '0o7', date: '2024-01-02', star: '*x', colon: "
		       "'a: b', long: \"one\\ntwo\\n\","
		       " tab: \"a\\tb\", version: '1.10', uni: 'ü', time: '12:30:45', hash: 'a "
		       "#b', size: 10Gi}}");
	cleanup_free char *text = yaml_text(docs.items[0].value);

	assert_string_equal(text, "kind: X\n"
				  "spec:\n"
				  "  list:\n"
				  "  - a\n"
				  "  - b: 1\n"
				  "    c:\n"
				  "    - 2\n"
				  "  none: {}\n"
				  "  empty: []\n"
				  "  s: \"\"\n"
				  "  \"n\": null\n"
				  "  f: 1.5\n"
				  "  g: 2.0\n"
				  "  t: true\n"
				  "  num: \"5\"\n"
				  "  \"yes\": \"yes\"\n"
				  "  oct: \"0o7\"\n"
				  "  date: \"2024-01-02\"\n"
				  "  star: '*x'\n"
				  "  colon: 'a: b'\n"
				  "  long: |\n"
				  "    one\n"
				  "    two\n"
				  "  tab: \"a\\tb\"\n"
				  "  version: \"1.10\"\n"
				  "  uni: ü\n"
				  "  time: \"12:30:45\"\n"
				  "  hash: 'a #b'\n"
				  "  size: 10Gi\n");
}

static void random_string(struct prng *p, struct buf *b)
{
	static const char *const bits[] = { "a",	" ",
					    "\n",	"\t",
					    ":",	"#",
					    "-",	"'",
					    "\"",	"\\",
					    "0",	"1",
					    ".",	"e",
					    "ü",	"😀",
					    "[",	"}",
					    "*",	"&",
					    "!",	"%",
					    "|",	">",
					    "~",	"true",
					    "\x01",	"\x7f",
					    "\xc2\x85", "\xe2\x80\xa8",
					    "?",	",",
					    "\r",	"\xef\xbb\xbf",
					    "@",	"`",
					    "=",	"<<",
					    "---",	"..." };
	uint64_t count = prng_below(p, 6);

	for (uint64_t i = 0; i < count; i++)
		buf_puts(b, bits[prng_below(p, ARRAY_SIZE(bits))]);
}

/* Whatever text a value holds: what we print, we read back as the same. */
static void round_trip(void **state)
{
	const char *given = getenv("QM_SEED"), *longer = getenv("QM_LONG");
	uint64_t seed = given ? strtoull(given, NULL, 0) : 1, count = longer ? 100000 : 5000;
	struct prng p = { seed };

	print_message("QM_SEED=%llu\n", (unsigned long long)seed);
	for (uint64_t i = 0; i < count; i++) {
		cleanup_with(yaml_docs_done) struct yaml_docs docs = { 0 };
		cleanup_with(buf_done) struct buf a = { 0 }, b = { 0 };
		cleanup_json json_t *o = json_object();
		cleanup_free char *text = NULL, *want = NULL;
		struct error err = ERROR_INIT;

		random_string(&p, &a);
		random_string(&p, &b);
		jset(o, json_string(a.data ? a.data : ""), "v");
		jset(o,
		     json_pack("[s, f, I]", b.data ? b.data : "", (double)prng_next(&p) / 7,
			       (json_int_t)prng_next(&p)),
		     "list");
		json_object_set_new(o, a.data ? a.data : "", json_integer(1));
		text = yaml_text(o);
		want = json_text(o);
		if (yaml_parse(text, strlen(text), "t", &docs, &err) < 0)
			fail_msg("case %llu: %s: %s", (unsigned long long)i, want, err.message);
		if (docs.count != 1 || !json_equal(docs.items[0].value, o))
			fail_msg("case %llu: %s\nbecame\n%s", (unsigned long long)i, want, text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scalars_follow_the_core_schema),
		cmocka_unit_test(numbers_that_do_not_fit),
		cmocka_unit_test(tags),
		cmocka_unit_test(json_is_yaml),
		cmocka_unit_test(documents_know_their_lines),
		cmocka_unit_test(nothing_is_no_document),
		cmocka_unit_test(aliases_are_expanded),
		cmocka_unit_test(mappings),
		cmocka_unit_test(half_a_file),
		cmocka_unit_test(binary),
		cmocka_unit_test(deep),
		cmocka_unit_test(bombs),
		cmocka_unit_test(text_as_kubectl_prints_it),
		cmocka_unit_test(round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
