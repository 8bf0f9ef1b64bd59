/* SPDX-License-Identifier: Apache-2.0 */
#include "operator/connection_class.h"

#include "base/mem.h"
#include "base/quantity.h"
#include "core/driver.h"
#include "core/params.h"
#include "operator/source.h"

#include <errno.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define K8S "csi.storage.k8s.io/"

struct connection {
	const struct driver *driver;
	json_t *attributes; /* as the class has them */
	json_t *params; /* as the driver reads them */
	char *device; /* lun-<hash> */
};

static void connection_done(struct connection *c)
{
	json_decref(c->attributes);
	json_decref(c->params);
	free(c->device);
}

bool class_is_connection(const json_t *class)
{
	return streq(jstr(class, "provisioner"), QM_DRIVER) &&
	       jstr(class, "parameters", "driverVolumeType");
}

bool pv_is_connection(const json_t *pv)
{
	return streq(jstr(pv, "spec", "csi", "driver"), QM_DRIVER) &&
	       object_annotation(pv, QM_ANNOTATION_CONNECTION) && !object_label(pv, QM_LABEL_POOL);
}

/* ---- the class -------------------------------------------------------------------------------- */

static bool is_of_class_alone(const char *key)
{
	return strchr(key, '/') || streq(key, "deployment") || streq(key, "namespace");
}

/* Everybody who may look at volumes would see it. */
static int check_secret(const struct driver *driver, const char *key, struct error *err)
{
	for (const struct param *p = driver->params; p->name; p++)
		if (p->secret && param_matches(p, key))
			return error_set(
				err, EINVAL,
				"%s does not belong into a StorageClass: put it into a Secret, "
				"and name that in " K8S "node-stage-secret-name and "
				"-namespace",
				key);
	return 0;
}

static int read_attributes(const json_t *class, struct connection *c, json_t **ret_data,
			   struct error *err)
{
	cleanup_json json_t *data = json_object();
	const char *key, *fencing = jstr(class, "parameters", "fencing");
	json_t *value;
	int r = driver_find(jstr(class, "parameters", "driverVolumeType"), &c->driver, err);

	c->attributes = json_object();
	if (r == 0 && fencing && !streq(fencing, "none") && !streq(fencing, "reservation"))
		r = error_set(err, EINVAL, "fencing is \"%.32s\": use none or reservation",
			      fencing);
	json_object_foreach (jget(class, "parameters"), key, value) {
		if (r < 0 || is_of_class_alone(key))
			continue;
		json_object_set(c->attributes, key, value);
		if (streq(key, "driverVolumeType") || streq(key, "fencing"))
			continue;
		json_object_set(data, key, value);
		r = check_secret(c->driver, key, err);
	}
	if (r == 0)
		*ret_data = TAKE_PTR(data);
	return r;
}

/* What the device is, whatever way leads to it. */
static char *device_name(const struct connection *c)
{
	uint64_t hash = XXH64(c->driver->name, strlen(c->driver->name), 0);

	for (const struct param *p = c->driver->params; p->name; p++) {
		const json_t *value = p->identity ? jget(c->params, p->name) : NULL;
		cleanup_free char *text = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;

		if (text)
			hash = XXH64(text, strlen(text), XXH64(p->name, strlen(p->name), hash));
	}
	return xasprintf("lun-%016llx", (unsigned long long)hash);
}

static int read_class(const json_t *class, struct connection *c, struct error *err)
{
	cleanup_json json_t *data = NULL;
	int r = read_attributes(class, c, &data, err);

	if (r == 0)
		r = params_read(c->driver, data, &c->params, err);
	if (r < 0)
		return error_prefix(err, "StorageClass %s", object_name(class));
	c->device = device_name(c);
	return 0;
}

/* ---- the claim -------------------------------------------------------------------------------- */

static bool only_reads(const json_t *claim)
{
	return json_array_size(jget(claim, "spec", "accessModes")) == 1 &&
	       claim_wants_mode(claim, "ReadOnlyMany");
}

static bool is_block(const json_t *claim)
{
	return streq(jstr(claim, "spec", "volumeMode"), "Block");
}

