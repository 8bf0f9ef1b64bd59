/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * What each kind of resource looks like, as const tables. From a table come validation with
 * suggestions, defaults, `explain`, OpenAPI v3, Table columns and (on Kubernetes) the CRD.
 * Nothing here does I/O.
 */
enum field_type {
	FIELD_STRING,
	FIELD_INTEGER,
	FIELD_BOOLEAN,
	FIELD_QUANTITY, /* string or number */
	FIELD_TIME,
	FIELD_OBJECT,   /* with .fields */
	FIELD_ARRAY,    /* of .items */
	FIELD_MAP,      /* string to .items */
	FIELD_ANY,      /* kept as it is (x-kubernetes-preserve-unknown-fields) */
	FIELD_NUMBER,   /* with or without a fraction */
};

struct field {
	const char *name;
	enum field_type type;
	const char *help;               /* one or two sentences; every field has them */
	const struct field *fields;     /* FIELD_OBJECT: ended by name NULL */
	const struct field *items;      /* FIELD_ARRAY, FIELD_MAP: the element */
	const char *const *values;      /* FIELD_STRING: the allowed ones, ended by NULL */
	const char *list_map_key;       /* FIELD_ARRAY of objects merged by this key (conditions: "type") */
	const char *default_json;       /* JSON text set where the field is missing */
	int64_t min, max;               /* FIELD_INTEGER, FIELD_QUANTITY: both 0 = unbounded; max 0 = none */
	uint32_t max_len;               /* FIELD_STRING bytes, FIELD_ARRAY and FIELD_MAP entries; 0 = 4096 */
	bool required;
	bool immutable;                 /* may not change once set */
	bool set;                       /* FIELD_ARRAY of scalars: no value twice, patches merge it (finalizers) */
	bool unique;                    /* FIELD_ARRAY of scalars: no value twice, but who writes it writes all of it */
	bool open;                      /* FIELD_OBJECT: fields that the table does not name are kept */
	/* more than a table can say (an IP address, a clean path); -EINVAL and a message without the field's name */
	int (*check)(const json_t *value, struct error *err);
};

struct column {
	const char *name;        /* "STATUS" is written "Status" as kubectl expects */
	const char *type;        /* "string", "integer", "date" (a time, shown as the age) */
	/*
	 * ".spec.status", ".metadata.creationTimestamp"; NULL where only .cell computes it. A cluster's API server
	 * cannot compute: columns of our own kinds have a path, and below ".status.display." stands what .cell made
	 * of the object when its status was last written (schema_display).
	 */
	const char *path;
	const char *help;
	int priority;            /* 0: always, 1: -o wide */
	/* human text (for a date: the time itself), instead of the value at path; or NULL */
	void (*cell)(const json_t *object, struct buf *out);
};

struct schema_problem {
	char path[200];          /* "spec.devices[1]" */
	struct error error;      /* message with the path in it: "spec.devicess: unknown field (did you mean \"devices\"?)" */
};

struct kind {
	const char *group;       /* "" for the core group */
	const char *version;
	const char *kind;
	const char *plural;
	const char *singular;
	const char *const *short_names; /* ended by NULL, or NULL */
	const char *help;
	const struct field *fields;     /* top level below apiVersion, kind, metadata: spec, status, … */
	const struct column *columns;   /* ended by name NULL; NAME and AGE are there anyway, unless own_columns */
	bool namespaced;
	bool has_status;         /* a status subresource */
	bool custom;             /* a CRD of ours (PATCH: merge), else built into Kubernetes (strategic merge) */
	/* custom, but the definition may be another's, which is left as it is; its objects are in any namespace */
	bool shared;
	bool own_columns;        /* columns are the whole table */
	uint32_t max_name;       /* bytes of metadata.name; 0: 253 */
	bool label_name;         /* the name is a DNS-1123 label (no dots), else a subdomain */
	/* rules across fields, after the fields have passed; old is NULL on create */
	int (*check)(const json_t *object, const json_t *old, struct schema_problem *ret);
};

/*
 * All kinds, ended by NULL: StorageNode, StorageStatus, StoragePool (coreos.com/v1); StorageClass,
 * VolumeAttributesClass (storage.k8s.io/v1); PersistentVolumeClaim, PersistentVolume, Event, Namespace, ConfigMap,
 * Secret, Node, Pod (v1; Pod so that kubectl describe of a claim can list none); Lease (coordination.k8s.io/v1);
 * VolumeSnapshot, VolumeSnapshotContent, VolumeSnapshotClass (snapshot.storage.k8s.io/v1).
 */
