/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which volume it was, is remembered for as long as anybody counts on it: an array that has given
 * the LUN to another volume meanwhile is refused, whatever became of the host in between.
 */
#include "fake_san.h"

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/rand.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/wait.h>

#include <cmocka.h>

#define CALLS_MAX 200
#define ISCSI_AT(portal, more)                                                                     \
	"{\"driverVolumeType\":\"ISCSI\",\"data\":{\"volumeId\":\"v\",\"targetIqn\":\"" SAN_IQN    \
	"\",\"targetPortal\":\"" portal "\",\"targetLun\":1" more "}}"
#define VOLUME ISCSI_AT("192.0.2.1", "")
#define VOLUME_WWN(wwn) ISCSI_AT("192.0.2.1", ",\"wwn\":\"" wwn "\"")
#define OTHER                                                                                      \
	"{\"driverVolumeType\":\"ISCSI\",\"consumer\":\"other\",\"data\":{\"volumeId\":\"v\","     \
	"\"targetIqn\":\"" SAN_IQN "\",\"targetPortal\":\"192.0.2.1\",\"targetLun\":1}}"

/* The same LUN, written otherwise by its own consumer, and by another; a place without answer. */
#define OWN_WORDS                                                                                  \
	"{\"driverVolumeType\":\"ISCSI\",\"data\":{\"volumeId\":\"v\",\"targetIqn\":\"" SAN_IQN    \
	"\",\"targetPortal\":\"192.0.2.1\",\"targetLun\":\"01\"}}"
#define ELSEWHERE                                                                                  \
	"{\"driverVolumeType\":\"ISCSI\",\"data\":{\"volumeId\":\"v\",\"targetIqn\":\"" SAN_IQN    \
	"2\",\"targetPortal\":\"192.0.2.1\",\"targetLun\":1}}"
#define OTHER_WORDS                                                                                \
	"{\"driverVolumeType\":\"ISCSI\",\"consumer\":\"other\",\"data\":{\"volumeId\":\"v\","     \
	"\"targetIqn\":\"" SAN_IQN "\",\"targetPortal\":\"192.0.2.1\",\"targetLun\":\"01\"}}"

struct scene {
	struct rig *rig;
	struct san san;
	struct hostvol_error err; /* of the last connect or forget */
};

static int setup(void **state)
{
	struct scene *s = xcalloc(1, sizeof(*s));
	void *rig;

	rig_setup(&rig);
	s->rig = rig;
	san_setup(s->rig, &s->san);
	san_export(&s->san, 1, "mine");
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct scene *s = *state;
	void *rig = s->rig;

	rig_teardown(&rig);
	free(s);
	return 0;
}

static int connects(struct scene *s, const char *json)
{
	cleanup_free char *record = NULL;

	s->err = (struct hostvol_error){ 0 };
	return hostvol_connect_volume_json(s->rig->h, json, &record, &s->err);
}

static int forgets(struct scene *s)
{
	cleanup_free char *gone = NULL;

	s->err = (struct hostvol_error){ 0 };
	return hostvol_forget_json(s->rig->h, "{\"volumeId\":\"v\"}", &gone, &s->err);
}

static char *records(struct scene *s)
{
	char *list = NULL;

	assert_int_equal(hostvol_list_json(s->rig->h, "v", &list, NULL), 0);
	return list;
}

/* Every record has this identity. */
static void assert_recorded(struct scene *s, int count, const char *serial)
{
	cleanup_free char *text = records(s);
	cleanup_json json_t *list = NULL;
	const json_t *r;
	char identity[100];
	size_t i;

	assert_int_equal(json_parse(text, strlen(text), &list, NULL), 0);
	assert_int_equal(json_array_size(list), count);
	snprintf(identity, sizeof(identity), "serial.%s", serial);
	json_array_foreach (list, i, r)
		assert_string_equal(jstr(jget(r, "detail"), "identity"), identity);
}

static void assert_refused(struct scene *s, const char *json)
{
	assert_int_equal(connects(s, json), -ESTALE);
	assert_non_null(strstr(s->err.message, "serial.mine"));
	assert_non_null(strstr(s->err.message, "serial.stranger"));
	assert_non_null(strstr(s->err.message, "hostvol forget v"));
}