static int check_claim(const struct connection *c, const json_t *claim, struct error *err)
{
	bool files = c->driver->mount != NULL;

	if (source_ref(claim))
		return error_set(
			err, EINVAL,
			"a volume of foreign storage cannot begin with the data of another; "
			"leave the source out");
	if (jget(claim, "spec", "selector"))
		return error_set(
			err, EINVAL,
			"a claim with a selector only binds existing volumes; leave it out "
			"to get a new one");
	if (claim_bytes(claim) <= 0)
		return error_set(err, EINVAL,
				 "the claim asks for no size; set spec.resources.requests.storage");
	if (files && is_block(claim))
		return error_set(err, EINVAL,
				 "%s gives directories, and no block devices; leave volumeMode out",
				 c->driver->name);
	if (!files && !is_block(claim) && claim_wants_mode(claim, "ReadWriteMany"))
		return error_set(err, EINVAL,
				 "a file system on a device of %s has one writer; ask for "
				 "ReadWriteOnce, ReadWriteOncePod or ReadOnlyMany",
				 c->driver->name);
	return 0;
}

struct search {
	const char *device, *name; /* name: our own volume */
	char *found;
};

static int is_same_device(const json_t *pv, void *userdata)
{
	struct search *s = userdata;

	if (!pv_is_connection(pv) || streq(object_name(pv), s->name) ||
	    !streq(object_annotation(pv, QM_ANNOTATION_CONNECTION), s->device))
		return 0;
	s->found = xstrdup(object_name(pv));
	return 1;
}

static int taken(const struct connection *c, const char *pv, struct error *err)
{
	return error_set(err, EBUSY,
			 "the device of the StorageClass is one volume, and has a claim already "
			 "(PersistentVolume %s): make a class for another device, or delete that "
			 "claim and its volume",
			 pv);
}

/* A device has one claim; or several, which only read. */
static int check_device(struct reconcile *r, const struct connection *c, const json_t *claim,
			const char *name, struct error *err)
{
	struct search s = { .device = c->device, .name = name };
	cleanup_json json_t *writer = NULL;
	int rc;

	if (c->driver->mount)
		return 0;
	if (only_reads(claim)) {
		rc = op_get_live(r, &KIND_PV, NULL, c->device, &writer);
		return rc < 0 ? rc : rc == 0 ? taken(c, c->device, err) : 0;
	}
	reader_each(r->cache, &KIND_PV, NULL, is_same_device, &s);
	rc = s.found ? taken(c, s.found, err) : 0;
	free(s.found);
	return rc;
}

/* ---- the volume ------------------------------------------------------------------------------- */

/* Kubernetes binds by uid. Our binder takes what is meant for a claim by name, and nobody's yet. */
static json_t *claim_ref(const struct operator* op, const json_t *claim)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s*}", "apiVersion", "v1", "kind",
			 "PersistentVolumeClaim", "namespace", object_namespace(claim), "name",
			 object_name(claim), "uid", op->binder ? NULL : object_uid(claim));
}

static json_t *csi_of(const struct connection *c, const json_t *class, const json_t *claim,
		      const char *name)
{
	const char *fs = jstr(class, "parameters", K8S "fstype");
	json_t *csi = json_pack("{s:s, s:s, s:O}", "driver", QM_DRIVER, "volumeHandle", name,
				"volumeAttributes", c->attributes);

	if (fs && *fs && !c->driver->mount && !is_block(claim))
		json_object_set_new(csi, "fsType", json_string(fs));
	return csi;
}

static json_t *volume_of(const struct operator* op, const struct connection *c, const json_t *class,
			 const json_t *claim, const char *name)
{
	char size[QUANTITY_TEXT_MAX];
	const char *policy = jstr(class, "reclaimPolicy");
	json_t *spec =
		json_pack("{s:{s:s}, s:O, s:s, s:s, s:s, s:o, s:o}", "capacity", "storage",
			  quantity_text(claim_bytes(claim), size), "accessModes",
			  jget(claim, "spec", "accessModes"), "persistentVolumeReclaimPolicy",
			  policy ? policy : "Delete", "storageClassName", object_name(class),
			  "volumeMode", is_block(claim) ? "Block" : "Filesystem", "claimRef",
			  claim_ref(op, claim), "csi", csi_of(c, class, claim, name));

	if (json_array_size(jget(class, "mountOptions")))
		json_object_set(spec, "mountOptions", jget(class, "mountOptions"));
	return json_pack("{s:s, s:s, s:{s:s, s:{s:s}, s:{s:s, s:s}}, s:o}", "apiVersion", "v1",
			 "kind", "PersistentVolume", "metadata", "name", name, "labels",
			 QM_LABEL_CONNECTION, c->device, "annotations",
			 "pv.kubernetes.io/provisioned-by", QM_DRIVER, QM_ANNOTATION_CONNECTION,
			 c->device, "spec", spec);
}

