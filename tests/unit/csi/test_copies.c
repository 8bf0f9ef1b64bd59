/* SPDX-License-Identifier: Apache-2.0 */
/* What a GlusterFS client says of its descriptors, in trees as it shows them. */
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "csi/copies.h"
#include "csi/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STEP_MS 10000
#define SLOTS UINT64_C(4611726050424075640)
#define REPLICA3                                                                                   \
	"volume p-replicate-0\n    type cluster/replicate\n    option quorum-type auto\n"          \
	"    subvolumes p-client-0 p-client-1 p-client-2\nend-volume\n\n"

static char root[] = "/tmp/qm-test-copies.XXXXXX";

static void put(const char *name, const char *text)
{
	cleanup_free char *path = xasprintf("%s/.meta/graphs/active/%s", root, name),
			  *dir = xstrdup(path);

	*strrchr(dir, '/') = '\0';
	assert_int_equal(mkdir_parents(dir, 0700, NULL), 0);
	assert_int_equal(file_write(path, text, strlen(text), 0600, NULL), 0);
}

/* fds: what it says of each, in its words but for the lock: "0 L0 -1 L1": two, with a lock each */
static void put_client(unsigned number, bool connected, const char *fds)
{
	cleanup_free char *name = xasprintf("p-client-%u/private", number), *words = xstrdup(fds),
			  *text = xasprintf("[xlator.protocol.client.p-client-%u.priv]\n", number);
	cleanup_free char *all = NULL;
	unsigned fd = 0;

	for (char *rest, *w = strtok_r(words, " ", &rest); w; w = strtok_r(NULL, " ", &rest)) {
		cleanup_free char *before = text;

		if (*w == 'L') {
			unsigned long long at = SLOTS + strtoull(w + 1, NULL, 10);

			text = xasprintf("%s------ = ------\ngranted-posix-lock[0] = owner = "
					 "cbf695fa95fbb952, cmd = F_SETLK fl_type = F_WRLCK, "
					 "fl_start = %llu, fl_end = %llu, user_flock: l_type = "
					 "F_WRLCK, l_start = %llu, l_len = 1\n------ = ------\n",
					 before, at, at, at);
		} else {
			text = xasprintf("%sfd.%u.remote_fd = %s\n", before, fd++, w);
		}
	}
	all = xasprintf("%sconnected = %d\ntotal_bytes_read = 14520\n", text, connected);
	put(name, all);
}

static struct copies look(void)
{
	struct copies c = { .slots = SLOTS };

	assert_int_equal(copies_look(root, 1, &c, STEP_MS, NULL), 0);
	return c;
}

static void put_all(const char *first, const char *second, const char *third)
{
	put("volfile", REPLICA3);
	put_client(0, true, first);
	put_client(1, true, second);
	put_client(2, true, third);
}

static void test_all_open(void **state)
{
	struct copies c;

	put_all("0 L0", "0 L0", "5 3 L0");
	c = look();
	assert_int_equal(c.connected, 7);
	assert_int_equal(c.open[0], 7);
	assert_int_equal(c.open[1], 0);
	assert_int_equal(copies_slot(&c), 0);
	assert_false(copies_miss(&c));
}

static void test_one_lost(void **state)
{
	struct copies c;

	put_all("0 L1", "-1 L1", "0 L1");
	c = look();
	assert_int_equal(c.open[1], 5);
	assert_int_equal(copies_slot(&c), 1);
	assert_true(copies_miss(&c));
	/* a brick that is down is nobody's fault here */
	put_client(1, false, "-1 L1");
	c = look();
	assert_false(copies_miss(&c));
	/* one that was down when the file was opened has never heard of it */
	put_client(1, true, "");
	c = look();
	assert_true(copies_miss(&c));
	/* another file's descriptor does not count, nor one without a lock */
	put_client(1, true, "0 L2 1");
	c = look();
	assert_true(copies_miss(&c));
}

