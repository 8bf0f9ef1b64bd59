/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/arguments.h"

#include "base/mem.h"
#include "base/str.h"

#include <errno.h>

#define TEXT_MAX 1024

/* Control characters, as the specification bans them: C0 but tab, line feed and return; C1. */
static bool is_banned(const unsigned char *s)
{
	if (*s < 0x20)
		return *s != '\t' && *s != '\n' && *s != '\r';
	return *s == 0x7f || (*s == 0xc2 && s[1] >= 0x80 && s[1] <= 0x9f);
}

int argument_text(const char *text, const char *what, struct error *err)
{
	if (!*text)
		return error_set(err, EINVAL, "%s is missing", what);
	if (strlen(text) > TEXT_MAX)
		return error_set(err, EINVAL, "%s is longer than %d bytes", what, TEXT_MAX);
	for (const unsigned char *s = (const unsigned char *)text; *s; s++)
		if (is_banned(s))
			return error_set(err, EINVAL, "%s has a control character in it", what);
	cleanup_json json_t *utf8 = json_string(text);
	return utf8 ? 0 : error_set(err, EINVAL, "%s is not UTF-8", what);
}

/* ---- sizes ------------------------------------------------------------------------------------- */

int argument_capacity(const Csi__V1__CapacityRange *range, int64_t *ret_bytes, int64_t *ret_limit,
		      struct error *err)
{
	int64_t bytes = range ? range->required_bytes : 0, limit = range ? range->limit_bytes : 0;

	if (bytes < 0 || limit < 0)
		return error_set(err, EINVAL, "capacity_range has a number below 0");
	if (limit && bytes > limit)
		return error_set(err, EINVAL,
				 "capacity_range requires %lld bytes, more than its limit of %lld",
				 (long long)bytes, (long long)limit);
	*ret_bytes = bytes;
	*ret_limit = limit;
	return 0;
}

/* ---- capabilities and parameters --------------------------------------------------------------- */

static const char *mode_name(int mode)
{
	const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(
		&csi__v1__volume_capability__access_mode__mode__descriptor, mode);
	return v ? v->name : "(unknown)";
}

/* A device or an image on one is written by one node at a time; a directory by all. */
static bool mode_fits(enum volume_kind kind, int mode)
{
	switch (mode) {
	case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER:
	case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_READER_ONLY:
	case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_READER_ONLY:
	case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_SINGLE_WRITER:
	case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_MULTI_WRITER:
		return true;
	case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_SINGLE_WRITER:
	case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_MULTI_WRITER:
		return volume_is_tree(kind);
	default:
		return false;
	}
}

/* A file system is made only in an image; what stands there for a directory is not ours to judge. */
static bool fs_fits(enum volume_kind kind, const char *fs_type)
{
	return kind != VOLUME_FILE || !*fs_type || streq(fs_type, "ext4") || streq(fs_type, "xfs");
}

int argument_capability(enum volume_kind kind, const Csi__V1__VolumeCapability *c,
			struct error *err)
{
	bool block = c->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
	bool mount = c->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;

	if (!block && !mount)
		return error_set(err, EINVAL, "volume_capability says neither mount nor block");
	if (!c->access_mode || !c->access_mode->mode)
		return error_set(err, EINVAL, "volume_capability has no access_mode");
	if (block != (kind == VOLUME_BLOCK))
		return error_set(err, EINVAL, "this volume is %s, and is not used as %s",
				 kind == VOLUME_BLOCK ? "a block device" : "a file system",
				 block ? "a block device" : "a file system");
	if (!mode_fits(kind, (int)c->access_mode->mode))
		return error_set(
			err, EINVAL,
			"a volume of kind %s is not shared like %s; ask for kind directory",
			kind == VOLUME_BLOCK ? "block" : "file",
			mode_name((int)c->access_mode->mode));
	if (mount && !fs_fits(kind, c->mount->fs_type))
		return error_set(err, EINVAL, "fs_type %.32s is not made here; use ext4 or xfs",
				 c->mount->fs_type);
	return 0;
}

static int kind_parameter(const char *value, enum volume_kind *ret, struct error *err)
{
	static const struct {
		const char *word;
		enum volume_kind kind;
	} kinds[] = { { "directory", VOLUME_DIRECTORY },
		      { "file", VOLUME_FILE },
		      { "block", VOLUME_BLOCK },
		      { "whole", VOLUME_WHOLE } };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (streq(value, kinds[i].word)) {
			*ret = kinds[i].kind;
			return 0;
		}
	return error_set(err, EINVAL,
			 "the parameter kind is \"%.32s\"; use directory, file, block or whole",
			 value);
}

static int one_parameter(const struct parameter *p, enum volume_kind *kind, const char **pool,
			 struct error *err)
{
	if (strchr(p->key, '/'))
		return 0;
	if (streq(p->key, "kind"))
		return kind_parameter(p->value, kind, err);
	if (streq(p->key, "pool")) {
		if (!name_is_label(p->value))
			return error_set(err, EINVAL,
					 "the parameter pool is \"%.64s\", no pool's name",
					 p->value);
		*pool = p->value;
		return 0;
	}
	return error_set(err, EINVAL, "there is no parameter \"%.64s\"; there are kind and pool",
			 p->key);
}

int argument_kind(Csi__V1__VolumeCapability *const *capabilities, size_t count,
		  const struct parameter *parameters, size_t parameter_count,
		  struct volume_request *ret, struct error *err)
{
	const char *pool = NULL;
	bool block = count && capabilities[0]->access_type_case ==
				      CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
	enum volume_kind kind = block ? VOLUME_BLOCK : VOLUME_DIRECTORY;
	int rc = 0;

	for (size_t i = 0; i < parameter_count && rc == 0; i++)
		rc = one_parameter(&parameters[i], &kind, &pool, err);
	for (size_t i = 0; i < count && rc == 0; i++)
		rc = argument_capability(kind, capabilities[i], err);
	if (rc < 0)
		return rc;
	ret->kind = kind;
	ret->pool = pool;
	return 0;
}
