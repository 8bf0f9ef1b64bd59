/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* NUL-terminated; -EINVAL for what is no base64. */
int base64_decode(const char *text, char **ret);
