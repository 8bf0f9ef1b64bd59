/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "schema/schema.h"

/*
 * Label and field selectors as Kubernetes writes them: "a=b,c!=d,e in (f,g),h notin (i),j,!k";
 * "metadata.name=x,involvedObject.uid!=y". Fields are those that Kubernetes lets one select by.
 */
struct selector;

/* ret is NULL where both texts are NULL or empty: everything matches. -EINVAL with a message. */
int selector_parse(const struct kind *kind, const char *labels, const char *fields,
		   struct selector **ret, struct error *err);
bool selector_match(const struct selector *s, const json_t *object); /* true for NULL */
void selector_free(struct selector *s); /* NULL-safe */
