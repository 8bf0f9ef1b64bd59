/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "api/store.h"
#include "base/mem.h"
#include "base/rand.h"
#include "operator/ledger.h"
#include "operator/op.h"

/*
 * An operator in a world that is all memory: the real object store, a stand-in for agents that do
 * at once what they are told, for the platform, and for workers whose pools are sets of names. Its
 * client can fail at one chosen write, before or after it took effect.
 */
#define GIB (1LL << 30)

struct fixture {
	struct store *store;
	struct clock clock;
	int64_t now_ms;
	struct prng ids;
	struct kube kube; /* what the operator sees: counts and fails writes */
	struct kube *api; /* the store itself, for the test */
	struct reader reader;
	struct reconcile r;
	struct operator op;
	struct platform platform;
	struct workers workers;
	bool leads;
	int64_t epoch;
	int resized; /* how often a worker was asked to grow a volume */
	int fail_at, writes; /* the write that fails, counted from 1; 0: none */
	bool fail_after;
	bool failed;
	bool dies, dead; /* after the failed write nothing more is written, until it starts again */
	int64_t write_ms; /* what a write takes */
	/* before an object is made */
	void (*on_create)(struct fixture *f, const struct kind *kind, const json_t *object);
	/* after a list was taken, before anybody has it */
	void (*on_list)(struct fixture *f, const struct kind *kind);
	int node_lists; /* of all StorageNodes, from the API itself */
	json_t *stale_nodes; /* array: what the cache has of them; NULL: what the API has */
	json_t *stale; /* what the cache has of the content of that name; NULL: what the API has */
	const char *unseen; /* name of an object that the cache does not have yet; NULL: none */
	const char *refused; /* name of an object that the API refuses to write; NULL: none */
	json_t *volumes; /* object: pool to object of names: the directories */
	json_t *owners; /* object: of those that have one, by name */
	json_t *snapshots; /* object: pool to object of names: what is said of each */
	int copying; /* how often a copy is still under way when it is asked for */
	json_t *copies; /* object: volumes that are being copied, to how often that was asked for */
	json_t *halves; /* object: volumes without an info file, as make leaves them */
	json_t *data; /* object: what is in a volume, where a test has put something */
	int copy_calls; /* how often a copy says that it is under way */
	bool under_way; /* since the last round: one said so */
	int snapshot_lists; /* how often all snapshots of a pool were asked for */
	int worker_rc; /* what workers answer */
	int worker_calls; /* how often one was asked */
	void (*on_remove)(struct fixture *f, const char *name); /* before a worker does */
	int make_rc; /* what they answer where something is to be made */
	json_t *agents; /* object: names of nodes whose agent runs */
	json_t *told; /* how pools are reached, as the platform was last told; NULL: never */
	const char *users; /* what the platform says of who uses volumes; NULL: nobody does */
	int users_rc; /* what it answers where it cannot say; 0: it can */
	bool agents_silent;
	int interruptible; /* calls of the platform since it was reset that allowed to stop bricks */
	int64_t pool_bytes; /* capacity of each pool */
	struct strv events; /* "Reason: message" of each */
	struct strv seen; /* keys of all claims and volumes that ever were */
};

struct fixture *fixture_new(void);
void fixture_free(struct fixture *f);
/*
 * How far apart the writes are that fail in turn: every one with QM_LONG, every third otherwise, and few with a
 * sanitizer, which makes each life ten to twenty times as long and looks for something else.
 */
int write_step(void);
/* The operator dies and starts again. */
void fixture_restart(struct fixture *f);
/* Operator and agents, until nothing changes any more. */
void settle(struct fixture *f);
/* One of the operator's looks at the system: when it is to be called again. */
int look(struct fixture *f);
/* What agents do of what they are told. */
void agents_act(struct fixture *f);

void add_node(struct fixture *f, const char *name, int zone, int devices);
void add_nodes(struct fixture *f, int count, int devices);
/* A store that is ONLINE: three nodes with one device each, one pool of 10 GiB. */
struct fixture *fixture_online(void);
void add_claim(struct fixture *f, const char *name, const char *class, const char *size);
/*
 * A class of ours, of deployment gold unless the parameters (stolen, as more is) say another;
 * more: top-level fields.
 */
void add_storage_class(struct fixture *f, const char *name, json_t *parameters, json_t *more);
/* Whether the claim says that it waits, with that in the reason. */
bool waits(struct fixture *f, const char *claim, const char *why);
/* Whether there was an Event of that reason with that in its message. */
bool said(struct fixture *f, const char *reason, const char *message);
/* New references; NULL: not there. */
json_t *get(struct fixture *f, const struct kind *kind, const char *name);
json_t *get_claim(struct fixture *f, const char *name);
json_t *get_pv_of(struct fixture *f, const char *claim);
void discard(struct fixture *f, const struct kind *kind, const char *name);
void patch(struct fixture *f, const struct kind *kind, const char *name, json_t *patch);
size_t count(struct fixture *f, const struct kind *kind);
bool has_volume(struct fixture *f, const char *pool, const char *name);
bool phase_is(struct fixture *f, const struct kind *kind, const char *name, const char *phase);
