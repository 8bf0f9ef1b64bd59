/* SPDX-License-Identifier: Apache-2.0 */
#include "share_text.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/handle.h"
#include "core/params.h"

#include <errno.h>
#include <stdio.h>

#define WORD_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

/* ---- SMB ------------------------------------------------------------------------------------ */

static void slashes(char *text)
{
	for (; *text; text++)
		if (*text == '\\')
			*text = '/';
}

int check_smb_export(const char *value, struct error *err)
{
	char text[1024];
	const char *host = text + 2, *share;

	if (strlen(value) >= sizeof(text))
		return error_set(err, EINVAL, "too long");
	snprintf(text, sizeof(text), "%s", value);
	slashes(text);
	share = str_has_prefix(text, "//") ? strchr(host, '/') : NULL;
	if (!share || share == host || host[0] == '-' ||
	    strspn(host, WORD_CHARS ".-_:[]") < (size_t)(share - host) || strchr(text, ',') ||
	    !path_is_clean(share) || !share[1])
		return error_set(err, EINVAL, "not //HOST/SHARE");
	return 0;
}

static const char *const smb_passwords[] = { "password", "pass", "password2" };
static const char *const smb_users[] = { "username", "user" };
static const char *const smb_domains[] = { "domain", "dom", "workgroup" };

static bool is_option(const char *option, size_t len, const char *const *names, size_t count,
		      size_t *ret_value)
{
	for (size_t i = 0; i < count; i++) {
		size_t n = strlen(names[i]);

		if (len > n && strncmp(option, names[i], n) == 0 && option[n] == '=') {
			*ret_value = n + 1;
			return true;
		}
	}
	return false;
}

/* Which parameter an option is, and where its value begins; NULL: it stays an option. */
static const char *option_param(const char *option, size_t len, size_t *ret_value)
{
	if (is_option(option, len, smb_passwords, ARRAY_SIZE(smb_passwords), ret_value))
		return "password";
	if (is_option(option, len, smb_users, ARRAY_SIZE(smb_users), ret_value))
		return "username";
	if (is_option(option, len, smb_domains, ARRAY_SIZE(smb_domains), ret_value))
		return "domain";
	return NULL;
}

/*
 * Moves what options say of user, domain and password to params (NULL: nowhere); rest gets the
 * others, and has room for all.
 */
static int split_options(const char *options, char *rest, json_t *params, struct error *err)
{
	size_t n = 0, value;

	for (const char *p = options_text(options); *p;) {
		size_t len = strcspn(p, ",");
		const char *name = option_param(p, len, &value);

		if (name && params && !json_object_get(params, name) &&
		    json_object_set_new(params, name, json_stringn(p + value, len - value)) < 0)
			return no_memory(err);
		if (!name && len > 0) {
			if (n > 0)
				rest[n++] = ',';
			memcpy(rest + n, p, len);
			n += len;
		}
		p += len;
		p += *p == ',';
	}
	rest[n] = '\0';
	return 0;
}

int check_smb_options(const char *value, struct error *err)
{
	cleanup_free char *rest = malloc(strlen(value) + 1);

	if (!rest)
		return no_memory(err);
	split_options(value, rest, NULL, NULL);
	return check_mount_options(rest, err);
}

/* "REST,username=USER,domain=DOMAIN", of what there is. */
static int join_options(const json_t *params, const char *rest, char **ret, struct error *err)
{
	const char *user = jstr(params, "username"), *domain = jstr(params, "domain");

	return text_format(ret, err, "%s%s%s%s%s%s%s", rest, *rest && user ? "," : "",
			   user ? "username=" : "", user ? user : "",
			   domain && (*rest || user) ? "," : "", domain ? "domain=" : "",
			   domain ? domain : "");
}

int smb_tidy(json_t *params, struct error *err)
{
	const char *options = jstr(params, "options");
	cleanup_free char *export = strdup(jstr(params, "export")), *joined = NULL,
			  *rest = calloc(1, strlen(options ? options : "") + 1);
	int r = 0;

	if (!export || !rest)
		return no_memory(err);
	slashes(export);
	if (json_object_set_new(params, "export", json_string(export)) < 0)
		return no_memory(err);
	if (options)
		r = split_options(options, rest, params, err);
	if (r >= 0)
		r = join_options(params, rest, &joined, err);
	if (r < 0)
		return r;
	json_object_del(params, "username");
	json_object_del(params, "domain");
	json_object_del(params, "options");
	if (*joined && json_object_set_new(params, "options", json_string(joined)) < 0)
		return no_memory(err);
	return 0;
}

/* ---- Virtuozzo Storage ---------------------------------------------------------------------- */

void vz_split(const char *export, size_t *ret_servers_len, const char **ret_cluster)
{
	const char *slash = strstr(export, ":/");

	*ret_servers_len = slash ? (size_t)(slash - export) : 0;
	*ret_cluster = slash ? slash + 2 : export;
}

int check_vz_export(const char *value, struct error *err)
{
	size_t servers, len;
	const char *cluster;

	vz_split(value, &servers, &cluster);
	len = strspn(cluster, WORD_CHARS "_-");
	if (len == 0 || len > 200 || cluster[0] == '-' || (cluster[len] && cluster[len] != ':') ||
	    (cluster != value && servers == 0) || strspn(value, WORD_CHARS ".-_:[],") < servers)
		return error_set(err, EINVAL, "not [MDS[,MDS…]:/]CLUSTER[:PASSWORD]");
	return 0;
}

int vz_tidy(json_t *params, struct error *err)
{
	cleanup_free char *export = strdup(jstr(params, "export"));
	const char *cluster;
	char *colon;
	size_t servers;
	int r = 0;

	if (!export)
		return no_memory(err);
	vz_split(export, &servers, &cluster);
	colon = strchr(cluster, ':');
	if (!colon)
		return 0;
	*colon = '\0';
	if (colon[1] && !json_object_get(params, "password"))
		r = json_object_set_new(params, "password", json_string(colon + 1));
	if (r >= 0)
		r = json_object_set_new(params, "export", json_string(export));
	explicit_bzero(colon + 1, strlen(colon + 1));
	return r < 0 ? no_memory(err) : 0;
}
