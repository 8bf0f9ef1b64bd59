/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Gives memory back that is resident but not needed: free heap pages, and pages of programs and
 * libraries that were mapped for something that happens once (starting, a TLS handshake). What is
 * needed again is mapped again from the page cache. Does nothing while less than limit_kib is
 * resident, so it may be called on every idle tick. Returns what is resident then, 0 if nothing was
 * done.
 */
long memory_trim(long limit_kib);
/* What is resident now, in KiB. */
long memory_resident_kib(void);
