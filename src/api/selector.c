/* SPDX-License-Identifier: Apache-2.0 */
#include "api/selector.h"
#include "base/mem.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>

enum match { MATCH_IN, MATCH_NOT_IN, MATCH_EXISTS, MATCH_MISSING };

struct term {
	enum match match;
	bool is_field;
	char *key;
	struct strv values;
};

struct selector {
	struct term *terms;
	size_t count;
};

void selector_free(struct selector *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->count; i++) {
		free(s->terms[i].key);
		strv_done(&s->terms[i].values);
	}
	free(s->terms);
	free(s);
}

static struct term *add_term(struct selector *s)
{
	s->terms = xrealloc(s->terms, (s->count + 1) * sizeof(*s->terms));
	s->terms[s->count] = (struct term){ 0 };
	return &s->terms[s->count++];
}

static const char *skip_space(const char *p)
{
	while (*p == ' ' || *p == '\t')
		p++;
	return p;
}

/* A label's key or value, or an operator in letters. */
static size_t word_len(const char *p)
{
	size_t n = 0;

	while (isalnum((unsigned char)p[n]) || (p[n] && strchr("-_./", p[n])))
		n++;
	return n;
}

/* "(a, b)" from p; NULL where it is malformed. */
static const char *parse_set(const char *p, struct strv *values)
{
	p = skip_space(p);
	if (*p++ != '(')
		return NULL;
	for (;;) {
		size_t n;

		p = skip_space(p);
		n = word_len(p);
		strv_add_take(values, xstrndup(p, n));
		p = skip_space(p + n);
		if (*p == ')')
			return p + 1;
		if (*p++ != ',')
			return NULL;
	}
}

/* What follows a key: "=v", "==v", "!=v", " in (…)", " notin (…)", or nothing. */
static const char *parse_operator(const char *p, struct term *t)
{
	size_t n;

	p = skip_space(p);
	if (*p == '\0' || *p == ',') {
		t->match = MATCH_EXISTS;
		return p;
	}
	if (str_has_prefix(p, "!=") || *p == '=') {
		t->match = *p == '!' ? MATCH_NOT_IN : MATCH_IN;
		p = skip_space(p + (p[0] == '!' || p[1] == '=' ? 2 : 1));
		n = word_len(p);
		strv_add_take(&t->values, xstrndup(p, n));
		return p + n;
	}
	n = word_len(p);
	if (n == 2 && strncmp(p, "in", 2) == 0)
		t->match = MATCH_IN;
	else if (n == 5 && strncmp(p, "notin", 5) == 0)
		t->match = MATCH_NOT_IN;
	else
		return NULL;
	return parse_set(p + n, &t->values);
}

static int parse_labels(struct selector *s, const char *text, struct error *err)
{
	const char *p = skip_space(text);

	while (*p) {
		struct term *t = add_term(s);
		bool missing = *p == '!';
		size_t n;

		if (missing)
			p = skip_space(p + 1);
		n = word_len(p);
		if (n == 0)
			break;
		t->key = xstrndup(p, n);
		p = parse_operator(p + n, t);
		if (!p || (missing && t->match != MATCH_EXISTS))
			break;
		if (missing)
			t->match = MATCH_MISSING;
		p = skip_space(p);
		if (*p == '\0')
			return 0;
		if (*p++ != ',')
			break;
		p = skip_space(p);
		if (*p == '\0')
			break;
	}
	return text[0] ? error_set(
				 err, EINVAL,
				 "unable to parse requirement: the label selector \"%.200s\" is "
				 "not of the form key=value, key!=value, key in (a,b), key or !key",
				 text)
		       : 0;
}

/* The fields beyond name and namespace by which Kubernetes lets one select, by kind. */
static const struct {
	const char *kind;
	const char *fields[10];
} selectable[] = {
	{ "Event",
	  { "involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
	    "involvedObject.uid", "involvedObject.apiVersion", "involvedObject.resourceVersion",
	    "involvedObject.fieldPath", "reason", "type", "reportingComponent" } },
	{ "Secret", { "type" } },
	{ "Namespace", { "status.phase" } },
	{ "Node", { "spec.unschedulable" } },
	{ "Pod",
	  { "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
	    "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName" } },
};

