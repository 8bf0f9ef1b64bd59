/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/fields.h"

/*
 * Snapshots, as snapshot.storage.k8s.io/v1 has them: the names of fields and columns are those that
 * people and tools know. On a cluster the definitions may be somebody else's (struct kind, shared).
 */
static const char *const policies[] = { "Delete", "Retain", NULL };

static const struct field error_fields[] = {
	F_TIME("time", "When it failed."),
	F_STRING("message", "Why, as a sentence for a person.", .max_len = 32768),
	F_END,
};

#define C_READY                                                                                    \
	{                                                                                          \
		.name = "ReadyToUse", .type = "boolean", .path = ".status.readyToUse",             \
		.help = "Whether a volume can be made from it."                                    \
	}

/* ---- VolumeSnapshot ----------------------------------------------------------------------------- */

static const struct field source_fields[] = {
	F_STRING("persistentVolumeClaimName",
		 "The claim, in the same namespace, of whose volume a snapshot is to be taken.",
		 .max_len = 253, .immutable = true),
	F_STRING("volumeSnapshotContentName",
		 "Instead: the VolumeSnapshotContent of a snapshot that is there already.",
		 .max_len = 253, .immutable = true),
	F_END,
};

static const struct field spec_fields[] = {
	F_OBJECT("source", "What the snapshot is of; it cannot be changed.", source_fields,
		 .required = true),
	F_STRING("volumeSnapshotClassName",
		 "The VolumeSnapshotClass; without it, the default one of the volume's driver.",
		 .max_len = 253),
	F_END,
};

static const struct field status_fields[] = {
	F_STRING("boundVolumeSnapshotContentName", "The VolumeSnapshotContent that it is bound to.",
		 .max_len = 253),
	F_TIME("creationTime", "When the snapshot was taken."),
	F_BOOLEAN("readyToUse", "Whether a volume can be made from it."),
	{ .name = "restoreSize",
	  .type = FIELD_QUANTITY,
	  .help = "The size that a volume made from it must at least have." },
	F_OBJECT("error", "What last went wrong.", error_fields),
	F_STRING("volumeGroupSnapshotName", "The VolumeGroupSnapshot that it is part of.",
		 .max_len = 253),
	F_END,
};

static const struct field fields[] = {
	F_OBJECT("spec", "What a snapshot is to be taken of.", spec_fields, .required = true),
	F_OBJECT("status", "What has become of it.", status_fields),
	F_END,
};

static const struct column columns[] = {
	C_READY,
	C_STRING("SourcePVC", ".spec.source.persistentVolumeClaimName",
		 "The claim that it is a snapshot of."),
	C_STRING("SourceSnapshotContent", ".spec.source.volumeSnapshotContentName",
		 "The VolumeSnapshotContent that was there already."),
	C_STRING("RestoreSize", ".status.restoreSize",
		 "The size that a volume made from it must at least have."),
	C_STRING("SnapshotClass", ".spec.volumeSnapshotClassName", "Its VolumeSnapshotClass."),
	C_STRING("SnapshotContent", ".status.boundVolumeSnapshotContentName",
		 "The VolumeSnapshotContent that it is bound to."),
	C_DATE("CreationTime", ".status.creationTime", "Time since it was taken."),
	C_END,
};

static int one_of_two(const json_t *source, const char *first, const char *second,
		      struct schema_problem *ret)
{
	bool a = jstr(source, first), b = jstr(source, second);

	if (a == b)
		return problem(ret, "spec.source", "names %s %s and %s; exactly one is needed",
			       a ? "both" : "neither", first, second);
	return 0;
}

static int check_snapshot(const json_t *o, const json_t *old, struct schema_problem *ret)
{
	return one_of_two(jget(o, "spec", "source"), "persistentVolumeClaimName",
			  "volumeSnapshotContentName", ret);
}

const struct kind KIND_VOLUMESNAPSHOT = {
	.group = "snapshot.storage.k8s.io",
	.version = "v1",
	.kind = "VolumeSnapshot",
	.plural = "volumesnapshots",
	.singular = "volumesnapshot",
	.short_names = WORDS("vs"),
	.help = "A user's request for a snapshot of a claim's volume.",
	.fields = fields,
	.columns = columns,
	.namespaced = true,
	.has_status = true,
	.custom = true,
	.shared = true,
	.check = check_snapshot,
};

/* ---- VolumeSnapshotContent ---------------------------------------------------------------------- */

static const struct field content_source_fields[] = {
	F_STRING("volumeHandle", "The driver's name of the volume of which to take a snapshot.",
		 .immutable = true),
	F_STRING("snapshotHandle", "Instead: the driver's name of a snapshot that is there.",
		 .immutable = true),
	F_END,
};

