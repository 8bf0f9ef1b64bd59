/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"
#include "base/rand.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

bool json_same(const json_t *a, const json_t *b)
{
	return a == b || (a && b && json_equal(a, b));
}

/* null means "not set" to Kubernetes; so it is never stored. */
void json_drop_nulls(json_t *value)
{
	const char *key;
	json_t *item;
	void *next;
	size_t i;

	json_object_foreach_safe (value, next, key, item) {
		if (json_is_null(item))
			json_object_del(value, key);
		else
			json_drop_nulls(item);
	}
	json_array_foreach (value, i, item)
		json_drop_nulls(item);
}

static uint64_t id_bits(struct op *op)
{
	uint64_t bits;

	if (op->s->ids)
		return prng_next(op->s->ids);
	rand_bytes(&bits, sizeof(bits));
	return bits;
}

static const char *new_uid(struct op *op, char buf[static UUID_TEXT_MAX])
{
	uint64_t a = id_bits(op), b = id_bits(op);

	/* version 4, variant 1 */
	snprintf(buf, UUID_TEXT_MAX, "%08x-%04x-4%03x-%04x-%012" PRIx64, (unsigned)(a >> 32),
		 (unsigned)(a >> 16) & 0xffff, (unsigned)a & 0xfff,
		 0x8000 | ((unsigned)(b >> 48) & 0x3fff), b & UINT64_C(0xffffffffffff));
	return buf;
}

void meta_stamp(struct op *op, const char *key, json_t *metadata)
{
	char now[TIME_TEXT_MAX];

	jset(metadata, json_string(time_text(clock_wall_ms(op->s->clock), now)), key);
}

bool meta_has_finalizers(const json_t *object)
{
	return json_array_size(jget(object, "metadata", "finalizers")) > 0;
}

/* Empty maps and lists in metadata are the same as none. */
static void drop_empty(json_t *metadata)
{
	static const char *const keys[] = { "labels", "annotations", "finalizers",
					    "ownerReferences", "managedFields" };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const json_t *v = json_object_get(metadata, keys[i]);

		if (v && json_object_size(v) == 0 && json_array_size(v) == 0)
			json_object_del(metadata, keys[i]);
	}
}

/* apiVersion and kind: those of the resource, if they were given at all. */
static int check_type(struct op *op, json_t *object)
{
	char api_version[128];
	const char *version = jstr(object, "apiVersion"), *kind = jstr(object, "kind");

	kind_api_version(op->kind, api_version, sizeof(api_version));
	if (version && version[0] && !streq(version, api_version))
		return op_refuse(
			op, FAULT_BAD_REQUEST, NULL,
			"the API version in the data (%.100s) does not match the expected API "
			"version (%s)",
			version, api_version);
	if (kind && kind[0] && !streq(kind, op->kind->kind))
		return op_refuse(
			op, FAULT_BAD_REQUEST, NULL,
			"the kind in the data (%.100s) does not match the expected kind (%s)", kind,
			op->kind->kind);
	jset(object, json_string(api_version), "apiVersion");
	jset(object, json_string(op->kind->kind), "kind");
	return 0;
}

int meta_check(struct op *op, json_t *object)
{
	json_t *metadata = json_object_get(object, "metadata");
	const char *ns;
	int rc;

	if (!json_is_object(object))
		return op_refuse(op, FAULT_BAD_REQUEST, NULL,
				 "the body is not an object: send one %s as JSON or YAML",
				 op->kind->kind);
	if (metadata && !json_is_object(metadata))
		return op_refuse(op, FAULT_BAD_REQUEST, NULL, "metadata: it must be an object");
	if (!metadata)
		jset(object, json_object(), "metadata");
	rc = check_type(op, object);
	if (rc < 0)
		return rc;
	metadata = json_object_get(object, "metadata");
	ns = jstr(metadata, "namespace");
	if (op->kind->namespaced && ns && ns[0] && !streq(ns, op->ns))
		return op_refuse(
			op, FAULT_BAD_REQUEST, NULL,
			"the namespace of the provided object does not match the namespace sent "
			"on the request");
	if (op->kind->namespaced)
		jset(metadata, json_string(op->ns), "namespace");
	else
		json_object_del(metadata, "namespace");
	json_object_del(metadata, "selfLink");
	return 0;
}

static int name_for_create(struct op *op, json_t *metadata)
{
	static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
	const char *name = jstr(metadata, "name"), *base = jstr(metadata, "generateName");
	char generated[254];

	if ((!name || !name[0]) && base && base[0]) {
		uint64_t bits = id_bits(op);
		size_t len = (size_t)snprintf(generated, sizeof(generated) - 5, "%.58s", base);

		for (int i = 0; i < 5; i++, bits /= sizeof(letters) - 1)
			generated[len++] = letters[bits % (sizeof(letters) - 1)];
		generated[len] = '\0';
		jset(metadata, json_string(generated), "name");
		name = generated;
	}
	if (!name || !name[0])
		return op_refuse(op, FAULT_INVALID, "metadata.name",
				 "Required value: name or generateName is required");
	if (op->name && op->name[0] && !streq(op->name, name))
		return op_refuse(
			op, FAULT_BAD_REQUEST, NULL,
			"the name of the object (%.253s) does not match the name on the URL "
			"(%.253s)",
			name, op->name);
	op_set_name(op, name);
	if (streq(op->kind->kind, "Namespace") ? !name_is_label(name) : !name_is_subdomain(name))
		return op_refuse(
			op, FAULT_INVALID, "metadata.name",
			"Invalid value: \"%.253s\": a lowercase RFC 1123 name must consist of "
			"lower case alphanumeric characters, '-' or '.', and must start and end "
			"with an alphanumeric character",
			name);
	return 0;
}

