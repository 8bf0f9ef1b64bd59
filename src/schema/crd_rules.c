/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/crd.h"

#include "schema/fields.h"

/*
 * What checks.c and the kinds' own checks refuse, once more as CEL, for an API server that cannot
 * call them. tests/unit/schema/refused.yaml holds both to the same inputs and sentences.
 * The server estimates what a rule costs from the lengths that the tables state.
 */

#define CTL "\\x00-\\x1f\\x7f"
#define NAME_PATTERN "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
#define SUBDOMAIN_PATTERN "^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
#define LABEL_VALUE_PATTERN "^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$"

/* Each part of a clean path begins with something else than a dot, or goes on behind its dots. */
#define CLEAN_PATTERN                                                                              \
	"^/$|^(/([^/." CTL "][^/" CTL "]*|[.][^/." CTL "][^/" CTL "]*|[.][.][^/" CTL "]+))+$"

#define R_END                                                                                      \
	{                                                                                          \
		.rule = NULL                                                                       \
	}
#define R_PATH                                                                                     \
	{ .rule = "self.startsWith('/')",                                                          \
	  .message = "is not an absolute path",                                                    \
	  .subject = "self" },                                                                     \
	{                                                                                          \
		.rule = "!self.startsWith('/') || self.matches(r'" CLEAN_PATTERN "')",             \
		.message = "is not a clean path; write it without \".\" and \"..\" parts, "        \
			   "doubled or final slashes and control characters",                      \
		.subject = "self"                                                                  \
	}

static const struct crd_rule path_rules[] = {
	R_PATH,
	R_END,
};

static const struct crd_rule device_rules[] = {
	R_PATH,
	{ .rule = "!self.startsWith('/') || self.startsWith('/dev/')",
	  .message = "is not below /dev/; to store on a file system, name a directory in "
		     "spec.directories",
	  .subject = "self" },
	R_END,
};

static const struct crd_rule directory_rules[] = {
	R_PATH,
	{ .rule = "self != '/'",
	  .message = "the root directory cannot be given to a storage system" },
#define R_SYSTEM(d)                                                                                \
	{                                                                                          \
		.rule = "self != '" d "' && !self.startsWith('" d "/')",                           \
		.message = "lies in " d ", which does not outlive a reboot", .subject = "self"     \
	}
	R_SYSTEM("/dev"),
	R_SYSTEM("/proc"),
	R_SYSTEM("/sys"),
	R_SYSTEM("/run"),
	R_SYSTEM("/tmp"),
	R_END,
};

#define R_ADDRESS(wrong, sentence)                                                                 \
	{                                                                                          \
		.rule = "!isIP(self) || !(" wrong ")", .message = sentence, .subject = "self",     \
		.bare = true                                                                       \
	}
/* The server's own isIP knows no IPv4 address in IPv6 form. */
#define MAPPED "self.matches('(?i)^[0:]*:ffff:[0-9a-f.:]+$')"
static const struct crd_rule ip_rules[] = {
	{ .rule = "isIP(self) || " MAPPED,
	  .message = "is not an IPv4 or IPv6 address",
	  .subject = "self" },
	{ .rule = "isIP(self) || !" MAPPED,
	  .message = "is an IPv4 address in IPv6 form; write it as a.b.c.d",
	  .subject = "self",
	  .bare = true },
	R_ADDRESS("ip(self).isLoopback()",
		  "is a loopback address, which no other node can reach; give the address in the "
		  "storage network"),
	R_ADDRESS("ip(self).isUnspecified()", "stands for any address; give the node's own"),
	R_ADDRESS("!ip(self).isGlobalUnicast() && !ip(self).isLoopback() && "
		  "!ip(self).isUnspecified() && !ip(self).isLinkLocalUnicast()",
		  "is a multicast or broadcast address; give the node's own"),
	R_ADDRESS("ip(self).family() == 6 && ip(self).isLinkLocalUnicast()",
		  "is link-local, which means nothing without an interface; give a routed or "
		  "unique local address"),
	R_END,
};

#define NOT_A_NAME                                                                                 \
	"is not a name: use lower case letters, digits and \"-\", with a letter or digit at both " \
	"ends"
