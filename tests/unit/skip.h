/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/*
 * A test that is left out names what is missing (a format: "root", "a loop device: %s"), in a line that
 * tests/lib/tally.py puts behind the test's name. Nothing after it is run.
 */
#define skip_without(...)                                                                          \
	do {                                                                                       \
		say_without(__VA_ARGS__);                                                          \
		skip();                                                                            \
	} while (0)

/* The same for all of a program: what main returns. */
#define all_without(...) (say_without(__VA_ARGS__), 77)

#define say_without(...)                                                                           \
	(print_message("# skipped without "), print_message(__VA_ARGS__), print_message("\n"))