int meta_for_create(struct op *op, json_t *object)
{
	static const char *const ours[] = { "uid",
					    "generation",
					    "creationTimestamp",
					    "deletionTimestamp",
					    "deletionGracePeriodSeconds",
					    "managedFields" };
	const char *version;
	json_t *metadata;
	char uid[UUID_TEXT_MAX];
	int rc = meta_check(op, object);

	if (rc < 0)
		return rc;
	metadata = json_object_get(object, "metadata");
	version = jstr(metadata, "resourceVersion");
	if (version && version[0])
		return op_refuse(op, FAULT_BAD_REQUEST, NULL,
				 "resourceVersion should not be set on objects to be created");
	rc = name_for_create(op, metadata);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
		json_object_del(metadata, ours[i]);
	drop_empty(metadata);
	jset(metadata, json_string(new_uid(op, uid)), "uid");
	meta_stamp(op, "creationTimestamp", metadata);
	if (op->kind->custom)
		jset(metadata, json_integer(1), "generation");
	return 0;
}

int meta_namespace(struct op *op)
{
	struct stored ns = { 0 };
	bool going;
	char resource[RESOURCE_MAX];
	int rc;

	if (!op->kind->namespaced)
		return 0;
	if (!op->ns[0])
		return op_refuse(op, FAULT_BAD_REQUEST, NULL,
				 "an empty namespace may not be set during creation");
	rc = row_load(op, &KIND_NAMESPACE, "", op->ns, &ns);
	if (rc == -ENOENT) {
		rc = op_refuse(op, FAULT_NOT_FOUND, NULL, "namespaces \"%.253s\" not found",
			       op->ns);
		op->kind = &KIND_NAMESPACE;
		op_set_name(op, op->ns);
	}
	if (rc < 0)
		return rc;
	going = jstr(ns.object, "metadata", "deletionTimestamp");
	stored_done(&ns);
	if (going && !op->system)
		return op_refuse(
			op, FAULT_FORBIDDEN, NULL,
			"%s \"%s\" is forbidden: unable to create new content in namespace %s "
			"because it is being terminated",
			kind_resource(op->kind, resource), op->name, op->ns);
	return 0;
}

int meta_precondition(struct op *op, const char *uid, const char *version, const json_t *old)
{
	const char *old_uid = jstr(old, "metadata", "uid");
	const char *old_version = jstr(old, "metadata", "resourceVersion");
	char resource[RESOURCE_MAX];

	kind_resource(op->kind, resource);
	if (uid && uid[0] && !streq(uid, old_uid))
		return op_refuse(
			op, FAULT_CONFLICT, NULL,
			"Operation cannot be fulfilled on %s \"%s\": Precondition failed: UID in "
			"precondition: %.40s, UID in object meta: %s",
			resource, op->name, uid, old_uid);
	if (version && version[0] && !streq(version, old_version))
		return op_refuse(
			op, FAULT_CONFLICT, NULL,
			"Operation cannot be fulfilled on %s \"%s\": the object has been "
			"modified; please apply your changes to the latest version and try again",
			resource, op->name);
	return 0;
}

static int check_finalizers(struct op *op, const json_t *metadata, const json_t *old)
{
	const json_t *before = jget(old, "metadata", "finalizers"), *item;
	size_t i, j;

	if (!jstr(old, "metadata", "deletionTimestamp"))
		return 0;
	json_array_foreach (json_object_get(metadata, "finalizers"), i, item) {
		for (j = 0; j < json_array_size(before); j++)
			if (json_equal(json_array_get(before, j), item))
				break;
		if (j == json_array_size(before) && json_is_string(item))
			return op_refuse(
				op, FAULT_INVALID, "metadata.finalizers",
				"Forbidden: no new finalizers can be added if the object is being "
				"deleted, found new finalizers []string{\"%.100s\"}",
				json_string_value(item));
	}
	return 0;
}

int meta_for_update(struct op *op, json_t *object, const json_t *old)
{
	static const char *const kept[] = { "name",
					    "namespace",
					    "uid",
					    "creationTimestamp",
					    "generation",
					    "deletionTimestamp",
					    "deletionGracePeriodSeconds",
					    "resourceVersion",
					    "generateName" };
	const json_t *before = json_object_get(old, "metadata");
	const char *name;
	json_t *metadata;
	int rc = meta_check(op, object);

	if (rc < 0)
		return rc;
	metadata = json_object_get(object, "metadata");
	name = jstr(metadata, "name");
	if (name && !streq(name, op->name))
		return op_refuse(
			op, FAULT_BAD_REQUEST, NULL,
			"the name of the object (%.253s) does not match the name on the URL "
			"(%.253s)",
			name, op->name);
	rc = meta_precondition(op, jstr(metadata, "uid"), jstr(metadata, "resourceVersion"), old);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		json_t *v = json_object_get(before, kept[i]);

		if (v)
			json_object_set(metadata, kept[i], v);
		else
			json_object_del(metadata, kept[i]);
	}
	if (!json_is_array(json_object_get(metadata, "managedFields")) &&
	    json_object_get(before, "managedFields"))
		json_object_set(metadata, "managedFields",
				json_object_get(before, "managedFields"));
	drop_empty(metadata);
	return check_finalizers(op, metadata, old);
}
