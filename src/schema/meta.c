/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/fields.h"

static const struct field owner_fields[] = {
	F_STRING("apiVersion", "API version of the owner.", .required = true),
	F_STRING("kind", "Kind of the owner.", .required = true),
	F_STRING("name", "Name of the owner.", .required = true),
	F_STRING("uid", "UID of the owner.", .required = true),
	F_BOOLEAN("controller", "Whether the owner manages this object; at most one does."),
	F_BOOLEAN("blockOwnerDeletion",
		  "Whether the owner, deleted in the foreground, waits until this object is gone."),
	F_END,
};
static const struct field owner = F_OBJECT("", "An object that owns this one.", owner_fields);

static const struct field managed_fields[] = {
	F_STRING("manager", "Who wrote the fields."),
	F_STRING("operation", "How they were written: Apply or Update."),
	F_STRING("apiVersion", "API version in which the fields are named."),
	F_TIME("time", "When they were last written."),
	F_STRING("fieldsType", "How fieldsV1 is to be read: FieldsV1."),
	F_ANY("fieldsV1", "The set of fields, as a tree."),
	F_STRING("subresource", "The subresource through which they were written."),
	F_END,
};
static const struct field managed = F_OBJECT("", "The fields of one manager.", managed_fields);

static const struct field finalizer =
	F_STRING("", "Who has yet to clean up, such as quartermaster.storage/node.",
		 .check = check_qualified_name);

static const struct field metadata_fields[] = {
	F_STRING("name",
		 "The object's name, unique among its kind in the namespace. It cannot be changed.",
		 .immutable = true),
	F_STRING("generateName", "A prefix from which the API makes a name where none is given."),
	F_STRING("namespace", "The namespace that holds the object.", .immutable = true,
		 .check = check_label_name),
	F_MAP("labels", "Keys and values by which objects can be selected.", &ITEM_STRING,
	      .check = check_labels),
	F_MAP("annotations", "Keys and values that tools attach to the object.", &ITEM_TEXT,
	      .check = check_annotations),
	F_ARRAY("finalizers", "Who must clean up before the object, once deleted, is gone.",
		&finalizer, .set = true),
	F_ARRAY("ownerReferences",
		"Objects that own this one; it is removed after the last of them.", &owner,
		.list_map_key = "uid"),
	F_STRING("uid", "Identifies the object for ever, given by the API."),
	F_STRING("resourceVersion",
		 "Changes with every write; a write that carries an old one is refused."),
	F_COUNT("generation", "Counts the changes of spec, kept by the API."),
	F_TIME("creationTimestamp", "When the object was created, set by the API."),
	F_TIME("deletionTimestamp",
	       "When deletion was asked for; the object waits for its finalizers."),
	F_COUNT("deletionGracePeriodSeconds", "Time that the object had to end by itself."),
	F_ARRAY("managedFields", "Who wrote which field, kept by the API.", &managed),
	F_STRING("selfLink", "No longer used."),
	F_END,
};

const struct field FIELD_METADATA =
	F_OBJECT("metadata", "Name, namespace, labels and what else all kinds of objects have.",
		 metadata_fields, .required = true);
