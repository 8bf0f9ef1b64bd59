/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A short name of this instance for things that live in one namespace of the kernel, such as
 * interfaces: "qm" for the default directories, "qm" and four hex digits otherwise. */
const char *instance_name(void);
/* 0 for the default directories, else 1 … 254: the third octet of the demo's addresses. */
int instance_number(void);
