/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of volumes, clones, snapshots and what is made from them (claim.c, source.c, snapshot*.c). */
#include "fixture.h"
#include "operator/snapshot.h"
#include "operator/source.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
/* after what it needs */
#include <cmocka.h>

#define NS "default"

/* ---- what a person does ---------------------------------------------------------------------------- */

static void make(struct fixture *f, const struct kind *kind, json_t *object)
{
	struct error err = ERROR_INIT;
	char version[64];
	int rc;

	jset(object, json_string(kind_api_version(kind, version, sizeof(version))), "apiVersion");
	jset(object, json_string(kind->kind), "kind");
	if (kind->namespaced)
		jset(object, json_string(NS), "metadata", "namespace");
	rc = kube_create(f->api, kind, object, NULL, &err);
	if (rc < 0)
		fail_msg("%s", error_text(&err, rc));
	json_decref(object);
}

static void add_class(struct fixture *f, const char *name, const char *kind, const char *fs)
{
	make(f, &KIND_STORAGECLASS,
	     json_pack("{s:{s:s}, s:s, s:{s:s, s:s, s:s*, s:s*}}", "metadata", "name", name,
		       "provisioner", QM_DRIVER, "parameters", "deployment", "gold", "namespace",
		       NS, "kind", kind, "csi.storage.k8s.io/fstype", fs));
}

struct ask {
	const char *class, *mode, *volume_mode, *size;
	const char *group, *kind, *from; /* the source */
};

static void ask_for(struct fixture *f, const char *name, struct ask a)
{
	json_t *spec = json_pack("{s:s, s:[s], s:s, s:{s:{s:s}}}", "storageClassName",
				 a.class ? a.class : "gold", "accessModes",
				 a.mode ? a.mode : "ReadWriteOnce", "volumeMode",
				 a.volume_mode ? a.volume_mode : "Filesystem", "resources",
				 "requests", "storage", a.size ? a.size : "1Gi");

	if (a.from)
		jset(spec,
		     json_pack("{s:s*, s:s, s:s}", "apiGroup", a.group, "kind", a.kind, "name",
			       a.from),
		     "dataSource");
	make(f, &KIND_PVC, json_pack("{s:{s:s}, s:o}", "metadata", "name", name, "spec", spec));
}

static void clone_of(struct fixture *f, const char *name, const char *from)
{
	ask_for(f, name, (struct ask){ .kind = "PersistentVolumeClaim", .from = from });
}

static void restore_of(struct fixture *f, const char *name, const char *from)
{
	ask_for(f, name,
		(struct ask){ .group = "snapshot.storage.k8s.io",
			      .kind = "VolumeSnapshot",
			      .from = from });
}

static void add_snapshot_class(struct fixture *f, const char *name, bool is_default,
			       const char *policy)
{
	make(f, &KIND_VOLUMESNAPSHOTCLASS,
	     json_pack("{s:{s:s, s:{s:s}}, s:s, s:s}", "metadata", "name", name, "annotations",
		       SNAPSHOT_DEFAULT_CLASS, is_default ? "true" : "false", "driver", QM_DRIVER,
		       "deletionPolicy", policy));
}

static void add_snapshot(struct fixture *f, const char *name, const char *claim, const char *class)
{
	make(f, &KIND_VOLUMESNAPSHOT,
	     json_pack("{s:{s:s}, s:{s:{s:s}, s:s*}}", "metadata", "name", name, "spec", "source",
		       "persistentVolumeClaimName", claim, "volumeSnapshotClassName", class));
}

/* ---- what is there --------------------------------------------------------------------------------- */

static char *volume_of(struct fixture *f, const char *claim)
{
	cleanup_json json_t *pv = get_pv_of(f, claim);

	return pv ? xstrdup(object_name(pv)) : NULL;
}

static void put(struct fixture *f, const char *claim, const char *data)
{
	cleanup_free char *volume = volume_of(f, claim);

	assert_non_null(volume);
	json_object_set_new(f->data, volume, json_string(data));
}

static bool holds(struct fixture *f, const char *claim, const char *data)
{
	cleanup_free char *volume = volume_of(f, claim);

	return volume && streq(jstr(f->data, volume), data);
}

static bool bound(struct fixture *f, const char *claim)
{
	return phase_is(f, &KIND_PVC, claim, "Bound");
}

static bool ready(struct fixture *f, const char *snapshot)
{
	cleanup_json json_t *s = get(f, &KIND_VOLUMESNAPSHOT, snapshot);

	return jbool(s, "status", "readyToUse");
}

static void assert_waits(struct fixture *f, const char *claim, const char *why)
{
	cleanup_json json_t *c = get_claim(f, claim);
	const char *message = object_annotation(c, QM_ANNOTATION_WAITING);

	assert_false(bound(f, claim));
	if (!message || !strstr(message, why))
		fail_msg("%s says \"%s\", not \"%s\"", claim, message ? message : "(nothing)", why);
}

static size_t in_pool(struct fixture *f)
{
	return json_object_size(jget(f->volumes, "gold-1"));
}

static struct fixture *online(void)
{
	struct fixture *f = fixture_online();

	add_snapshot_class(f, "snap", true, "Delete");
	f->copy_calls = 2;
	return f;
}

/* ---- kinds ----------------------------------------------------------------------------------------- */

