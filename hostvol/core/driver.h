/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "attachment.h"
#include "base/json.h"
#include "handle.h"

enum param_type {
	PARAM_STRING,
	PARAM_BOOLEAN, /* or the strings "true" and "false": CSI's attributes are all strings */
	PARAM_IGNORED, /* others send it; it means nothing here */
	PARAM_LIST, /* an array of strings or numbers, or one of these; kept as "a,b,c" */
	PARAM_NUMBER, /* whole, not negative, or a string of digits; kept as a string */
	PARAM_GROUP, /* an object whose fields are parameters of the same table */
	PARAM_TEXT, /* a string of several lines: a file's content */
	PARAM_MAP, /* an object of lists; {"a": ["b", "c"], "d": "e"} is kept as "a;b;c,d;e" */
};

struct param {
	/*
	 * As the specification spells it, in camelCase. The same in snake_case, and each with or
	 * without a final s, is understood too.
	 */
	const char *name;
	const char *const *aliases; /* other words for it, ended by NULL; or NULL */
	enum param_type type;
	const char *fallback; /* said in the documentation; drivers apply it */
	const char *help, *example;
	bool required;
	bool secret; /* never in a record, a log or an error */
	bool identity; /* part of which volume it is, not of how it is connected */
	bool expectation; /* what the volume itself must say it is, whenever it is asked */
	/* of a string: -EINVAL and what is wrong, without the parameter's name */
	int (*check)(const char *value, struct error *err);
};

struct mount_type;
struct device_type;

/*
 * One protocol. A NULL operation is one that this version does not have. Operations run under the
 * lock of the attachment's target; a->others says how many others use the same target.
 */
struct driver {
	const char *name;
	const char *const *aliases; /* ended by NULL, or NULL */
	const char *title;
	const char *help;
	const struct param *params; /* ended by name NULL */
	const struct mount_type *mount; /* of those whose volumes are in a file system (mounts.h) */
	/*
	 * Keys of detail that say which volume it is, ended by NULL; or NULL. The core gives connect
	 * what is recorded of them, and connect refuses another volume (recorded.h). Drivers with
	 * the same table here say it in the same words: their consumers share what is recorded.
	 */
	const char *const *identity;
	/*
	 * Keys of detail that say what verify has to find at the volume's place, ended by NULL; or
	 * NULL. While its consumer counts on it an attempt begins with what is recorded of them, so
	 * that what a killed one has left is not taken for all of it; connect sets or deletes them.
	 */
	const char *const *form;
	/* Fills in target and detail from the parameters. Touches nothing. */
	int (*prepare)(const struct call *c, struct attachment *a, struct error *err);
	/* Brings the volume here, verifies it, sets path. What is there already is used. */
	int (*connect)(const struct call *c, struct attachment *a, struct error *err);
	/* Takes it away, unless others use it; also what a connect left that died in the middle. */
	int (*disconnect)(const struct call *c, struct attachment *a, bool force,
			  struct error *err);
	/*
	 * -EBUSY while somebody uses what is there; of a driver whose disconnect takes nothing
	 * away, and so is not refused. Asked before the use of all consumers is ended. Or NULL.
	 */
	int (*in_use)(const struct call *c, struct attachment *a, struct error *err);
	/* Verifies that what stands at path is the volume. */
	int (*verify)(const struct call *c, struct attachment *a, struct error *err);
	/*
	 * Takes note of a size that has grown. Adds to result what came of each path ("paths":
	 * [{"device", "before", "after", "error"}]), also where it fails, and "size". NULL: there is
	 * nothing to be done for it.
	 */
	int (*extend)(const struct call *c, struct attachment *a, json_t *result,
		      struct error *err);
	/*
	 * Says what a disconnect would do: adds "devices" and "usedBy" (words for people) to result,
	 * and to its "steps". Changes nothing.
	 */
	int (*plan)(const struct call *c, struct attachment *a, json_t *result, struct error *err);
	/*
	 * Finds what this library made and no record names, and with repair takes it away: adds
	 * {"kind", "name", "message", "action"} to findings. 1: something could not be.
	 */
	int (*audit)(const struct call *c, bool repair, json_t *findings, struct error *err);
	/*
	 * Puts parameters in order that were read and checked, before anything is made of them: takes
	 * a password out of a string that would be recorded. Or NULL.
	 */
	int (*tidy)(json_t *params, struct error *err);
	const struct device_type *device; /* of those that vendors' software brings (device.h) */
	/* The parameter, a boolean, that keeps all other hosts from writing; or NULL. */
	const char *exclusive;
};

/* Every driver name of the specification, ended by NULL. */
extern const struct driver *const drivers[];
/* Parameters that every driver understands, ended by name NULL. */
extern const struct param common_params[];

/* By name or alias in any case; -EINVAL with a suggestion. */
int driver_find(const char *name, const struct driver **ret, struct error *err);
/* The whole table as JSON; new reference. */
int drivers_to_json(json_t **ret, struct error *err);
