/* SPDX-License-Identifier: Apache-2.0 */
#include "local/platform.h"

#include "api/server.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/paths.h"
#include "base/str.h"
#include "kube/kube.h"
#include "local/box.h"
#include "local/keeper.h"
#include "local/self.h"
#include "local/users.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>

enum { AGENT_STOP_MS = 10000 };

struct local_platform {
	struct platform platform;
	struct keeper *keeper;
};

static struct keeper *keeper_of(struct platform *p)
{
	return ((struct local_platform *)p)->keeper;
}

char *node_box_name(const char *ns, const char *name)
{
	return xasprintf("%s-%s", ns, name);
}

static char *box_of(const json_t *node)
{
	return node_box_name(object_namespace(node), object_name(node));
}

static char *agent_of(const json_t *node)
{
	return xasprintf("agent-%s-%s", object_namespace(node), object_name(node));
}

/* On one machine every StorageNode is a box of this machine, known by the name its selector asks for. */
static int machine(struct platform *p, const json_t *node, char **ret, struct error *err)
{
	const char *host = jstr(node, "spec", "nodeSelector", "kubernetes.io/hostname");

	(void)p;
	(void)err;
	*ret = xstrdup(host ? host : object_name(node));
	return 0;
}

static int ensure_box(const json_t *node, const char *name, struct error *err)
{
	const json_t *ips = jget(node, "spec", "storageNetwork", "ips");
	struct strv addresses = { 0 };
	const json_t *ip;
	size_t i;
	int r;

	json_array_foreach (ips, i, ip)
		strv_add(&addresses, json_string_value(ip));
	if (addresses.count == 0)
		return error_set(err, EINVAL,
				 "StorageNode %s has no address; set spec.storageNetwork.ips",
				 object_name(node));
	r = box_ensure(
		&(struct box){ .name = name, .addresses = (const char *const *)addresses.items },
		err);
	strv_done(&addresses);
	return r;
}

/* The port that the API remembers; agents do not use it (they are in other networks), but a kubeconfig names one. */
static int api_port(void)
{
	cleanup_free char *path = state_path("port"), *text = NULL;
	size_t len;

	return file_read(path, 16, &text, &len, NULL) == 0 ? atoi(text) : 443;
}

/* The agent's own credentials: a token that is good for this node alone. */
static int write_credentials(const json_t *node, const char *agent, char **ret_path,
			     struct error *err)
{
	cleanup_free char *token = NULL, *path = state_path("%s.kubeconfig", agent);
	cleanup_free char *socket = run_path("api.sock");
	int r = api_token(state_dir(), agent, "agent", jstr(node, "status", "nodeName"), &token,
			  err);

	if (r == 0)
		r = api_write_kubeconfig(state_dir(), socket, api_port(), token, path, err);
	if (r == 0)
		*ret_path = TAKE_PTR(path);
	return r;
}

/* Agents and glusterd of one machine are never replaced under what they serve. */
static int agent_ensure(struct platform *p, const json_t *node, bool may_roll, struct error *err)
{
	cleanup_free char *box = box_of(node), *agent = agent_of(node), *config = NULL;
	cleanup_free char *key = object_key(node), *state = state_path("boxes/%s", box);
	int r = ensure_box(node, box, err);

	(void)may_roll;
	if (r == 0)
		r = write_credentials(node, agent, &config, err);
	if (r < 0)
		return r;
	const char *argv[] = { self_path(), "agent",	   "--node", key, "--kubeconfig",
			       config,	    "--state-dir", state,    NULL };
	keeper_add(keeper_of(p), program_new(agent, argv, box));
	return 0;
}

static int agent_remove(struct platform *p, const json_t *node, struct error *err)
{
	cleanup_free char *box = box_of(node), *agent = agent_of(node);
	cleanup_free char *state = state_path("boxes/%s", box),
			  *config = state_path("%s.kubeconfig", agent);
	int r;

	keeper_forget(keeper_of(p), agent);
	r = program_stop(agent, AGENT_STOP_MS, err);
	if (r == 0)
		r = box_remove(box, err);
	if (r < 0)
		return r;
	unlink(config);
	/* the node has been emptied before: this is only glusterd's memory of a peer that has left */
	return remove_tree(state, err);
}

/* ---- pools, for the node service ----------------------------------------------------------- */

static int write_pool(const char *dir, const char *name, const json_t *pool, struct error *err)
{
	cleanup_free char *path = xasprintf("%s/%s", dir, name), *text = json_text(pool),
			  *have = NULL;

	if (file_read(path, 0, &have, NULL, NULL) == 0 && streq(have, text))
		return 0;
	return file_write(path, text, strlen(text), 0600, err);
}

static void remove_others(const char *dir, const json_t *pools)
{
	DIR *d = opendir(dir);

	for (struct dirent *e; d && (e = readdir(d));)
		if (e->d_name[0] != '.' && !json_object_get(pools, e->d_name))
			(void)unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
}

static int tell_pools(struct platform *p, const json_t *pools, struct error *err)
{
	cleanup_free char *dir = run_path("pools");
	const char *name;
	json_t *pool;
	int r = mkdir_parents(dir, 0700, err);

	(void)p;
	json_object_foreach ((json_t *)pools, name, pool)
		if (r == 0)
			r = write_pool(dir, name, pool, err);
	if (r == 0)
		remove_others(dir, pools);
	return r;
}

static int users(struct platform *p, const json_t *pv, char **ret, struct error *err)
{
	(void)p;
	return volume_users(pv, ret, err);
}

static const struct platform_ops local_ops = {
	.machine = machine,
	.agent_ensure = agent_ensure,
	.agent_remove = agent_remove,
	.pools = tell_pools,
	.users = users,
};

int platform_local_new(struct platform **ret, struct error *err)
{
	struct local_platform *p = xcalloc(1, sizeof(*p));
	const char *supervise[] = { self_path(), "supervise", NULL };
	int r = keeper_start(&p->keeper, err);

	if (r < 0) {
		free(p);
		return r;
	}
	p->platform.ops = &local_ops;
	keeper_add(p->keeper, program_new("supervise", supervise, NULL));
	*ret = &p->platform;
	return 0;
}

void platform_local_free(struct platform *p)
{
	if (!p)
		return;
	keeper_free(keeper_of(p));
	free(p);
}