static void assert_volume(struct fixture *f, const char *claim, const char *kind,
			  const char *prefix, const char *mode, const char *fs)
{
	cleanup_json json_t *pv = get_pv_of(f, claim);
	cleanup_free char *handle = xasprintf("v1.gold-1.%s.%s", kind, object_name(pv));

	assert_non_null(pv);
	assert_string_equal(jstr(pv, "spec", "csi", "volumeHandle"), handle);
	assert_string_equal(jstr(pv, "spec", "volumeMode"), mode);
	assert_true(str_has_prefix(jstr(pv, "spec", "csi", "volumeAttributes", "name"), prefix));
	assert_true(streq(jstr(pv, "spec", "csi", "fsType"), fs));
}

static void kinds_of_volumes(void **state)
{
	struct fixture *f = online();

	add_class(f, "files", "file", NULL);
	add_class(f, "xfs", "file", "xfs");
	add_class(f, "odd", "tape", NULL);
	ask_for(f, "d", (struct ask){ .mode = "ReadWriteMany" });
	ask_for(f, "f", (struct ask){ .class = "files" });
	ask_for(f, "x", (struct ask){ .class = "xfs", .mode = "ReadWriteOncePod" });
	ask_for(f, "b", (struct ask){ .volume_mode = "Block" });
	ask_for(f, "fx", (struct ask){ .class = "files", .mode = "ReadWriteMany" });
	ask_for(f, "bx", (struct ask){ .volume_mode = "Block", .mode = "ReadWriteMany" });
	ask_for(f, "o", (struct ask){ .class = "odd" });
	settle(f);
	assert_volume(f, "d", "d", "subvol/", "Filesystem", NULL);
	assert_volume(f, "f", "f", "virtblock/", "Filesystem", "ext4");
	assert_volume(f, "x", "f", "virtblock/", "Filesystem", "xfs");
	assert_volume(f, "b", "b", "rawblock/", "Block", NULL);
	assert_waits(f, "fx", "has one writer");
	assert_waits(f, "bx", "has one writer");
	assert_waits(f, "o", "neither directory nor file");
	assert_int_equal(in_pool(f), 4);
	const char *all[] = { "d", "f", "x", "b", "fx", "bx", "o" };
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		discard(f, &KIND_PVC, all[i]);
	settle(f);
	assert_int_equal(count(f, &KIND_PV), 0);
	assert_int_equal(in_pool(f), 0);
	fixture_free(f);
}

/* The class is gone by the time the claim is undone: what it was is not known any more, and removed all the same. */
static void undone_without_its_class(void **state)
{
	struct fixture *f = online();

	add_class(f, "files", "file", NULL);
	f->refused = NULL;
	ask_for(f, "f", (struct ask){ .class = "files" });
	cleanup_json json_t *claim = get_claim(f, "f");
	cleanup_free char *pv = xasprintf("pvc-%s", object_uid(claim));
	f->refused = pv; /* the volume is made, its object not */
	settle(f);
	assert_int_equal(in_pool(f), 1);
	discard(f, &KIND_STORAGECLASS, "files");
	discard(f, &KIND_PVC, "f");
	settle(f);
	assert_int_equal(in_pool(f), 0);
	assert_int_equal(count(f, &KIND_PVC), 0);
	fixture_free(f);
}

/* ---- clones ---------------------------------------------------------------------------------------- */

static void clone(void **state)
{
	struct fixture *f = online();

	ask_for(f, "a", (struct ask){ 0 });
	clone_of(f, "b", "a"); /* not bound yet: it waits */
	settle(f);
	put(f, "a", "data");
	clone_of(f, "c", "a");
	ask_for(f, "d",
		(struct ask){ .kind = "PersistentVolumeClaim", .from = "a", .size = "2Gi" });
	settle(f);
	assert_true(bound(f, "b") && bound(f, "c") && bound(f, "d"));
	assert_true(holds(f, "c", "data") && holds(f, "d", "data"));
	cleanup_json json_t *a = get_claim(f, "a");
	assert_false(object_has_finalizer(a, SOURCE_FINALIZER));
	fixture_free(f);
}

/* A clone that waits for its turn asks less and less often, and says once that it waits; a short one is told soon. */
static void clone_that_takes_long(void **state)
{
	struct fixture *f = online();
	int polls = 0, events = 0;

	ask_for(f, "a", (struct ask){ 0 });
	settle(f);
	f->copy_calls = 1000000;
	clone_of(f, "b", "a");
	for (int64_t began = f->now_ms; f->now_ms - began < 300000; polls++) {
		f->r.again_ms = 0;
		assert_int_equal(CLAIM_CONTROLLER.reconcile(&f->r, NS "/b"), 0);
		assert_in_range(f->r.again_ms, 1000, f->now_ms - began < 8000 ? 2000 : 15000);
		f->now_ms += f->r.again_ms;
	}
	assert_in_range(polls, 20, 40);
	for (size_t i = 0; i < f->events.count; i++)
		events += str_has_prefix(f->events.items[i], "Provisioning:");
	assert_int_equal(events, 1);
	f->copy_calls = 0;
	settle(f);
	assert_true(bound(f, "b"));
	fixture_free(f);
}

static void clones_refused(void **state)
{
	struct fixture *f = online();

	add_class(f, "files", "file", NULL);
	ask_for(f, "a", (struct ask){ .size = "2Gi" });
	settle(f);
	clone_of(f, "small", "a");
	clone_of(f, "missing", "nowhere");
	ask_for(f, "kind",
		(struct ask){ .class = "files",
			      .kind = "PersistentVolumeClaim",
			      .from = "a",
			      .size = "2Gi" });
	ask_for(f, "other", (struct ask){ .group = "example.com", .kind = "Backup", .from = "x" });
	settle(f);
	assert_waits(f, "small", "at least as much");
	assert_waits(f, "missing", "is not there");
	assert_waits(f, "kind", "another kind");
	assert_waits(f, "other", "volume populator");
	assert_int_equal(in_pool(f), 1);
	fixture_free(f);
}

