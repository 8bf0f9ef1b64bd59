/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/api.h"

#include <malloc.h>

/* The verb alone, for tests that need a server and nothing else of the command. */
int main(int argc, char **argv)
{
	mallopt(M_ARENA_MAX, 2);
	return verb_api(argc, argv);
}
