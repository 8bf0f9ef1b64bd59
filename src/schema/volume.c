/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/fields.h"

static const struct field csi_fields[] = {
	F_STRING("driver", "The CSI driver.", .required = true),
	F_STRING("volumeHandle", "The driver's name of the volume.", .required = true),
	F_BOOLEAN("readOnly", "Whether it is mounted read-only."),
	F_STRING("fsType", "The file system to make, for drivers of devices."),
	F_MAP("volumeAttributes", "What the driver needs to connect the volume.", &ITEM_STRING),
	F_OBJECT("controllerPublishSecretRef", "Secret for attaching.", FIELDS_SECRET_REFERENCE),
	F_OBJECT("nodeStageSecretRef", "Secret for staging.", FIELDS_SECRET_REFERENCE),
	F_OBJECT("nodePublishSecretRef", "Secret for mounting.", FIELDS_SECRET_REFERENCE),
	F_OBJECT("controllerExpandSecretRef", "Secret for growing.", FIELDS_SECRET_REFERENCE),
	F_OBJECT("nodeExpandSecretRef", "Secret for growing on the node.", FIELDS_SECRET_REFERENCE),
	F_END,
};

/* What a volume can be stored on: exactly one is set. */
#define SOURCES                                                                                    \
	F_OBJECT("csi", "A volume of a CSI driver.", csi_fields, .immutable = true),               \
		F_ANY("nfs", "An export of an NFS server.", .immutable = true),                    \
		F_ANY("hostPath", "A directory of the node; for tests only.", .immutable = true),  \
		F_ANY("local", "A disk or directory of one node.", .immutable = true),             \
		F_ANY("glusterfs", "A GlusterFS volume, by the driver of old.",                    \
		      .immutable = true),                                                          \
		F_ANY("iscsi", "An iSCSI target.", .immutable = true),                             \
		F_ANY("fc", "A fibre channel target.", .immutable = true),                         \
		F_ANY("rbd", "A Ceph block device.", .immutable = true),                           \
		F_ANY("cephfs", "A Ceph file system.", .immutable = true),                         \
		F_ANY("flexVolume", "A volume of a flex driver.", .immutable = true)

static const struct field sources[] = { SOURCES, F_END };

static const struct field spec_fields[] = {
	F_MAP("capacity", "What the volume has: storage, its size.", &ITEM_SIZE, .required = true),
	F_ARRAY("accessModes", "How the volume can be mounted.", &ITEM_ACCESS_MODE,
		.required = true, .check = check_not_empty),
	F_STRING("persistentVolumeReclaimPolicy",
		 "What becomes of it when its claim is gone: Delete or Retain.",
		 .values = RECLAIM_POLICIES, .default_json = "\"Retain\""),
	F_STRING("storageClassName", "The StorageClass that it belongs to."),
	F_STRINGS("mountOptions", "Options for mounting."),
	F_STRING("volumeMode", "Filesystem (a directory is mounted) or Block (a device).",
		 .values = VOLUME_MODES, .immutable = true, .default_json = "\"Filesystem\""),
	F_OBJECT("claimRef", "The claim that it is bound to.", FIELDS_OBJECT_REFERENCE),
	F_ANY("nodeAffinity", "The nodes from which it can be reached."),
	F_STRING("volumeAttributesClassName", "The VolumeAttributesClass of the volume."),
	SOURCES,
	F_END,
};

static const char *const phases[] = { "Pending", "Available", "Bound", "Released", "Failed", NULL };
static const struct field status_fields[] = {
	F_STRING("phase", "Pending, Available, Bound, Released or Failed.", .values = phases),
	F_STRING("message", "Why, for a person.", .max_len = 32768),
	F_STRING("reason", "Why, as one word."),
	F_TIME("lastPhaseTransitionTime", "When phase last changed."),
	F_END,
};

static const struct field fields[] = {
	F_OBJECT("spec", "What the volume is and where.", spec_fields, .required = true),
	F_OBJECT("status", "What has become of it.", status_fields,
		 .default_json = "{\"phase\":\"Pending\"}"),
	F_END,
};

static void cell_modes(const json_t *o, struct buf *out)
{
	cell_access_modes(jget(o, "spec", "accessModes"), out);
}

static void cell_status(const json_t *o, struct buf *out)
{
	const char *phase = jstr(o, "status", "phase");

	if (jget(o, "metadata", "deletionTimestamp"))
		phase = "Terminating";
	buf_puts(out, phase ? phase : "Pending");
}

static void cell_claim(const json_t *o, struct buf *out)
{
	const json_t *ref = jget(o, "spec", "claimRef");

	if (jstr(ref, "name"))
		buf_printf(out, "%s/%s", jstr(ref, "namespace") ? jstr(ref, "namespace") : "",
			   jstr(ref, "name"));
}

static void cell_attributes(const json_t *o, struct buf *out)
{
	const char *name = jstr(o, "spec", "volumeAttributesClassName");

	buf_puts(out, name ? name : "<unset>");
}

static const struct column columns[] = {
	C_STRING("Capacity", ".spec.capacity.storage", "Size of the volume."),
	C_CELL("Access Modes", cell_modes, "How it can be mounted."),
	C_STRING("Reclaim Policy", ".spec.persistentVolumeReclaimPolicy",
		 "What becomes of it when its claim is gone."),
	C_CELL("Status", cell_status, "Phase of the volume."),
	C_CELL("Claim", cell_claim, "The claim that it is bound to."),
	C_STRING("StorageClass", ".spec.storageClassName", "The class that it belongs to."),
	C_CELL("VolumeAttributesClass", cell_attributes, "The VolumeAttributesClass."),
	C_STRING("Reason", ".status.reason", "Why it is in this phase."),
	C_STRING("VolumeMode", ".spec.volumeMode", "Filesystem or Block.", .priority = 1),
	C_END,
};

static int check(const json_t *o, const json_t *old, struct schema_problem *ret)
{
	const json_t *spec = json_object_get(o, "spec");
	const struct field *f;
	const char *first = NULL;

	if (!jget(spec, "capacity", "storage"))
		return problem(ret, "spec.capacity.storage",
			       "missing; say how large the volume is");
	for (f = sources; f->name; f++) {
		const json_t *source = json_object_get(spec, f->name);

		if (!source || json_is_null(source))
			continue;
		if (first)
			return problem(ret, "spec", "names both %s and %s; a volume has one source",
				       first, f->name);
		first = f->name;
	}
	if (!first)
		return problem(ret, "spec", "names no source of the volume, such as csi or nfs");
	return 0;
}

const struct kind KIND_PV = {
	.group = "",
	.version = "v1",
	.kind = "PersistentVolume",
	.plural = "persistentvolumes",
	.singular = "persistentvolume",
	.short_names = WORDS("pv"),
	.help = "A piece of storage that a claim can be bound to.",
	.fields = fields,
	.columns = columns,
	.has_status = true,
	.check = check,
};
