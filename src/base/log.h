/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * One line per event on standard error: time, level, program part, text. What is logged is
 * chosen word by word: never a whole request, object, header or command line, since these may
 * carry secrets.
 */
enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR };

void log_init(const char *part, enum log_level level);
void log_at(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_debug(...) log_at(LOG_LEVEL_DEBUG, __VA_ARGS__)
#define log_info(...) log_at(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_warn(...) log_at(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_err(...) log_at(LOG_LEVEL_ERROR, __VA_ARGS__)
