/* SPDX-License-Identifier: Apache-2.0 */
#include "systems/glusterfs/options.h"

#define COPIES ((1u << LAYOUT_REPLICATE) | (1u << LAYOUT_ARBITER))
#define DISPERSE (1u << LAYOUT_DISPERSE)

const struct volume_option volume_options[] = {
	/* Losing a node */
	{ "cluster.quorum-type", "auto", COPIES,
	  "writes need a majority of the copies: no split brain" },
	{ "cluster.server-quorum-type", "none", 0,
	  "a majority of copies already decides; stopping bricks by a majority of nodes would stop "
	  "healthy pools" },
	{ "cluster.favorite-child-policy", "none", COPIES,
	  "a split brain is shown to a person, never guessed away" },
	{ "network.ping-timeout", "10", 0,
	  "a dead node stalls its clients for 10 s, not for 42 s" },
	{ "client.strict-locks", "on", 0,
	  "a lock lost in a disconnect is reported, instead of two holders each believing in it" },
	{ "storage.health-check-interval", "10", 0,
	  "a brick on a failing disk ends itself within 10 s" },
	{ "storage.reserve", "1", 0,
	  "the last percent of a brick stays free for healing and metadata" },

	/* Healing */
	{ "cluster.self-heal-daemon", "on", COPIES, "heals without waiting for a reader" },
	{ "cluster.disperse-self-heal-daemon", "enable", DISPERSE,
	  "heals without waiting for a reader" },
	{ "cluster.granular-entry-heal", "on", COPIES,
	  "heals the changed names of a directory, not all of them" },

	/* What was written is there: no cache between a database and its bricks */
	{ "performance.write-behind", "off", 0, "a write that returned has reached the bricks" },
	{ "performance.flush-behind", "off", 0,
	  "close reports the errors of the writes before it" },
	{ "performance.strict-o-direct", "on", 0, "O_DIRECT means what it says on the client" },
	{ "network.remote-dio", "disable", 0, "O_DIRECT means what it says on the bricks" },

	/* What is read is what others wrote: several hosts may mount one volume */
	{ "performance.read-ahead", "off", 0, "no stale pages" },
	{ "performance.readdir-ahead", "off", 0, "no stale names" },
	{ "performance.io-cache", "off", 0, "no stale pages" },
	{ "performance.quick-read", "off", 0, "no stale contents of small files" },
	{ "performance.stat-prefetch", "off", 0, "no stale sizes: databases trust them" },
	{ "performance.open-behind", "off", 0,
	  "an open file stays readable after it was unlinked" },
	{ "performance.nl-cache", "off", 0, "a name that another host just made is seen" },

	/* Speed that costs no safety */
	{ "performance.client-io-threads", "on", DISPERSE, "coding uses more than one core" },
	{ "cluster.lookup-optimize", "on", 0, "a name that does not exist costs one question" },
	{ 0 },
};

json_t *volume_options_for(enum volume_layout layout)
{
	json_t *all = json_object();

	for (const struct volume_option *o = volume_options; o->name; o++)
		if (o->layouts == 0 || o->layouts & (1u << layout))
			json_object_set_new(all, o->name, json_string(o->value));
	return all;
}
