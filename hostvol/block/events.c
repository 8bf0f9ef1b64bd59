/* SPDX-License-Identifier: Apache-2.0 */
#include "events.h"

#include "base/mem.h"

#include <errno.h>

/*
 * Some changes have no event (a driver's attribute), and a container may not hear them; so nothing
 * is waited for longer than this without looking.
 */
#define LOOK_MS 500

int watch_open(const struct call *c, struct watch *w, struct error *err)
{
	int fd = w->fd >= 0 ? w->fd : c->host->events_open(c->host);

	if (fd < 0)
		return error_errno(err, -fd, "cannot listen for the kernel's device events");
	w->fd = fd;
	return 0;
}

void watch_close(struct watch *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

int watch_until(const struct call *c, struct watch *w, int max_ms, int (*condition)(void *arg),
		void *arg, struct error *err)
{
	int64_t end = c->host->mono_ms(c->host) + max_ms;
	int r, left;

	for (;;) {
		r = condition(arg);
		if (r != 0)
			return r;
		left = call_left(c, LOOK_MS, err);
		if (left < 0)
			return left;
		if (max_ms > 0) {
			int64_t rest = end - c->host->mono_ms(c->host);

			if (rest <= 0)
				return -ETIMEDOUT;
			left = rest < left ? (int)rest : left;
		}
		r = c->host->events_wait(c->host, w->fd, left);
		if (r < 0)
			return error_errno(err, -r, "cannot wait for the kernel's device events");
	}
}
