/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/fields.h"

#include "base/quantity.h"

#include <stdio.h>

static const struct field resources_fields[] = {
	F_MAP("requests", "What the volume must at least have: storage, its size.", &ITEM_SIZE),
	F_MAP("limits", "What the volume may at most have.", &ITEM_SIZE),
	F_END,
};

static const struct field source_fields[] = {
	F_STRING("apiGroup", "API group of the source."),
	F_STRING("kind", "Kind of the source.", .required = true),
	F_STRING("name", "Name of the source.", .required = true),
	F_STRING("namespace", "Namespace of the source."),
	F_END,
};

static const struct field spec_fields[] = {
	F_ARRAY("accessModes",
		"How the volume is to be mounted: ReadWriteOnce, ReadOnlyMany, ReadWriteMany or "
		"ReadWriteOncePod.",
		&ITEM_ACCESS_MODE, .required = true, .check = check_not_empty),
	F_OBJECT("selector", "Labels of the volumes to choose from.", FIELDS_LABEL_SELECTOR),
	F_OBJECT("resources", "The size that is asked for.", resources_fields, .required = true),
	F_STRING("volumeName", "The PersistentVolume that is bound to the claim.",
		 .check = check_subdomain_name),
	F_STRING("storageClassName", "The StorageClass that makes the volume.", .max_len = 253),
	F_STRING("volumeMode", "Filesystem (a directory is mounted) or Block (a device).",
		 .values = VOLUME_MODES, .default_json = "\"Filesystem\""),
	F_OBJECT("dataSource", "A snapshot or claim to begin with.", source_fields),
	F_OBJECT("dataSourceRef", "An object to begin with, of any kind.", source_fields),
	F_STRING("volumeAttributesClassName", "The VolumeAttributesClass of the volume."),
	F_END,
};

static const char *const phases[] = { "Pending", "Bound", "Lost", NULL };
static const struct field status_fields[] = {
	F_STRING("phase", "Pending, Bound or Lost.", .values = phases),
	F_ARRAY("accessModes", "How the volume can be mounted.", &ITEM_ACCESS_MODE),
	F_MAP("capacity", "What the volume has.", &ITEM_SIZE),
	F_CONDITIONS,
	F_MAP("allocatedResources", "What is set aside for the claim while it grows.", &ITEM_SIZE),
	F_MAP("allocatedResourceStatuses", "How far growing has come.", &ITEM_STRING),
	F_STRING("currentVolumeAttributesClassName", "The VolumeAttributesClass that is in force."),
	F_ANY("modifyVolumeStatus", "How far a change of the VolumeAttributesClass has come."),
	F_END,
};

static const struct field fields[] = {
	F_OBJECT("spec", "What is asked for.", spec_fields, .required = true),
	F_OBJECT("status", "What has become of it.", status_fields,
		 .default_json = "{\"phase\":\"Pending\"}"),
	F_END,
};

static void cell_status(const json_t *o, struct buf *out)
{
	const char *phase = jstr(o, "status", "phase");

	if (jget(o, "metadata", "deletionTimestamp"))
		phase = "Terminating";
	buf_puts(out, phase ? phase : "Pending");
}

static void cell_capacity(const json_t *o, struct buf *out)
{
	const char *size = jstr(o, "status", "capacity", "storage");

	if (jstr(o, "spec", "volumeName") && size)
		buf_puts(out, size);
}

static void cell_modes(const json_t *o, struct buf *out)
{
	if (jstr(o, "spec", "volumeName"))
		cell_access_modes(jget(o, "status", "accessModes"), out);
}

static void cell_attributes(const json_t *o, struct buf *out)
{
	const char *name = jstr(o, "spec", "volumeAttributesClassName");

	buf_puts(out, name ? name : "<unset>");
}

static const struct column columns[] = {
	C_CELL("Status", cell_status, "Phase of the claim."),
	C_STRING("Volume", ".spec.volumeName", "The bound PersistentVolume."),
	C_CELL("Capacity", cell_capacity, "Size of the volume."),
	C_CELL("Access Modes", cell_modes, "How it can be mounted."),
	C_STRING("StorageClass", ".spec.storageClassName", "The class that makes the volume."),
	C_CELL("VolumeAttributesClass", cell_attributes, "The VolumeAttributesClass."),
	C_STRING("VolumeMode", ".spec.volumeMode", "Filesystem or Block.", .priority = 1),
	C_END,
};

static int64_t claim_size(const json_t *o)
{
	const json_t *size = jget(o, "spec", "resources", "requests", "storage");
	int64_t bytes = 0;

	if (json_is_integer(size))
		return json_integer_value(size);
	if (json_is_string(size))
		(void)quantity_parse(json_string_value(size), &bytes, NULL);
	return bytes;
}

/*
 * Who asked for more than there is room for may ask for less, but for more than the volume has:
 * as in Kubernetes.
 */
static int check_size(const json_t *o, const json_t *old, struct schema_problem *ret)
{
	const char *text = jstr(old, "status", "capacity", "storage");
	int64_t has = 0;

	if (claim_size(o) >= claim_size(old))
		return 0;
	if (text && quantity_parse(text, &has, NULL) == 0 && claim_size(o) > has)
		return 0;
	return problem(ret, "spec.resources.requests.storage",
		       has ? "cannot be less than what the volume has; a volume never shrinks"
			   : "cannot shrink; a claim can only grow");
}

/* Once made, a claim only grows, gets its volume, or gets a class where it had none. */
static int check_change(const json_t *o, const json_t *old, struct schema_problem *ret)
{
	const json_t *spec = json_object_get(o, "spec"), *old_spec = json_object_get(old, "spec");
	const char *free_fields[] = { "resources", "volumeAttributesClassName", NULL };
	const struct field *f;

	for (f = spec_fields; f->name; f++) {
		const json_t *now = json_object_get(spec, f->name);
		const json_t *before = json_object_get(old_spec, f->name);
		bool set_once = streq(f->name, "volumeName") || streq(f->name, "storageClassName");
		char path[64];

		if (streq(f->name, free_fields[0]) || streq(f->name, free_fields[1]))
			continue;
		if ((!now && !before) || (now && before && json_equal(now, before)))
			continue;
		if (set_once && now && (!before || json_string_length(before) == 0))
			continue;
		(void)snprintf(path, sizeof(path), "spec.%s", f->name);
		return problem(ret, path,
			       "cannot be changed once the claim exists; only its size can grow");
	}
	return check_size(o, old, ret);
}

static int check(const json_t *o, const json_t *old, struct schema_problem *ret)
{
	if (!jget(o, "spec", "resources", "requests", "storage"))
		return problem(ret, "spec.resources.requests.storage",
			       "missing; say how much storage is needed, such as 10Gi");
	return old ? check_change(o, old, ret) : 0;
}

const struct kind KIND_PVC = {
	.group = "",
	.version = "v1",
	.kind = "PersistentVolumeClaim",
	.plural = "persistentvolumeclaims",
	.singular = "persistentvolumeclaim",
	.short_names = WORDS("pvc"),
	.help = "A user's request for storage.",
	.fields = fields,
	.columns = columns,
	.namespaced = true,
	.has_status = true,
	.check = check,
};
