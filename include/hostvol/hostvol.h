/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HOSTVOL_H
#define HOSTVOL_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * libhostvol connects a volume of any protocol to this host, and gives the path at which it can be
 * used. There is no daemon: what is connected is recorded in files, and every process of the host
 * that uses the same directories shares the records and the locks.
 *
 * Conventions
 *  - Functions return 0, or > 0 for "done differently" (each says when), or -errno. On failure an
 *    output is untouched and *err (may be NULL) holds one sentence for a person.
 *  - What is given back is the caller's: strings end with hostvol_free(), structures with their
 *    own function. All of these accept NULL.
 *  - A handle does not change after hostvol_open(): threads may share one. hostvol_cancel() ends
 *    the calls of all of them.
 *  - The library starts no threads, logs nothing itself (a callback does), never ends the process
 *    (an allocation that fails is -ENOMEM), and never writes a secret to a record, a log, an error
 *    or a command line.
 *  - Calls block, no longer than the handle's deadline plus ten seconds in which a failed call
 *    undoes what it did. What may hang in the kernel runs in a child process, which the library
 *    reaps itself (it raises no SIGCHLD).
 */

#define HOSTVOL_VERSION "0.1.0"

#if defined(__GNUC__)
#define HOSTVOL_API __attribute__((visibility("default")))
#else
#define HOSTVOL_API
#endif

/* ---- constants ------------------------------------------------------------------------------ */

/* Platform type */
#define HOSTVOL_PLATFORM_ALL "ALL"
#define HOSTVOL_PLATFORM_X86 "X86"
#define HOSTVOL_PLATFORM_S390 "S390"
#define HOSTVOL_PLATFORM_PPC64 "PPC64"

/* Operating system type */
#define HOSTVOL_OS_TYPE_ALL "ALL"
#define HOSTVOL_OS_TYPE_LINUX "LINUX"
#define HOSTVOL_OS_TYPE_WINDOWS "WIN"

/* Driver type; hostvol_drivers_json() says which ones this version can connect */
#define HOSTVOL_ISCSI "ISCSI"
#define HOSTVOL_ISER "ISER"
#define HOSTVOL_FIBRE_CHANNEL "FIBRE_CHANNEL"
#define HOSTVOL_AOE "AOE"
#define HOSTVOL_DRBD "DRBD"
#define HOSTVOL_NFS "NFS"
#define HOSTVOL_GLUSTERFS "GLUSTERFS"
#define HOSTVOL_LOCAL "LOCAL"
#define HOSTVOL_GPFS "GPFS"
#define HOSTVOL_HUAWEISDSHYPERVISOR "HUAWEISDSHYPERVISOR"
#define HOSTVOL_HGST "HGST"
#define HOSTVOL_RBD "RBD"
#define HOSTVOL_SCALEIO "SCALEIO"
#define HOSTVOL_SCALITY "SCALITY"
#define HOSTVOL_QUOBYTE "QUOBYTE"
#define HOSTVOL_DISCO "DISCO"
#define HOSTVOL_VZSTORAGE "VZSTORAGE"
#define HOSTVOL_SMB "SMB" /* beyond the specification */

/* A unified prefix of device paths */
#define HOSTVOL_VOLUME_LINK_DIR "/dev/disk/by-id/"

#define HOSTVOL_DEFAULT_STATE_DIR "/var/lib/quartermaster/hostvol"
#define HOSTVOL_DEFAULT_RUN_DIR "/run/quartermaster/hostvol"
#define HOSTVOL_DEFAULT_DEADLINE_MS 60000

/* ---- errors, strings, handle ---------------------------------------------------------------- */

struct hostvol_error {
	int code; /* positive errno, 0 while nothing failed */
	char message[500];
};

/* Severity of what the log callback is told. */
enum hostvol_log_level { HOSTVOL_LOG_DEBUG, HOSTVOL_LOG_INFO, HOSTVOL_LOG_WARNING };
/* Called on the thread of the caller; message is one line, without secrets. */
typedef void (*hostvol_log_fn)(enum hostvol_log_level level, const char *message, void *userdata);

struct hostvol; /* a handle */
struct hostvol_host; /* all contact with the machine; NULL means this one */