/* The array gives the LUN to somebody else while this host is down. */
static void exchange_in_reboot(struct scene *s)
{
	san_reboot(s->rig, &s->san);
	san_export(&s->san, 1, "stranger");
}

static void test_after_a_reboot(void **state)
{
	struct scene *s = *state;

	assert_int_equal(connects(s, VOLUME), 0);
	exchange_in_reboot(s);
	for (int i = 0; i < 3; i++) {
		assert_refused(s, VOLUME);
		assert_recorded(s, 1, "mine");
		assert_int_equal(san_disks(&s->san), 0);
		assert_int_equal(san_sessions(&s->san), 0);
	}
	san_export(&s->san, 1, "mine");
	assert_int_equal(connects(s, VOLUME), 0);
	assert_recorded(s, 1, "mine");
}

/* Nothing is at the LUN for a while: that is no reason to take the next one. */
static void test_after_it_was_gone(void **state)
{
	struct scene *s = *state;

	assert_int_equal(connects(s, VOLUME), 0);
	san_reboot(s->rig, &s->san);
	san_export(&s->san, 1, "");
	assert_int_equal(connects(s, VOLUME), -ENOENT);
	assert_recorded(s, 1, "mine");
	san_export(&s->san, 1, "stranger");
	assert_refused(s, VOLUME);
	assert_recorded(s, 1, "mine");
}

/* The disk is there still, and the array has another volume behind it. */
static void test_while_it_is_connected(void **state)
{
	struct scene *s = *state;

	assert_int_equal(connects(s, VOLUME), 0);
	san_export(&s->san, 1, "stranger");
	assert_refused(s, VOLUME);
	assert_refused(s, VOLUME);
	assert_recorded(s, 1, "mine");
}

/* By another portal of the same target it is the same volume. */
static void test_by_another_portal(void **state)
{
	struct scene *s = *state;

	assert_int_equal(connects(s, VOLUME), 0);
	exchange_in_reboot(s);
	assert_refused(s, ISCSI_AT("192.0.2.1:3260", ""));
	assert_recorded(s, 1, "mine");
}

/* Who comes while the others count on it gets what they have, or nothing. */
static void test_another_consumer(void **state)
{
	struct scene *s = *state;

	assert_int_equal(connects(s, VOLUME), 0);
	exchange_in_reboot(s);
	assert_refused(s, OTHER);
	assert_recorded(s, 1, "mine");
	assert_int_equal(rig_disconnect(s->rig, "v", "", 0), 0);
	assert_int_equal(connects(s, OTHER), 0);
	assert_recorded(s, 1, "stranger");
}

/* Nor does it matter how he writes where it is: it is the volume's id that the others count on. */
static void test_another_consumer_in_other_words(void **state)
{
	struct scene *s = *state;

	assert_int_equal(connects(s, VOLUME), 0);
	assert_int_equal(connects(s, OTHER_WORDS), 0);
	assert_recorded(s, 2, "mine");
	assert_int_equal(rig_disconnect(s->rig, "v", "other", 0), 0);
	exchange_in_reboot(s);
	assert_refused(s, OTHER_WORDS);
	assert_recorded(s, 1, "mine");
	assert_int_equal(rig_disconnect(s->rig, "v", "", 0), 0);
	assert_int_equal(connects(s, OTHER_WORDS), 0);
	assert_recorded(s, 1, "stranger");
}

/* What the caller expects is asked for also where the volume is connected, and works. */
static void test_an_expectation(void **state)
{
	struct scene *s = *state;
	cleanup_free char *before = NULL, *after = NULL;

	assert_int_equal(connects(s, VOLUME), 0);
	before = records(s);
	assert_int_equal(connects(s, VOLUME_WWN("stranger")), -ESTALE);
	assert_non_null(strstr(s->err.message, "serial.mine"));
	assert_non_null(strstr(s->err.message, "stranger"));
	after = records(s);
	assert_string_equal(before, after);
	assert_int_equal(connects(s, VOLUME_WWN("mine")), 0);
	/* the parameter does not make a stranger of the recorded one, nor the other way round */
	exchange_in_reboot(s);
	assert_refused(s, VOLUME_WWN("stranger"));
	assert_recorded(s, 1, "mine");
	assert_int_equal(connects(s, VOLUME_WWN("mine")), -ESTALE);
	assert_recorded(s, 1, "mine");
}

