/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>

/*
 * How functions report failure: they return 0 (or > 0 for "done differently"), or -errno, and
 * fill in an optional caller-owned struct error, always the last argument. The message is one
 * sentence for a person: what was attempted, on what, why it failed, what to do.
 */
struct error {
	int code; /* positive errno, 0 while nothing failed */
	char message[500];
};

#define ERROR_INIT ((struct error){ 0 })

/* Sets code and message (err may be NULL); returns -code, so `return error_set(err, ENOENT, …)`. */
int error_set(struct error *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* As error_set, with ": " and strerror(code) added. */
int error_errno(struct error *err, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Puts "context: " before the message that is there already; returns -err->code (or -EIO). */
int error_prefix(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The message, or strerror(-rc) where none was set. */
const char *error_text(const struct error *err, int rc);
