/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "systems/glusterfs/quota.h"

#include <stdio.h>

/* The quota functions by hand, for 30-quota.sh and 40-claim-quota.sh. */
static int report(int r, const struct error *err)
{
	if (r < 0)
		fprintf(stderr, "%s\n", error_text(err, r));
	return r < 0 ? 1 : 0;
}

static int set(char **args)
{
	struct error err = ERROR_INIT;

	return report(quota_set(args[0], args[1], atoll(args[2]), atoll(args[3]), &err), &err);
}

static int get(char **args)
{
	struct error err = ERROR_INIT;
	struct quota_usage u = { 0 };
	int r = quota_get(args[0], args[1], &u, &err);

	if (r == 0)
		printf("project=%u bytes_limit=%lld bytes_used=%lld inodes_limit=%lld "
		       "inodes_used=%lld\n",
		       u.project, (long long)u.bytes_limit, (long long)u.bytes_used,
		       (long long)u.inodes_limit, (long long)u.inodes_used);
	return report(r, &err);
}

static int support(char **args)
{
	struct quota_support s;

	quota_support(args[0], &s);
	printf("%s %s: %s\n", s.enforced ? "enforced" : "not-enforced", s.reason, s.message);
	return 0;
}

static int sweep(char **args)
{
	struct error err = ERROR_INIT;
	int r = quota_sweep(args[0], &err);

	if (r >= 0)
		printf("%d\n", r);
	return report(r, &err);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int args;
		int (*run)(char **args);
	} verbs[] = { { "set", 4, set },
		      { "get", 2, get },
		      { "support", 1, support },
		      { "sweep", 1, sweep } };

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		if (argc == verbs[i].args + 2 && streq(argv[1], verbs[i].name))
			return verbs[i].run(argv + 2);
	fprintf(stderr, "usage: quota-tool set BRICK DIR BYTES INODES | get BRICK DIR | support "
			"BRICK | sweep BRICK\n");
	return 2;
}