/* CVE-2019-11255: a claim that merely names another's volume is no way to its data. */
static void clone_of_a_thief(void **state)
{
	struct fixture *f = online();

	ask_for(f, "a", (struct ask){ 0 });
	settle(f);
	put(f, "a", "secret");
	cleanup_free char *volume = volume_of(f, "a");
	make(f, &KIND_PVC,
	     json_pack("{s:{s:s}, s:{s:s, s:s, s:[s], s:{s:{s:s}}}}", "metadata", "name", "thief",
		       "spec", "storageClassName", "gold", "volumeName", volume, "accessModes",
		       "ReadWriteOnce", "resources", "requests", "storage", "1Gi"));
	cleanup_json json_t *lie = json_pack("{s:{s:s}}", "status", "phase", "Bound");
	kube_patch(f->api, &KIND_PVC, NS, "thief", "status", KUBE_PATCH_MERGE, lie, NULL, NULL);
	clone_of(f, "loot", "thief");
	add_snapshot(f, "shot", "thief", "snap");
	settle(f);
	assert_waits(f, "loot", "bound to it");
	assert_false(ready(f, "shot"));
	assert_int_equal(in_pool(f), 1);
	fixture_free(f);
}

/* The copy is not complete when the claim goes, or when its source does. */
static void deleted_while_copying(void **state)
{
	struct fixture *f = online();

	ask_for(f, "a", (struct ask){ 0 });
	settle(f);
	put(f, "a", "data");
	f->copy_calls = 3;
	clone_of(f, "b", "a");
	for (int i = 0; i < 2; i++) {
		cleanup_free char *key = xstrdup(NS "/b");
		f->r.error = ERROR_INIT;
		CLAIM_CONTROLLER.reconcile(&f->r, key);
	}
	assert_int_equal(in_pool(f), 2);
	assert_int_equal(count(f, &KIND_PV), 1);
	discard(f, &KIND_PVC, "b");
	settle(f);
	assert_int_equal(in_pool(f), 1);
	assert_int_equal(count(f, &KIND_PVC), 1);
	assert_int_equal(ledger_promised(f->op.ledger, NULL), GIB);

	clone_of(f, "c", "a");
	CLAIM_CONTROLLER.reconcile(&f->r, NS "/c");
	discard(f, &KIND_PVC, "a");
	settle(f);
	assert_true(holds(f, "c", "data"));
	cleanup_json json_t *a = get_claim(f, "a");
	assert_null(a); /* it went after that */
	assert_int_equal(in_pool(f), 1);
	fixture_free(f);
}

/* The finalizer has the name that other drivers use: theirs stays. */
static void others_clones(void **state)
{
	struct fixture *f = online();

	for (int ours = 0; ours < 2; ours++) {
		const char *name = ours ? "v-ours" : "v-other";
		make(f, &KIND_PV,
		     json_pack("{s:{s:s, s:{s:s, s:s}}, s:{s:{s:s}, s:[s], s:s, s:s, s:{s:s, s:s}, "
			       "s:{s:s, s:s}}}",
			       "metadata", "name", name, "labels", QM_LABEL_DEPLOYMENT, "gold",
			       QM_LABEL_POOL, "gold-1", "spec", "capacity", "storage", "1Gi",
			       "accessModes", "ReadWriteOnce", "storageClassName", "manual",
			       "persistentVolumeReclaimPolicy", "Retain", "claimRef", "namespace",
			       NS, "name", name, "csi", "driver",
			       ours ? QM_DRIVER : "csi.example.com", "volumeHandle",
			       ours ? "v1.gold-1.d.v-ours" : "x"));
		make(f, &KIND_PVC,
		     json_pack("{s:{s:s, s:[s]}, s:{s:s, s:s, s:[s], s:{s:{s:s}}}}", "metadata",
			       "name", name, "finalizers", SOURCE_FINALIZER, "spec",
			       "storageClassName", "manual", "volumeName", name, "accessModes",
			       "ReadWriteOnce", "resources", "requests", "storage", "1Gi"));
	}
	settle(f);
	cleanup_json json_t *other = get_claim(f, "v-other"), *ours = get_claim(f, "v-ours");
	assert_true(object_has_finalizer(other, SOURCE_FINALIZER));
	assert_false(object_has_finalizer(ours, SOURCE_FINALIZER));
	fixture_free(f);
}

/* It gets another volume while its own is being copied: nobody needs the copy any more. */
static void bound_elsewhere_while_copying(void **state)
{
	struct fixture *f = online();

	ask_for(f, "a", (struct ask){ 0 });
	settle(f);
	f->copy_calls = 3;
	clone_of(f, "b", "a");
	CLAIM_CONTROLLER.reconcile(&f->r, NS "/b");
	CLAIM_CONTROLLER.reconcile(&f->r, NS "/b");
	assert_int_equal(in_pool(f), 2);
	patch(f, &KIND_PVC, "b", json_pack("{s:{s:s}}", "spec", "volumeName", "another"));
	settle(f);
	assert_int_equal(in_pool(f), 1);
	assert_int_equal(ledger_promised(f->op.ledger, NULL), GIB);
	cleanup_json json_t *b = get_claim(f, "b");
	assert_false(object_has_finalizer(b, QM_FINALIZER_PROVISION));
	fixture_free(f);
}

/* ---- snapshots ------------------------------------------------------------------------------------- */

