/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "events.h"
#include "sysfs.h"

/*
 * NVMe controllers and namespaces as the kernel shows them. No number in their names says which
 * one it is: nvme0n1 may be another namespace after the next connect.
 */

#define NQN_MAX 224

/* Where a controller is. */
struct nvme_address {
	char transport[8]; /* tcp, rdma, fc */
	char traddr[128];
	char trsvcid[16]; /* "" for fc */
	char host_traddr[128]; /* "" where the kernel may choose */
};

struct nvme_controller {
	char name[DISK_NAME_MAX]; /* nvme3 */
	char nqn[NQN_MAX];
	struct nvme_address at;
	char host_nqn[NQN_MAX], host_id[64];
	bool live;
};

/* What is asked for, the first of these that is not "". */
struct nvme_wanted {
	const char *uuid, *nguid, *nsid;
};

/* "traddr=192.0.2.1,trsvcid=4420,src_addr=…" of sysfs: the first two. Pure. */
void nvme_address_parse(const char *text, struct nvme_address *ret);
bool nvme_address_same(const struct nvme_address *a, const struct nvme_address *b);

/* Calls fn for every controller of a subsystem (NULL: of all) until it returns other than 0. */
int nvme_controllers_each(const struct call *c, const char *nqn,
			  int (*fn)(const struct nvme_controller *n, void *userdata),
			  void *userdata);
/* 1: the subsystem has this controller. */
int nvme_controller_find(const struct call *c, const char *nqn, const struct nvme_address *at,
			 struct nvme_controller *ret);
/* Calls fn with the disk of every namespace of a subsystem, each once, whatever its paths. */
int nvme_namespaces_each(const struct call *c, const char *nqn,
			 int (*fn)(const char *disk, void *userdata), void *userdata);
/* The disk of the namespace: 1, or 0 for none. */
int nvme_namespace_find(const struct call *c, const char *nqn, const struct nvme_wanted *want,
			char disk[static DISK_NAME_MAX]);
/*
 * A path to the namespace (nvme0c1n1), and what its controller says of access by it ("inaccessible",
 * or ""): 1, or 0 for none. Until one of its paths can be used the namespace has no disk.
 */
int nvme_namespace_path(const struct call *c, const char *nqn, const struct nvme_wanted *want,
			char path[static DISK_NAME_MAX], char *state, size_t size);
/* Whether a path to the namespace can be used (its state, and asymmetric access). */
bool nvme_namespace_accessible(const struct call *c, const char *disk);
/* The size that the controller has for it now. */
int nvme_namespace_size(const struct call *c, const char *disk, uint64_t *ret, struct error *err);
