/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * All contact with the machine. Another implementation stands for another place (a recorded tree
 * and a model of the mount table in tests, a client container later). Operations block no longer
 * than the time they are given; those that may hang in the kernel run in a child process.
 * They return 0 or -errno.
 */
struct hostvol_host;

struct host_command {
	const char *const
		*argv; /* argv[0] is looked up in PATH and in the system's sbin directories */
	const char *input; /* given on standard input: the place for secrets; or NULL */
	size_t input_len;
	int timeout_ms;
	/* "NAME=VALUE" beside the fixed environment, no secrets, ended by NULL; or NULL */
	const char *const *env;
	/* where the end of standard output is kept instead of in the result, or NULL */
	char *out;
	size_t out_size;
	const char *client; /* the one that choose_client gave, or NULL */
};

struct host_result {
	int status; /* exit status, or 128 + signal */
	char out[1024]; /* what was printed last */
	char err[1024];
};

enum host_file {
	HOST_FILE_NONE,
	HOST_FILE_DIRECTORY,
	HOST_FILE_REGULAR,
	HOST_FILE_BLOCK,
	HOST_FILE_OTHER
};

struct host_stat {
	enum host_file type;
	uint64_t size; /* bytes, of a file or a block device */
	unsigned major, minor; /* of a block device */
};

enum host_unmount {
	HOST_UNMOUNT_PLAIN, /* -EBUSY while in use */
	HOST_UNMOUNT_DETACH, /* taken out of the tree now, gone when its last user is */
};

struct hostvol_host {
	/* Put before /sys, /dev, /etc and /proc where files there are read: "" on a real machine. */
	const char *root;
	void *userdata;

	int64_t (*mono_ms)(const struct hostvol_host *host);
	int64_t (*wall_ms)(const struct hostvol_host *host);
	void (*sleep_ms)(const struct hostvol_host *host, int ms);

	/*
	 * Runs a program to its end; -ENOENT: there is none; -ETIMEDOUT: it was killed. Where it
	 * could not be run, the result's err may say why, in one sentence.
	 */
	int (*run)(const struct hostvol_host *host, const struct host_command *command,
		   struct host_result *ret);
	/*
	 * Waits until no process of that program has last_arg as its last argument; kill: ends them
	 * first. -ETIMEDOUT: some are left.
	 */
	int (*await_end)(const struct hostvol_host *host, const char *program, const char *last_arg,
			 bool kill, int timeout_ms);

	/* The text of /proc/self/mountinfo; caller frees. */
	int (*mountinfo)(const struct hostvol_host *host, char **ret);
	int (*unmount)(const struct hostvol_host *host, const char *path, enum host_unmount how,
		       int timeout_ms);
	/* Whether the file system at path answers: -ENOTCONN, -ESTALE, … where it is dead. */
	int (*probe)(const struct hostvol_host *host, const char *path, int timeout_ms);
	/* Whether sub is there below dir, reached without leaving it and without any symlink. */
	int (*lookup)(const struct hostvol_host *host, const char *dir, const char *sub,
		      int timeout_ms);
	int (*stat)(const struct hostvol_host *host, const char *path, struct host_stat *ret,
		    int timeout_ms);

	/* With parents. */
	int (*make_dir)(const struct hostvol_host *host, const char *path, unsigned mode);
	int (*remove_dir)(const struct hostvol_host *host, const char *path);
	/* Durable when it returns: old content or new after a power cut, nothing between. */
	int (*write_file)(const struct hostvol_host *host, const char *path, const char *data,
			  size_t len);
	int (*remove_file)(const struct hostvol_host *host, const char *path);

	/* The first address that is not loopback, IPv4 before IPv6; "" where there is none. */
	int (*address)(const struct hostvol_host *host, char *buf, size_t size);
	/* Machine (as uname -m) and host name. */
	int (*identify)(const struct hostvol_host *host, char *machine, char *name, size_t size);
	bool (*multipathd_runs)(const struct hostvol_host *host);

	/* ---- block devices; a device is its path below /dev ---- */

