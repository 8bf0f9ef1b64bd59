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

static int list_page(struct grpc_call *call, int32_t max_entries, const char *token,
		     struct volume_list *ret, struct error *err)
{
	struct volumes *v = controller_of(call)->volumes;
	struct handle after;
	size_t max = 0;

	int rc = controller_page(max_entries, &max, err);
	if (rc == 0 && *token)
		rc = controller_token(token, &after, err);
	if (rc == 0)
		rc = v->ops->ready(v, err);
	return rc < 0 ? rc : v->ops->list(v, *token ? after.name : NULL, max, ret, err);
}

static char *next_token(struct grpc_call *call, const struct volume_list *list)
{
	return grpc_call_strdup(call,
				list->more && list->count ? list->items[list->count - 1].id : "");
}

int controller_list_volumes(struct grpc_call *call, const void *request, void *reply,
			    struct error *err)
{
	const Csi__V1__ListVolumesRequest *q = request;
	Csi__V1__ListVolumesResponse *r = reply;
	struct volume_list list cleanup_with(volume_list_done) = { 0 };
	int rc = list_page(call, q->max_entries, q->starting_token, &list, err);
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
	r->next_token = next_token(call, &list);
	return 0;
}

/* Only of those that something is wrong with; a page is of all volumes, and may have none. */
int controller_list_health(struct grpc_call *call, const void *request, void *reply,
			   struct error *err)
{
	const Csi__V1__ControllerListVolumeHealthRequest *q = request;
	Csi__V1__ControllerListVolumeHealthResponse *r = reply;
	struct volume_list list cleanup_with(volume_list_done) = { 0 };
	int rc = list_page(call, q->max_entries, q->starting_token, &list, err);
	if (rc < 0)
		return rc;
	r->entries = grpc_call_alloc(call, (list.count + 1) * sizeof(*r->entries));
	for (size_t i = 0; i < list.count; i++)
		if (list.items[i].health)
			r->entries[r->n_entries++] = controller_health(call, &list.items[i]);
	r->next_token = next_token(call, &list);
	return 0;
}