/* A failed attempt leaves what was recorded as it was, its own parameters included. */
static void test_a_failed_attempt(void **state)
{
	struct scene *s = *state;
	cleanup_free char *before = NULL, *after = NULL;

	assert_int_equal(connects(s, VOLUME), 0);
	san_reboot(s->rig, &s->san);
	before = records(s);
	assert_int_equal(connects(s, VOLUME_WWN("stranger")), -ESTALE);
	after = records(s);
	assert_string_equal(before, after);
}

/* ---- records that say less ------------------------------------------------------------------ */

static typeof(((struct hostvol_host *)0)->inquiry) real_inquiry;

static void edit_records(struct scene *s, const char *sed)
{
	cleanup_free char *command =
		xasprintf("sed -i '%s' '%s'/attachments/*.json", sed, s->rig->state_dir);

	assert_int_equal(system(command), 0);
}

/* One without an identity takes it from the disk that is there, or from another consumer's. */
static void test_a_record_without(void **state)
{
	struct scene *s = *state;

	assert_int_equal(connects(s, VOLUME), 0);
	edit_records(s, "s/\"identity\"/\"unknown\"/");
	assert_int_equal(connects(s, VOLUME), 0);
	assert_recorded(s, 1, "mine");
	edit_records(s, "s/\"identity\"/\"unknown too\"/");
	assert_int_equal(connects(s, OTHER), 0);
	exchange_in_reboot(s);
	assert_refused(s, VOLUME);
	assert_refused(s, OTHER);
}

/* A page 0x83 with one name, for those who had none before. */
static int inquiry_with_name(const struct hostvol_host *host, const char *device, unsigned page,
			     unsigned char *buf, size_t size, int timeout_ms)
{
	static const unsigned char named[] = { 0, 0x83, 0, 12, 1, 3, 0, 8,
					       0x50, 1, 2, 3, 4, 5, 6, 7 };

	if (page != 0x83)
		return real_inquiry(host, device, page, buf, size, timeout_ms);
	memcpy(buf, named, sizeof(named));
	return sizeof(named);
}

/* Storage that names its volumes since its last update is asked for what it said before, too. */
static void test_named_otherwise(void **state)
{
	struct scene *s = *state;

	assert_int_equal(connects(s, VOLUME), 0);
	real_inquiry = s->rig->fake->host.inquiry;
	s->rig->fake->host.inquiry = inquiry_with_name;
	assert_int_equal(connects(s, VOLUME), 0);
	san_reboot(s->rig, &s->san);
	assert_int_equal(connects(s, VOLUME), 0);
	assert_recorded(s, 1, "mine");
	exchange_in_reboot(s);
	assert_int_equal(connects(s, VOLUME), -ESTALE);
	assert_recorded(s, 1, "mine");
	s->rig->fake->host.inquiry = real_inquiry;
}

/* A disconnect that was interrupted has not forgotten it either; one that has ended, has. */
static void test_half_a_disconnect(void **state)
{
	struct scene *s = *state;

	assert_int_equal(connects(s, VOLUME), 0);
	exchange_in_reboot(s);
	edit_records(s, "s/\"attached\"/\"disconnecting\"/");
	for (int i = 0; i < 2; i++) {
		assert_refused(s, VOLUME);
		assert_recorded(s, 1, "mine");
	}
	assert_int_equal(rig_disconnect(s->rig, "v", "", 0), 0);
	assert_int_equal(connects(s, VOLUME), 0);
	assert_recorded(s, 1, "stranger");
}

/* Nor where the next attempt writes its place otherwise: one that fails, and one that works. */
static void test_half_a_disconnect_in_other_words(void **state)
{
	static const char *const states[] = { "disconnecting", "connecting" };
	struct scene *s = *state;

	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		cleanup_free char *sed = xasprintf("s/\"attached\"/\"%s\"/", states[i]);

		assert_int_equal(connects(s, VOLUME), 0);
		exchange_in_reboot(s);
		edit_records(s, sed);
		assert_refused(s, OWN_WORDS);
		assert_recorded(s, 1, "mine");
		san_export(&s->san, 1, "");
		assert_int_equal(connects(s, OWN_WORDS), -ENOENT);
		assert_recorded(s, 1, "mine");
		san_export(&s->san, 1, "stranger");
		assert_refused(s, VOLUME);
		san_export(&s->san, 1, "mine");
		assert_int_equal(connects(s, OWN_WORDS), 0);
		assert_recorded(s, 1, "mine");
		exchange_in_reboot(s);
		assert_refused(s, OWN_WORDS);
		assert_int_equal(rig_disconnect(s->rig, "v", "", 0), 0);
		san_export(&s->san, 1, "mine");
	}
}

