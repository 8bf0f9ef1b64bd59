/* SPDX-License-Identifier: Apache-2.0 */
#include "api/tokens.h"
#include "api/server.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

#define TOKEN_BYTES 32
#define FILE_MAX (1024 * 1024)

struct tokens {
	char *path;
	pthread_mutex_t lock;
	struct stat seen;
	json_t *list;
};

static const char *const roles[] = { "admin", "operator", "agent", "reader", NULL };

struct tokens *tokens_new(const char *state_dir)
{
	struct tokens *t = xcalloc(1, sizeof(*t));

	t->path = xasprintf("%s/tokens.json", state_dir);
	pthread_mutex_init(&t->lock, NULL);
	return t;
}

void tokens_free(struct tokens *t)
{
	if (!t)
		return;
	json_decref(t->list);
	pthread_mutex_destroy(&t->lock);
	free(t->path);
	free(t);
}

/* The list of {name, role, node, token}; empty where there is no file yet. */
static int read_list(const char *path, json_t **ret, struct error *err)
{
	cleanup_free char *text = NULL;
	json_t *list = NULL;
	size_t len;
	int rc = file_read(path, FILE_MAX, &text, &len, err);

	if (rc == -ENOENT) {
		*ret = json_array();
		return 0;
	}
	if (rc >= 0)
		rc = json_parse(text, len, &list, err);
	if (rc < 0)
		return rc;
	if (!json_is_array(list)) {
		json_decref(list);
		return error_set(err, EINVAL, "%s is damaged: it should hold a list of tokens",
				 path);
	}
	*ret = list;
	return 0;
}

static void reread(struct tokens *t)
{
	struct error err = ERROR_INIT;
	json_t *list = NULL;
	struct stat st;

	if (stat(t->path, &st) < 0)
		memset(&st, 0, sizeof(st));
	if (t->list && st.st_ino == t->seen.st_ino && st.st_size == t->seen.st_size &&
	    st.st_mtim.tv_sec == t->seen.st_mtim.tv_sec &&
	    st.st_mtim.tv_nsec == t->seen.st_mtim.tv_nsec)
		return;
	if (read_list(t->path, &list, &err) < 0) {
		log_err("Tokens cannot be read, those known before stay valid: %s", err.message);
		return;
	}
	json_decref(t->list);
	t->list = list;
	t->seen = st;
}

int tokens_find(struct tokens *t, const char *authorization, struct identity *ret)
{
	const char *token;
	const json_t *item, *found = NULL;
	size_t i;

	if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0)
		return -EACCES;
	token = authorization + 7 + strspn(authorization + 7, " ");
	pthread_mutex_lock(&t->lock);
	reread(t);
	/* All are compared, each in constant time: how long it takes tells nothing. */
	json_array_foreach (t->list, i, item) {
		const char *known = jstr(item, "token");
		size_t len = known ? strlen(known) : 0;

		if (len >= TOKEN_BYTES && strlen(token) == len &&
		    CRYPTO_memcmp(known, token, len) == 0)
			found = item;
	}
	if (found) {
		const char *node = jstr(found, "node");

		snprintf(ret->name, sizeof(ret->name), "%s", jstr(found, "name"));
		snprintf(ret->role, sizeof(ret->role), "%s", jstr(found, "role"));
		snprintf(ret->node, sizeof(ret->node), "%s", node ? node : "");
	}
	pthread_mutex_unlock(&t->lock);
	return found ? 0 : -EACCES;
}

static char *new_token(void)
{
	unsigned char bytes[TOKEN_BYTES];
	struct buf text = { 0 };

	rand_bytes(bytes, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		buf_printf(&text, "%02x", bytes[i]);
	OPENSSL_cleanse(bytes, sizeof(bytes));
	return buf_take(&text);
}

/* The token with that name, role and node, made where it is missing. */
static int find_or_add(const char *path, const char *name, const char *role, const char *node,
		       char **ret, struct error *err)
{
	cleanup_json json_t *list = NULL;
	cleanup_free char *token = NULL, *text = NULL;
	json_t *item;
	size_t i;
	int rc = read_list(path, &list, err);

	if (rc < 0)
		return rc;
	json_array_foreach (list, i, item) {
		const char *its = jstr(item, "node");

		if (streq(jstr(item, "name"), name) && streq(jstr(item, "role"), role) &&
		    streq(its ? its : "", node ? node : "") && jstr(item, "token")) {
			*ret = xstrdup(jstr(item, "token"));
			return 0;
		}
	}
	token = new_token();
	item = json_pack("{s:s, s:s, s:s}", "name", name, "role", role, "token", token);
	if (node)
		jset(item, json_string(node), "node");
	json_array_append_new(list, item);
	text = json_text_pretty(list);
	rc = file_write(path, text, strlen(text), 0600, err);
	OPENSSL_cleanse(text, strlen(text));
	if (rc >= 0)
		*ret = TAKE_PTR(token);
	return rc;
}

int api_token(const char *state_dir, const char *name, const char *role, const char *node,
	      char **ret, struct error *err)
{
	cleanup_free char *path = xasprintf("%s/tokens.json", state_dir);
	cleanup_free char *lock_path = xasprintf("%s/tokens.lock", state_dir);
	cleanup_close int lock = -1;
	size_t i;
	int rc;

	for (i = 0; roles[i] && !streq(roles[i], role); i++)
		;
	if (!roles[i])
		return error_set(
			err, EINVAL,
			"There is no role \"%s\" for a token: use admin, operator, agent or reader",
			role);
	if (streq(role, "agent") && (!node || !node[0]))
		return error_set(err, EINVAL, "A token for an agent needs the name of its node");
	rc = mkdir_parents(state_dir, 0700, err);
	if (rc < 0)
		return rc;
	lock = lock_file(lock_path, true, err);
	return lock < 0 ? lock : find_or_add(path, name, role, node, ret, err);
}
