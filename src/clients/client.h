/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What the node service and a client container say to each other.
 *
 * In the container qm-client listens on DIR/client.sock and runs there, for the node service, the
 * commands that libhostvol would run on the host: the same words, the same environment, the same
 * standard input, the same deadline. Each command has a connection of its own, so that one that
 * hangs is in nobody's way. Only root may ask (SO_PEERCRED).
 *
 *   request: length (4 bytes, most significant first), so much JSON, inputLength bytes of input
 *   reply:   length, so much JSON, outLength bytes of output, errLength bytes of errors
 *
 * Input, output and errors stand outside of the JSON since they are bytes, not text; secrets are
 * in the input and nowhere else.
 *
 *   {"op": "run", "argv": [WORD…], "env": ["NAME=VALUE"…], "inputLength": N, "outSize": N,
 *    "timeoutMs": N}
 *        Runs a program to its end. Reply: {"error": 0, "status": N, "outLength": N, "errLength": N}.
 *        It runs on where the asker goes away, as it would on the host.
 *   {"op": "awaitEnd", "program": NAME, "lastArgument": TEXT, "kill": BOOL, "timeoutMs": N}
 *        Waits until no process of that program has that last argument; kill: ends them first.
 *        Reply: {"error": 0}.
 *   {"op": "info"}
 *        Reply: {"error": 0, "pid": N, "version": TEXT, "image": TEXT, "ending": BOOL,
 *        "requests": N (others that are served now), "daemons": [{"pid": N, "program": NAME, "lastArgument": TEXT}…],
 *        "users": N (mounts of what the daemons serve, as this container sees them),
 *        "fuse": [{"mountPoint": PATH, "pid": N (0: none runs now), "starts": N, "message": TEXT
 *        (only where it was given up)}…]}.
 *   {"op": "watch"}
 *        Reply: {"error": 0}; then the connection stays, and {"daemonsEnded": N} comes over it each
 *        time that so many more daemons have ended. It says no names: a dead process has none any
 *        more, so whoever watches looks at its mounts. The end of the connection is the client's.
 *   {"op": "serveFuse", "mountPoint": PATH, "argv": [WORD…]}, and one byte with a descriptor
 *        Optional, for FUSE servers that can take over a descriptor of /dev/fuse: a file system that
 *        the asker has mounted with this descriptor is served by that program, which finds it as
 *        descriptor 3 (/dev/fd/3, as libfuse takes it for a mount point) and stays in the
 *        foreground. The client keeps a duplicate, and starts the program again with it when it
 *        ends while the file system is still mounted: whoever uses it waits meanwhile, and sees no
 *        error. One that ends again and again is given up, until it is asked for again.
 *        Reply: {"error": 0}. EEXIST: it is served already.
 *   {"op": "takeFuse", "mountPoint": PATH}
 *        Reply: {"error": 0, "argv": [WORD…]}, and one byte with a duplicate of the descriptor;
 *        ENOENT: none is kept.
 *        So both sides have the descriptor: the asker gives it to the next client when the
 *        container dies, and takes it back from the client when it begins anew itself (fuse.h). The
 *        kernel ends the mount when the last of them is closed, which is when both died.
 *
 * What a server that is to take over has to do: nothing of what it knows of the mount may be in its
 * memory alone (node and handle numbers stay in use), it gets no second FUSE_INIT, and requests
 * that the dead one had read are answered by nobody until it has them sent again by
 * FUSE_NOTIFY_RESEND (Linux 6.9): some of them were carried out, so each must bear to come twice.
 *
 * A failure is {"error": ERRNO, "message": TEXT}: ENOENT no such program, ETIMEDOUT killed when its
 * time was over, EINVAL a request that is not understood, EBUSY too many at once.
 * Whoever reads skips members that it does not know.
 */
#define CLIENT_SOCKET "client.sock" /* in the directory that both sides are given */
#define CLIENT_TEXT_MAX (256 << 10) /* JSON, either way */
#define CLIENT_INPUT_MAX (64 << 10)
#define CLIENT_OUTPUT_MAX (1 << 20)
#define CLIENT_WORDS_MAX 256
#define CLIENT_ENV_MAX 12
#define CLIENT_TIMEOUT_MAX_MS 3600000

enum client_op {
	CLIENT_RUN,
	CLIENT_AWAIT_END,
	CLIENT_INFO,
	CLIENT_WATCH,
	CLIENT_SERVE_FUSE,
	CLIENT_TAKE_FUSE,
};

struct client_request {
	enum client_op op;
	json_t *text; /* owned: the strings below are its */
	const char *argv[CLIENT_WORDS_MAX + 1], *env[CLIENT_ENV_MAX + 1]; /* ended by NULL */
	size_t input_len, out_size;
	int timeout_ms;
	const char *program, *last_arg;
	bool kill;
	const char *mount_point;
};

/* The JSON of a request, which may be anything; -EINVAL and what is wrong with it. */
int client_request_decode(const char *text, size_t len, struct client_request *ret,
			  struct error *err);
void client_request_done(struct client_request *r);

/* ---- bytes, on descriptors that do not block; until is on the monotonic clock --------------- */

/* -ETIMEDOUT, or -ECONNRESET where the other side ended before that. */
int wire_read(int fd, void *buf, size_t len, int64_t until);
int wire_write(int fd, const void *buf, size_t len, int64_t until);
/* Length and text; -EMSGSIZE beyond CLIENT_TEXT_MAX. The caller frees. */
int wire_read_text(int fd, char **ret, size_t *ret_len, int64_t until);
int wire_write_json(int fd, const json_t *o, int64_t until);
/* One byte that carries a descriptor. -EBADMSG: one that carries none. */
int wire_give_fd(int fd, int given, int64_t until);
int wire_take_fd(int fd, int *ret, int64_t until);

/* ---- the asking side ------------------------------------------------------------------------ */

struct client_reply {
	json_t *text; /* owned */
	char *out, *err; /* owned; never NULL where the call succeeded */
};
void client_reply_done(struct client_reply *r);
/*
 * Asks the client that listens on dir/client.sock. -ECONNREFUSED: none does; -ECONNRESET: it ended
 * meanwhile; otherwise what the reply says.
 */
int client_call(const char *dir, const json_t *request, const void *input, size_t input_len,
		int timeout_ms, struct client_reply *ret, struct error *err);
/* The same with a descriptor that goes with the request (-1: none), and one that comes back (NULL: none). */
int client_call_fd(const char *dir, const json_t *request, int given, int timeout_ms,
		   struct client_reply *ret, int *ret_fd, struct error *err);
/* Whether a client listens there now. */
bool client_listens(const char *dir);
/* The directories of clients in a protocol's: itself, and those of clients with an id (remote.h). */
void clients_find(const char *dir, struct strv *ret);
/* A connection that tells of daemons that ended ("watch"); wire_read_text reads it. */
int client_watch(const char *dir, int timeout_ms, struct error *err);