/* The volume of the other side, by what the API itself says: 0 and its name, 1: there is none. */
static int find_other(struct reconcile *r, const struct connection *c, const json_t *claim,
		      const json_t *own, char **ret)
{
	struct search s = { .device = c->device, .name = object_name(own) };
	cleanup_free char *labels = xasprintf(QM_LABEL_CONNECTION "=%s", c->device);
	struct kube_selector selector = { .labels = labels };
	cleanup_json json_t *writer = NULL, *all = NULL;
	size_t i;
	json_t *pv;
	int rc;

	if (only_reads(claim)) {
		rc = op_get_live(r, &KIND_PV, NULL, c->device, &writer);
		if (rc == 0)
			*ret = xstrdup(c->device);
		return rc;
	}
	rc = kube_list(r->kube, &KIND_PV, NULL, &selector, &all, NULL, &r->error);
	if (rc < 0)
		return rc;
	json_array_foreach (all, i, pv)
		if (is_same_device(pv, &s))
			break;
	*ret = s.found;
	return s.found ? 0 : 1;
}

/*
 * A writer and a reader that both looked before either had its volume did not see each other. Each looks again when
 * its own is there, so that at least one sees the other, and gives way; one that is bound may be in use, and stays.
 */
static int check_again(struct reconcile *r, const struct connection *c, const json_t *claim,
		       const json_t *own, struct error *err)
{
	struct kube_delete_options options = { .uid = object_uid(own) };
	cleanup_free char *other = NULL;

	if (c->driver->mount || streq(jstr(own, "status", "phase"), "Bound"))
		return 0;
	int rc = find_other(r, c, claim, own, &other);
	if (rc > 0)
		return 0;
	if (rc == 0)
		rc = kube_delete(r->kube, &KIND_PV, NULL, object_name(own), &options, &r->error);
	if (other && (rc == 0 || rc == -ENOENT))
		return taken(c, other, err);
	*err = r->error;
	return rc;
}

static int make(struct reconcile *r, const struct connection *c, const json_t *class,
		const json_t *claim, const char *name, struct error *err)
{
	cleanup_json json_t *pv = NULL, *secrets = NULL, *made = NULL;
	int rc = class_secrets(class, claim, name, &secrets, err);

	if (rc < 0)
		return rc;
	pv = volume_of(op_of(r), c, class, claim, name);
	json_object_update_recursive(pv, secrets);
	rc = kube_create(r->kube, &KIND_PV, pv, &made, &r->error);
	if (rc == -EEXIST) {
		rc = kube_get(r->kube, &KIND_PV, NULL, name, &made, &r->error);
		if (rc == 0 && !pv_refers_to(made, claim))
			return taken(c, name, err);
	} else if (rc == 0) {
		rc = 1;
	}
	if (rc < 0) {
		*err = r->error;
		return rc;
	}
	int again = check_again(r, c, claim, made, err);
	if (again < 0)
		return again;
	reader_learned(r->cache, &KIND_PV, made);
	return rc;
}

int connection_provide(struct reconcile *r, const json_t *claim, const json_t *class,
		       struct error *err)
{
	cleanup_with(connection_done) struct connection c = { 0 };
	cleanup_free char *name = NULL;
	int rc = read_class(class, &c, err);

	if (rc == 0)
		rc = check_claim(&c, claim, err);
	if (rc < 0)
		return rc;
	name = c.driver->mount || only_reads(claim) ? pv_name(claim) : xstrdup(c.device);
	rc = check_device(r, &c, claim, name, err);
	return rc < 0 ? rc : make(r, &c, class, claim, name, err);
}