struct hostvol_options {
	size_t size; /* sizeof(struct hostvol_options): lets the structure grow */
	const char *state_dir; /* records, survives a reboot; NULL: HOSTVOL_DEFAULT_STATE_DIR */
	const char *run_dir; /* locks, shared by all processes; NULL: HOSTVOL_DEFAULT_RUN_DIR */
	int deadline_ms; /* of each call; 0: HOSTVOL_DEFAULT_DEADLINE_MS */
	hostvol_log_fn log; /* NULL: silence */
	void *log_userdata;
	const char *ip; /* the properties' ip; NULL: the first address that is not loopback */
	const struct hostvol_host *host;
};

/* options may be NULL. Touches nothing on the host; -EINVAL for a directory that is no clean path. */
HOSTVOL_API int hostvol_open(const struct hostvol_options *options, struct hostvol **ret,
			     struct hostvol_error *err);
HOSTVOL_API void hostvol_close(struct hostvol *h);
HOSTVOL_API void hostvol_free(char *string);
HOSTVOL_API const char *hostvol_version(void);

/* ---- structures ----------------------------------------------------------------------------- */

/* What a storage backend may want to know about this host before it exports a volume to it. */
struct hostvol_connector_properties {
	bool do_local_attach; /* "doLocalAttach" */
	char *platform; /* "platform" */
	char *os_type; /* "osType" */
	char *ip; /* "ip" */
	char *host; /* "host" */
	bool multipath; /* "multipath": asked for, and multipathd runs */
	char *initiator; /* "initiator": iSCSI name, "" where there is none */
	/* in the JSON only where the host has them */
	char *nqn; /* "nqn" */
	char *host_id; /* "hostId": of NVMe */
	char *system_uuid; /* "systemUuid" */
	char *sdc_guid; /* "sdcGuid": of the ScaleIO client */
	char **wwpns; /* "wwpns": Fibre Channel ports, ended by NULL; NULL: none */
	char **wwnns; /* "wwnns" */
};

/* All that is needed to connect a volume. */
struct hostvol_connection_info {
	char *driver_volume_type; /* "driverVolumeType", one of the driver types, in any case */
	char *data; /* "data": the driver's parameters, the text of a JSON object */
	/*
	 * "consumer", in the JSON only where set: who uses the volume. A volume stays connected until
	 * each of its consumers has disconnected it. NULL is a consumer too, the one without a name.
	 */
	char *consumer;
};

/* "data" of ISCSI and ISER. */
struct hostvol_iscsi_connection_data {
	bool target_discovered; /* "targetDiscovered": whether discovery was used */
	char *target_iqn; /* "targetIqn" */
	char *target_portal; /* "targetPortal" */
	char *target_lun; /* "targetLun" */
	char *volume_id; /* "volumeId" */
	char *auth_username; /* "authUsername" */
	char *auth_password; /* "authPassword" */
};

/*
 * Structures to JSON and back. Text is compact, fields in the order of the structure. Reading
 * accepts missing fields (false, "") and ignores unknown ones; -EINVAL says what is wrong where.
 * A connection info may also be flat, as CSI's volumeAttributes are: without "data", every other
 * field is a parameter.
 */
HOSTVOL_API int hostvol_connector_properties_to_json(const struct hostvol_connector_properties *p,
						     char **ret, struct hostvol_error *err);
HOSTVOL_API int hostvol_connector_properties_from_json(const char *json,
						       struct hostvol_connector_properties **ret,
						       struct hostvol_error *err);
HOSTVOL_API void hostvol_connector_properties_free(struct hostvol_connector_properties *p);

HOSTVOL_API int hostvol_connection_info_to_json(const struct hostvol_connection_info *c, char **ret,
						struct hostvol_error *err);
HOSTVOL_API int hostvol_connection_info_from_json(const char *json,
						  struct hostvol_connection_info **ret,
						  struct hostvol_error *err);
HOSTVOL_API void hostvol_connection_info_free(struct hostvol_connection_info *c);

HOSTVOL_API int hostvol_iscsi_connection_data_to_json(const struct hostvol_iscsi_connection_data *d,
						      char **ret, struct hostvol_error *err);
HOSTVOL_API int hostvol_iscsi_connection_data_from_json(const char *json,
							struct hostvol_iscsi_connection_data **ret,
							struct hostvol_error *err);
HOSTVOL_API void hostvol_iscsi_connection_data_free(struct hostvol_iscsi_connection_data *d);

/* ---- the interface -------------------------------------------------------------------------- */

HOSTVOL_API int hostvol_get_connector_properties(struct hostvol *h, bool multipath,
						 bool do_local_attach,
						 struct hostvol_connector_properties **ret,
						 struct hostvol_error *err);

