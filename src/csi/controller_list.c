/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/controller_internal.h"

#include "base/mem.h"

#include <errno.h>

/*
 * Lists come in the order of names, and a page begins after the last name of the one before: so
 * what is made or removed in between moves nothing.
 */
#define PAGE_MAX 1000

int controller_page(int32_t max_entries, size_t *ret, struct error *err)
{
	if (max_entries < 0)
		return error_set(err, EINVAL, "max_entries is below 0");
	*ret = max_entries && max_entries < PAGE_MAX ? (size_t)max_entries : PAGE_MAX;
	return 0;
}

int controller_token(const char *token, struct handle *ret, struct error *err)
{
	if (handle_parse(token, ret, NULL) < 0)
		return error_set(err, EINPROGRESS,
				 "starting_token \"%.64s\" is not one of ours; list from the "
				 "beginning",
				 token);
	return 0;
}

int controller_list_volumes(struct grpc_call *call, const void *request, void *reply,
			    struct error *err)
{
	const Csi__V1__ListVolumesRequest *q = request;
	Csi__V1__ListVolumesResponse *r = reply;
	struct volumes *v = controller_of(call)->volumes;
	struct volume_list list cleanup_with(volume_list_done) = { 0 };
	struct handle after;
	size_t max = 0;
	bool first = !*q->starting_token;

	int rc = controller_page(q->max_entries, &max, err);
	if (rc == 0 && !first)
		rc = controller_token(q->starting_token, &after, err);
	if (rc == 0)
		rc = v->ops->ready(v, err);
	if (rc == 0)
		rc = v->ops->list(v, first ? NULL : after.name, max, &list, err);
	if (rc < 0)
		return rc;
	r->entries = grpc_call_alloc(call, (list.count + 1) * sizeof(*r->entries));
	for (size_t i = 0; i < list.count; i++) {
		Csi__V1__ListVolumesResponse__Entry *e =
			MESSAGE(call, list_volumes_response__entry);
		e->volume = controller_volume(call, &list.items[i]);
		e->status = MESSAGE(call, list_volumes_response__volume_status);
		r->entries[r->n_entries++] = e;
	}
	if (list.more && list.count)
		r->next_token = grpc_call_strdup(call, list.items[list.count - 1].id);
	return 0;
}
