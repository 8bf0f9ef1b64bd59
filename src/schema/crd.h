/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "schema/schema.h"

/*
 * The CustomResourceDefinition of a kind of ours, for a cluster's API server: a structural schema
 * with every description, limit and default of the tables, and CEL rules that refuse, with the same
 * sentences, what the checks refuse.
 */

/*
 * Raise it with every change of what schema_crd makes: an operator replaces a definition that carries
 * a lower number, and leaves one with a higher number alone.
 */
#define CRD_SCHEMA_VERSION 2
#define CRD_SCHEMA_LABEL "quartermaster.storage/schema-version"

/* New reference; k must be custom. */
json_t *schema_crd(const struct kind *k);
/* All of them that are ours, or those that are shared, as YAML documents; the caller frees it. */
char *schema_crds_yaml(bool shared);

/* ---- crd_rules.c: x-kubernetes-validations ---------------------------------------------------- */
struct crd_rule {
	const char *rule;
	const char *message; /* as it stands behind the subject */
	const char
		*subject; /* a CEL expression: the value that the sentence begins with; or NULL */
	bool bare; /* the subject stands there without quotes */
};
/* Adds the rules of one field (at path, of the kind) to its schema: its check, and the kind's rules for it. */
void crd_add_rules(json_t *schema, const struct kind *k, const struct field *f, const char *path);
/* Adds the rules on the object's name to the schema of the whole object. */
void crd_add_name_rules(json_t *schema, const struct kind *k);
/* Whether there are rules that stand for this check. */
bool crd_knows_check(int (*check)(const json_t *value, struct error *err));
