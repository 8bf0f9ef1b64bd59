/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/url.h"

static bool is_plain(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

void url_escape(struct buf *b, const char *text)
{
	for (; *text; text++) {
		if (is_plain((unsigned char)*text))
			buf_add(b, text, 1);
		else
			buf_printf(b, "%%%02X", (unsigned)(unsigned char)*text);
	}
}

void url_path(struct buf *b, const struct kind *kind, const char *ns, const char *name,
	      const char *subresource)
{
	if (*kind->group)
		buf_printf(b, "/apis/%s/%s", kind->group, kind->version);
	else
		buf_printf(b, "/api/%s", kind->version);
	if (kind->namespaced && ns && *ns) {
		buf_puts(b, "/namespaces/");
		url_escape(b, ns);
	}
	buf_printf(b, "/%s", kind->plural);
	if (name) {
		buf_puts(b, "/");
		url_escape(b, name);
	}
	if (subresource)
		buf_printf(b, "/%s", subresource);
}

void url_query(struct buf *b, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	buf_puts(b, b->data && strchr(b->data, '?') ? "&" : "?");
	buf_printf(b, "%s=", name);
	url_escape(b, value);
}

void url_selector(struct buf *b, const struct kube_selector *sel)
{
	if (!sel)
		return;
	url_query(b, "labelSelector", sel->labels);
	url_query(b, "fieldSelector", sel->fields);
}
