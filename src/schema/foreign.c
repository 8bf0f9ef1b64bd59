/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/fields.h"

/*
 * Kinds that only a cluster has. The API server checks them; here they need no more than where they
 * are, so that the client can read and write them.
 */
static const struct field spec_and_status[] = {
	F_ANY("spec", "What is wanted."),
	F_ANY("status", "What is."),
	F_END,
};
static const struct field spec_only[] = {
	F_ANY("spec", "What is wanted."),
	F_END,
};
static const struct field capacity_fields[] = {
	F_ANY("nodeTopology", "The machines that it speaks of."),
	F_STRING("storageClassName", "The class that it speaks of."),
	F_STRING("capacity", "What is left."),
	F_STRING("maximumVolumeSize", "The biggest volume that can be made."),
	F_END,
};
static const struct field service_account_fields[] = {
	F_ANY("secrets", "Secrets that pods of the account may use."),
	F_ANY("imagePullSecrets", "Secrets for pulling images."),
	F_BOOLEAN("automountServiceAccountToken", "Whether pods get a token of the account."),
	F_END,
};
static const struct field role_fields[] = {
	F_ANY("rules", "What is allowed."),
	F_ANY("aggregationRule", "Roles whose rules are taken over."),
	F_END,
};
static const struct field binding_fields[] = {
	F_ANY("subjects", "Who is allowed."),
	F_ANY("roleRef", "What is allowed."),
	F_END,
};

const struct kind KIND_CRD = {
	.group = "apiextensions.k8s.io",
	.version = "v1",
	.kind = "CustomResourceDefinition",
	.plural = "customresourcedefinitions",
	.singular = "customresourcedefinition",
	.short_names = WORDS("crd", "crds"),
	.help = "A kind of resource that the cluster learns.",
	.fields = spec_and_status,
	.has_status = true,
};

const struct kind KIND_DEPLOYMENT = {
	.group = "apps",
	.version = "v1",
	.kind = "Deployment",
	.plural = "deployments",
	.singular = "deployment",
	.short_names = WORDS("deploy"),
	.help = "A number of pods that are alike.",
	.fields = spec_and_status,
	.namespaced = true,
	.has_status = true,
};

const struct kind KIND_DAEMONSET = {
	.group = "apps",
	.version = "v1",
	.kind = "DaemonSet",
	.plural = "daemonsets",
	.singular = "daemonset",
	.short_names = WORDS("ds"),
	.help = "One pod on each machine.",
	.fields = spec_and_status,
	.namespaced = true,
	.has_status = true,
};

const struct kind KIND_PDB = {
	.group = "policy",
	.version = "v1",
	.kind = "PodDisruptionBudget",
	.plural = "poddisruptionbudgets",
	.singular = "poddisruptionbudget",
	.short_names = WORDS("pdb"),
	.help = "How many pods may be evicted at the same time.",
	.fields = spec_and_status,
	.namespaced = true,
	.has_status = true,
};

const struct kind KIND_CSIDRIVER = {
	.group = "storage.k8s.io",
	.version = "v1",
	.kind = "CSIDriver",
	.plural = "csidrivers",
	.singular = "csidriver",
	.help = "What Kubernetes has to know of a storage driver.",
	.fields = spec_only,
};

const struct kind KIND_CSISTORAGECAPACITY = {
	.group = "storage.k8s.io",
	.version = "v1",
	.kind = "CSIStorageCapacity",
	.plural = "csistoragecapacities",
	.singular = "csistoragecapacity",
	.help = "How much of a class of storage is left for the machines that it names.",
	.fields = capacity_fields,
	.namespaced = true,
};

const struct kind KIND_SERVICEACCOUNT = {
	.group = "",
	.version = "v1",
	.kind = "ServiceAccount",
	.plural = "serviceaccounts",
	.singular = "serviceaccount",
	.short_names = WORDS("sa"),
	.help = "Who a pod is towards the API.",
	.fields = service_account_fields,
	.namespaced = true,
};

#define RBAC "rbac.authorization.k8s.io"

const struct kind KIND_ROLE = {
	.group = RBAC,
	.version = "v1",
	.kind = "Role",
	.plural = "roles",
	.singular = "role",
	.help = "What may be done in a namespace.",
	.fields = role_fields,
	.namespaced = true,
};

const struct kind KIND_ROLEBINDING = {
	.group = RBAC,
	.version = "v1",
	.kind = "RoleBinding",
	.plural = "rolebindings",
	.singular = "rolebinding",
	.help = "Who may do it in a namespace.",
	.fields = binding_fields,
	.namespaced = true,
};

const struct kind KIND_CLUSTERROLE = {
	.group = RBAC,
	.version = "v1",
	.kind = "ClusterRole",
	.plural = "clusterroles",
	.singular = "clusterrole",
	.help = "What may be done in the cluster.",
	.fields = role_fields,
};

const struct kind KIND_CLUSTERROLEBINDING = {
	.group = RBAC,
	.version = "v1",
	.kind = "ClusterRoleBinding",
	.plural = "clusterrolebindings",
	.singular = "clusterrolebinding",
	.help = "Who may do it in the cluster.",
	.fields = binding_fields,
};

const struct kind *const foreign_kinds[] = {
	&KIND_CRD,
	&KIND_DEPLOYMENT,
	&KIND_DAEMONSET,
	&KIND_PDB,
	&KIND_CSIDRIVER,
	&KIND_CSISTORAGECAPACITY,
	&KIND_SERVICEACCOUNT,
	&KIND_ROLE,
	&KIND_ROLEBINDING,
	&KIND_CLUSTERROLE,
	&KIND_CLUSTERROLEBINDING,
	NULL,
};
