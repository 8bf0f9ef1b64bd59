/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"

#include <stddef.h>

/*
 * Share strings and options in which others put passwords. The checks do not repeat what they
 * were given; the tidy functions move the password to the parameter "password".
 */

/* //HOST/SHARE[/PATH], or with backslashes */
int check_smb_export(const char *value, struct error *err);
int check_smb_options(const char *value, struct error *err);
/* User and domain become options, whose differences make different mounts. */
int smb_tidy(json_t *params, struct error *err);

/* [MDS[,MDS…]:/]CLUSTER[:PASSWORD] */
int check_vz_export(const char *value, struct error *err);
int vz_tidy(json_t *params, struct error *err);
/* The parts of an export without a password: servers (length; 0 where there are none), cluster. */
void vz_split(const char *export, size_t *ret_servers_len, const char **ret_cluster);
