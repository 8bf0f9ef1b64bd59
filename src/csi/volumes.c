/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/volumes.h"

#include "base/mem.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>

const char *csi_volume_name(const char *asked, char buf[static CSI_NAME_MAX])
{
	unsigned char digest[EVP_MAX_MD_SIZE] = { 0 };

	/* fails only for want of memory, and without a name nothing may be made */
	if (EVP_Digest(asked, strlen(asked), digest, NULL, EVP_sha256(), NULL) != 1)
		abort();
	int at = snprintf(buf, CSI_NAME_MAX, "csi-");
	for (int i = 0; i < 16; i++)
		at += snprintf(buf + at, (size_t)(CSI_NAME_MAX - at), "%02x", digest[i]);
	return buf;
}

int volume_size(enum volume_kind kind, int64_t bytes, int64_t limit, int64_t fallback, int64_t *ret,
		struct error *err)
{
	bool device = kind == VOLUME_FILE || kind == VOLUME_BLOCK;
	int64_t unit = device ? VOLUME_BLOCK_SIZE : 1;
	int64_t size = bytes;

	if (!size)
		size = limit && limit < fallback ? limit - limit % unit : fallback;
	if (size > INT64_MAX - unit)
		return error_set(err, ERANGE, "%lld bytes are more than a volume can have",
				 (long long)size);
	size = (size + unit - 1) / unit * unit;
	if (!size || (limit && size > limit))
		return error_set(err, ERANGE,
				 "no size fits: volumes of this kind have whole blocks of %d "
				 "bytes, and the limit is %lld",
				 VOLUME_BLOCK_SIZE, (long long)limit);
	*ret = size;
	return 0;
}

int volume_attribute(const char *key, const char *value, struct volume_attributes *ret,
		     struct error *err)
{
	if (!streq(key, "reclaim"))
		return error_set(err, EINVAL,
				 "there is no parameter \"%.64s\" that can be changed; there is "
				 "reclaim",
				 key);
	if (!streq(value, "delete") && !streq(value, "archive"))
		return error_set(err, EINVAL,
				 "the parameter reclaim is \"%.32s\"; use delete or archive",
				 value);
	ret->reclaim = value;
	return 0;
}

void volume_info_done(struct volume_info *v)
{
	free(v->id);
	free(v->source);
	free(v->message);
	json_decref(v->context);
	*v = (struct volume_info){ 0 };
}

void volume_list_done(struct volume_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		volume_info_done(&l->items[i]);
	free(l->items);
	*l = (struct volume_list){ 0 };
}

void snapshot_info_done(struct snapshot_info *s)
{
	free(s->id);
	free(s->source);
	*s = (struct snapshot_info){ 0 };
}

void snapshot_list_done(struct snapshot_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		snapshot_info_done(&l->items[i]);
	free(l->items);
	*l = (struct snapshot_list){ 0 };
}