/*
 * Connects the volume for its consumer and gives the path: a device, a directory or a file. The
 * path is returned only once what is there was seen to be what was asked for. Connecting what is
 * connected gives the same path again; after a reboot, or when the file system's client died, it
 * connects afresh. A failed call leaves nothing behind.
 *
 * Which volume it is (the disk's own name, the image's id) is recorded with the first consumer, and
 * holds until the last has disconnected: over reboots, for every other consumer, and whatever the
 * storage has put in its place. Another volume there is -ESTALE, with both names, and left alone;
 * hostvol_forget_json() is for a person who means the new one.
 *
 * 1: connected before with other options (the same volume), which stay in force.
 * -EINVAL: a parameter; -EOPNOTSUPP: this version has no such driver; -EEXIST: the volume id is
 * connected from another place; -EBADMSG: a record that cannot be read may say which volume it is;
 * -ENOENT: no such device or sub path; -ETIMEDOUT; -EIO: the storage or a helper program said no,
 * the message has its words.
 */
HOSTVOL_API int hostvol_connect_volume(struct hostvol *h,
				       const struct hostvol_connection_info *conn, char **ret_path,
				       struct hostvol_error *err);

/*
 * Ends the consumer's use of the volume and gives the path that it had. The last consumer's
 * disconnect removes it from the host. Works from the record: of conn only the volume and the
 * consumer matter, and secrets, which no record has, where the driver needs them for it (SCALEIO).
 *
 * 1: was not connected, the path is "". -EBUSY: in use, and all is as before.
 */
HOSTVOL_API int hostvol_disconnect_volume(struct hostvol *h,
					  const struct hostvol_connection_info *conn,
					  char **ret_path, struct hostvol_error *err);

/*
 * The path of a connected volume, verified again. -ENOENT: not connected (or no longer, since a
 * reboot: connect again); -ENOTCONN: the file system's client died: connect again.
 */
HOSTVOL_API int hostvol_get_device_path(struct hostvol *h, const char *volume_id, char **ret_path,
					struct hostvol_error *err);

/* ---- the same, and more, in JSON ------------------------------------------------------------ */

/*
 * An attachment record is a connection info (no secrets) and more:
 *   {"version", "driverVolumeType", "data", "volumeId", "consumer", "state", "path", "target", "detail",
 *    "bootId", "since"}
 * state is "attached", or "connecting" or "disconnecting" where a process died in the middle;
 * "wasAttached": true is added where it was connecting what had been attached before. In
 * lists "health" is added: "ok", or what is wrong. A record can be given to disconnect.
 */
HOSTVOL_API int hostvol_get_connector_properties_json(struct hostvol *h, bool multipath,
						      bool do_local_attach, char **ret_json,
						      struct hostvol_error *err);
/* As hostvol_connect_volume; gives the record. */
HOSTVOL_API int hostvol_connect_volume_json(struct hostvol *h, const char *connection_json,
					    char **ret_record_json, struct hostvol_error *err);
/* Flags of hostvol_disconnect_volume_json */
#define HOSTVOL_FORCE                                                                              \
	1u /* although in use: users get errors from now on, unwritten data may be lost */
/*
 * As hostvol_disconnect_volume, of a connection info, a record, or just
 * {"volumeId": "…", "consumer": "…"}; gives {"volumeId", "consumer", "path"}.
 */
HOSTVOL_API int hostvol_disconnect_volume_json(struct hostvol *h, const char *json, unsigned flags,
					       char **ret_json, struct hostvol_error *err);
/* An array of records; volume_id NULL: all. */
HOSTVOL_API int hostvol_list_json(struct hostvol *h, const char *volume_id, char **ret_json,
				  struct hostvol_error *err);
/*
 * Ends every consumer's use of a volume that is not what was connected, after which the next
 * connect takes what stands there: a person's word, never a program's. json is as of
 * hostvol_disconnect_volume_json, where the consumer does not matter, and secrets do as there.
 * Gives [{"volumeId", "consumer", "path"}]. 1: there was no record. -EBUSY: somebody uses what is
 * there, a consumer whose name is a path has something mounted at it, or it is the volume that was
 * connected, and works; then nothing has changed for any consumer.
 */
HOSTVOL_API int hostvol_forget_json(struct hostvol *h, const char *json, char **ret_json,
				    struct hostvol_error *err);
