/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"

/*
 * Who on this machine uses a PersistentVolume: what is connected by `quartermaster mount` and by the node service, as
 * hostvol's records and the mount tables of all its processes say; no storage is asked. 1 and a few words that say where, and what ends it
 * (caller frees); 0: nobody. -EBADMSG: nobody is known, but a record that cannot be read may be
 * somebody's.
 */
int volume_users(const json_t *pv, char **ret, struct error *err);
