/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "operator/op.h"
#include "worker/path.h"

#include <pthread.h>

#define LOCKS 64

struct name_lock {
	pthread_mutex_t mutex;
};

struct name_locks {
	struct name_lock locks[LOCKS];
};

struct name_locks *name_locks_new(void)
{
	struct name_locks *n = xcalloc(1, sizeof(*n));

	for (size_t i = 0; i < LOCKS; i++)
		pthread_mutex_init(&n->locks[i].mutex, NULL);
	return n;
}

void name_locks_free(struct name_locks *n)
{
	for (size_t i = 0; n && i < LOCKS; i++)
		pthread_mutex_destroy(&n->locks[i].mutex);
	free(n);
}

struct name_lock *op_name_lock(const struct operator* op, const char *name)
{
	char first[3], second[3];

	volume_hash(name, first, second);
	struct name_lock *lock = &op->names->locks[strtoul(first, NULL, 16) % LOCKS];
	pthread_mutex_lock(&lock->mutex);
	return lock;
}

void op_name_unlock(struct name_lock **lock)
{
	pthread_mutex_unlock(&(*lock)->mutex);
}