/* iSER is another way to the same units, which say the same of themselves. */
static void test_another_way(void **state)
{
	struct scene *s = *state;

	assert_int_equal(connects(s, VOLUME), 0);
	edit_records(s, "s/\"ISCSI\"/\"ISER\"/");
	exchange_in_reboot(s);
	assert_refused(s, OTHER);
	assert_recorded(s, 1, "mine");
	/* its own consumer has to end it first; where he has half done so, it is known still */
	assert_int_equal(connects(s, VOLUME), -EEXIST);
	edit_records(s, "s/\"attached\"/\"disconnecting\"/");
	assert_refused(s, VOLUME);
	assert_recorded(s, 1, "mine");
	san_export(&s->san, 1, "mine");
	assert_int_equal(connects(s, VOLUME), 0);
	assert_recorded(s, 1, "mine");
}

/* ---- records that cannot be read ------------------------------------------------------------ */

static void damage_records(struct scene *s)
{
	cleanup_free char *command = xasprintf("for f in '%s'/attachments/*.json; do "
					       "cp $f $f.whole; echo x > $f; done",
					       s->rig->state_dir);

	assert_int_equal(system(command), 0);
}

static void mend_records(struct scene *s)
{
	cleanup_free char *command = xasprintf("for f in '%s'/attachments/*.whole; do "
					       "mv $f ${f%%.whole}; done",
					       s->rig->state_dir);

	assert_int_equal(system(command), 0);
}

#define OTHER_WWN(wwn)                                                                             \
	"{\"driverVolumeType\":\"ISCSI\",\"consumer\":\"other\",\"data\":{\"volumeId\":\"v\","     \
	"\"targetIqn\":\"" SAN_IQN "\",\"targetPortal\":\"192.0.2.1\",\"targetLun\":1,"           \
	"\"wwn\":\"" wwn "\"}}"

#define THIRD                                                                                      \
	"{\"driverVolumeType\":\"ISCSI\",\"consumer\":\"third\",\"data\":{\"volumeId\":\"v\","     \
	"\"targetIqn\":\"" SAN_IQN "\",\"targetPortal\":\"192.0.2.1\",\"targetLun\":1}}"

/* It may be the one that says which volume it is: nothing is taken on trust. */
static void test_a_damaged_record(void **state)
{
	struct scene *s = *state;

	assert_int_equal(connects(s, VOLUME), 0);
	exchange_in_reboot(s);
	damage_records(s);
	assert_int_equal(connects(s, OTHER), -EBADMSG);
	assert_non_null(strstr(s->err.message, "/attachments/"));
	assert_non_null(strstr(s->err.message, ".json"));
	assert_non_null(strstr(s->err.message, "wwn"));
	assert_int_equal(rig_records(s->rig), 1);
	assert_int_equal(san_disks(&s->san), 0);
	assert_int_equal(connects(s, OTHER_WWN("mine")), -ESTALE);
	mend_records(s);
	assert_refused(s, OTHER);
	assert_recorded(s, 1, "mine");
	/* what another record, or the parameter, says is enough */
	san_export(&s->san, 1, "mine");
	assert_int_equal(connects(s, VOLUME), 0);
	damage_records(s);
	assert_int_equal(connects(s, OTHER_WWN("mine")), 0);
	assert_int_equal(connects(s, THIRD), 0);
	mend_records(s);
	assert_recorded(s, 3, "mine");
}

/* ---- a person says so ----------------------------------------------------------------------- */

