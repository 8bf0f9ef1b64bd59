/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* `quartermaster api`: the embedded API in the foreground, until SIGTERM or SIGINT. An exit status. */
int verb_api(int argc, char **argv);
