/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/mem.h"
#include "systems/glusterfs/xml.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The recorded answers of glusterfs 10.3, which are the fuzzer's corpus too. */
static char *recorded(const char *name, size_t *ret_len)
{
	cleanup_free char *path = xasprintf(CORPUS "/%s", name);
	char *text = NULL;

	assert_int_equal(file_read(path, 0, &text, ret_len, NULL), 0);
	return text;
}

static void test_peers(void **state)
{
	size_t len;
	cleanup_free char *text = recorded("peer-status-down.xml", &len);
	struct gluster_peers peers = { 0 };
	struct gluster_reply reply;

	assert_int_equal(gluster_xml_peers(text, len, &reply, &peers, NULL), 0);
	assert_int_equal(reply.ret, 0);
	assert_int_equal(peers.count, 3);
	assert_true(gluster_peer_find(&peers, "10.213.7.12")->connected);
	assert_int_equal(gluster_peer_find(&peers, "10.213.7.12")->state, GLUSTER_PEER_BEFRIENDED);
	assert_false(gluster_peer_find(&peers, "10.213.7.13")->connected);
	assert_null(gluster_peer_find(&peers, "10.213.7.11"));
	gluster_peers_done(&peers);
}

/* A peer that joined through another node is called by the name that its address has, and by the address as well. */
static void test_peer_with_a_name(void **state)
{
	size_t len;
	cleanup_free char *text = recorded("peer-status-name.xml", &len);
	struct gluster_peers peers = { 0 };
	struct gluster_reply reply;

	assert_int_equal(gluster_xml_peers(text, len, &reply, &peers, NULL), 0);
	assert_int_equal(peers.count, 1);
	assert_string_equal(peers.items[0].address, "node1");
	assert_true(gluster_peer_find(&peers, "10.201.131.1")->connected);
	assert_ptr_equal(gluster_peer_find(&peers, "node1"), &peers.items[0]);
	assert_null(gluster_peer_find(&peers, "10.201.131.2"));
	gluster_peers_done(&peers);
}

static void test_volume(void **state)
{
	size_t len;
	cleanup_free char *info = recorded("volinfo.xml", &len);
	cleanup_free char *status = NULL, *heal = NULL;
	bool bricks;
	struct gluster_volume v = { 0 };
	struct gluster_reply reply;

	assert_int_equal(gluster_xml_volume(info, len, "other", &reply, &v, NULL), -ENOENT);
	assert_int_equal(gluster_xml_volume(info, len, "v1", &reply, &v, NULL), 0);
	assert_int_equal(v.state, VOLUME_STARTED);
	assert_int_equal(v.replica, 3);
	assert_int_equal(v.disperse, 0);
	assert_int_equal(v.brick_count, 3);
	assert_string_equal(v.bricks[1].address, "10.213.7.12");
	assert_string_equal(v.bricks[1].path, "/bricks/m2/brick");
	assert_string_equal(jstr(v.options, "client.strict-locks"), "on");

	assert_int_equal(gluster_xml_has_bricks(info, len, "10.213.7.12", &reply, &bricks, NULL),
			 0);
	assert_true(bricks);
	assert_int_equal(gluster_xml_has_bricks(info, len, "10.213.7.1", &reply, &bricks, NULL), 0);
	assert_false(bricks);

	status = recorded("volstatus-dead.xml", &len);
	assert_int_equal(gluster_xml_status(status, len, &reply, &v, NULL), 0);
	assert_true(v.bricks[0].online && v.bricks[0].pid > 0);
	assert_false(v.bricks[1].online);
	assert_int_equal(v.bricks[1].pid, 0);
	assert_int_equal(v.bricks[0].size, 1086324736);

	heal = recorded("healcount-dead.txt", &len);
	gluster_text_heal(heal, len, &v);
	assert_int_equal(v.bricks[0].pending, 50);
	assert_int_equal(v.bricks[1].pending, -1);
	gluster_volume_done(&v);
}

static void test_failures(void **state)
{
	size_t len;
	cleanup_free char *text = recorded("addbad.xml", &len), *none = NULL;
	struct gluster_volume v = { 0 };
	struct gluster_reply reply;

	assert_int_equal(gluster_xml_reply(text, len, &reply, NULL), 0);
	assert_int_equal(reply.ret, -1);
	assert_non_null(strstr(reply.message, "is already part of a volume"));
	assert_null(strchr(reply.message, '\n'));
	none = recorded("volinfo-none.xml", &len);
	assert_int_equal(gluster_xml_volume(none, len, "nope", &reply, &v, NULL), -ENOENT);
	assert_string_equal(reply.message, "Volume does not exist");
}

static void test_junk(void **state)
{
	static const char *const junk[] = { "doctype.xml", "cut.xml", "deep.xml" };
	struct gluster_reply reply;
	struct gluster_volume v = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(junk); i++) {
		size_t len;
		cleanup_free char *text = recorded(junk[i], &len);

		assert_int_equal(gluster_xml_reply(text, len, &reply, NULL), -EBADMSG);
		assert_int_equal(gluster_xml_volume(text, len, "v1", &reply, &v, NULL), -EBADMSG);
	}
	assert_int_equal(gluster_xml_reply("", 0, &reply, NULL), -EBADMSG);
}

static void test_heal_summary(void **state)
{
	static const char text[] =
		"<cliOutput><healInfo><bricks>"
		"<brick><name>fd00::1:/b/1/brick</name><status>Connected</status>"
		"<totalNumberOfEntries>12</totalNumberOfEntries></brick>"
		"<brick><name>fd00::2:/b/2/brick</name><status>Transport endpoint is not "
		"connected</status>"
		"<totalNumberOfEntries>-</totalNumberOfEntries></brick>"
		"</bricks></healInfo><opRet>0</opRet></cliOutput>";
	struct gluster_volume v = { 0 };
	struct gluster_reply reply;

	gluster_volume_add_brick(&v, "fd00::1", "/b/1/brick");
	gluster_volume_add_brick(&v, "fd00::2", "/b/2/brick")->pending = 0;
	gluster_volume_add_brick(&v, "fd00::3", "/b/3/brick")->pending = 0;
	assert_int_equal(gluster_xml_heal(text, strlen(text), &reply, &v, NULL), 0);
	assert_int_equal(v.bricks[0].pending, 12);
	assert_true(v.bricks[0].connected);
	assert_false(v.bricks[1].connected || v.bricks[2].connected);
	assert_int_equal(v.bricks[1].pending, -1);
	assert_int_equal(v.bricks[2].pending, -1);
	gluster_volume_done(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_peers),  cmocka_unit_test(test_peer_with_a_name),
		cmocka_unit_test(test_volume), cmocka_unit_test(test_failures),
		cmocka_unit_test(test_junk),   cmocka_unit_test(test_heal_summary),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
