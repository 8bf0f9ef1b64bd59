/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

/*
 * Who calls. Tokens stand in state_dir/tokens.json (0600), in clear since api_token gives them out
 * again; the file is read again when it has changed.
 */
struct identity {
	char name[128];
	char role[32];
	char node[254]; /* of an agent: its node; of an operator: its namespace */
};

struct tokens;
struct tokens *tokens_new(const char *state_dir);
void tokens_free(struct tokens *t);
/* authorization: the header's value, or NULL. -EACCES where it is no token of ours. */
int tokens_find(struct tokens *t, const char *authorization, struct identity *ret);
