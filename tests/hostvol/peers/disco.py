#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A DISCO storage client: disco.py DIR MAJOR MINOR [FAMILY]

Listens on loopback, writes its port to DIR/port, and makes and removes /dev/dms<ID>. DIR/mode says
how it behaves: ok, refuse, short, silent (no answer to an attach, hangs up on a detach), late, never (answers, but no device comes), file (something
else comes), stay (answers, but the device stays). What was asked is added to DIR/asked."""
import os
import socket
import stat
import struct
import sys
import threading
import time

folder, major, minor = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
v6 = len(sys.argv) > 4
REQUEST = struct.Struct("!HHQ14s")


def mode():
    try:
        with open(folder + "/mode") as f:
            return f.read().strip()
    except FileNotFoundError:
        return "ok"


def make(path, how):
    if how == "late":
        time.sleep(0.5)
    if how == "file":
        open(path, "w").close()
    else:
        os.mknod(path, stat.S_IFBLK | 0o600, os.makedev(major, minor))


def serve(conn):
    data = b""
    while len(data) < REQUEST.size:
        more = conn.recv(REQUEST.size - len(data))
        if not more:
            return
        data += more
    length, op, volume, instance = REQUEST.unpack(data)
    how = mode()
    path = "/dev/dms%d" % volume
    with open(folder + "/asked", "a") as f:
        f.write("%d %d %d %s\n" % (length, op, volume, instance.decode()))
    if length != 24 or instance != b"DEFAULT-INSTID" or op not in (1, 2) or how == "refuse":
        conn.sendall(struct.pack("!I", 22))
        return
    if how == "short":
        conn.sendall(b"\0\0")
        return
    if how == "silent":
        if op == 1:
            conn.recv(1)
        return
    there = os.path.exists(path)
    if (op == 1) == there:
        conn.sendall(struct.pack("!I", 17 if there else 2))
        return
    if op == 2 and how != "stay":
        os.unlink(path)
    # in two parts: a reader that takes what one read gives would miss the end
    conn.sendall(b"\0\0")
    time.sleep(0.05)
    conn.sendall(b"\0\0")
    if op == 1 and how != "never":
        make(path, how)


def main():
    s = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET)
    s.bind(("::1" if v6 else "127.0.0.1", 0))
    s.listen()
    with open(folder + "/port.new", "w") as f:
        f.write(str(s.getsockname()[1]))
    os.rename(folder + "/port.new", folder + "/port")

    def one(conn):
        with conn:
            serve(conn)

    while True:
        threading.Thread(target=one, args=(s.accept()[0],), daemon=True).start()


main()