#define NOT_A_SUBDOMAIN                                                                            \
	"is not a name: use lower case letters, digits, \"-\" and \".\", with a letter or digit "  \
	"at both ends"
static const struct crd_rule name_rules[] = {
	{ .rule = "self.matches('" NAME_PATTERN "')", .message = NOT_A_NAME, .subject = "self" },
	R_END,
};

/* Keys have no stated length, so that a pattern for them would cost more than the server grants. */
#define BAD_VALUE(k) "self[" k "] != '' && !self[" k "].matches('" LABEL_VALUE_PATTERN "')"
static const struct crd_rule label_rules[] = {
	{ .rule = "!self.exists(k, " BAD_VALUE("k") ")",
	  .message = "is not a label's value: at most 63 letters, digits, \"-\", \"_\" and \".\", "
		     "with a letter or digit at both ends",
	  .subject = "self[self.filter(k, " BAD_VALUE("k") ")[0]]" },
	{ .rule = "self.all(k, k != '' && k.size() <= 317)",
	  .message = "holds something that is not a key: write NAME or example.com/NAME" },
	R_END,
};

static const struct {
	int (*check)(const json_t *value, struct error *err);
	const struct crd_rule *rules;
} checks[] = {
	{ check_path, path_rules },	      { check_device, device_rules },
	{ check_directory, directory_rules }, { check_ip, ip_rules },
	{ check_label_name, name_rules },     { check_labels, label_rules },
};

/* ---- rules across fields ---------------------------------------------------------------------- */

/* Two spellings of one address are one address; the second of them is the one to name. */
#define OFTEN(a, n)                                                                                \
	"self.filter(b, isIP(" a ") && isIP(b) ? ip(" a ") == ip(b) : " a " == b).size() " n
static const struct crd_rule ips_rules[] = {
	{ .rule = "self.all(a, " OFTEN("a", "== 1") ")",
	  .message = "stands there already",
	  .subject = "self.filter(a, " OFTEN("a", "> 1") ")[1]" },
	R_END,
};

static const struct crd_rule unique_rules[] = {
	{ .rule = "self.all(a, self.exists_one(b, a == b))",
	  .message = "stands there already",
	  .subject = "self.filter(a, !self.exists_one(b, a == b))[0]" },
	R_END,
};

static const struct crd_rule nesting_rules[] = {
	{ .rule = "self.all(a, !self.exists(b, a.startsWith(b + '/')))",
	  .message = "lies inside another one; keep one of them",
	  .subject = "self.filter(a, self.exists(b, a.startsWith(b + '/')))[0]" },
	R_END,
};

#define NO_DEVICE "!(has(self.devices) && w in self.devices)"
static const struct crd_rule node_spec_rules[] = {
	{ .rule = "!has(self.glusterfs) || !has(self.glusterfs.wipe) || "
		  "!self.glusterfs.wipe.exists(w, " NO_DEVICE ")",
	  .message = "is not one of spec.devices",
	  .subject = "self.glusterfs.wipe.filter(w, " NO_DEVICE ")[0]" },
	R_END,
};

static const struct crd_rule snapshot_source_rules[] = {
	{ .rule = "has(self.persistentVolumeClaimName) != has(self.volumeSnapshotContentName)",
	  .message = "exactly one of persistentVolumeClaimName and volumeSnapshotContentName is "
		     "needed" },
	R_END,
};
static const struct crd_rule content_source_rules[] = {
	{ .rule = "has(self.volumeHandle) != has(self.snapshotHandle)",
	  .message = "exactly one of volumeHandle and snapshotHandle is needed" },
	R_END,
};

static const struct {
	const struct kind *kind;
	const char *path;
	const struct crd_rule *rules;
} places[] = {
	{ &KIND_STORAGENODE, "spec", node_spec_rules },
	{ &KIND_STORAGENODE, "spec.storageNetwork.ips", ips_rules },
	{ &KIND_STORAGENODE, "spec.directories", nesting_rules },
	{ &KIND_VOLUMESNAPSHOT, "spec.source", snapshot_source_rules },
	{ &KIND_VOLUMESNAPSHOTCONTENT, "spec.source", content_source_rules },
};

