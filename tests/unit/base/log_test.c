/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/log.h"
#include "unit.h"

#include <fcntl.h>
#include <pthread.h>

static int saved = -1;
static char *path;

/* Standard error goes to a file while a test logs. */
static int setup(void **state)
{
	int fd;

	path = temporary_dir();
	path = xrealloc(path, strlen(path) + 5);
	strcat(path, "/log");
	fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	dup2(fd, STDERR_FILENO);
	close(fd);
	return 0;
}

static char *logged(void)
{
	char *text = NULL;

	dup2(saved, STDERR_FILENO);
	assert_int_equal(file_read(path, 0, &text, NULL, NULL), 0);
	return text;
}

static int teardown(void **state)
{
	close(saved);
	*strrchr(path, '/') = '\0';
	remove_tree(path, NULL);
	free(path);
	return 0;
}

static void lines_have_level_and_part(void **state)
{
	cleanup_free char *text = NULL;

	log_init("operator", LOG_LEVEL_INFO);
	log_debug("not %s", "this");
	log_info("pool %s is online", "p-1");
	log_err("bad");
	text = logged();
	assert_null(strstr(text, "not this"));
	assert_non_null(strstr(text, "Z info  operator: pool p-1 is online\n"));
	assert_non_null(strstr(text, "Z error operator: bad\n"));
	assert_int_equal(text[4], '-');
}

static void one_event_is_one_line(void **state)
{
	cleanup_free char *text = NULL, *longest = xcalloc(1, 5001);
	size_t lines = 0;

	memset(longest, 'x', 5000);
	log_init("", LOG_LEVEL_DEBUG);
	log_warn("a\nb\r\x1b[31mc");
	log_info("%s", longest);
	log_info("next");
	text = logged();
	for (char *s = text; *s; s++)
		lines += *s == '\n';
	assert_int_equal(lines, 3);
	assert_non_null(strstr(text, "a b  [31mc\n"));
	assert_non_null(strstr(text, "x\n"));
}

static void *log_many(void *arg)
{
	for (int i = 0; i < 200; i++)
		log_info("<%s>", (const char *)arg);
	return NULL;
}

static void threads_do_not_mix(void **state)
{
	static const char *const words[] = { "aaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbb",
					     "cccccccccccccccccccc" };
	cleanup_free char *text = NULL;
	pthread_t t[3];
	size_t whole = 0;

	log_init("t", LOG_LEVEL_INFO);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&t[i], NULL, log_many, (void *)words[i]), 0);
	for (size_t i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	text = logged();
	for (size_t i = 0; i < 3; i++) {
		cleanup_free char *want = xasprintf("info  t: <%s>\n", words[i]);
		const char *s = text;

		while ((s = strstr(s, want))) {
			whole++;
			s++;
		}
	}
	assert_int_equal(whole, 600);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lines_have_level_and_part, setup, teardown),
		cmocka_unit_test_setup_teardown(one_event_is_one_line, setup, teardown),
		cmocka_unit_test_setup_teardown(threads_do_not_mix, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