static void snapshot_and_restore(void **state)
{
	struct fixture *f = online();

	ask_for(f, "a", (struct ask){ .size = "2Gi" });
	add_snapshot(f, "s", "a", NULL);
	restore_of(f, "small", "s");
	settle(f);
	put(f, "a", "data"); /* s is of before */
	add_snapshot(f, "t", "a", "snap");
	ask_for(f, "r",
		(struct ask){ .group = "snapshot.storage.k8s.io",
			      .kind = "VolumeSnapshot",
			      .from = "t",
			      .size = "3Gi" });
	settle(f);
	cleanup_json json_t *s = get(f, &KIND_VOLUMESNAPSHOT, "t"), *a = get_claim(f, "a");
	const char *name = jstr(s, "status", "boundVolumeSnapshotContentName");
	cleanup_json json_t *content = get(f, &KIND_VOLUMESNAPSHOTCONTENT, name);
	cleanup_free char *handle = xasprintf("v1.gold-1.s.snap-%s", object_uid(s));
	assert_true(jbool(s, "status", "readyToUse"));
	assert_string_equal(jstr(s, "status", "restoreSize"), "2Gi");
	assert_string_equal(jstr(s, "status", "creationTime"), "2026-01-01T00:00:00Z");
	assert_null(jget(s, "status", "error"));
	assert_true(object_has_finalizer(s, SNAPSHOT_BOUND));
	assert_true(object_has_finalizer(s, SNAPSHOT_AS_SOURCE));
	assert_false(object_has_finalizer(a, SNAPSHOT_CLAIM_HELD));
	assert_string_equal(jstr(content, "status", "snapshotHandle"), handle);
	assert_int_equal(jint(content, "status", "creationTime"), 1767225600000000000);
	assert_int_equal(jint(content, "status", "restoreSize"), 2 * GIB);
	assert_true(object_has_finalizer(content, SNAPSHOT_CONTENT_HELD));
	assert_null(object_annotation(content, SNAPSHOT_BEING_CREATED));
	assert_true(holds(f, "r", "data"));
	assert_waits(f, "small", "at least as much");
	assert_int_equal(count(f, &KIND_VOLUMESNAPSHOTCONTENT), 2);

	discard(f, &KIND_PVC, "small");
	discard(f, &KIND_PVC, "a");
	settle(f);
	assert_true(ready(f, "t")); /* a snapshot outlives its volume */
	restore_of(f, "again", "t");
	discard(f, &KIND_VOLUMESNAPSHOT, "s");
	settle(f);
	assert_waits(f, "again", "at least as much");
	discard(f, &KIND_PVC, "again");
	discard(f, &KIND_VOLUMESNAPSHOT, "t");
	discard(f, &KIND_PVC, "r");
	settle(f);
	assert_int_equal(count(f, &KIND_VOLUMESNAPSHOT), 0);
	assert_int_equal(count(f, &KIND_VOLUMESNAPSHOTCONTENT), 0);
	assert_int_equal(count(f, &KIND_PV), 0);
	assert_int_equal(in_pool(f), 0);
	fixture_free(f);
}

static void says_what_is_wrong(struct fixture *f, const char *snapshot, const char *why)
{
	cleanup_json json_t *s = get(f, &KIND_VOLUMESNAPSHOT, snapshot);
	const char *message = jstr(s, "status", "error", "message");

	if (!message || !strstr(message, why))
		fail_msg("%s says \"%s\", not \"%s\"", snapshot, message ? message : "(nothing)",
			 why);
}

static void classes(void **state)
{
	struct fixture *f = fixture_online();

	ask_for(f, "a", (struct ask){ 0 });
	add_snapshot(f, "s", "a", NULL);
	add_snapshot(f, "n", "a", "none");
	add_snapshot(f, "m", "missing", NULL);
	settle(f);
	says_what_is_wrong(f, "s", "no default");
	says_what_is_wrong(f, "n", "none is not there");
	says_what_is_wrong(f, "m", "claim missing is not there");
	add_snapshot_class(f, "one", true, "Delete");
	add_snapshot_class(f, "two", true, "Delete");
	settle(f);
	says_what_is_wrong(f, "s", "more than one");
	discard(f, &KIND_VOLUMESNAPSHOTCLASS, "two");
	settle(f);
	assert_true(ready(f, "s"));
	cleanup_json json_t *s = get(f, &KIND_VOLUMESNAPSHOT, "s");
	assert_string_equal(jstr(s, "spec", "volumeSnapshotClassName"), "one");
	assert_null(jget(s, "status", "error"));
	discard(f, &KIND_VOLUMESNAPSHOT, "m");
	discard(f, &KIND_VOLUMESNAPSHOT, "n");
	settle(f);
	assert_int_equal(count(f, &KIND_VOLUMESNAPSHOT), 1);
	fixture_free(f);
}

