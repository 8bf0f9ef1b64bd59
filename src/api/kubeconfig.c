/* SPDX-License-Identifier: Apache-2.0 */
#include "api/server.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/yaml.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#define NAME "quartermaster"

int api_write_kubeconfig(const char *state_dir, const char *unix_path, int port, const char *token,
			 const char *path, struct error *err)
{
	cleanup_free char *ca_path = xasprintf("%s/ca.crt", state_dir);
	cleanup_free char *server = xasprintf("https://127.0.0.1:%d", port);
	cleanup_free char *pem = NULL, *encoded = NULL, *text = NULL;
	cleanup_json json_t *config = NULL;
	size_t len;
	int rc = file_read(ca_path, 0, &pem, &len, err);

	if (rc < 0)
		return rc;
	encoded = xcalloc(1, (len + 2) / 3 * 4 + 1);
	EVP_EncodeBlock((unsigned char *)encoded, (const unsigned char *)pem, (int)len);
	config = json_pack("{s:s, s:s, s:[{s:s, s:{s:s, s:s}}], s:[{s:s, s:{s:s}}],"
			   " s:[{s:s, s:{s:s, s:s, s:s}}], s:s}",
			   "apiVersion", "v1", "kind", "Config", "clusters", "name", NAME,
			   "cluster", "server", server, "certificate-authority-data", encoded,
			   "users", "name", NAME, "user", "token", token, "contexts", "name", NAME,
			   "context", "cluster", NAME, "user", NAME, "namespace", "default",
			   "current-context", NAME);
	if (unix_path)
		jset(json_array_get(jget(config, "clusters"), 0),
		     json_pack("[{s:s, s:{s:s}}]", "name", "quartermaster.storage/socket",
			       "extension", "path", unix_path),
		     "cluster", "extensions");
	text = yaml_text(config);
	rc = file_write(path, text, strlen(text), 0600, err);
	OPENSSL_cleanse(text, strlen(text));
	return rc;
}