/* ---- putting them into the schema ------------------------------------------------------------- */

static json_t *rules_of(json_t *schema)
{
	json_t *rules = json_object_get(schema, "x-kubernetes-validations");

	if (rules)
		return rules;
	rules = json_array();
	(void)json_object_set_new(schema, "x-kubernetes-validations", rules);
	return rules;
}

/* '"' + self + '" is not an absolute path' */
static char *sentence_of(const struct crd_rule *r)
{
	struct buf out = { 0 };

	if (r->bare)
		buf_printf(&out, "%s + ' ", r->subject);
	else
		buf_printf(&out, "'\"' + %s + '\" ", r->subject);
	for (const char *c = r->message; *c; c++)
		buf_printf(&out, "%s%c", *c == '\'' ? "\\" : "", *c);
	buf_puts(&out, "'");
	return buf_take(&out);
}

static void add(json_t *schema, const struct crd_rule *rules)
{
	for (const struct crd_rule *r = rules; r->rule; r++) {
		cleanup_free char *sentence = r->subject ? sentence_of(r) : NULL;

		(void)json_array_append_new(
			rules_of(schema), json_pack("{s:s, s:s, s:s*}", "rule", r->rule, "message",
						    r->message, "messageExpression", sentence));
	}
}

/*
 * What may not change stands at the section (spec) as a whole: a rule on the field itself would not
 * be asked when the field, or the section that holds it, is removed.
 */
static void add_immutable(json_t *schema, const struct field *fields, const char *path)
{
	for (const struct field *f = fields; f->name; f++) {
		cleanup_free char *here = xasprintf("%s.%s", path, f->name);

		if (f->immutable) {
			cleanup_free char *outer =
				*path ? xasprintf("has(self%s) && ", path) : xstrdup("");
			cleanup_free char *old_outer =
				*path ? xasprintf("has(oldSelf%s) && ", path) : xstrdup("");
			cleanup_free char *rule = xasprintf(
				"!(%shas(oldSelf%s)) || (%shas(self%s) && self%s == oldSelf%s)",
				old_outer, here, outer, here, here, here);
			(void)json_array_append_new(
				rules_of(schema),
				json_pack("{s:s, s:s, s:s}", "rule", rule, "message",
					  "cannot be changed; delete the object and create it anew",
					  "fieldPath", here));
		} else if (f->type == FIELD_OBJECT) {
			add_immutable(schema, f->fields, here);
		}
	}
}

void crd_add_rules(json_t *schema, const struct kind *k, const struct field *f, const char *path)
{
	for (size_t i = 0; f->check && i < ARRAY_SIZE(checks); i++)
		if (checks[i].check == f->check)
			add(schema, checks[i].rules);
	if (f->unique)
		add(schema, unique_rules);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (places[i].kind == k && streq(places[i].path, path))
			add(schema, places[i].rules);
	if (!strchr(path, '.') && f->type == FIELD_OBJECT)
		add_immutable(schema, f->fields, "");
}

void crd_add_name_rules(json_t *schema, const struct kind *k)
{
	cleanup_free char *fits =
		xasprintf("self.metadata.name.size() <= %u", k->max_name ? k->max_name : 253);
	cleanup_free char *long_text =
		xasprintf("metadata.name: is longer than the %u bytes that %s allows",
			  k->max_name ? k->max_name : 253, k->kind);
	const struct crd_rule rules[] = {
		{ .rule = fits, .message = long_text },
		{ .rule = k->label_name ? "self.metadata.name.matches('" NAME_PATTERN "')"
					: "self.metadata.name.matches('" SUBDOMAIN_PATTERN "')",
		  .message = k->label_name ? "metadata.name: " NOT_A_NAME
					   : "metadata.name: " NOT_A_SUBDOMAIN },
		{ .rule = NULL },
	};

	add(schema, rules);
}

bool crd_knows_check(int (*check)(const json_t *value, struct error *err))
{
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++)
		if (checks[i].check == check)
			return true;
	return false;
}
