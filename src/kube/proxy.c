/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/config.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <strings.h>

/* "%40" and its like, in place. */
static void unescape(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		unsigned byte;

		if (*from == '%' && isxdigit((unsigned char)from[1]) &&
		    sscanf(from + 1, "%2x", &byte) == 1 && byte &&
		    isxdigit((unsigned char)from[2])) {
			*to++ = (char)byte;
			from += 2;
		} else {
			*to++ = *from;
		}
	}
	*to = 0;
}

static char *basic(const char *user, size_t len)
{
	cleanup_free char *plain = xstrndup(user, len);
	cleanup_free char *text = NULL;

	unescape(plain);
	text = config_base64_text(plain);
	explicit_bzero(plain, strlen(plain));
	return xasprintf("Basic %s", text);
}

int proxy_set(struct kube_config *c, const char *url, const char *where, struct error *err)
{
	const char *scheme = strstr(url, "://"), *rest = scheme ? scheme + 3 : url;
	const char *at = strrchr(rest, '@');

	if (scheme && strncasecmp(url, "http://", 7) != 0)
		return error_set(err, EOPNOTSUPP,
				 "%s: proxies of this kind are not supported; use one that is "
				 "reached by http://",
				 where);
	if (config_authority(at ? at + 1 : rest, 80, &c->proxy_host, &c->proxy_port) < 0)
		return error_set(err, EINVAL,
				 "%s: the proxy is not of the form "
				 "http://[USER:PASSWORD@]HOST:PORT",
				 where);
	if (at)
		c->proxy_auth = basic(rest, (size_t)(at - rest));
	return 0;
}

static int address_bytes(const char *text, unsigned char bytes[static 16])
{
	if (inet_pton(AF_INET, text, bytes) == 1)
		return 4;
	return inet_pton(AF_INET6, text, bytes) == 1 ? 16 : 0;
}

static bool in_network(const char *network, const char *host)
{
	const char *slash = strchr(network, '/');
	cleanup_free char *base = xstrndup(network, slash ? (size_t)(slash - network) : 0);
	unsigned char a[16], b[16];
	int len = address_bytes(base, a), bits = slash ? atoi(slash + 1) : 0;

	if (!slash || len == 0 || address_bytes(host, b) != len || bits < 0 || bits > len * 8)
		return false;
	for (int i = 0; i < bits; i++) {
		if ((a[i / 8] ^ b[i / 8]) & (0x80 >> i % 8))
			return false;
	}
	return true;
}

static bool same_address(const char *one, const char *other)
{
	unsigned char a[16], b[16];
	int len = address_bytes(one, a);

	return len > 0 && address_bytes(other, b) == len && memcmp(a, b, (size_t)len) == 0;
}

/* "example.org" and ".example.org" have what is below it; only the first has the name itself. */
static bool in_domain(const char *domain, const char *host)
{
	size_t host_len = strlen(host), len;

	if (str_has_prefix(domain, "*."))
		domain++;
	len = strlen(domain);
	if (len == 0 || host_len < len || strcasecmp(host + host_len - len, domain) != 0)
		return false;
	return host_len == len || *domain == '.' || host[host_len - len - 1] == '.';
}

static bool excepts(const char *item, const char *host, int port)
{
	cleanup_free char *name = NULL;
	int only = 0;

	if (streq(item, "*") || in_network(item, host) || same_address(item, host))
		return true;
	if (strchr(item, '/') || config_authority(item, port, &name, &only) < 0 || only != port)
		return false;
	return same_address(name, host) || in_domain(name, host);
}

bool proxy_excepts(const char *list, const char *host, int port)
{
	static const char between[] = ", \t";

	while (list && *list) {
		size_t len = strcspn(list, between);
		cleanup_free char *item = xstrndup(list, len);

		if (len > 0 && excepts(item, host, port))
			return true;
		list += len;
		list += strspn(list, between);
	}
	return false;
}

static const char *either(const char *upper, const char *lower)
{
	const char *value = getenv(upper);

	return value && *value ? value : getenv(lower);
}

int proxy_from_environment(struct kube_config *c, struct error *err)
{
	const char *url = either("HTTPS_PROXY", "https_proxy");

	/* only what is encrypted can go by CONNECT */
	if (!url || !*url || c->unix_path || !c->host || (!c->ca_pem && !c->insecure))
		return 0;
	if (streq(c->host, "localhost") || str_has_prefix(c->host, "127.") ||
	    streq(c->host, "::1") ||
	    proxy_excepts(either("NO_PROXY", "no_proxy"), c->host, c->port))
		return 0;
	return proxy_set(c, url, "HTTPS_PROXY", err);
}