/* Retain: the snapshot stays in the pool, and can be taken up again by its handle. */
static void retained_and_given(void **state)
{
	struct fixture *f = online();

	add_snapshot_class(f, "keep", false, "Retain");
	ask_for(f, "a", (struct ask){ 0 });
	settle(f);
	put(f, "a", "data");
	add_snapshot(f, "s", "a", "keep");
	settle(f);
	cleanup_json json_t *s = get(f, &KIND_VOLUMESNAPSHOT, "s");
	cleanup_free char *handle = xasprintf("v1.gold-1.s.snap-%s", object_uid(s)),
			  *name = xasprintf("snapcontent-%s", object_uid(s));
	discard(f, &KIND_VOLUMESNAPSHOT, "s");
	settle(f);
	assert_int_equal(count(f, &KIND_VOLUMESNAPSHOT), 0);
	assert_int_equal(count(f, &KIND_VOLUMESNAPSHOTCONTENT), 1);
	discard(f, &KIND_VOLUMESNAPSHOTCONTENT, name);
	settle(f);
	assert_int_equal(count(f, &KIND_VOLUMESNAPSHOTCONTENT), 0);
	assert_int_equal(in_pool(f), 2);

	for (int right = 0; right < 2; right++)
		make(f, &KIND_VOLUMESNAPSHOTCONTENT,
		     json_pack("{s:{s:s}, s:{s:{s:s, s:s}, s:{s:s}, s:s, s:s}}", "metadata", "name",
			       right ? "given" : "wrong", "spec", "volumeSnapshotRef", "namespace",
			       NS, "name", right ? "g" : "w", "source", "snapshotHandle",
			       right ? handle : "v1.gold-1.s.snap-none", "driver", QM_DRIVER,
			       "deletionPolicy", "Delete"));
	const char *names[] = { "g", "given", "w", "wrong", "x", "given" };
	for (size_t i = 0; i < ARRAY_SIZE(names); i += 2)
		make(f, &KIND_VOLUMESNAPSHOT,
		     json_pack("{s:{s:s}, s:{s:{s:s}}}", "metadata", "name", names[i], "spec",
			       "source", "volumeSnapshotContentName", names[i + 1]));
	restore_of(f, "r", "g");
	settle(f);
	assert_true(ready(f, "g"));
	assert_false(ready(f, "w"));
	says_what_is_wrong(f, "w", "has no snapshot snap-none");
	says_what_is_wrong(f, "x", "refers to another");
	assert_true(holds(f, "r", "data"));
	assert_int_equal(f->snapshot_lists,
			 0); /* a pool may have many: one is asked for by its name */
	for (size_t i = 0; i < ARRAY_SIZE(names); i += 2)
		discard(f, &KIND_VOLUMESNAPSHOT, names[i]);
	settle(f);
	assert_int_equal(count(f, &KIND_VOLUMESNAPSHOT), 0);
	assert_int_equal(count(f, &KIND_VOLUMESNAPSHOTCONTENT), 0);
	assert_int_equal(in_pool(f), 2); /* the two claims' */
	fixture_free(f);
}

/* Its owner strips the finalizers: it is gone, and never let its content go. */
static void strip_and_discard(struct fixture *f, const char *name)
{
	patch(f, &KIND_VOLUMESNAPSHOT, name,
	      json_pack("{s:{s:[]}}", "metadata", "finalizers"));
	discard(f, &KIND_VOLUMESNAPSHOT, name);
	assert_null(get(f, &KIND_VOLUMESNAPSHOT, name));
}

static void snapshot_without_finalizers(void **state)
{
	for (int way = 0; way < 4; way++) {
		bool keeps = way & 1, another = way & 2;
		struct fixture *f = online();

		add_snapshot_class(f, "keep", false, "Retain");
		ask_for(f, "a", (struct ask){ 0 });
		settle(f);
		add_snapshot(f, "s", "a", keeps ? "keep" : NULL);
		settle(f);
		assert_true(ready(f, "s"));
		cleanup_json json_t *s = get(f, &KIND_VOLUMESNAPSHOT, "s");
		cleanup_free char *name = snapshot_content_name(s);
		strip_and_discard(f, "s");
		if (another) /* of the same name */
			add_snapshot(f, "s", "a", "no-such-class");
		settle(f);
		cleanup_json json_t *content = get(f, &KIND_VOLUMESNAPSHOTCONTENT, name);
		if (keeps) { /* until an admin deletes it */
			assert_non_null(content);
			assert_false(object_deleting(content));
			discard(f, &KIND_VOLUMESNAPSHOTCONTENT, name);
			settle(f);
		}
		assert_int_equal(count(f, &KIND_VOLUMESNAPSHOTCONTENT), 0);
		assert_int_equal(in_pool(f), keeps ? 2 : 1);
		assert_int_equal(ledger_promised(f->op.ledger, NULL), GIB);
		fixture_free(f);
	}
}

/* Likewise while it is being taken: nothing goes on for nobody. */
static void snapshot_without_finalizers_early(void **state)
{
	struct fixture *f = online();

	f->copy_calls = 1000;
	ask_for(f, "a", (struct ask){ 0 });
	settle(f);
	add_snapshot(f, "s", "a", NULL);
	for (int i = 0; i < 3; i++) {
		SNAPSHOT_CONTROLLER.reconcile(&f->r, NS "/s");
		cleanup_json json_t *s = get(f, &KIND_VOLUMESNAPSHOT, "s");
		cleanup_free char *name = snapshot_content_name(s);
		CONTENT_CONTROLLER.reconcile(&f->r, name);
	}
	assert_int_equal(in_pool(f), 2);
	assert_false(ready(f, "s"));
	strip_and_discard(f, "s");
	settle(f);
	assert_int_equal(count(f, &KIND_VOLUMESNAPSHOTCONTENT), 0);
	assert_int_equal(in_pool(f), 1);
	fixture_free(f);
}

/* A pool that does not serve is not asked: it is come back to. */
static void pool_is_down(void **state)
{
	struct fixture *f = online();

	ask_for(f, "a", (struct ask){ 0 });
	settle(f);
	f->agents_silent = true;
	cleanup_json json_t *down = json_pack("{s:{s:s}}", "status", "phase", "Offline");
	kube_patch(f->api, &KIND_STORAGEPOOL, NS, "gold-1", "status", KUBE_PATCH_MERGE, down, NULL,
		   NULL);
	add_snapshot(f, "s", "a", "snap");
	settle(f);
	assert_false(ready(f, "s"));
	assert_int_equal(in_pool(f), 1);
	says_what_is_wrong(f, "s", "does not serve");
	f->agents_silent = false;
	settle(f);
	assert_true(ready(f, "s"));
	fixture_free(f);
}

