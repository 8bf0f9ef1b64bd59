/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <stdint.h>

/*
 * Certificates for the embedded API and for storage systems: EC P-256, PEM text out (the caller frees it; a key is to be
 * stored with mode 0600). They are valid from an hour ago, so that clocks may differ a little.
 */
int cert_make_ca(const char *common_name, int days, char **ret_cert_pem, char **ret_key_pem,
		 struct error *err);
/* For a server, signed by that CA. alt_names: host names and IP addresses, ended by NULL; NULL is
 * localhost, 127.0.0.1 and ::1. */
int cert_make_server(const char *ca_cert, const char *ca_key, const char *common_name,
		     const char *const *alt_names, int days, char **ret_cert, char **ret_key,
		     struct error *err);
/* For one of several that talk to each other, as client and as server: known by its common name alone. */
int cert_make_peer(const char *ca_cert, const char *ca_key, const char *common_name, int days,
		   char **ret_cert, char **ret_key, struct error *err);
/* How long a certificate is still good for, in seconds (negative: it is over), if that CA has signed
 * it; -1 also when it cannot be read. */
int64_t cert_seconds_left(const char *cert_pem, const char *ca_pem);
