/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/fields.h"

static const char *const binding_modes[] = { "Immediate", "WaitForFirstConsumer", NULL };
static const char *const policies[] = { "Delete", "Retain", NULL };

static const struct field topology_value = F_STRING("", "A value of the label.");
static const struct field topology_expression_fields[] = {
	F_STRING("key", "The label's key.", .required = true),
	F_ARRAY("values", "Values, one of which it must have.", &topology_value, .required = true),
	F_END,
};
static const struct field topology_expression =
	F_OBJECT("", "One requirement on a node's label.", topology_expression_fields);
static const struct field topology_fields[] = {
	F_ARRAY("matchLabelExpressions", "Requirements; all must hold.", &topology_expression),
	F_END,
};
static const struct field topology =
	F_OBJECT("", "Nodes on which volumes may be.", topology_fields);

static const struct field fields[] = {
	F_STRING("provisioner",
		 "Who makes volumes of this class, such as csi.quartermaster.storage.",
		 .required = true, .immutable = true, .check = check_qualified_name),
	F_MAP("parameters", "What the provisioner needs to know.", &ITEM_STRING, .immutable = true),
	F_STRING("reclaimPolicy",
		 "What becomes of a volume when its claim is gone: Delete or Retain.",
		 .values = policies, .immutable = true, .default_json = "\"Delete\""),
	F_STRINGS("mountOptions", "Options for mounting volumes of this class."),
	F_BOOLEAN("allowVolumeExpansion", "Whether claims of this class can grow."),
	F_STRING("volumeBindingMode",
		 "When a claim gets its volume: Immediate, or WaitForFirstConsumer (a pod needs "
		 "it).",
		 .values = binding_modes, .immutable = true, .default_json = "\"Immediate\""),
	F_ARRAY("allowedTopologies", "Where volumes may be.", &topology),
	F_END,
};

#define DEFAULT_CLASS "storageclass.kubernetes.io/is-default-class"

static void cell_name(const json_t *o, struct buf *out)
{
	const char *name = jstr(o, "metadata", "name");

	buf_puts(out, name ? name : "");
	if (streq(jstr(o, "metadata", "annotations", DEFAULT_CLASS), "true"))
		buf_puts(out, " (default)");
}

static void cell_expansion(const json_t *o, struct buf *out)
{
	buf_puts(out, jbool(o, "allowVolumeExpansion") ? "true" : "false");
}

static const struct column columns[] = {
	C_CELL("Name", cell_name, "Name of the class."),
	C_STRING("Provisioner", ".provisioner", "Who makes volumes of this class."),
	C_STRING("ReclaimPolicy", ".reclaimPolicy",
		 "What becomes of a volume when its claim is gone."),
	C_STRING("VolumeBindingMode", ".volumeBindingMode", "When a claim gets its volume."),
	C_CELL("AllowVolumeExpansion", cell_expansion, "Whether claims can grow."),
	C_DATE("Age", ".metadata.creationTimestamp", "Time since it was created."),
	C_END,
};

const struct kind KIND_STORAGECLASS = {
	.group = "storage.k8s.io",
	.version = "v1",
	.kind = "StorageClass",
	.plural = "storageclasses",
	.singular = "storageclass",
	.short_names = WORDS("sc"),
	.help = "A kind of storage that claims can ask for, and who makes it.",
	.fields = fields,
	.columns = columns,
	.own_columns = true,
};
