/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/str.h"
#include "base/yaml.h"
#include "schema/schema.h"

/* Objects from files, checked as a whole before anything is done with them. */
struct input_object {
	json_t *object;
	const struct kind *kind;
	char *file;
	char *source; /* "file:12", where the object begins */
	/* where its fields stand in the file */
	struct yaml_doc doc;
	char prefix[32]; /* of its fields' paths: "items[2].", or "" */
};

struct input {
	struct input_object *items;
	size_t count;
};

/*
 * Reads files, directories (their *.yaml, *.yml and *.json, in order of name) and "-" (standard
 * input). Lists are taken apart. Objects in namespaces get ns where they name none. Complains on
 * standard error, one line an error, "file:line: field: message", about everything that is wrong;
 * returns QM_OK or QM_FAILED, and then holds nothing.
 */
int input_read(const struct strv *paths, const char *ns, struct input *ret);
/* The line in the file of a field ("spec.type"), or "": where the object begins. */
int input_line(const struct input_object *o, const char *path);
void input_done(struct input *in);
