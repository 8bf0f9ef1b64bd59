/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kube/compact.h"

/*
 * The nodes and pools of a deployment, kept small while it is looked at, and sorted into parts that have
 * nothing to do with each other: no node of one shares a cluster, an address, a machine or a brick with
 * one of another. So each part can be planned alone, and only one is in memory as JSON. Mostly a part is
 * a cluster.
 */
struct part_item;
struct parts {
	struct compact compact;
	struct part_item *items; /* in the order in which they came */
	size_t count, cap;
	struct part_key *keys;
	size_t key_count, key_cap;
	const char *deployment;
};

void parts_init(struct parts *p, const char *deployment);
void parts_done(struct parts *p);
/* Keeps a copy. */
void parts_add_node(struct parts *p, const json_t *node, int urgency);
void parts_add_pool(struct parts *p, const json_t *pool, int urgency);
/* After the last was added: who belongs together. */
void parts_join(struct parts *p);
/* The part to which the item belongs: an item's index, the same for all of them and at most their own. */
size_t parts_of(const struct parts *p, size_t item);
bool parts_is_pool(const struct parts *p, size_t item);
/* The highest of those with which its items were added. */
int parts_urgency(const struct parts *p, size_t part);
/* The object (new reference), once: it is kept no longer. */
json_t *parts_take(struct parts *p, size_t item);