static void test_forget(void **state)
{
	struct scene *s = *state;

	assert_int_equal(forgets(s), 1);
	assert_int_equal(connects(s, VOLUME), 0);
	assert_int_equal(connects(s, OTHER), 0);
	/* what is there is what was recorded */
	assert_int_equal(forgets(s), -EBUSY);
	assert_recorded(s, 2, "mine");
	exchange_in_reboot(s);
	assert_refused(s, VOLUME);
	assert_int_equal(forgets(s), 0);
	assert_int_equal(rig_records(s->rig), 0);
	assert_int_equal(san_disks(&s->san), 0);
	assert_int_equal(connects(s, OTHER), 0);
	assert_int_equal(connects(s, VOLUME), 0);
	assert_recorded(s, 2, "stranger");
}

/* A file system lies on it still: nothing is forgotten under its feet. */
static void test_forget_in_use(void **state)
{
	struct scene *s = *state;

	assert_int_equal(connects(s, VOLUME), 0);
	san_set_busy(&s->san, 1, true);
	san_export(&s->san, 1, "stranger");
	assert_int_equal(forgets(s), -EBUSY);
	assert_recorded(s, 1, "mine");
	assert_refused(s, VOLUME);
	san_set_busy(&s->san, 1, false);
	assert_int_equal(forgets(s), 0);
	assert_int_equal(rig_records(s->rig), 0);
}

/* What is refused has changed nothing, for none of its consumers. */
static void test_forget_in_use_by_one(void **state)
{
	struct scene *s = *state;
	cleanup_free char *after = NULL;

	assert_int_equal(connects(s, VOLUME), 0);
	assert_int_equal(connects(s, OTHER), 0);
	san_set_busy(&s->san, 1, true);
	san_export(&s->san, 1, "stranger");
	assert_int_equal(forgets(s), -EBUSY);
	assert_recorded(s, 2, "mine");
	after = records(s);
	assert_non_null(strstr(after, "\"other\""));
	assert_null(strstr(after, "\"disconnecting\""));
	san_set_busy(&s->san, 1, false);
	assert_int_equal(forgets(s), 0);
	assert_int_equal(rig_records(s->rig), 0);
}

static struct scene *told; /* whose storage is mended when it has answered */
static int answers_left;

static int inquiry_then_mended(const struct hostvol_host *host, const char *device, unsigned page,
			       unsigned char *buf, size_t size, int timeout_ms)
{
	int r = real_inquiry(host, device, page, buf, size, timeout_ms);

	if (page == 0x80 && --answers_left == 0)
		san_export(&told->san, 1, "mine");
	return r;
}

/* The storage gives the volume its place back while somebody forgets it: it is not taken away. */
static void test_forget_what_comes_back(void **state)
{
	struct scene *s = *state;

	assert_int_equal(connects(s, VOLUME), 0);
	san_export(&s->san, 1, "stranger");
	told = s;
	answers_left = 1;
	real_inquiry = s->rig->fake->host.inquiry;
	s->rig->fake->host.inquiry = inquiry_then_mended;
	assert_int_equal(forgets(s), -EBUSY);
	s->rig->fake->host.inquiry = real_inquiry;
	assert_recorded(s, 1, "mine");
	assert_int_equal(san_disks(&s->san), 1);
}

/* ---- interruptions -------------------------------------------------------------------------- */

static void act_in_child(struct scene *s, const char *what)
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit((*what == 'f' ? forgets(s) : connects(s, *what == 'e' ? ELSEWHERE : VOLUME)) <
		      0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
}

/* A reconnect is killed, or fails, at a call; false once it has no such call any more. */
static bool reconnect_interrupted_at(enum fake_fault fault, bool stranger, bool recover, int at)
{
	void *state;
	struct scene *s;
	cleanup_free char *done = NULL;
	int calls;

	setup(&state);
	s = state;
	assert_int_equal(connects(s, VOLUME), 0);
	san_reboot(s->rig, &s->san);
	if (stranger)
		san_export(&s->san, 1, "stranger");
	fake_set_fault(s->rig->fake, fault, at);
	act_in_child(s, "connect");
	calls = atomic_load(&s->rig->fake->calls);
	fake_set_fault(s->rig->fake, FAULT_NONE, 0);
	assert_recorded(s, 1, "mine");
	if (recover)
		assert_int_equal(hostvol_recover_json(s->rig->h, &done, NULL), 0);
	san_export(&s->san, 1, "stranger");
	assert_refused(s, VOLUME);
	assert_refused(s, OTHER);
	assert_recorded(s, 1, "mine");
	san_export(&s->san, 1, "mine");
	assert_int_equal(connects(s, VOLUME), 0);
	teardown(&state);
	return calls >= at;
}