	/* One write to a file of the kernel's (sysfs), below root. */
	int (*write_kernel)(const struct hostvol_host *host, const char *path, const char *text,
			    int timeout_ms);
	/* Asks the device itself (SG_IO) for a page of its vital product data; the length. */
	int (*inquiry)(const struct hostvol_host *host, const char *device, unsigned page,
		       unsigned char *buf, size_t size, int timeout_ms);
	/* Asks a namespace's controller: NVME_IDENTIFY_SIZE bytes; cns as in the NVMe specification. */
	int (*nvme_identify)(const struct hostvol_host *host, const char *device, unsigned cns,
			     unsigned char *buf, int timeout_ms);
	/* What an ATA disk said of itself when it was found: ATA_IDENTIFY_SIZE bytes, texts in order. */
	int (*ata_identify)(const struct hostvol_host *host, const char *device, unsigned char *buf,
			    int timeout_ms);
	/* A descriptor that holds the device for itself; -EBUSY: mounted, held, or claimed by another. */
	int (*claim)(const struct hostvol_host *host, const char *device);
	/* Writes out what is cached of the device. */
	int (*flush)(const struct hostvol_host *host, const char *device, int timeout_ms);
	/* Who has the device open for writing: "qemu (71), dd (80)", cut to size; "" for nobody. */
	int (*writers)(const struct hostvol_host *host, unsigned major, unsigned minor, char *buf,
		       size_t size);
	/* A descriptor that hears of devices' coming, changing and going, from kernel and udev. */
	int (*events_open)(const struct hostvol_host *host);
	/* 1: something happened since; 0: nothing within timeout_ms. */
	int (*events_wait)(const struct hostvol_host *host, int fd, int timeout_ms);
	/* One command to multipathd; its reply, cut to size. */
	int (*multipathd)(const struct hostvol_host *host, const char *command, char *reply,
			  size_t size, int timeout_ms);
	/* Connects an NVMe controller (options as /dev/nvme-fabrics takes them), and its reply. */
	int (*fabrics)(const struct hostvol_host *host, const char *options, char *reply,
		       size_t size, int timeout_ms);
	/* Tells the kernel's ATA over Ethernet "discover", "revalidate" or "flush", for one device. */
	int (*aoe)(const struct hostvol_host *host, const char *order, const char *device,
		   int timeout_ms);
	/*
	 * Maps a Ceph image by one write to a file of sysfs. The secret, where it has a length, is
	 * the kernel's key RBD_KEY_NAME for just that write.
	 */
	int (*rbd_add)(const struct hostvol_host *host, const char *path, const char *text,
		       const unsigned char *secret, size_t secret_len, int timeout_ms);

	/* What else drivers of storage vendors need. */

	/* ioctl(request, buf) on a device that is opened for it; buf comes back as it was left. */
	int (*control_device)(const struct hostvol_host *host, const char *path, unsigned request,
			      void *buf, size_t size, int timeout_ms);
	/* 1: a block device is held exclusively: mounted, part of another, swap. 0: it is not. */
	int (*device_in_use)(const struct hostvol_host *host, const char *path, int timeout_ms);
	/*
	 * How many names in a directory begin and end so; one of them, the first in order, in name.
	 * 0 where there is no such directory; -ENAMETOOLONG.
	 */
	int (*find_name)(const struct hostvol_host *host, const char *dir, const char *prefix,
			 const char *suffix, char *name, size_t size);
	/*
	 * Connects over TCP, sends all of request and receives exactly so many bytes. The address is
	 * a number, not a name. -ECONNRESET: the peer ended before that.
	 */
	int (*exchange)(const struct hostvol_host *host, const char *address, unsigned port,
			const void *request, size_t request_len, void *reply, size_t reply_len,
			int timeout_ms);
	/* Whether an interface of this host, loopback excepted, has the address (a number). */
	bool (*has_address)(const struct hostvol_host *host, const char *address);

	/*
	 * Which of several installations of a client program is to make new mounts: its id, which a
	 * command may carry; "" where there is no choice. wanted: that one and no other, or "". NULL:
	 * there is never one.
	 */
	void (*choose_client)(const struct hostvol_host *host, const char *program,
			      const char *wanted, char *id, size_t size);
};

#define CLIENT_ID_MAX 64

#define NVME_IDENTIFY_SIZE 4096
#define ATA_IDENTIFY_SIZE 512
#define RBD_KEY_NAME "hostvol"

extern const struct hostvol_host host_real;

/* The error of a run that failed with r: "cannot mount SOURCE: " and why, by the result or by r. */
int host_cannot_mount(const char *source, int r, const struct host_result *result,
		      struct error *err);

/*
 * First line of a small file below the host's root, without white space at its ends, cut to size;
 * "" and -errno where it cannot be read.
 */
int host_read_line(const struct hostvol_host *host, const char *path, char *buf, size_t size);

/* Processes with a deadline: the parts of host_real that need one. */
int process_run(const struct host_command *command, struct host_result *ret);
/*
 * Where else a program may run: in other namespaces, and in cgroups of that place, so that what it
 * leaves behind does not end with ours. All of it is borrowed.
 */
struct process_place {
	const int *ns; /* descriptors of namespaces, in the order in which they are entered */
	size_t ns_count;
	const char *const *cgroups; /* where hierarchies are mounted there; ended by NULL */
};
#define PROCESS_CGROUP "quartermaster-host" /* its name in each of them, where it can be made */
/* place NULL: here. -ENOENT: there is no such program there. */
int process_run_at(const struct process_place *place, const struct host_command *command,
		   struct host_result *ret);
/*
 * fn(arg) in a child process without our descriptors; fn makes system calls only and returns 0 or
 * -errno (at least -127). about: the device or file that it may hang on, NULL: any; while one that
 * did the same on the same hangs on, it is -ETIMEDOUT at once (base/hung.h).
 */
int process_call(int (*fn)(void *arg), void *arg, const char *about, int timeout_ms);
int process_await_end(const char *program, const char *last_arg, bool kill, int timeout_ms);
