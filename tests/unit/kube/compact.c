/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "kube/compact.h"

static void comes_back(struct compact *c, const json_t *value)
{
	cleanup_with(buf_done) struct buf b = { 0 };
	cleanup_json json_t *read = NULL;
	cleanup_free char *before = json_text(value), *after = NULL;

	compact_write(c, value, &b);
	read = compact_read(c, b.data, b.len);
	assert_non_null(read);
	after = json_text(read); /* the order of keys as well */
	assert_string_equal(before, after);
	/* cut short it is nothing, never a crash */
	for (size_t len = 0; len < b.len; len++)
		assert_null(compact_read(c, b.data, len));
}

static void values(void **state)
{
	static const char *const texts[] = {
		"{'a':null,'b':true,'c':false,'d':[],'e':{},'f':[1,-1,0,9223372036854775807,"
		"-9223372036854775808],'g':1.5}",
		"{'n':['0','7','007','123456789012345678','99999999999999999999','','-1','1x']}",
		"{'u':['123e4567-e89b-12d3-a456-426614174000','pvc-123e4567-e89b-12d3-a456-"
		"426614174000','123E4567-e89b-12d3-a456-426614174000','123e4567-e89b-12d3-a456-"
		"42661417400g','123e4567xe89b-12d3-a456-426614174000']}",
		"{'t':'\\u00fc\\n\\\"'}",
	};
	struct compact c = { 0 };

	compact_init(&c);
	for (int round = 0; round < 5; round++) { /* written out at first, then by numbers */
		for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
			cleanup_json json_t *o = quoted(texts[i]);

			comes_back(&c, o);
		}
	}
	compact_done(&c);
}

static json_t *claim(int i)
{
	cleanup_free char *name = xasprintf("claim-%d", i), *version = xasprintf("%d", 1000 + i);
	cleanup_free char *uid = xasprintf("123e4567-e89b-12d3-a456-%012d", i);
	cleanup_free char *volume = xasprintf("pvc-%s", uid);

	return json_pack("{s{ss ss ss ss s{ss} s[s]} s{s[s] s{s{ss}} ss ss ss} s{ss s{ss}}}",
			 "metadata", "name", name, "namespace", "default", "uid", uid,
			 "resourceVersion", version, "annotations",
			 "volume.kubernetes.io/storage-provisioner", "csi.quartermaster.storage",
			 "finalizers", "kubernetes.io/pvc-protection", "spec", "accessModes",
			 "ReadWriteMany", "resources", "requests", "storage", "1Gi",
			 "storageClassName", "standard", "volumeMode", "Filesystem", "volumeName",
			 volume, "status", "phase", "Bound", "capacity", "storage", "1Gi");
}

/* Objects that are alike: less than a quarter of their text. */
static void is_small(void **state)
{
	size_t text_bytes = 0, bytes = 0;
	struct compact c = { 0 };

	compact_init(&c);
	for (int i = 0; i < 3000; i++) {
		cleanup_with(buf_done) struct buf b = { 0 };
		cleanup_json json_t *o = claim(i);
		cleanup_free char *text = json_text(o);

		compact_write(&c, o, &b);
		text_bytes += strlen(text);
		bytes += b.len;
		comes_back(&c, o);
	}
	assert_true(c.count < 60); /* no name got into the table */
	print_message("%zu bytes of text in %zu\n", text_bytes, bytes);
	assert_true(bytes * 4 < text_bytes);
	compact_done(&c);
}

/* More words than the table has place for. */
static void full(void **state)
{
	struct compact c = { 0 };

	compact_init(&c);
	for (int i = 0; i < 3 * COMPACT_WORDS; i++) {
		cleanup_free char *key = xasprintf("key-%d", i);
		cleanup_json json_t *o = json_pack("{ss}", key, key);

		for (int n = 0; n < 4; n++)
			comes_back(&c, o);
	}
	assert_int_equal(c.count, COMPACT_WORDS);
	compact_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),
		cmocka_unit_test(is_small),
		cmocka_unit_test(full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
