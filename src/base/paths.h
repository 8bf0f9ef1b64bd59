/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Where things of this machine's instance stand. STATE survives a reboot, RUN does not;
 * QM_STATE_DIR and QM_RUN_DIR move them, so that several instances can live side by side.
 */
const char *state_dir(void); /* /var/lib/quartermaster */
const char *run_dir(void);   /* /run/quartermaster */

/* STATE/… and RUN/…, formatted; the caller frees. */
char *state_path(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *run_path(const char *format, ...) __attribute__((format(printf, 1, 2)));
