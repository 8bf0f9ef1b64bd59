/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/mem.h"
#include "base/str.h"
#include "kube/kube.h"

/* Request paths of the Kubernetes API, appended to a buf. */
void url_escape(struct buf *b, const char *text);
/* "/apis/coreos.com/v1/namespaces/NS/storagenodes/NAME/status"; name, subresource may be NULL, ns NULL or "". */
void url_path(struct buf *b, const struct kind *kind, const char *ns, const char *name,
	      const char *subresource);
/* "?name=value" or "&name=value"; nothing where the value is NULL or empty. */
void url_query(struct buf *b, const char *name, const char *value);
void url_selector(struct buf *b, const struct kube_selector *sel);
