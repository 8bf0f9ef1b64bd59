/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/controller.h"

#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <stdarg.h>

#define SAME_MS (10 * 60 * 1000)
#define MESSAGE_MAX 1024 /* Kubernetes' own limit */

/* FNV-1a over all parts: the same event has the same name, whichever process saw it. */
static uint64_t hash_parts(const char *const *parts)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (; *parts; parts++) {
		for (const char *p = *parts;; p++) {
			h = (h ^ (unsigned char)*p) * 0x100000001b3u;
			if (!*p)
				break;
		}
	}
	return h;
}

static json_t *event_new(const struct kind *kind, const json_t *object, const char *component,
			 bool warning, const char *reason, const char *message, const char *now)
{
	const char *type = warning ? "Warning" : "Normal", *ns = object_namespace(object);
	uint64_t id = hash_parts((const char *const[]){ object_uid(object), component, type, reason,
							message, NULL });
	cleanup_free char *name =
		xasprintf("%.230s.%016llx", object_name(object), (unsigned long long)id);
	char version[200];

	if (!*ns)
		ns = "default";
	kind_api_version(kind, version, sizeof(version));
	return json_pack("{ss ss s{ss ss} s{ss ss ss ss ss} ss ss ss s{ss} si ss ss ss ss}",
			 "apiVersion", "v1", "kind", "Event", "metadata", "name", name, "namespace",
			 ns, "involvedObject", "apiVersion", version, "kind", kind->kind, "name",
			 object_name(object), "namespace", object_namespace(object), "uid",
			 object_uid(object), "type", type, "reason", reason, "message", message,
			 "source", "component", component, "count", 1, "firstTimestamp", now,
			 "lastTimestamp", now, "reportingComponent", component, "reportingInstance",
			 "");
}

/* One more of what is there; after ten quiet minutes it counts from one again. */
static int event_again(struct kube *k, const json_t *event, const char *now, struct error *err)
{
	cleanup_json json_t *there = NULL;
	cleanup_json json_t *patch = NULL;
	const char *last;
	int64_t last_ms = 0;
	int rc = kube_get(k, &KIND_EVENT, object_namespace(event), object_name(event), &there, err);

	if (rc < 0)
		return rc;
	last = jstr(there, "lastTimestamp");
	if (last)
		time_parse(last, &last_ms);
	if (clock_wall_ms(k->clock) - last_ms > SAME_MS)
		patch = json_pack("{si ss ss}", "count", 1, "firstTimestamp", now, "lastTimestamp",
				  now);
	else
		patch = json_pack("{sI ss}", "count", jint(there, "count") + 1, "lastTimestamp",
				  now);
	return kube_patch(k, &KIND_EVENT, object_namespace(event), object_name(event), NULL,
			  KUBE_PATCH_MERGE, patch, NULL, err);
}

void event_record(struct kube *k, const struct kind *kind, const json_t *object,
		  const char *component, bool warning, const char *reason, const char *format, ...)
{
	cleanup_json json_t *event = NULL;
	struct error err = ERROR_INIT;
	char now[TIME_TEXT_MAX], message[MESSAGE_MAX];
	va_list args;
	int rc;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	time_text(clock_wall_ms(k->clock), now);
	event = event_new(kind, object, component, warning, reason, message, now);
	if (!event)
		return; /* a message that is not UTF-8 */
	/* most events happen once: one call */
	rc = kube_create(k, &KIND_EVENT, event, NULL, &err);
	if (rc == -EEXIST)
		rc = event_again(k, event, now, &err);
	if (rc < 0)
		log_debug("event %s: %s", reason, error_text(&err, rc));
}