static const struct field content_spec_fields[] = {
	F_OBJECT("volumeSnapshotRef", "The VolumeSnapshot that it belongs to.",
		 FIELDS_OBJECT_REFERENCE, .required = true),
	F_STRING("deletionPolicy",
		 "What becomes of the snapshot when its VolumeSnapshot is gone: Delete or Retain.",
		 .required = true, .values = policies),
	F_STRING("driver", "The CSI driver.", .required = true, .max_len = 253),
	F_STRING("volumeSnapshotClassName", "The VolumeSnapshotClass that it was made with.",
		 .max_len = 253),
	F_OBJECT("source", "What the snapshot is of, or which it is.", content_source_fields,
		 .required = true),
	F_STRING("sourceVolumeMode", "The volumeMode of the volume: Filesystem or Block.",
		 .max_len = 32, .immutable = true),
	F_END,
};

static const struct field content_status_fields[] = {
	F_STRING("snapshotHandle", "The driver's name of the snapshot."),
	F_INTEGER("creationTime", "When it was taken, in nanoseconds since 1970."),
	F_COUNT("restoreSize", "The bytes that a volume made from it must at least have."),
	F_BOOLEAN("readyToUse", "Whether a volume can be made from it."),
	F_OBJECT("error", "What last went wrong.", error_fields),
	F_STRING("volumeGroupSnapshotHandle", "The driver's name of the group that it is part of."),
	F_END,
};

static const struct field content_fields[] = {
	F_OBJECT("spec", "Which snapshot it is.", content_spec_fields, .required = true),
	F_OBJECT("status", "What has become of it.", content_status_fields),
	F_END,
};

static const struct column content_columns[] = {
	C_READY,
	C_INTEGER("RestoreSize", ".status.restoreSize",
		  "The bytes that a volume made from it must at least have."),
	C_STRING("DeletionPolicy", ".spec.deletionPolicy",
		 "What becomes of the snapshot when its VolumeSnapshot is gone."),
	C_STRING("Driver", ".spec.driver", "The CSI driver."),
	C_STRING("VolumeSnapshotClass", ".spec.volumeSnapshotClassName",
		 "The VolumeSnapshotClass that it was made with."),
	C_STRING("VolumeSnapshot", ".spec.volumeSnapshotRef.name",
		 "The VolumeSnapshot that it belongs to."),
	C_STRING("VolumeSnapshotNamespace", ".spec.volumeSnapshotRef.namespace",
		 "The namespace of that."),
	C_END,
};

static int check_content(const json_t *o, const json_t *old, struct schema_problem *ret)
{
	return one_of_two(jget(o, "spec", "source"), "volumeHandle", "snapshotHandle", ret);
}

const struct kind KIND_VOLUMESNAPSHOTCONTENT = {
	.group = "snapshot.storage.k8s.io",
	.version = "v1",
	.kind = "VolumeSnapshotContent",
	.plural = "volumesnapshotcontents",
	.singular = "volumesnapshotcontent",
	.short_names = WORDS("vsc", "vscs"),
	.help = "A snapshot in a storage system, as a PersistentVolume is a volume in one.",
	.fields = content_fields,
	.columns = content_columns,
	.has_status = true,
	.custom = true,
	.shared = true,
	.check = check_content,
};

/* ---- VolumeSnapshotClass ------------------------------------------------------------------------ */

static const struct field class_fields[] = {
	F_STRING("driver", "The CSI driver that takes the snapshots.", .required = true,
		 .max_len = 253),
	F_MAP("parameters", "What the driver needs to know.", &ITEM_STRING, .max_len = 512),
	F_STRING("deletionPolicy",
		 "What becomes of a snapshot when its VolumeSnapshot is gone: Delete or Retain.",
		 .required = true, .values = policies),
	F_END,
};

static const struct column class_columns[] = {
	C_STRING("Driver", ".driver", "The CSI driver that takes the snapshots."),
	C_STRING("DeletionPolicy", ".deletionPolicy",
		 "What becomes of a snapshot when its VolumeSnapshot is gone."),
	C_END,
};

const struct kind KIND_VOLUMESNAPSHOTCLASS = {
	.group = "snapshot.storage.k8s.io",
	.version = "v1",
	.kind = "VolumeSnapshotClass",
	.plural = "volumesnapshotclasses",
	.singular = "volumesnapshotclass",
	.short_names = WORDS("vsclass", "vsclasses"),
	.help = "A kind of snapshot that can be asked for, and who takes it.",
	.fields = class_fields,
	.columns = class_columns,
	.custom = true,
	.shared = true,
};
