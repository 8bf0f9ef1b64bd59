/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/fields.h"

static const struct field fields[] = {
	F_STRING("driverName", "Whose volumes it is for, such as csi.quartermaster.storage.",
		 .required = true, .immutable = true, .check = check_qualified_name),
	F_MAP("parameters", "What its volumes have: reclaim, which is delete or archive.",
	      &ITEM_STRING, .required = true, .immutable = true, .check = check_not_empty),
	F_END,
};

static const struct column columns[] = {
	C_STRING("DriverName", ".driverName", "Whose volumes it is for."),
	C_END,
};

const struct kind KIND_VOLUMEATTRIBUTESCLASS = {
	.group = "storage.k8s.io",
	.version = "v1",
	.kind = "VolumeAttributesClass",
	.plural = "volumeattributesclasses",
	.singular = "volumeattributesclass",
	.short_names = WORDS("vac"),
	.help = "What can be changed of volumes that exist: a claim names it, at any time.",
	.fields = fields,
	.columns = columns,
};
