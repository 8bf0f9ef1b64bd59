/* SPDX-License-Identifier: Apache-2.0 */
#include "base/daemon.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/rand.h"
#include "operator/op.h"
#include "operator/serve.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

/* Another takes over within 15 s of a death: this long, and the time between two looks. */
#define LEASE_S 10

/* A running operator: its own connections for the loops and for the lease. */
struct process {
	struct operator op;
	struct kube_config config;
	struct kube *kube, *lease_kube;
	struct lease *lease;
	struct runner *runner;
	struct csi_service *csi;
	pthread_mutex_t
		lock; /* of kicked: held until it has been told, so that it stays until then */
	struct runner *kicked; /* whom the lease's thread tells that we lead */
};

static bool leads(void *userdata, int64_t *ret_epoch)
{
	struct process *p = userdata;
	return lease_held(p->lease, ret_epoch);
}

static void lease_changed(bool held, int64_t epoch, void *userdata)
{
	struct process *p = userdata;
	cleanup_free char *key = system_key(&p->op);
	log_info(held ? "leading, epoch %lld" : "not leading (epoch %lld)", (long long)epoch);
	pthread_mutex_lock(&p->lock);
	if (held && p->kicked)
		runner_enqueue(p->kicked, "system", key, 0);
	/* what they still do, a copy or a purge, is another's from now on */
	if (!held && p->op.workers && p->kicked)
		p->op.workers->ops->end_all(p->op.workers);
	pthread_mutex_unlock(&p->lock);
}

static void set_kicked(struct process *p, struct runner *runner)
{
	pthread_mutex_lock(&p->lock);
	p->kicked = runner;
	pthread_mutex_unlock(&p->lock);
}

static int connect_api(struct process *p, const struct operator_options *o, struct error *err)
{
	int rc = kube_config_load(o->kubeconfig, &p->config, err);
	if (rc < 0)
		return rc;
	free(p->config.manager);
	p->config.manager = xstrdup("quartermaster-operator");
	rc = kube_connect(&p->config, &p->kube, err);
	/* a renewal that hangs on a dead connection must not outlast the lease */
	p->config.timeout_ms = LEASE_S * 1000 / 2;
	return rc < 0 ? rc : kube_connect(&p->config, &p->lease_kube, err);
}

static char *one_time_identity(void)
{
	char host[64] = "?", unique[UUID_TEXT_MAX];
	gethostname(host, sizeof(host) - 1);
	return xasprintf("%s_%d_%s", host, (int)getpid(), uuid_text(unique));
}

static int start_lease(struct process *p, const struct operator_options *o, struct error *err)
{
	cleanup_free char *name = xasprintf("operator-%s", p->op.deployment);
	cleanup_free char *identity = o->identity ? xstrdup(o->identity) : one_time_identity();
	struct lease_options options = {
		.kube = p->lease_kube,
		.ns = p->op.ns,
		.name = name,
		.identity = identity,
		.duration_s = LEASE_S,
		.changed = lease_changed,
		.userdata = p,
	};
	return lease_start(&options, &p->lease, err);
}

/* From 1 on: 0 is nobody's. Who has lost the lease, while a call hung in the API, starts no worker any more. */
static int64_t worker_epoch(void *userdata)
{
	struct process *p = userdata;
	int64_t epoch = 0;

	return p->op.leads(p->op.leads_userdata, &epoch) ? epoch + 1 : -1;
}

static int start(struct process *p, const struct operator_options *o, struct error *err)
{
	struct workers_options workers = { .program = o->worker_program,
					   .log_dir = o->worker_log_dir,
					   .epoch = worker_epoch,
					   .epoch_userdata = p };
	int rc = connect_api(p, o, err);
	if (rc == 0)
		rc = workers_start(&workers, &p->op.workers, err);
	if (rc == 0)
		rc = start_lease(p, o, err);
	if (rc < 0)
		return rc;
	struct runner_options options = {
		.kube = p->kube,
		.own_ns = p->op.ns,
		.controllers = p->op.binder ? operator_controllers : operator_controllers_bound,
		.project = operator_project,
		.mark = operator_mark,
		.app = &p->op,
	};
	rc = runner_start(&options, &p->runner, err);
	if (rc < 0)
		return rc;
	/* the first look creates the StorageStatus: nothing else would ask for it */
	cleanup_free char *key = system_key(&p->op);
	set_kicked(p, p->runner);
	runner_enqueue(p->runner, "system", key, 0);
	return o->csi_socket
		       ? csi_service_start(&p->op, p->kube, p->runner, o->csi_socket, &p->csi, err)
		       : 0;
}

static void stop(struct process *p)
{
	set_kicked(p, NULL);
	csi_service_stop(p->csi);
	if (p->runner)
		runner_stop(p->runner);
	/* before the lease: once another leads, nothing of ours may write any more */
	if (p->op.workers)
		p->op.workers->ops->free(p->op.workers);
	if (p->lease)
		lease_stop(p->lease, true);
	kube_free(p->lease_kube);
	kube_free(p->kube);
	kube_config_done(&p->config);
	operator_done(&p->op);
	pthread_mutex_destroy(&p->lock);
}

int operator_run(const struct operator_options *o, struct error *err)
{
	struct process p = { .op = {
				     .deployment = o->deployment,
				     .ns = o->ns,
				     .type = o->type,
				     .volume_type = o->volume_type,
				     .overcommit = o->overcommit,
				     .reclaim = o->reclaim,
				     .binder = o->binder,
				     .tls_allow = o->tls_allow,
				     .platform = o->platform,
				     .leads = leads,
				     .leads_userdata = &p,
			     } };

	daemon_begin();
	pthread_mutex_init(&p.lock, NULL);
	operator_init(&p.op);
	int rc = start(&p, o, err);
	if (rc == 0) {
		log_info("operator of deployment %s/%s runs", o->ns, o->deployment);
		log_info("ending on %s", strsignal(daemon_wait()));
	}
	stop(&p);
	return rc;
}
