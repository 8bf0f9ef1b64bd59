/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "operator/system.h"

#include <errno.h>

/*
 * The deployment's StorageClass. Its parameters only refer to the deployment, so they never change.
 * What else cannot be changed in a class (the reclaim policy, the binding mode) is changed by
 * deleting it and making it again; its labels and annotations, such as the one that makes it the
 * default, are kept in the StorageStatus meanwhile, so that a crash in between loses none of them.
 */
static json_t *wanted_class(const struct system *s)
{
	bool archive = streq(s->op->reclaim, "archive");
	json_t *class = json_pack("{s:s, s:s, s:{s:s, s:{s:s}}, s:s, s:{s:s, s:s}, s:s, s:s, s:b}",
				  "apiVersion", "storage.k8s.io/v1", "kind", "StorageClass",
				  "metadata", "name", s->op->deployment, "labels",
				  QM_LABEL_DEPLOYMENT, s->op->deployment, "provisioner", QM_DRIVER,
				  "parameters", "deployment", s->op->deployment, "namespace",
				  s->op->ns, "reclaimPolicy", archive ? "Delete" : s->op->reclaim,
				  "volumeBindingMode", "Immediate", "allowVolumeExpansion", 1);
	if (archive)
		jset(class, json_string("archive"), "metadata", "annotations",
		     QM_ANNOTATION_RECLAIM);
	return class;
}

static bool is_ours(const struct system *s, const json_t *class)
{
	return streq(jstr(class, "provisioner"), QM_DRIVER) &&
	       streq(jstr(class, "parameters", "deployment"), s->op->deployment) &&
	       streq(jstr(class, "parameters", "namespace"), s->op->ns);
}

static int create(struct system *s, json_t *class)
{
	cleanup_json json_t *made = NULL;
	int rc = kube_create(s->r->kube, &KIND_STORAGECLASS, class, &made, &s->r->error);
	if (rc == 0)
		reader_learned(s->r->cache, &KIND_STORAGECLASS, made);
	return rc == -EEXIST ? 0 : rc;
}

/* A class of a person's own making is left alone, and so is what nobody needs to change. */
static bool must_be_remade(const struct system *s, const json_t *have, const json_t *wanted)
{
	return object_label(have, QM_LABEL_DEPLOYMENT) && is_ours(s, have) &&
	       (!streq(jstr(have, "reclaimPolicy"), jstr(wanted, "reclaimPolicy")) ||
		!streq(object_annotation(have, QM_ANNOTATION_RECLAIM),
		       object_annotation(wanted, QM_ANNOTATION_RECLAIM)));
}

/* What is kept of a class that is made again, as text. */
static char *kept_metadata(const json_t *class)
{
	cleanup_json json_t *kept = json_object();
	static const char *const keys[] = { "labels", "annotations" };
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (jget(class, "metadata", keys[i]))
			json_object_set_new(kept, keys[i],
					    json_deep_copy(jget(class, "metadata", keys[i])));
	json_object_del(jget(kept, "annotations"), QM_ANNOTATION_RECLAIM);
	return json_text(kept);
}

static int remember(struct system *s, const char *text)
{
	return status_patch(
		s, NULL,
		json_pack("{s:{s:{s:s?}}}", "metadata", "annotations", QM_ANNOTATION_CLASS, text));
}

/* Made again with what was remembered of it; then that is forgotten. */
static int finish_remake(struct system *s, json_t *wanted, const char *text)
{
	cleanup_json json_t *kept = NULL;
	json_t *ours = jget(wanted, "metadata");
	static const char *const keys[] = { "labels", "annotations" };

	if (json_parse(text, strlen(text), &kept, NULL) < 0)
		kept = json_object();
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		json_t *theirs = json_object_get(kept, keys[i]);
		if (!json_is_object(theirs))
			continue;
		json_object_update(theirs, json_object_get(ours, keys[i]));
		json_object_set(ours, keys[i], theirs);
	}
	int rc = create(s, wanted);
	return rc == 0 ? remember(s, NULL) : rc;
}

static int remake(struct system *s, const json_t *have, json_t *wanted)
{
	cleanup_free char *text = kept_metadata(have);
	struct kube_delete_options options = { .uid = object_uid(have) };
	int rc = remember(s, text);
	if (rc == 0)
		rc = kube_delete(s->r->kube, &KIND_STORAGECLASS, NULL, object_name(have), &options,
				 &s->r->error);
	if (rc < 0 && rc != -ENOENT)
		return rc;
	event_record(s->r->kube, &KIND_STORAGESTATUS, s->status, "quartermaster", false,
		     "ClassChanged",
		     "StorageClass %s is made again: what changed cannot be changed in place",
		     s->op->deployment);
	return finish_remake(s, wanted, text);
}

int class_ensure(struct system *s, bool comes_online)
{
	const char *remembered = object_annotation(s->status, QM_ANNOTATION_CLASS);
	cleanup_json json_t *have = NULL, *wanted = wanted_class(s);
	int rc = op_get_live(s->r, &KIND_STORAGECLASS, NULL, s->op->deployment, &have);

	if (rc < 0)
		return rc;
	if (rc == 1)
		return remembered     ? finish_remake(s, wanted, remembered)
		       : comes_online ? create(s, wanted)
				      : 0;
	if (remembered && !must_be_remade(s, have, wanted))
		return remember(s, NULL);
	if (!is_ours(s, have)) {
		system_problem(
			s,
			"StorageClass %s is there, but is not ours: its claims go elsewhere; "
			"delete or rename it",
			s->op->deployment);
		return 0;
	}
	if (must_be_remade(s, have, wanted))
		return remake(s, have, wanted);
	/* a class of an older version; where a person has said no, it stays */
	if (object_label(have, QM_LABEL_DEPLOYMENT) && !jget(have, "allowVolumeExpansion"))
		return op_patch(s->r, &KIND_STORAGECLASS, have, NULL,
				json_pack("{s:b}", "allowVolumeExpansion", 1), NULL);
	return 0;
}

int class_remove(struct system *s)
{
	cleanup_json json_t *have = NULL;
	int rc = op_get_live(s->r, &KIND_STORAGECLASS, NULL, s->op->deployment, &have);
	if (rc != 0 || !is_ours(s, have))
		return rc < 0 ? rc : 0;
	struct kube_delete_options options = { .uid = object_uid(have) };
	rc = kube_delete(s->r->kube, &KIND_STORAGECLASS, NULL, object_name(have), &options,
			 &s->r->error);
	return rc == -ENOENT ? 0 : rc;
}
