/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/fields.h"

static const struct field spec_fields[] = {
	F_STRING("holderIdentity", "Who holds the lease."),
	F_INTEGER("leaseDurationSeconds", "Time after the last renewal until others may take it.",
		  .min = 1, .max = INT32_MAX),
	F_TIME("acquireTime", "When the holder got it."),
	F_TIME("renewTime", "When the holder last renewed it."),
	F_COUNT("leaseTransitions", "How often it changed hands."),
	F_STRING("strategy", "How holders are chosen."),
	F_STRING("preferredHolder", "Who should hold it next."),
	F_END,
};

static const struct field fields[] = {
	F_OBJECT("spec", "Who holds the lease, and since when.", spec_fields),
	F_END,
};

static const struct column columns[] = {
	C_STRING("Holder", ".spec.holderIdentity", "Who holds the lease."),
	C_END,
};

const struct kind KIND_LEASE = {
	.group = "coordination.k8s.io",
	.version = "v1",
	.kind = "Lease",
	.plural = "leases",
	.singular = "lease",
	.help = "Says which of several programs is at work.",
	.fields = fields,
	.columns = columns,
	.namespaced = true,
};