extern const struct kind *const kinds[];
extern const struct kind KIND_STORAGENODE, KIND_STORAGESTATUS, KIND_STORAGEPOOL, KIND_STORAGECLASS, KIND_PVC,
	KIND_PV, KIND_EVENT, KIND_NAMESPACE, KIND_CONFIGMAP, KIND_SECRET, KIND_NODE, KIND_POD, KIND_LEASE,
	KIND_VOLUMESNAPSHOT, KIND_VOLUMESNAPSHOTCONTENT, KIND_VOLUMESNAPSHOTCLASS, KIND_VOLUMEATTRIBUTESCLASS;

/*
 * Kinds that only a cluster has, ended by NULL: for the client, and for that alone. None of the
 * functions below knows them, and so the embedded API does not serve them.
 */
extern const struct kind *const foreign_kinds[];
extern const struct kind KIND_CRD, KIND_DEPLOYMENT, KIND_DAEMONSET, KIND_PDB, KIND_CSIDRIVER,
	KIND_CSISTORAGECAPACITY, KIND_SERVICEACCOUNT, KIND_ROLE, KIND_ROLEBINDING, KIND_CLUSTERROLE, KIND_CLUSTERROLEBINDING;

/* "coreos.com/v1", "v1" */
const char *kind_api_version(const struct kind *k, char *buf, size_t size);
const struct kind *kind_by_gvk(const char *api_version, const char *kind);
const struct kind *kind_by_path(const char *group, const char *version, const char *plural);
/* By what a person types: plural, singular, short name, kind in any case, optionally "storagenodes.coreos.com". */
const struct kind *kind_by_word(const char *word);
/* The kind that is nearest to a word that kind_by_word does not know: its plural or short name, or NULL. */
const char *kind_suggest(const char *word);

/* metadata itself (FIELD_OBJECT), the same for every kind. */
extern const struct field FIELD_METADATA;

/*
 * What an object says it is, by apiVersion and kind. -EINVAL with a suggestion: "apiVersion: \"coreos.com/v2\"
 * is not served for StorageNode; use coreos.com/v1". The message begins with the field.
 */
int schema_identify(const json_t *object, const struct kind **ret, struct error *err);

/*
 * Checks an object as a person wrote it, metadata too. Unknown fields are problems when strict. A null
 * counts as missing. With old, also what may not change; compare objects that were defaulted alike.
 * Gives the first problem in ret (may be NULL): returns 0 or -EINVAL.
 */
int schema_validate(const struct kind *k, const json_t *object, const json_t *old, bool strict,
		    struct schema_problem *ret);
/* Sets missing defaults (zone 1 and the like) in the object, and removes nulls. */
void schema_default(const struct kind *k, json_t *object);
/* Removes unknown fields of a kind (not below FIELD_ANY). */
void schema_prune(const struct kind *k, json_t *object);

/* The field at "spec.glusterfs.zone" or "metadata.labels" (no indexes; arrays are looked through), or NULL. */
const struct field *schema_field(const struct kind *k, const char *path);
/* The text of `quartermaster explain KIND[.field…]`. */
int schema_explain(const struct kind *k, const char *path, bool recursive, struct buf *out, struct error *err);
/* All kinds and their fields, for docs/resources.md. */
void schema_markdown(struct buf *out);
/* The OpenAPI v3 document of a group and version; the index for /openapi/v3. New references. */
json_t *schema_openapi(const char *group, const char *version);
json_t *schema_openapi_index(void);
/* Discovery: aggregated (apidiscovery.k8s.io/v2) and plain documents for /api, /apis, /api/v1, /apis/GROUP/VERSION. */
json_t *schema_discovery_core_aggregated(void);
json_t *schema_discovery_groups_aggregated(void);
json_t *schema_discovery_core(void);
json_t *schema_discovery_groups(void);
json_t *schema_discovery_group(const char *group);
json_t *schema_discovery_resources(const char *group, const char *version); /* NULL: none */

/* What status.display of the object is to hold: the cells that a cluster's API server cannot compute. New reference. */
json_t *schema_display(const struct kind *k, const json_t *object);

/* A meta.k8s.io/v1 Table of the items (borrowed); with_columns false for watch events after the first. */
json_t *schema_table(const struct kind *k, const json_t *items, const char *resource_version, bool with_columns,
		     int64_t now_wall_ms);