static void test_interrupted_reconnects(void **state)
{
	static const enum fake_fault faults[] = { FAULT_DIE_BEFORE, FAULT_DIE_AFTER, FAULT_FAIL };

	for (int n = 0; n < 12; n++) {
		int at = rig_first_fault();

		while (reconnect_interrupted_at(faults[n >> 2], n & 1, n & 2, at)) {
			at += rig_fault_step();
			assert_true(at < CALLS_MAX);
		}
		assert_true(at > 5);
	}
}

/* The first connect dies: nobody had the volume yet, and the next one takes what is there then. */
static void test_interrupted_first(void **state)
{
	for (int at = rig_first_fault(), ended = 0; !ended; at += rig_fault_step()) {
		void *own;
		struct scene *s;
		bool attached;

		setup(&own);
		s = own;
		fake_set_fault(s->rig->fake, FAULT_DIE_AFTER, at);
		act_in_child(s, "connect");
		ended = atomic_load(&s->rig->fake->calls) < at;
		fake_set_fault(s->rig->fake, FAULT_NONE, 0);
		{
			cleanup_free char *list = records(s);

			attached = strstr(list, "\"attached\"");
		}
		exchange_in_reboot(s);
		assert_int_equal(connects(s, VOLUME), attached ? -ESTALE : 0);
		assert_recorded(s, 1, attached ? "mine" : "stranger");
		teardown(&own);
	}
}

/* A half-ended one is connected from another place, and that dies: it is never forgotten. */
static void test_interrupted_elsewhere(void **state)
{
	for (int at = rig_first_fault(), ended = 0; !ended; at += rig_fault_step()) {
		void *own;
		struct scene *s;

		setup(&own);
		s = own;
		assert_int_equal(connects(s, VOLUME), 0);
		exchange_in_reboot(s);
		edit_records(s, "s/\"attached\"/\"disconnecting\"/");
		fake_set_fault(s->rig->fake, FAULT_DIE_AFTER, at);
		act_in_child(s, "elsewhere");
		ended = atomic_load(&s->rig->fake->calls) < at;
		fake_set_fault(s->rig->fake, FAULT_NONE, 0);
		assert_recorded(s, 1, "mine");
		assert_refused(s, VOLUME);
		teardown(&own);
	}
}

/* Until the last record is gone, forgetting has not happened. */
static void test_interrupted_forget(void **state)
{
	for (int at = rig_first_fault(), ended = 0; !ended; at += rig_fault_step()) {
		void *own;
		struct scene *s;

		setup(&own);
		s = own;
		assert_int_equal(connects(s, VOLUME), 0);
		assert_int_equal(connects(s, OTHER), 0);
		exchange_in_reboot(s);
		fake_set_fault(s->rig->fake, FAULT_DIE_AFTER, at);
		act_in_child(s, "forget");
		ended = atomic_load(&s->rig->fake->calls) < at;
		fake_set_fault(s->rig->fake, FAULT_NONE, 0);
		if (rig_records(s->rig) > 0) {
			assert_refused(s, VOLUME);
			assert_true(forgets(s) >= 0);
		}
		assert_int_equal(rig_records(s->rig), 0);
		assert_int_equal(connects(s, VOLUME), 0);
		teardown(&own);
	}
}

/* ---- any order ------------------------------------------------------------------------------ */

#define LIVES 25 /* with QM_LONG=1 so many times more */
#define STEPS 30

static const char *const who[] = { "", "other", "third" };

/* The identity that all records with one agree on; "" for none. */
static void agreed(struct scene *s, char *buf, size_t size)
{
	cleanup_free char *text = records(s);
	cleanup_json json_t *list = NULL;
	const json_t *r;
	size_t i;

	assert_int_equal(json_parse(text, strlen(text), &list, NULL), 0);
	buf[0] = '\0';
	json_array_foreach (list, i, r) {
		const char *id = jstr(jget(r, "detail"), "identity");

		if (!id)
			continue;
		if (buf[0])
			assert_string_equal(buf, id);
		snprintf(buf, size, "%s", id);
	}
}

