/* SPDX-License-Identifier: Apache-2.0 */
#include "pods/pod.h"

#include "base/mem.h"

#include <xxhash.h>

void pod_add_volume(struct pod *p, const char *name, json_t *volume, const char *path,
		    const char *propagation)
{
	json_t *mount = json_pack("{s:s, s:s}", "name", name, "mountPath", path);

	if (propagation)
		json_object_set_new(mount, "mountPropagation", json_string(propagation));
	json_object_set_new(volume, "name", json_string(name));
	json_array_append_new(p->volumes, volume);
	json_array_append_new(p->mounts, mount);
}

void pod_add_host_path(struct pod *p, const char *name, const char *host, const char *path,
		       const char *propagation)
{
	pod_add_volume(p, name,
		       json_pack("{s:{s:s, s:s}}", "hostPath", "path", host, "type",
				 streq(host, "/dev") ? "Directory" : "DirectoryOrCreate"),
		       path, propagation);
}

char *pod_hash(const json_t *spec)
{
	cleanup_free char *text = json_text(spec);

	return xasprintf("%016llx", (unsigned long long)XXH64(text, strlen(text), 0));
}