/* The hold on the claim went while the snapshot is being taken: it is put back. */
static void claim_is_held_again(void **state)
{
	struct fixture *f = online();

	ask_for(f, "a", (struct ask){ 0 });
	settle(f);
	add_snapshot(f, "s", "a", "snap");
	SNAPSHOT_CONTROLLER.reconcile(&f->r, NS "/s");
	cleanup_json json_t *held = get_claim(f, "a");
	assert_true(object_has_finalizer(held, SNAPSHOT_CLAIM_HELD));
	patch(f, &KIND_PVC, "a", json_pack("{s:{s:n}}", "metadata", "finalizers"));
	SNAPSHOT_CONTROLLER.reconcile(&f->r, NS "/s");
	cleanup_json json_t *again = get_claim(f, "a");
	assert_true(object_has_finalizer(again, SNAPSHOT_CLAIM_HELD));
	settle(f);
	cleanup_json json_t *after = get_claim(f, "a");
	assert_true(ready(f, "s"));
	assert_false(object_has_finalizer(after, SNAPSHOT_CLAIM_HELD));
	fixture_free(f);
}

/* A person decides to keep it, and the cache does not know yet. */
static void kept_at_the_last_moment(void **state)
{
	struct fixture *f = online();

	ask_for(f, "a", (struct ask){ 0 });
	settle(f);
	add_snapshot(f, "s", "a", "snap");
	settle(f);
	cleanup_json json_t *s = get(f, &KIND_VOLUMESNAPSHOT, "s");
	cleanup_free char *name = xasprintf("snapcontent-%s", object_uid(s));
	discard(f, &KIND_VOLUMESNAPSHOT, "s");
	SNAPSHOT_CONTROLLER.reconcile(&f->r, NS "/s");
	f->stale = get(f, &KIND_VOLUMESNAPSHOTCONTENT, name);
	assert_true(object_deleting(f->stale));
	patch(f, &KIND_VOLUMESNAPSHOTCONTENT, name,
	      json_pack("{s:{s:s}}", "spec", "deletionPolicy", "Retain"));
	CONTENT_CONTROLLER.reconcile(&f->r, name);
	assert_int_equal(in_pool(f), 2);
	json_decref(TAKE_PTR(f->stale));
	settle(f);
	assert_int_equal(in_pool(f), 2);
	assert_int_equal(count(f, &KIND_VOLUMESNAPSHOTCONTENT), 0);
	fixture_free(f);
}

/* A claim that is being made from it holds the snapshot; half a snapshot is removed. */
static void snapshot_deleted_early(void **state)
{
	struct fixture *f = online();

	ask_for(f, "a", (struct ask){ 0 });
	settle(f);
	put(f, "a", "data");
	add_snapshot(f, "s", "a", "snap");
	settle(f);
	restore_of(f, "r", "s");
	CLAIM_CONTROLLER.reconcile(&f->r, NS "/r");
	assert_int_equal(in_pool(f), 3);
	discard(f, &KIND_VOLUMESNAPSHOT, "s");
	SNAPSHOT_CONTROLLER.reconcile(&f->r, NS "/s");
	assert_int_equal(count(f, &KIND_VOLUMESNAPSHOTCONTENT), 1);
	settle(f);
	assert_true(holds(f, "r", "data"));
	assert_int_equal(count(f, &KIND_VOLUMESNAPSHOT), 0);
	assert_int_equal(in_pool(f), 2);

	add_snapshot(f, "t", "a", "snap");
	SNAPSHOT_CONTROLLER.reconcile(&f->r, NS "/t");
	cleanup_json json_t *t = get(f, &KIND_VOLUMESNAPSHOT, "t");
	cleanup_free char *content = xasprintf("snapcontent-%s", object_uid(t));
	CONTENT_CONTROLLER.reconcile(&f->r, content);
	assert_int_equal(in_pool(f), 3);
	discard(f, &KIND_PVC, "a"); /* held: the snapshot is being taken */
	settle(f);
	assert_true(ready(f, "t"));
	assert_int_equal(count(f, &KIND_PVC), 1);
	add_snapshot(f, "u", "r", "snap");
	SNAPSHOT_CONTROLLER.reconcile(&f->r, NS "/u");
	cleanup_json json_t *u = get(f, &KIND_VOLUMESNAPSHOT, "u");
	cleanup_free char *half = xasprintf("snapcontent-%s", object_uid(u));
	CONTENT_CONTROLLER.reconcile(&f->r, half);
	assert_int_equal(in_pool(f), 3);
	discard(f, &KIND_VOLUMESNAPSHOT, "u");
	discard(f, &KIND_VOLUMESNAPSHOT, "t");
	settle(f);
	assert_int_equal(count(f, &KIND_VOLUMESNAPSHOTCONTENT), 0);
	assert_int_equal(in_pool(f), 1);
	cleanup_json json_t *r = get_claim(f, "r");
	assert_false(object_has_finalizer(r, SNAPSHOT_CLAIM_HELD));
	fixture_free(f);
}

