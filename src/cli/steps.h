/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

/*
 * Progress of something that takes its time, step by step: on a terminal one live line for the
 * step in work, otherwise a plain line when a step ends. Begin, note as often as you like, end
 * with done or failed.
 */
void step_begin(const char *name);
/* What the step waits for now; shown on a terminal only. */
void step_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void step_done(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints the error below the step's name. */
void step_failed(const struct error *err);