static bool field_selectable(const struct kind *kind, const char *field)
{
	if (streq(field, "metadata.name") || streq(field, "metadata.namespace"))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(selectable); i++) {
		if (!streq(selectable[i].kind, kind->kind) || kind->custom)
			continue;
		for (size_t j = 0; j < ARRAY_SIZE(selectable[i].fields); j++)
			if (streq(selectable[i].fields[j], field))
				return true;
	}
	return false;
}

static int parse_field(struct selector *s, const struct kind *kind, const char *text, size_t len,
		       struct error *err)
{
	const char *eq = memchr(text, '=', len);
	struct term *t = add_term(s);
	size_t key_len, skip;

	if (!eq || eq == text)
		return error_set(err, EINVAL,
				 "invalid selector: '%.*s'; can't understand '%.*s': write "
				 "field=value or field!=value",
				 (int)len, text, (int)len, text);
	t->is_field = true;
	t->match = eq[-1] == '!' ? MATCH_NOT_IN : MATCH_IN;
	key_len = (size_t)(eq - text) - (t->match == MATCH_NOT_IN);
	t->key = xstrndup(text, key_len);
	skip = (size_t)(eq - text) + (eq + 1 < text + len && eq[1] == '=' ? 2 : 1);
	strv_add_take(&t->values, xstrndup(text + skip, len - skip));
	if (!field_selectable(kind, t->key))
		return error_set(err, EINVAL, "field label not supported: %s", t->key);
	return 0;
}

static int parse_fields(struct selector *s, const struct kind *kind, const char *text,
			struct error *err)
{
	while (*text) {
		size_t len = strcspn(text, ",");
		int rc = parse_field(s, kind, text, len, err);

		if (rc < 0)
			return rc;
		text += len;
		if (*text == ',')
			text++;
	}
	return 0;
}

int selector_parse(const struct kind *kind, const char *labels, const char *fields,
		   struct selector **ret, struct error *err)
{
	struct selector *s;
	int rc = 0;

	*ret = NULL;
	if ((!labels || !labels[0]) && (!fields || !fields[0]))
		return 0;
	s = xcalloc(1, sizeof(*s));
	if (labels)
		rc = parse_labels(s, labels, err);
	if (rc >= 0 && fields)
		rc = parse_fields(s, kind, fields, err);
	if (rc < 0) {
		selector_free(s);
		return rc;
	}
	*ret = s;
	return 0;
}

/* The value at "a.b.c" as text; "" where missing, as Kubernetes compares it. */
static const char *field_value(const json_t *object, const char *path)
{
	const json_t *v = object;
	char part[128];

	while (*path && v) {
		size_t len = strcspn(path, ".");

		if (len >= sizeof(part))
			return "";
		memcpy(part, path, len);
		part[len] = '\0';
		v = json_object_get(v, part);
		path += len + (path[len] == '.');
	}
	if (json_is_boolean(v))
		return json_is_true(v) ? "true" : "false";
	return json_is_string(v) ? json_string_value(v) : "";
}

static bool term_match(const struct term *t, const json_t *object)
{
	const char *value = t->is_field ? field_value(object, t->key)
					: jstr(object, "metadata", "labels", t->key);

	switch (t->match) {
	case MATCH_EXISTS:
		return value;
	case MATCH_MISSING:
		return !value;
	case MATCH_IN:
		return value && strv_contains(&t->values, value);
	case MATCH_NOT_IN:
		return !value || !strv_contains(&t->values, value);
	}
	return false;
}

bool selector_match(const struct selector *s, const json_t *object)
{
	if (!s)
		return true;
	for (size_t i = 0; i < s->count; i++)
		if (!term_match(&s->terms[i], object))
			return false;
	return true;
}