/* A snapshot is promised its room like a volume, over a restart too, and waits where there is none. */
static void snapshots_need_room(void **state)
{
	struct fixture *f = online(); /* 10 GiB */

	ask_for(f, "a", (struct ask){ .size = "4Gi" });
	add_snapshot(f, "s", "a", "snap");
	settle(f);
	assert_int_equal(ledger_promised(f->op.ledger, "gold-1"), 8 * GIB);
	add_snapshot(f, "t", "a", "snap");
	ask_for(f, "b", (struct ask){ .size = "3Gi" });
	settle(f);
	says_what_is_wrong(f, "t", "has 2.0Gi left");
	assert_waits(f, "b", "2.0Gi");
	assert_int_equal(in_pool(f), 2);
	fixture_restart(f);
	settle(f);
	says_what_is_wrong(f, "t", "has 2.0Gi left");
	discard(f, &KIND_VOLUMESNAPSHOT, "s");
	settle(f);
	settle(f);
	assert_true(ready(f, "t") != bound(f, "b"));
	fixture_free(f);
}

/* Where a snapshot-controller leads, it makes the contents; when it is gone, we do. */
/* What no program would write, as far as the API takes it: the operator lives on, and does its work. */
static void absurd(void **state)
{
	static const char *const specs[] = {
		"{}",
		"{'source':{}}",
		"{'source':{'persistentVolumeClaimName':''}}",
		"{'source':{'persistentVolumeClaimName':'../../etc'}}",
		"{'source':{'persistentVolumeClaimName':'none'},'volumeSnapshotClassName':''}",
		"{'source':{'persistentVolumeClaimName':'a'},'volumeSnapshotClassName':'../x'}",
		"{'source':{'volumeSnapshotContentName':'x-0'}}",
		"{'source':{'volumeSnapshotContentName':'none','persistentVolumeClaimName':'a'}}",
		"{'deletionPolicy':'Burn','source':{'volumeHandle':'../../etc'}}",
		"{'volumeSnapshotRef':{},'source':{'volumeHandle':'v1.gold-1.d.../..'}}",
		("{'volumeSnapshotRef':{'name':'x-1','namespace':'default','uid':'?'},"
		 "'source':{'volumeHandle':'v1.gold-1.s.x'}}"),
		"{'volumeSnapshotRef':{'name':'x-1'},'source':{'snapshotHandle':'v1.nopool.s.x'}}",
		"{'source':{'snapshotHandle':'v1.gold-1.d.x','volumeHandle':'v1.gold-1.d.x'}}",
	};
	const struct kind *const both[] = { &KIND_VOLUMESNAPSHOT, &KIND_VOLUMESNAPSHOTCONTENT };
	struct fixture *f = online();
	int taken = 0;

	ask_for(f, "a", (struct ask){ .size = "1Gi" });
	settle(f);
	for (size_t i = 0; i < 2 * ARRAY_SIZE(specs); i++) {
		const struct kind *kind = both[i % 2];
		cleanup_free char *text = xstrdup(specs[i / 2]);
		json_t *spec = NULL;
		char name[32], version[64];
		for (char *p = text; *p; p++)
			*p = *p == '\'' ? '"' : *p;
		assert_int_equal(json_parse(text, strlen(text), &spec, NULL), 0);
		if (kind == &KIND_VOLUMESNAPSHOTCONTENT) {
			jset(spec, json_string(QM_DRIVER), "driver");
			if (!jget(spec, "deletionPolicy"))
				jset(spec, json_string("Delete"), "deletionPolicy");
		}
		snprintf(name, sizeof(name), "x-%zu", i);
		cleanup_json json_t *o = json_pack(
			"{s:s, s:s, s:{s:s, s:s*}, s:o, s:{s:s, s:b}}", "apiVersion",
			kind_api_version(kind, version, sizeof(version)), "kind", kind->kind,
			"metadata", "name", name, "namespace", kind->namespaced ? NS : NULL, "spec",
			spec, "status", "boundVolumeSnapshotContentName", "../x", "readyToUse", 1);
		taken += kube_create(f->api, kind, o, NULL, NULL) == 0;
	}
	print_message("%d of %zu are taken\n", taken, 2 * ARRAY_SIZE(specs));
	assert_true(taken > 0);
	settle(f);
	fixture_restart(f);
	settle(f);
	add_snapshot(f, "good", "a", NULL);
	settle(f);
	cleanup_json json_t *s = get(f, &KIND_VOLUMESNAPSHOT, "good");
	assert_true(jbool(s, "status", "readyToUse"));
	fixture_free(f);
}

static void another_controller(void **state)
{
	struct fixture *f = online();
	char now[TIME_TEXT_MAX];

	ask_for(f, "a", (struct ask){ 0 });
	settle(f);
	f->op.binder = false;
	cleanup_json json_t *lease = json_pack(
		"{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:i, s:s}}", "apiVersion",
		"coordination.k8s.io/v1", "kind", "Lease", "metadata", "name", SNAPSHOT_LEASE,
		"namespace", SNAPSHOT_LEASE_NS, "spec", "holderIdentity", "somebody",
		"leaseDurationSeconds", 15, "renewTime", time_text_micro(f->now_ms, now));
	assert_int_equal(kube_create(f->api, &KIND_LEASE, lease, NULL, NULL), 0);
	add_snapshot(f, "s", "a", "snap");
	settle(f);
	assert_int_equal(count(f, &KIND_VOLUMESNAPSHOTCONTENT), 0);
	f->now_ms += 16000;
	settle(f);
	assert_true(ready(f, "s"));
	fixture_free(f);
}

/* How many of the three nodes' bricks may be stopped now. */
static int interruptible(struct fixture *f)
{
	f->now_ms += 61000;
	agents_act(f);
	f->interruptible = 0;
	look(f);
	return f->interruptible;
}

