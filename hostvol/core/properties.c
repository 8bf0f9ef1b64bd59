/* SPDX-License-Identifier: Apache-2.0 */
#include "properties.h"

#include "base/mem.h"
#include "base/str.h"
#include "core/sdc.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>

#define LINE_MAX_LEN 300
#define SDC_MS 5000

const char *platform_of(const char *machine)
{
	static const struct {
		const char *machine, *platform;
	} table[] = {
		{ "x86_64", HOSTVOL_PLATFORM_X86 },    { "i386", HOSTVOL_PLATFORM_X86 },
		{ "i486", HOSTVOL_PLATFORM_X86 },      { "i586", HOSTVOL_PLATFORM_X86 },
		{ "i686", HOSTVOL_PLATFORM_X86 },      { "s390", HOSTVOL_PLATFORM_S390 },
		{ "s390x", HOSTVOL_PLATFORM_S390 },    { "ppc64", HOSTVOL_PLATFORM_PPC64 },
		{ "ppc64le", HOSTVOL_PLATFORM_PPC64 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (streq(machine, table[i].machine))
			return table[i].platform;
	return HOSTVOL_PLATFORM_ALL;
}

/* "InitiatorName=iqn.…", a comment or an empty line before it. */
static int read_initiator(const struct hostvol_host *host, char *buf, size_t size)
{
	static const char key[] = "InitiatorName=";
	cleanup_free char *path = NULL;
	char line[LINE_MAX_LEN];
	FILE *f;
	int r;

	buf[0] = '\0';
	r = text_format(&path, NULL, "%s/etc/iscsi/initiatorname.iscsi", host->root);
	if (r < 0)
		return r;
	f = fopen(path, "re");
	if (!f)
		return 0;
	while (!buf[0] && fgets(line, sizeof(line), f)) {
		const char *start = line + strspn(line, " \t");

		if (str_has_prefix(start, key)) {
			start += sizeof(key) - 1;
			snprintf(buf, size, "%.*s", (int)strcspn(start, " \t\r\n"), start);
		}
	}
	fclose(f);
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts, and keeps one of several that are the same: the ports of a node have its name. */
static void sort_names(char **names, size_t count)
{
	size_t kept = 0;

	qsort(names, count, sizeof(*names), by_text);
	for (size_t i = 1; i < count; i++) {
		if (streq(names[i], names[kept]))
			free(names[i]);
		else
			names[++kept] = names[i];
	}
	names[kept + 1] = NULL;
}

/* The attribute of every Fibre Channel port, without its "0x", sorted; *ret NULL: none. */
static int read_ports(const struct hostvol_host *host, const char *attribute, char ***ret)
{
	cleanup_free char *path = NULL;
	char file[400], line[64], **ports = NULL, **more;
	struct dirent *e;
	size_t n = 0;
	DIR *dir;
	int r = text_format(&path, NULL, "%s/sys/class/fc_host", host->root);

	if (r < 0)
		return r;
	dir = opendir(path);
	if (!dir)
		return 0;
	while (r >= 0 && (e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "/sys/class/fc_host/%s/%s", e->d_name, attribute);
		if (host_read_line(host, file, line, sizeof(line)) < 0 || !line[0])
			continue;
		more = realloc(ports, (n + 2) * sizeof(*ports));
		if (more) {
			ports = more;
			ports[n] = strdup(str_has_prefix(line, "0x") ? line + 2 : line);
			ports[n + 1] = NULL;
		}
		r = more && ports[n++] ? 0 : -ENOMEM;
	}
	closedir(dir);
	if (n > 1 && r >= 0)
		sort_names(ports, n);
	*ret = ports; /* freed with the properties, on failure too */
	return r;
}

static int set_line(const struct hostvol_host *host, const char *path, char **ret)
{
	char line[LINE_MAX_LEN];

	host_read_line(host, path, line, sizeof(line));
	*ret = strdup(line);
	return *ret ? 0 : -ENOMEM;
}

/* The ScaleIO client's GUID, "" where there is none. */
static int set_sdc(const struct hostvol_host *host, char **ret)
{
	cleanup_free char *device = NULL;
	char guid[SDC_GUID_MAX] = "";
	int r = text_format(&device, NULL, "%s" SDC_DEVICE, host->root);

	if (r < 0)
		return r;
	if (access(device, F_OK) == 0) /* most hosts have none, and asking takes a process */
		(void)sdc_guid(host, SDC_MS, guid, NULL);
	*ret = strdup(guid);
	return *ret ? 0 : -ENOMEM;
}

static int fill_seed(const struct hostvol *h, struct hostvol_connector_properties *p,
		     struct error *err)
{
	char machine[128], name[128], address[64], initiator[LINE_MAX_LEN];
	const struct hostvol_host *host = h->host;
	int r;

	r = host->identify(host, machine, name, sizeof(machine));
	if (r < 0)
		return error_errno(err, -r, "cannot read the name of this host");
	r = h->ip ? 0 : host->address(host, address, sizeof(address));
	if (r < 0)
		return error_errno(err, -r, "cannot read the addresses of this host");
	r = read_initiator(host, initiator, sizeof(initiator));
	if (r < 0)
		return no_memory(err);
	p->platform = strdup(platform_of(machine));
	p->os_type = strdup(HOSTVOL_OS_TYPE_LINUX);
	p->ip = strdup(h->ip ? h->ip : address);
	p->host = strdup(name);
	p->initiator = strdup(initiator);
	if (!p->platform || !p->os_type || !p->ip || !p->host || !p->initiator)
		return no_memory(err);
	return 0;
}

int properties_read(const struct hostvol *h, bool multipath, bool do_local_attach,
		    struct hostvol_connector_properties **ret, struct error *err)
{
	struct hostvol_connector_properties *p = calloc(1, sizeof(*p));
	const struct hostvol_host *host = h->host;
	int r;

	if (!p)
		return no_memory(err);
	p->do_local_attach = do_local_attach;
	p->multipath = multipath && host->multipathd_runs(host);
	r = fill_seed(h, p, err);
	if (r >= 0 &&
	    (set_line(host, "/etc/nvme/hostnqn", &p->nqn) < 0 ||
	     set_line(host, "/etc/nvme/hostid", &p->host_id) < 0 ||
	     set_line(host, "/sys/class/dmi/id/product_uuid", &p->system_uuid) < 0 ||
	     set_sdc(host, &p->sdc_guid) < 0 || read_ports(host, "port_name", &p->wwpns) < 0 ||
	     read_ports(host, "node_name", &p->wwnns) < 0))
		r = no_memory(err);
	if (r < 0) {
		hostvol_connector_properties_free(p);
		return r;
	}
	*ret = p;
	return 0;
}
