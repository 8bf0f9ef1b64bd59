/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

/*
 * Certificates for the embedded API: EC P-256, PEM text out (the caller frees it; a key is to be
 * stored with mode 0600). They are valid from an hour ago, so that clocks may differ a little.
 */
int cert_make_ca(const char *common_name, int days, char **ret_cert_pem, char **ret_key_pem,
		 struct error *err);
/* For a server, signed by that CA. alt_names: host names and IP addresses, ended by NULL; NULL is
 * localhost, 127.0.0.1 and ::1. */
int cert_make_server(const char *ca_cert, const char *ca_key, const char *common_name,
		     const char *const *alt_names, int days, char **ret_cert, char **ret_key,
		     struct error *err);