/* One that was closed while it was lost is listed on, before or after the one in use. */
static void test_closed_ones(void **state)
{
	struct copies c;

	put_all("-1 L0 0 L1", "1 L1 -1 L1", "-1 L1 0 L1 -1 L0");
	c = look();
	assert_int_equal(c.open[0], 0);
	assert_int_equal(c.open[1], 7);
	assert_false(copies_miss(&c));
}

static void test_lost_everywhere(void **state)
{
	struct copies c;

	put_all("-1 L0", "-1 L0", "-1 L0");
	c = look();
	assert_int_equal(c.open[0] | c.open[1], 0);
	assert_true(copies_miss(&c));
	/* while it is switched both are there */
	put_all("0 L0 1 L1", "-1 L0 1 L1", "0 L0 1 L1");
	c = look();
	assert_int_equal(c.open[0], 5);
	assert_int_equal(c.open[1], 7);
}

/* A file lies in one set; other bricks need not know it. */
static void test_sets(void **state)
{
	struct copies c[2] = { { .slots = SLOTS }, { .slots = SLOTS + 2 } };

	put("volfile",
	    "volume p-client-0\n    type protocol/client\nend-volume\n\n" REPLICA3
	    "volume p-disperse-1\n    type cluster/disperse\n    option redundancy 1\n"
	    "    subvolumes p-client-3 p-client-4 p-client-5\nend-volume\n\n"
	    "volume p-dht\n    type cluster/distribute\n    subvolumes p-replicate-0 p-disperse-1\n"
	    "end-volume\n");
	for (unsigned i = 0; i < 6; i++)
		put_client(i, i != 4, i < 3 ? "0 L0" : i == 5 ? "0" : "0 L2");
	assert_int_equal(copies_look(root, 2, c, STEP_MS, NULL), 0);
	assert_int_equal(c[0].open[0], 7);
	assert_false(copies_miss(&c[0]));
	assert_int_equal(c[1].connected, 5);
	assert_int_equal(c[1].open[0], 3);
	assert_true(copies_miss(&c[1]));
}

static void test_no_sets(void **state)
{
	struct copies c;

	put("volfile", "volume p-client-0\n    type protocol/client\nend-volume\n\n"
		       "volume p-client-1\n    type protocol/client\nend-volume\n\n"
		       "volume p-dht\n    type cluster/distribute\n"
		       "    subvolumes p-client-0 p-client-1\nend-volume\n");
	put_client(0, true, "0 L0");
	put_client(1, true, "");
	c = look();
	assert_int_equal(c.connected, 1);
	assert_false(copies_miss(&c));
}

/* Nothing is known where nothing is said; and lines may be of any length. */
static void test_odd(void **state)
{
	cleanup_free char *text = xcalloc(1, 40000), *all = NULL;
	struct copies c = { .slots = SLOTS };

	put_all("", "7", "");
	c = look();
	assert_false(copies_miss(&c));
	put_all("0 L0", "0 L0", "0 L0");
	memset(text, 'x', 39999);
	all = xasprintf("%s\n%s%s", text, REPLICA3, text);
	put("volfile", all);
	c = look();
	assert_int_equal(c.open[0], 7);
	put("volfile", "");
	c = look();
	assert_false(copies_miss(&c));
	assert_int_equal(copies_look("/nowhere", 1, &c, STEP_MS, NULL), -ENOENT);
}

/* Files are told apart; the two bytes lie where no file has any. */
static void test_slots(void **state)
{
	uint64_t a = loop_slots("virtblock/a"), b = loop_slots("virtblock/b");

	assert_true(a != b);
	assert_int_equal(a % 2, 0);
	assert_true(a >> 62 == 1 && b >> 62 == 1);
	assert_true(a == loop_slots("virtblock/a"));
}

static int setup(void **state)
{
	return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
	cleanup_free char *command = xasprintf("rm -r %s", root);

	return system(command);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_open),	cmocka_unit_test(test_one_lost),
		cmocka_unit_test(test_closed_ones),	cmocka_unit_test(test_lost_everywhere),
		cmocka_unit_test(test_sets),		cmocka_unit_test(test_no_sets),
		cmocka_unit_test(test_odd),		cmocka_unit_test(test_slots),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
