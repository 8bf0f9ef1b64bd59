/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/connect.h"
#include "cli/overview.h"
#include "cli/print.h"

#include "base/mem.h"
#include "base/quantity.h"

#include <errno.h>
#include <time.h>

#define REFRESH_S 2

static const char *text_of(const json_t *o, const char *key)
{
	const char *text = jstr(o, key);

	return text && *text ? text : "-";
}

static const char *size_of(const json_t *o, const char *key, char buf[static QUANTITY_TEXT_MAX])
{
	const json_t *n = json_object_get(o, key);

	return json_is_integer(n) ? quantity_human(json_integer_value(n), buf) : "-";
}

static void print_message(FILE *out, const char *of, const char *message)
{
	if (!message || !*message)
		return;
	(void)fprintf(out, "  %s", of);
	term_put(out, message);
	(void)fputc('\n', out);
}

static void print_deployment(FILE *out, const json_t *d)
{
	char capacity[QUANTITY_TEXT_MAX], used[QUANTITY_TEXT_MAX], promised[QUANTITY_TEXT_MAX];
	const char *status = text_of(d, "status"), *message = jstr(d, "message");
	enum style style = style_of_state(status);

	(void)fprintf(out, "%s%s%s  %s%s%s  %s %s", term_style(out, STYLE_BOLD), text_of(d, "name"),
		      term_style(out, STYLE_PLAIN), term_style(out, style), status,
		      term_style(out, STYLE_PLAIN), text_of(d, "type"), text_of(d, "volumeType"));
	if (jbool(d, "degraded"))
		(void)fprintf(out, "  %sdegraded%s", term_style(out, STYLE_WARN),
			      term_style(out, STYLE_PLAIN));
	(void)fprintf(out, "\n  capacity %s, used %s, promised %s; %lld of %lld nodes ready\n",
		      size_of(d, "capacityBytes", capacity), size_of(d, "usedBytes", used),
		      size_of(d, "promisedBytes", promised), (long long)jint(d, "nodesReady"),
		      (long long)jint(d, "nodes"));
	print_message(out, "", message);
	print_message(out, "clients: ", jstr(d, "clients"));
}

static void print_nodes(FILE *out, const json_t *nodes)
{
	struct grid g = { .out = out, .indent = 2 };
	size_t i, j;
	json_t *n, *d;

	(void)fprintf(out, "\nNodes:%s\n",
		      json_array_size(nodes) ? ""
					     : " none; declare them with: quartermaster apply -f");
	if (json_array_size(nodes) == 0)
		return;
	grid_row(&g, (const char *const[]){ "NAME", "STATUS", "ADDRESS", "ZONE", "DEVICE", "STATE",
					    "SIZE", "", NULL });
	json_array_foreach (nodes, i, n) {
		cleanup_free char *zone = xasprintf("%lld", (long long)jint(n, "zone"));
		const char *head[] = { text_of(n, "name"), text_of(n, "phase"),
				       text_of(n, "address"), zone };
		const json_t *devices = json_object_get(n, "devices");

		if (json_array_size(devices) == 0)
			grid_row(&g, (const char *const[]){
					     head[0], head[1], head[2], head[3], "-", "", "",
					     jstr(n, "message") ? jstr(n, "message") : "", NULL });
		json_array_foreach (devices, j, d) {
			char size[QUANTITY_TEXT_MAX];
			const char *why = jstr(d, "message");

			if (j == 0 && !why)
				why = jstr(n, "message");
			grid_row(&g, (const char *const[]){
					     j ? "" : head[0], j ? "" : head[1], j ? "" : head[2],
					     j ? "" : head[3], text_of(d, "source"),
					     text_of(d, "state"), size_of(d, "sizeBytes", size),
					     why ? why : "", NULL });
		}
	}
	grid_flush(&g);
	grid_done(&g);
}