/*
 * Takes up what died in the middle: an interrupted connect is undone, an interrupted disconnect
 * finished; what was attached before such a connect is kept. Gives [{"volumeId", "consumer",
 * "action": "undone"|"finished"|"kept"|"failed", "message"}].
 * 1: some could not be brought to an end; they are tried again next time.
 */
HOSTVOL_API int hostvol_recover_json(struct hostvol *h, char **ret_json, struct hostvol_error *err);
/*
 * Makes this host see that the storage has grown the volume; a file system on it stays as it is.
 * Gives {"volumeId", "path", "size", "paths": [{"device", "before", "after", "error"}]}, where
 * paths failed together with the error. Extending what has not grown changes nothing.
 */
HOSTVOL_API int hostvol_extend_volume_json(struct hostvol *h, const char *volume_id,
					   char **ret_json, struct hostvol_error *err);
/*
 * What disconnecting (json as there) would do now: {"volumeId", "consumer", "path", "devices",
 * "usedBy", "steps"}; where usedBy (mounts, devices on top, programs) is not empty, it would be
 * refused without HOSTVOL_FORCE. Changes nothing.
 */
HOSTVOL_API int hostvol_plan_json(struct hostvol *h, const char *json, char **ret_json,
				  struct hostvol_error *err);
/* Flags of hostvol_audit_json */
#define HOSTVOL_REPAIR 1u /* take away what is found */
/*
 * Finds what this library left when it was interrupted: records, and sessions, controllers, disks
 * and maps that no record names. Gives [{"kind", "name", "message", "action"}]; action is "none"
 * without HOSTVOL_REPAIR, else what was done, or "failed". 1: something remains.
 */
HOSTVOL_API int hostvol_audit_json(struct hostvol *h, unsigned flags, char **ret_json,
				   struct hostvol_error *err);
/*
 * From another thread: the calls that are under way on this handle end soon with -ECANCELED, and
 * undo what they did. Later calls are not touched.
 */
HOSTVOL_API void hostvol_cancel(struct hostvol *h);
/* The driver table: names, aliases, parameters, which are supported. */
HOSTVOL_API int hostvol_drivers_json(char **ret_json, struct hostvol_error *err);

/* ---- the specification's own names ---------------------------------------------------------- */
#ifdef HOSTVOL_SEED_NAMES
#define PLATFORM_ALL HOSTVOL_PLATFORM_ALL
#define PLATFORM_x86 HOSTVOL_PLATFORM_X86
#define PLATFORM_S390 HOSTVOL_PLATFORM_S390
#define PLATFORM_PPC64 HOSTVOL_PLATFORM_PPC64
#define OS_TYPE_ALL HOSTVOL_OS_TYPE_ALL
#define OS_TYPE_LINUX HOSTVOL_OS_TYPE_LINUX
#define OS_TYPE_WINDOWS HOSTVOL_OS_TYPE_WINDOWS
#define ISCSI HOSTVOL_ISCSI
#define ISER HOSTVOL_ISER
#define FIBRE_CHANNEL HOSTVOL_FIBRE_CHANNEL
#define AOE HOSTVOL_AOE
#define DRBD HOSTVOL_DRBD
#define NFS HOSTVOL_NFS
#define GLUSTERFS HOSTVOL_GLUSTERFS
#define LOCAL HOSTVOL_LOCAL
#define GPFS HOSTVOL_GPFS
#define HUAWEISDSHYPERVISOR HOSTVOL_HUAWEISDSHYPERVISOR
#define HGST HOSTVOL_HGST
#define RBD HOSTVOL_RBD
#define SCALEIO HOSTVOL_SCALEIO
#define SCALITY HOSTVOL_SCALITY
#define QUOBYTE HOSTVOL_QUOBYTE
#define DISCO HOSTVOL_DISCO
#define VZSTORAGE HOSTVOL_VZSTORAGE
#define VOLUME_LINK_DIR HOSTVOL_VOLUME_LINK_DIR
#define GetConnectorProperties hostvol_get_connector_properties
#define ConnectVolume hostvol_connect_volume
#define DisconnectVolume hostvol_disconnect_volume
#define GetDevicePath hostvol_get_device_path
typedef struct hostvol_connector_properties ConnectorProperties;
typedef struct hostvol_connection_info ConnectionInfo;
typedef struct hostvol_iscsi_connection_data IscsiConnectionData;
#endif

#ifdef __cplusplus
}
#endif

#endif