static int connect_as(struct scene *s, const char *consumer, bool words)
{
	cleanup_free char *json = xasprintf("{\"driverVolumeType\":\"ISCSI\",\"consumer\":\"%s\","
					    "\"data\":{\"volumeId\":\"v\",\"targetIqn\":\"" SAN_IQN
					    "\",\"targetPortal\":\"192.0.2.1\",\"targetLun\":\"%s\"}}",
					    consumer, words ? "01" : "1");

	return connects(s, json);
}

static int act(struct scene *s, unsigned what, const char *consumer, bool words)
{
	cleanup_free char *done = NULL;

	switch (what) {
	case 0:
		return rig_disconnect(s->rig, "v", consumer, 0);
	case 1:
		return forgets(s);
	case 2:
		return hostvol_recover_json(s->rig->h, &done, NULL);
	default:
		return connect_as(s, consumer, words);
	}
}

/* In a process that dies, or has an error, at some call; or here. */
static int act_with(struct scene *s, struct prng *random, unsigned what, const char *consumer)
{
	bool words = streq(consumer, "other");
	int status;
	pid_t pid;

	if (prng_below(random, 2))
		return act(s, what, consumer, words);
	fake_set_fault(s->rig->fake, (enum fake_fault)(1 + prng_below(random, 3)),
		       1 + (int)prng_below(random, 40));
	pid = fork();
	if (pid == 0)
		_exit(act(s, what, consumer, words) < 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	fake_set_fault(s->rig->fake, FAULT_NONE, 0);
	return -1;
}

static void one_life(struct scene *s, struct prng *random)
{
	static const char *const volumes[] = { "mine", "stranger", "third", "" };
	char before[100], after[100], live[100] = "serial.mine";

	for (int step = 0; step < STEPS; step++) {
		unsigned what = (unsigned)prng_below(random, 9);
		const char *volume = volumes[prng_below(random, 4)];
		int r = -1;

		agreed(s, before, sizeof(before));
		if (what == 8)
			san_reboot(s->rig, &s->san);
		if (what >= 7) {
			san_export(&s->san, 1, volume);
			snprintf(live, sizeof(live), "serial.%s", volume);
		} else {
			r = act_with(s, random, what, who[prng_below(random, 3)]);
		}
		agreed(s, after, sizeof(after));
		if (before[0] && after[0])
			assert_string_equal(before, after);
		if (what >= 3 && r >= 0)
			assert_string_equal(after, live);
	}
}

/* Whatever happens, the volume is one until nobody counts on it, and who gets it gets that one. */
static void test_any_order(void **state)
{
	for (uint64_t life = 1; life <= LIVES * (getenv("QM_LONG") ? LIVES : 1); life++) {
		struct prng random = { life * 7919 };
		void *own;

		setup(&own);
		one_life(own, &random);
		teardown(&own);
	}
}

#define IDENTITY_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IDENTITY_TEST(test_after_a_reboot),
		IDENTITY_TEST(test_after_it_was_gone),
		IDENTITY_TEST(test_while_it_is_connected),
		IDENTITY_TEST(test_by_another_portal),
		IDENTITY_TEST(test_another_consumer),
		IDENTITY_TEST(test_another_consumer_in_other_words),
		IDENTITY_TEST(test_an_expectation),
		IDENTITY_TEST(test_a_failed_attempt),
		IDENTITY_TEST(test_a_record_without),
		IDENTITY_TEST(test_named_otherwise),
		IDENTITY_TEST(test_half_a_disconnect),
		IDENTITY_TEST(test_half_a_disconnect_in_other_words),
		IDENTITY_TEST(test_another_way),
		IDENTITY_TEST(test_a_damaged_record),
		IDENTITY_TEST(test_forget),
		IDENTITY_TEST(test_forget_in_use),
		IDENTITY_TEST(test_forget_in_use_by_one),
		IDENTITY_TEST(test_forget_what_comes_back),
		cmocka_unit_test(test_interrupted_reconnects),
		cmocka_unit_test(test_interrupted_first),
		cmocka_unit_test(test_interrupted_elsewhere),
		cmocka_unit_test(test_interrupted_forget),
		cmocka_unit_test(test_any_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
