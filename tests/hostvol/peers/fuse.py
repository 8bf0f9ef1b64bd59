#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A file system in user space, as the clients of Quobyte, Scality and Virtuozzo Storage are:
fuse.py TYPE SOURCE TREE MOUNTPOINT

Mounts a read-only view of the directories and files of TREE, returns once it is mounted, and serves it
in the background until it is unmounted. Speaks the kernel's protocol itself."""
import ctypes
import errno
import os
import stat
import struct
import sys

kind, source, tree, point = sys.argv[1:5]
IN = struct.Struct("=IIQQIIIHH")
OUT = struct.Struct("=IiQ")
LOOKUP, FORGET, GETATTR, STATFS, RELEASE = 1, 2, 3, 17, 18
INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT, DESTROY, BATCH_FORGET = 26, 27, 28, 29, 36, 38, 42
nodes = {1: tree}


def attributes(node):
    st = os.lstat(nodes[node])
    mode = st.st_mode & ~0o222
    return struct.pack("=6Q10I", node, st.st_size if stat.S_ISREG(mode) else 0, 0, 0, 0, 0,
                       0, 0, 0, mode, st.st_nlink, 0, 0, 0, 4096, 0)


def lookup(node, name):
    path = os.path.join(nodes[node], os.fsdecode(name))
    if not os.path.lexists(path):
        raise FileNotFoundError(errno.ENOENT, "")
    number = next((n for n, p in nodes.items() if p == path), len(nodes) + 1)
    nodes[number] = path
    return struct.pack("=QQQQII", number, 0, 0, 0, 0, 0) + attributes(number)


def answer(op, node, data):
    if op == INIT:
        return struct.pack("=IIIIHHIIHHI7I", 7, 31, 4096, 0, 1, 1, 4096, 1, 1, 0, 0, *[0] * 7)
    if op == GETATTR:
        return struct.pack("=QII", 0, 0, 0) + attributes(node)
    if op == LOOKUP:
        return lookup(node, data.rstrip(b"\0"))
    if op == STATFS:
        return struct.pack("=5Q4I6I", 1000, 500, 500, 100, 50, 4096, 255, 4096, 0, *[0] * 6)
    if op == OPENDIR:
        return struct.pack("=QII", 0, 0, 0)
    if op in (READDIR, RELEASE, RELEASEDIR, DESTROY):
        return b""
    raise OSError(errno.ENOSYS, "")


def serve(fd):
    while True:
        try:
            data = os.read(fd, 1 << 17)
        except OSError as e:
            if e.errno in (errno.EINTR, errno.EAGAIN, errno.ENOENT):
                continue
            return
        head = IN.unpack(data[:IN.size])
        op, unique, node = head[1], head[2], head[3]
        if op in (FORGET, BATCH_FORGET, INTERRUPT):
            continue
        try:
            body, code = answer(op, node, data[IN.size:]), 0
        except OSError as e:
            body, code = b"", -e.errno
        try:
            os.write(fd, OUT.pack(OUT.size + len(body), code, unique) + body)
        except OSError:
            pass


def main():
    fd = os.open("/dev/fuse", os.O_RDWR)
    options = "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % fd
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(source.encode(), point.encode(), kind.encode(), 0, options.encode()) < 0:
        sys.exit("mount error: " + os.strerror(ctypes.get_errno()))
    if os.fork() == 0:
        os.setsid()
        for out in (0, 1, 2):
            os.dup2(os.open(os.devnull, os.O_RDWR), out)
        serve(fd)


main()
