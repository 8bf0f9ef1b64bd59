/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "core/attachment.h"

/*
 * Which volume a disk is, by what it says itself when asked now: a LUN or a namespace may be
 * another volume than it was, under the same name.
 */

#define IDENTITY_MAX 12
#define IDENTITY_TEXT 200

/*
 * Names of one volume, each as KIND.VALUE: naa.6001405…, eui.…, uuid.…, nguid.…, t10.VENDOR…,
 * name.…, serial.…. Values are lower case without white space.
 */
struct identity {
	char names[IDENTITY_MAX][IDENTITY_TEXT];
	int count;
};

/* Where a record has it (driver.identity): of SCSI units, the same by every way to them. */
extern const char *const identity_keys[];

/* ---- pure ---- */

/* Adds kind.value, made printable; without a value, or when full, nothing. */
void identity_add(struct identity *id, const char *kind, const char *value, size_t len);
void identity_add_hex(struct identity *id, const char *kind, const unsigned char *bytes,
		      size_t len);
/* The designators of the logical unit in a page 0x83; -EBADMSG: it is none. */
int identity_from_page83(const unsigned char *page, size_t len, struct identity *ret);
/* The unit serial number of a page 0x80. */
int identity_from_page80(const unsigned char *page, size_t len, struct identity *ret);
/* The descriptors of a namespace (identify, CNS 3). */
int identity_from_nvme(const unsigned char *list, size_t len, struct identity *ret);
/* Text of a record and back. */
int identity_to_text(const struct identity *id, char **ret, struct error *err);
void identity_from_text(const char *text, struct identity *ret);
/*
 * Whether name, as storage and people write it (with or without 0x, naa., wwn-, the 3 of a
 * multipath WWID, dashes; in any case), is one of the volume's.
 */
bool identity_is_called(const struct identity *id, const char *name);
/*
 * Whether two can be the same volume: at least one name in common, and no kind of which both have
 * names without one in common (some storage cuts its NAA short).
 */
bool identity_same(const struct identity *a, const struct identity *b);

/* ---- of a disk ---- */

/*
 * Asks a SCSI disk: for page 0x83, and where that is missing, or does not have the expected name
 * (may be NULL) or what is recorded (may be ""), for its serial number too: that may be all that was
 * known of it. -ENXIO: the kernel does not let it be opened yet.
 */
int identity_of_scsi(const struct call *c, const char *disk, const char *expected,
		     const char *recorded, struct identity *ret, struct error *err);
/* Asks a namespace. -ENXIO as above. */
int identity_of_nvme(const struct call *c, const char *disk, struct identity *ret,
		     struct error *err);

/*
 * Against what the parameter (the expected name; may be NULL) and the record say; the first
 * time it is put into the record. -ESTALE: another volume; the message says which one stands at where.
 */
int identity_check(struct attachment *a, const char *where, const struct identity *live,
		   const char *expected, struct error *err);
