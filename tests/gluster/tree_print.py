#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Prints everything about a tree that a copy of it must have too, a line an entry.
# tree_print.py DIRECTORY BRICK: what is in the files is read from the same tree on a brick, where holes cost nothing
import errno, hashlib, os, stat, sys

BLOCK = 1 << 16
top, brick = sys.argv[1:]
first_name = {}


# Blocks of zeros count for nothing, so holes need not be read.
def content(path):
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as f:
        at, end = 0, os.fstat(f.fileno()).st_size
        while at < end:
            try:
                at = os.lseek(f.fileno(), at, os.SEEK_DATA) // BLOCK * BLOCK
            except OSError as e:
                if e.errno == errno.ENXIO:
                    break
                raise
            block = os.pread(f.fileno(), BLOCK, at)
            if block.strip(b"\0"):
                digest.update(b"%d:" % at + block)
            at += BLOCK
    return digest.hexdigest()


def attributes(path):
    found = []
    for name in sorted(os.listxattr(path, follow_symlinks=False)):
        if name.startswith("user.") or name.startswith("system.posix_acl"):
            try:
                found.append(f"{name}={os.getxattr(path, name, follow_symlinks=False).hex()}")
            except OSError as e:
                if e.errno != errno.ENODATA:
                    raise
    return ",".join(found)


def line(path):
    st = os.lstat(path)
    name = os.path.relpath(path, top)
    words = [repr(name), oct(st.st_mode), str(st.st_uid), str(st.st_gid), str(st.st_rdev), str(st.st_mtime_ns)]
    if stat.S_ISREG(st.st_mode):
        words += [str(st.st_size), content(os.path.join(brick, name))]
    if stat.S_ISLNK(st.st_mode):
        words.append(os.readlink(path))
    else:
        words.append(attributes(path))
    if not stat.S_ISDIR(st.st_mode):
        words.append("same as " + first_name.setdefault(st.st_ino, name))
    return " ".join(words)


print(line(top))
for root, dirs, files in os.walk(top):
    dirs.sort()
    for name in sorted(dirs + files):
        print(line(os.path.join(root, name)))
