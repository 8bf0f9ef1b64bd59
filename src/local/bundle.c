/* SPDX-License-Identifier: Apache-2.0 */
#include "local/bundle.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/paths.h"
#include "base/str.h"
#include "containers/runtime.h"
#include "local/self.h"

#include <linux/capability.h>
#include <stdio.h>
#include <sys/prctl.h>

#define CLIENT "/qm/qm-client"
#define PATH_ENV "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

char *bundle_image(const json_t *settings)
{
	return xasprintf("%s@%s", jstr(settings, "archive"), jstr(settings, "digest"));
}

/* ---- mounts ---------------------------------------------------------------------------------- */

static void add_mount(json_t *mounts, const char *path, const char *type, const char *source,
		      json_t *options)
{
	json_array_append_new(mounts, json_pack("{s:s, s:s, s:s, s:o}", "destination", path, "type",
						type, "source", source, "options", options));
}

static void add_memory(json_t *mounts, const char *path, const char *mode)
{
	cleanup_free char *option = xasprintf("mode=%s", mode);

	add_mount(mounts, path, "tmpfs", "tmpfs",
		  json_pack("[s, s, s]", "nosuid", "nodev", option));
}

/* Mounts of the machine come into the container, and none goes back. */
static void add_host(json_t *mounts, const char *source, const char *path, bool read_only)
{
	add_mount(mounts, path, "bind", source,
		  json_pack("[s, s, s]", "rbind", "rslave", read_only ? "ro" : "rw"));
}

static int add_path(json_t *mounts, const struct client_path *path, struct error *err)
{
	if (access(path->path, F_OK) < 0) {
		int r;

		if (!path->make)
			return 0;
		r = mkdir_parents(path->path, 0755, err);
		if (r < 0)
			return r;
	}
	add_host(mounts, path->path, path->path, path->read_only);
	return 0;
}

/* Directories in memory come first: what is the machine's may lie below them. */
static int add_mounts(json_t *mounts, const struct client_protocol *p, struct error *err)
{
	static const struct client_path names[] = { { "/etc/hosts", .read_only = true },
						    { "/etc/resolv.conf", .read_only = true } };
	cleanup_free char *program = self_sibling("qm-client"), *mnt = state_path("hostvol/mnt"),
			  *log = state_path("hostvol/log"), *dir = run_path("clients/%s", p->name);
	int r = 0;

	add_mount(mounts, "/proc", "proc", "proc", json_array());
	add_mount(mounts, "/sys", "sysfs", "sysfs",
		  json_pack("[s, s, s, s]", "nosuid", "noexec", "nodev", "ro"));
	add_memory(mounts, "/run", "0755");
	add_memory(mounts, "/tmp", "1777");
	for (const char *const *own = p->own; own && *own; own++)
		add_memory(mounts, *own, "0755");
	add_host(mounts, "/dev", "/dev", false);
	for (size_t i = 0; i < ARRAY_SIZE(names) && r == 0; i++)
		r = add_path(mounts, &names[i], err);
	for (const struct client_path *path = p->paths; path && path->path && r == 0; path++)
		r = add_path(mounts, path, err);
	add_host(mounts, program, CLIENT, true);
	add_host(mounts, log, log, false);
	add_host(mounts, dir, dir, false);
	add_mount(mounts, mnt, "bind", mnt, json_pack("[s, s, s]", "rbind", "rshared", "rw"));
	return r;
}

/* ---- the rest -------------------------------------------------------------------------------- */

/* What mounting, its daemons and iscsid take; less than all, and only what we may give. */
static json_t *capabilities(void)
{
	static const struct {
		const char *name;
		int number;
	} known[] = {
#define CAP(name) { "CAP_" #name, CAP_##name }
		CAP(CHOWN),	   CAP(DAC_OVERRIDE), CAP(DAC_READ_SEARCH), CAP(FOWNER),
		CAP(FSETID),	   CAP(KILL),	      CAP(SETGID),	    CAP(SETUID),
		CAP(SETPCAP),	   CAP(NET_ADMIN),    CAP(NET_RAW),	    CAP(NET_BIND_SERVICE),
		CAP(IPC_LOCK),	   CAP(IPC_OWNER),    CAP(SYS_MODULE),	    CAP(SYS_RAWIO),
		CAP(SYS_CHROOT),   CAP(SYS_PTRACE),   CAP(SYS_ADMIN),	    CAP(SYS_NICE),
		CAP(SYS_RESOURCE), CAP(MKNOD),
#undef CAP
	};
	json_t *list = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (prctl(PR_CAPBSET_READ, known[i].number) > 0)
			json_array_append_new(list, json_string(known[i].name));
	return json_pack("{s:o, s:O, s:O}", "bounding", list, "effective", list, "permitted", list);
}

static json_t *environment(const json_t *settings)
{
	cleanup_free char *image = bundle_image(settings),
			  *own = xasprintf("QM_CLIENT_IMAGE=%s", image);
	json_t *env = json_array();
	const json_t *word;
	size_t i;

	json_array_append_new(env,
			      json_string(PATH_ENV)); /* the image's, if it has one, is later */
	json_array_foreach (jget(settings, "env"), i, word)
		json_array_append(env, (json_t *)word);
	json_array_append_new(env, json_string(own));
	return env;
}

static json_t *process(const struct client_protocol *p, const json_t *settings)
{
	cleanup_free char *dir = run_path("clients/%s", p->name);

	return json_pack("{s:b, s:{s:i, s:i}, s:[s, s, s, s], s:o, s:s, s:o}", "terminal", 0,
			 "user", "uid", 0, "gid", 0, "args", CLIENT, "--protocol", p->name, dir,
			 "env", environment(settings), "cwd", "/", "capabilities", capabilities());
}

/* The machine's network; its processes and semaphores where they are needed. */
static json_t *kernel_part(const struct client_protocol *p, const char *id)
{
	cleanup_free char *cgroup = xasprintf("/quartermaster-%s", id);
	json_t *namespaces = json_pack("[{s:s}]", "type", "mount");
	json_t *o =
		json_pack("{s:o, s:s}", "namespaces", namespaces, "rootfsPropagation", "rshared");

	if (!p->pid)
		json_array_append_new(namespaces, json_pack("{s:s}", "type", "pid"));
	if (!p->ipc)
		json_array_append_new(namespaces, json_pack("{s:s}", "type", "ipc"));
	if (runtime_has_cgroups()) {
		json_object_set_new(o, "cgroupsPath", json_string(cgroup));
		json_object_set_new(
			o, "resources",
			json_pack("{s:[{s:b, s:s}]}", "devices", "allow", 1, "access", "rwm"));
	}
	return o;
}

int bundle_write(const struct client_protocol *p, const json_t *settings, const char *id,
		 const char *dir, struct error *err)
{
	cleanup_free char *path = xasprintf("%s/config.json", dir), *text = NULL;
	cleanup_json json_t *o = NULL, *mounts = json_array();
	int r = add_mounts(mounts, p, err);

	if (r == 0)
		r = mkdir_parents(dir, 0700, err);
	if (r < 0)
		return r;
	o = json_pack("{s:s, s:o, s:{s:s, s:b}, s:O, s:o}", "ociVersion", "1.0.2", "process",
		      process(p, settings), "root", "path", jstr(settings, "rootfs"), "readonly", 1,
		      "mounts", mounts, "linux", kernel_part(p, id));
	text = json_text_pretty(o);
	return file_write(path, text, strlen(text), 0600, err);
}
