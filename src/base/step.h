/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

/*
 * A step of some system calls that may hang in the kernel (stat on a dead server, unmount), made by a
 * child process with a deadline. As spawn_call_keeping, but the child shares our memory, so that it
 * costs about what a thread does, however large we are: no page is copied. It is a process all the
 * same, with no descriptor but 0, 1, 2, a working directory of its own and all signals held; SIGKILL
 * ends it alone, and it dies with us.
 *
 * What fn may do: system calls, memory of its own stack (48 KiB), snprintf; it reads arg and writes
 * nothing there. No lock, no allocation, no log: killed in the middle, it would leave them to us.
 * Since it is dead or stuck in one system call when step_run returns, and what it has the kernel
 * write lies on its own stack, arg may go away then.
 *
 * fn returns 0 or -errno, and that comes back; -ETIMEDOUT when the deadline passed. err gets a reason
 * where it is not fn's: error_text() says either, to be put behind what was tried. While a child of
 * an earlier call hangs on (it is looked for by fn and about), further ones are refused at once with
 * -ETIMEDOUT (hung.h): a mount that hangs for good costs one process for each kind of step, not one for each retry.
 * libhostvol uses this.
 */
struct step {
	int (*fn)(void *arg);
	void *arg;
	const char *about; /* the path that may hang; NULL: no bound */
	int timeout_ms;
};
int step_run(const struct step *s, struct error *err);
