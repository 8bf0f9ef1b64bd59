/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "host.h"
#include "hostvol/hostvol.h"

#include <stdatomic.h>

struct hostvol {
	char *state_dir, *run_dir, *ip;
	int deadline_ms;
	hostvol_log_fn log;
	void *log_userdata;
	const struct hostvol_host *host;
	atomic_uint cancelled; /* how often hostvol_cancel() was called */
};

/* One call of the interface: the handle and the time by which it has to end. */
struct call {
	const struct hostvol *h;
	const struct hostvol_host *host;
	int64_t deadline_ms; /* on the host's monotonic clock */
	unsigned begun; /* h->cancelled then; another value by now: it is to end */
	bool undoing; /* what a failed call undoes is undone, cancelled or not */
	/* the parameters that a disconnect or forget was given, with secrets; or NULL */
	const json_t *given;
};

struct call call_begin(const struct hostvol *h);
/*
 * Milliseconds left, at most max (0: no such bound); -ETIMEDOUT and a message once it has passed,
 * -ECANCELED where the call was cancelled. Whoever waits asks this at least every half second.
 */
int call_left(const struct call *c, int max, struct error *err);
/* A failed step is undone in time of its own: what is left may be nothing. */
struct call call_undo(const struct call *c);
void call_log(const struct call *c, enum hostvol_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Allocates; 0 or -ENOMEM with a message. */
int text_format(char **ret, struct error *err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
int no_memory(struct error *err);
/* A shallow copy of an object, or NULL: json_copy() leaves out what it has no memory for. */
json_t *object_copy(const json_t *o);
/*
 * Text of o, or NULL. Measured first and then written into place: json_dumps() gives text with
 * holes in it where memory runs out in the middle of a key.
 */
char *json_compose(const json_t *o, size_t flags);

/* 128 bits of a hash of n strings, as hexadecimal digits. Names files; never the only proof of identity. */
#define HASH_TEXT_MAX 33
void hash_text(char ret[static HASH_TEXT_MAX], size_t n, const char *const *parts);
#define hash_of(ret, ...)                                                                          \
	hash_text((ret), sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(const char *),           \
		  (const char *const[]){ __VA_ARGS__ })
