/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/base64.h"

#include "base/mem.h"
#include "kube/kube.h"

#include <errno.h>
#include <openssl/evp.h>

int base64_decode(const char *text, char **ret)
{
	size_t len = strlen(text);
	cleanup_free unsigned char *out = xmalloc(len / 4 * 3 + 4);
	EVP_ENCODE_CTX *ctx = EVP_ENCODE_CTX_new();
	int n = 0, tail = 0, rc;

	EVP_DecodeInit(ctx);
	rc = EVP_DecodeUpdate(ctx, out, &n, (const unsigned char *)text, (int)len);
	if (rc >= 0)
		rc = EVP_DecodeFinal(ctx, out + n, &tail);
	EVP_ENCODE_CTX_free(ctx);
	if (rc < 0)
		return -EINVAL;
	out[n + tail] = 0;
	*ret = (char *)TAKE_PTR(out);
	return 0;
}

char *secret_text(const json_t *secret, const char *key)
{
	const char *encoded = jstr(secret, "data", key);
	char *text = NULL;

	return encoded && *encoded && base64_decode(encoded, &text) == 0 ? text : NULL;
}
