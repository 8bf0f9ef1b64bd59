/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Gives back memory that is not needed now: free heap, and the pages of programs and libraries
 * that were only read (most of OpenSSL serves one handshake). What is needed after all is mapped in
 * again from the page cache, a few microseconds a piece.
 */
void memory_give_back(void);
