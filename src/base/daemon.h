/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What all programs that run on have in common. daemon_begin comes before the first thread: it
 * blocks SIGTERM and SIGINT, for daemon_wait to take, ignores SIGPIPE, and keeps the heap small.
 */
void daemon_begin(void);
/* Waits for SIGTERM or SIGINT, and gives back memory that is no longer needed meanwhile; the signal. */
int daemon_wait(void);
