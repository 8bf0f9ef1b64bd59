/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/store.h"
#include "base/mem.h"
#include "base/rand.h"

#include <errno.h>
#include <stdio.h>

/* JSON text that uses ' for ", with printf's formats. */
__attribute__((format(printf, 1, 2))) static inline json_t *quoted(const char *format, ...)
{
	cleanup_free char *text = NULL;
	struct error err = ERROR_INIT;
	json_t *o = NULL;
	va_list args;

	va_start(args, format);
	assert_true(vasprintf(&text, format, args) >= 0);
	va_end(args);
	for (char *p = text; *p; p++)
		if (*p == '\'')
			*p = '"';
	if (json_parse(text, strlen(text), &o, &err) < 0)
		fail_msg("%s: %s", err.message, text);
	return o;
}

/* Takes ownership of both. */
static inline void assert_json(json_t *is, json_t *wanted)
{
	if (!is || !json_equal(is, wanted)) {
		cleanup_free char *a = is ? json_text(is) : xstrdup("nothing"),
				  *b = json_text(wanted);

		fail_msg("is %s\nnot %s", a, b);
	}
	json_decref(is);
	json_decref(wanted);
}

/* A store in memory whose time stands still until it is moved. */
static int64_t unit_now_ms = 1750000000000;

static inline int64_t unit_time(void *userdata)
{
	(void)userdata;
	return unit_now_ms;
}

static const struct clock unit_clock = { unit_time, unit_time, NULL };
static struct prng unit_ids;
static struct store *S;

static inline int unit_open(void **state)
{
	const struct store_options options = {
		.path = ":memory:", .clock = &unit_clock, .history = 100, .ids = &unit_ids
	};
	struct error err = ERROR_INIT;

	(void)state;
	unit_ids.state = 1;
	if (store_open(&options, &S, &err) < 0 || store_bootstrap(S, &err) < 0)
		fail_msg("%s", err.message);
	return 0;
}

static inline int unit_close(void **state)
{
	(void)state;
	store_close(S);
	S = NULL;
	return 0;
}

#define store_test(fn) cmocka_unit_test_setup_teardown(fn, unit_open, unit_close)

/* Results of the last call. */
static json_t *status;
static struct error err;

static inline struct store_write write_to(const struct kind *kind, const char *name)
{
	struct store_write w = { .kind = kind, .name = name, .manager = "test" };

	json_decref(status);
	status = NULL;
	err = ERROR_INIT;
	w.ns = kind->namespaced ? "default" : NULL;
	w.ret_status = &status;
	return w;
}

/* object is taken. */
static inline int create(const struct kind *kind, json_t *object, json_t **ret)
{
	struct store_write w = write_to(kind, NULL);
	int rc = store_create(S, &w, object, ret, &err);

	json_decref(object);
	return rc;
}

static inline json_t *created(const struct kind *kind, json_t *object)
{
	json_t *o = NULL;

	if (create(kind, object, &o) < 0)
		fail_msg("%s", err.message);
	return o;
}

static inline json_t *get(const struct kind *kind, const char *name)
{
	json_t *o = NULL;
	int rc = store_get(S, kind, kind->namespaced ? "default" : NULL, name, &o, &err);

	return rc < 0 ? NULL : o;
}

static inline int update(const struct kind *kind, const json_t *object, const char *sub,
			 json_t **ret)
{
	struct store_write w = write_to(kind, jstr(object, "metadata", "name"));

	w.subresource = sub;
	return store_update(S, &w, object, ret, &err);
}

static inline int patch(const struct kind *kind, const char *name, const char *type, json_t *p,
			json_t **ret)
{
	struct store_write w = write_to(kind, name);
	int rc;

	w.patch_type = type;
	rc = store_patch(S, &w, p, ret, &err);
	json_decref(p);
	return rc;
}

static inline int drop(const struct kind *kind, const char *name, const char *propagation)
{
	const struct kube_delete_options options = { .propagation = propagation };
	struct store_write w = write_to(kind, name);

	return store_delete(S, &w, &options, NULL, &err);
}

static inline json_t *configmap(const char *name)
{
	return quoted("{'metadata':{'name':'%s'},'data':{'a':'1'}}", name);
}

static inline json_t *storagenode(const char *name)
{
	return quoted("{'apiVersion':'coreos.com/v1','kind':'StorageNode','metadata':{'name':'%s'},"
		      "'spec':{'type':'glusterfs','devices':['/dev/vdb'],"
		      "'storageNetwork':{'ips':['10.0.0.1']},'glusterfs':{'cluster':'c'}}}",
		      name);
}
