/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The path of the running quartermaster binary (the file, whatever link it was called by). */
const char *self_path(void);
/* A program that is installed with it, such as qm-gluster: beside the binary, in its build tree, or
 * in libexec; the caller frees. */
char *self_sibling(const char *name);
