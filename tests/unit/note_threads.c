/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded into the unit tests of the release build: notes in the file QM_THREADS the name of each program that starts
 * a thread. Only those are worth a run with ThreadSanitizer.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static void note(void)
{
	const char *path = getenv("QM_THREADS");
	int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644) : -1;

	if (fd < 0)
		return;
	dprintf(fd, "%s\n", program_invocation_short_name);
	close(fd);
}

__attribute__((visibility("default"))) int pthread_create(pthread_t *ret, const pthread_attr_t *a,
							  void *(*run)(void *), void *argument)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	create_function *next = (create_function *)dlsym(RTLD_NEXT, "pthread_create");

	pthread_once(&once, note);
	return next(ret, a, run, argument);
}