/* The user of a locked file loses a brick that stops until the volume is staged anew: so none is stopped unasked. */
static void files_hold_their_bricks(void **state)
{
	struct fixture *f = online();

	add_class(f, "files", "file", NULL);
	ask_for(f, "d", (struct ask){ 0 });
	settle(f);
	assert_int_equal(interruptible(f), 3);
	ask_for(f, "f", (struct ask){ .class = "files" });
	settle(f);
	assert_int_equal(interruptible(f), 0);
	fixture_restart(f);
	settle(f);
	assert_int_equal(interruptible(f), 0);
	patch(f, &KIND_STORAGENODE, "n2",
	      json_pack("{s:{s:{s:s}}}", "metadata", "annotations", QM_ANNOTATION_INTERRUPT,
			"true"));
	assert_int_equal(interruptible(f), 1);
	discard(f, &KIND_PVC, "f");
	settle(f);
	assert_int_equal(interruptible(f), 3);
	fixture_free(f);
}

/* ---- a failure at every write ----------------------------------------------------------------------- */

static void life(struct fixture *f)
{
	add_class(f, "files", "file", NULL);
	ask_for(f, "a", (struct ask){ 0 });
	ask_for(f, "f", (struct ask){ .class = "files" });
	ask_for(f, "b", (struct ask){ .volume_mode = "Block" });
	settle(f);
	cleanup_json json_t *pv = get_pv_of(f, "a");
	if (pv)
		put(f, "a", "data");
	add_snapshot(f, "s", "a", NULL);
	clone_of(f, "c", "a");
	settle(f);
	restore_of(f, "r", "s");
	ask_for(f, "fc",
		(struct ask){ .class = "files", .kind = "PersistentVolumeClaim", .from = "f" });
	settle(f);
	discard(f, &KIND_PVC, "a");
	discard(f, &KIND_PVC, "f");
	discard(f, &KIND_PVC, "b");
	settle(f);
	discard(f, &KIND_VOLUMESNAPSHOT, "s");
	settle(f);
}

static void any_write_may_fail(void **state)
{
	for (int after = 0; after < 2; after++) {
		bool failed = true;

		for (int n = 1 + after; failed; n += write_step()) {
			struct fixture *f = online();

			f->copy_calls = 1;
			f->fail_at = f->writes + n;
			f->fail_after = after;
			f->failed = false;
			life(f);
			failed = f->failed;
			settle(f);
			assert_true(holds(f, "c", "data"));
			assert_true(holds(f, "r", "data"));
			assert_true(bound(f, "fc"));
			assert_int_equal(count(f, &KIND_PVC), 3);
			assert_int_equal(count(f, &KIND_PV), 3);
			assert_int_equal(count(f, &KIND_VOLUMESNAPSHOT), 0);
			assert_int_equal(count(f, &KIND_VOLUMESNAPSHOTCONTENT), 0);
			assert_int_equal(in_pool(f), 3);
			assert_int_equal(ledger_promised(f->op.ledger, NULL), 3 * GIB);
			fixture_free(f);
			assert_true(failed || n > 50);
		}
	}
}

/* As an operator that knows nothing of halves leaves it: bound, without an info file and without our finalizer. */
static void lose_info(struct fixture *f, const char *claim)
{
	cleanup_free char *volume = volume_of(f, claim);

	json_object_set_new(f->halves, volume, json_true());
}

static void half_a_source(void **state)
{
	struct fixture *f = fixture_online();

	ask_for(f, "c1", (struct ask){ 0 });
	settle(f);
	put(f, "c1", "data");
	lose_info(f, "c1");
	clone_of(f, "c2", "c1");
	settle(f);
	assert_true(holds(f, "c2", "data"));
	assert_int_equal(json_object_size(f->halves), 0);

	lose_info(f, "c1");
	add_snapshot_class(f, "fast", true, "Delete");
	add_snapshot(f, "s1", "c1", NULL);
	settle(f);
	assert_true(ready(f, "s1"));
	assert_int_equal(json_object_size(f->halves), 0);

	/* one whose volume is to go gets none */
	cleanup_free char *volume = volume_of(f, "c2");
	lose_info(f, "c2");
	discard(f, &KIND_PV, volume);
	clone_of(f, "c3", "c2");
	settle(f);
	assert_false(bound(f, "c3"));
	assert_int_equal(json_object_size(f->halves), 1);
	fixture_free(f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(half_a_source),
		cmocka_unit_test(kinds_of_volumes),
		cmocka_unit_test(undone_without_its_class),
		cmocka_unit_test(clone),
		cmocka_unit_test(clone_that_takes_long),
		cmocka_unit_test(clones_refused),
		cmocka_unit_test(clone_of_a_thief),
		cmocka_unit_test(deleted_while_copying),
		cmocka_unit_test(bound_elsewhere_while_copying),
		cmocka_unit_test(others_clones),
		cmocka_unit_test(snapshot_and_restore),
		cmocka_unit_test(classes),
		cmocka_unit_test(retained_and_given),
		cmocka_unit_test(snapshot_without_finalizers),
		cmocka_unit_test(snapshot_without_finalizers_early),
		cmocka_unit_test(pool_is_down),
		cmocka_unit_test(claim_is_held_again),
		cmocka_unit_test(kept_at_the_last_moment),
		cmocka_unit_test(snapshot_deleted_early),
		cmocka_unit_test(snapshots_need_room),
		cmocka_unit_test(another_controller),
		cmocka_unit_test(absurd),
		cmocka_unit_test(files_hold_their_bricks),
		cmocka_unit_test(any_write_may_fail),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
