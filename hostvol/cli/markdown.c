/* SPDX-License-Identifier: Apache-2.0 */
/* docs/connectors from the driver table. */
#include "cli.h"

#include "base/file.h"
#include "base/mem.h"

#include <ctype.h>
#include <stdio.h>

static void add_params(struct buf *b, const json_t *params)
{
	const json_t *p;
	size_t i;

	buf_puts(b, "| parameter | type | default | meaning |\n|---|---|---|---|\n");
	json_array_foreach ((json_t *)params, i, p) {
		const char *fallback = jstr(p, "default");

		buf_printf(b, "| `%s`%s%s | %s | %s%s%s | %s |\n", jstr(p, "name"),
			   jbool(p, "required") ? " (required)" : "",
			   jbool(p, "secret") ? " (secret)" : "", jstr(p, "type"),
			   fallback ? "`" : "", fallback ? fallback : "", fallback ? "`" : "",
			   jstr(p, "help"));
	}
}

/* A connection with the example of every parameter that has one and is not ignored. */
static void add_example(struct buf *b, const json_t *driver)
{
	const json_t *p;
	size_t i;

	buf_printf(b, "```yaml\ndriverVolumeType: %s\ndata:\n", jstr(driver, "name"));
	json_array_foreach ((json_t *)jget(driver, "parameters"), i, p)
		if (jstr(p, "example") && !streq(jstr(p, "name"), "mountPointBase"))
			buf_printf(b, "  %s: %s\n", jstr(p, "name"), jstr(p, "example"));
	buf_puts(b, "  volumeId: pvc-0f3a\n```\n");
}

static void add_page(struct buf *b, const json_t *d)
{
	buf_printf(b, "# %s\n\n%s\n\n## Example\n", jstr(d, "title"), jstr(d, "help"));
	add_example(b, d);
	buf_puts(b, "\n    hostvol connect -f volume.yaml\n    hostvol disconnect pvc-0f3a\n\n"
		    "## Parameters of `data`\n"
		    "Each is also understood in snake_case (`device_path` for `devicePath`), and "
		    "with or "
		    "without a final s.\n\n");
	add_params(b, jget(d, "parameters"));
	buf_puts(b, "\nEvery driver has these too:\n\n");
	add_params(b, jget(d, "commonParameters"));
	buf_puts(
		b,
		"\nThis page is made from the driver's table: `hostvol drivers --markdown=DIR`.\n");
}

static void lower(const char *name, char *buf, size_t size)
{
	size_t i;

	for (i = 0; name[i] && i < size - 1; i++)
		buf[i] = (char)tolower((unsigned char)name[i]);
	buf[i] = '\0';
}

static int write_page(const char *dir, const char *name, struct buf *b)
{
	cleanup_free char *path = xasprintf("%s/%s.md", dir, name);
	struct error err = ERROR_INIT;
	int r = file_write(path, b->data, b->len, 0644, &err);

	buf_done(b);
	if (r < 0)
		fprintf(stderr, "hostvol: %s\n", err.message);
	return r < 0 ? STATUS_FAILED : STATUS_OK;
}

static const char which_volume[] =
	"\n## Which volume it is\n"
	"The first connect records which volume it found: of a SCSI unit or an NVMe namespace the "
	"name that the disk itself says, of an RBD image its id and its cluster's, of an AoE disk "
	"the serial number, of a vendor's or a local device what the kernel knows of it. That holds "
	"until the last consumer has disconnected the volume: over reboots, for every other "
	"consumer, whether or not the parameters name the volume (`wwn`).\n\n"
	"Where another volume stands in its place, connecting fails with ESTALE and both names. It is "
	"not mounted, formatted or written, and the record stays as it was. Give the volume its "
	"place back at the storage; or, if the new one is meant, end the use of the old one for all "
	"its consumers:\n\n"
	"    hostvol forget pvc-0f3a\n\n"
	"It is refused while the recorded volume works, and while somebody uses what is there. Where "
	"disconnecting needs a password (SCALEIO) this does too: `hostvol forget -f volume.yaml`. "
	"A record that cannot be read may be the one that knows: until it is put back, or moved "
	"away, a volume that no other record knows is refused (EBADMSG), unless the parameters "
	"name it (`wwn`, `serial`, `volUuid` and the like). "
	"File systems of a server (NFS, GlusterFS and the like) and DRBD have no such name: there "
	"the parameters say which volume it is.\n";

int markdown_write(const json_t *drivers, const char *dir)
{
	struct buf index = { 0 }, page = { 0 };
	const json_t *d;
	char name[64];
	size_t i;

	buf_puts(&index, "# Connectors\n\nWhat `hostvol` and libhostvol can connect to a host. A "
			 "connection is a ConnectionInfo: a `driverVolumeType` and its `data`.\n\n"
			 "| driver | protocol | in this version |\n|---|---|---|\n");
	json_array_foreach ((json_t *)drivers, i, d) {
		lower(jstr(d, "name"), name, sizeof(name));
		if (!jbool(d, "supported")) {
			buf_printf(&index, "| %s | %s | not yet |\n", jstr(d, "name"),
				   jstr(d, "title"));
			continue;
		}
		buf_printf(&index, "| [%s](%s.md) | %s | yes |\n", jstr(d, "name"), name,
			   jstr(d, "title"));
		add_page(&page, d);
		if (write_page(dir, name, &page)) {
			buf_done(&index);
			return STATUS_FAILED;
		}
	}
	buf_puts(&index, which_volume);
	return write_page(dir, "README", &index);
}