static void print_pools(FILE *out, const json_t *pools)
{
	struct grid g = { .out = out, .indent = 2 };
	size_t i;
	json_t *p;

	(void)fprintf(out, "\nPools:%s\n", json_array_size(pools) ? "" : " none");
	if (json_array_size(pools) == 0)
		return;
	grid_row(&g, (const char *const[]){ "NAME", "STATUS", "TYPE", "BRICKS", "HEAL", "CAPACITY",
					    "USED", "", NULL });
	json_array_foreach (pools, i, p) {
		char capacity[QUANTITY_TEXT_MAX], used[QUANTITY_TEXT_MAX];
		const json_t *heal = json_object_get(p, "healPending");
		cleanup_free char *bricks =
			xasprintf("%lld/%lld", (long long)jint(p, "bricksOnline"),
				  (long long)jint(p, "bricks"));
		cleanup_free char *pending =
			json_is_integer(heal) && json_integer_value(heal) >= 0
				? xasprintf("%lld", (long long)json_integer_value(heal))
				: xstrdup("-");

		cleanup_free char *whole =
			jstr(p, "parent")
				? xasprintf("one volume, in the bricks of %s", jstr(p, "parent"))
				: xstrdup("");
		const char *message = jstr(p, "message");

		grid_row(&g, (const char *const[]){ text_of(p, "name"), text_of(p, "phase"),
						    text_of(p, "volumeType"), bricks, pending,
						    size_of(p, "capacityBytes", capacity),
						    size_of(p, "usedBytes", used),
						    message && *message ? message : whole, NULL });
	}
	grid_flush(&g);
	grid_done(&g);
}

static void print_claims(FILE *out, const json_t *claims)
{
	struct grid g = { .out = out, .indent = 2 };
	size_t i;
	json_t *c;

	(void)fprintf(out, "\nClaims: %lld bound, %lld pending\n", (long long)jint(claims, "bound"),
		      (long long)jint(claims, "pending"));
	json_array_foreach (json_object_get(claims, "waiting"), i, c) {
		grid_row(&g,
			 (const char *const[]){ text_of(c, "name"), text_of(c, "phase"),
						text_of(c, "size"), text_of(c, "message"), NULL });
	}
	grid_flush(&g);
	grid_done(&g);
}

static void print_overview(FILE *out, const json_t *o)
{
	const json_t *deployments = json_object_get(o, "deployments");
	size_t i;
	json_t *d;

	if (json_array_size(deployments) == 0)
		(void)fprintf(out, "No deployment is there yet; run: quartermaster up\n");
	json_array_foreach (deployments, i, d) {
		print_deployment(out, d);
	}
	print_nodes(out, json_object_get(o, "nodes"));
	print_pools(out, json_object_get(o, "pools"));
	print_claims(out, json_object_get(o, "claims"));
	(void)fflush(out);
}

static int list(struct session *s, const struct kind *k, const char *ns, json_t **ret)
{
	cleanup_free char *version = NULL;
	struct error err = ERROR_INIT;
	int rc = kube_list(s->kube, k, ns, NULL, ret, &version, &err);

	return rc < 0 ? session_fail(s, rc, &err) : QM_OK;
}

static int fetch(struct session *s, const char *ns, json_t **ret)
{
	cleanup_json json_t *statuses = NULL, *nodes = NULL, *pools = NULL, *claims = NULL;
	int code = list(s, &KIND_STORAGESTATUS, ns, &statuses);

	if (code == QM_OK)
		code = list(s, &KIND_STORAGENODE, ns, &nodes);
	if (code == QM_OK)
		code = list(s, &KIND_STORAGEPOOL, ns, &pools);
	if (code == QM_OK)
		code = list(s, &KIND_PVC, ns, &claims);
	if (code == QM_OK)
		*ret = overview(statuses, nodes, pools, claims);
	return code;
}

static int show(struct session *s, const char *ns, bool json, bool again)
{
	cleanup_json json_t *o = NULL;
	int code = fetch(s, ns, &o);

	if (code != QM_OK)
		return code;
	if (json) {
		cleanup_free char *text = json_text_pretty(o);

		(void)fprintf(s->out, "%s\n", text);
		(void)fflush(s->out);
		return QM_OK;
	}
	if (again && isatty(fileno(s->out)))
		(void)fputs("\033[H\033[2J", s->out);
	print_overview(s->out, o);
	return QM_OK;
}

int cmd_status(struct session *s, const struct args *a)
{
	const char *format = args_value(a, "output"),
		   *ns = args_given(a, "all-namespaces") ? NULL : s->ns;
	bool watch = args_given(a, "watch");
	int code;

	if (format && !streq(format, "json") && !streq(format, "text"))
		return usage_error(a->verb, "-o is text or json, not \"%s\"", format);
	do {
		code = show(s, ns, streq(format, "json"), watch);
		if (watch && code == QM_OK)
			(void)nanosleep(&(struct timespec){ .tv_sec = REFRESH_S }, NULL);
	} while (watch && code == QM_OK);
	return code;
}
