/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"

/*
 * What `quartermaster status` shows, made of four lists (arrays of objects): deployments[], nodes[]
 * with devices[], pools[], claims{bound, pending, waiting[]}. Pure. New reference.
 */
json_t *overview(const json_t *statuses, const json_t *nodes, const json_t *pools,
		 const json_t *claims);
