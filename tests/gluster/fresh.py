# SPDX-License-Identifier: Apache-2.0
"""fresh.py WHAT ONE OTHER ROUNDS: one directory as two clients show it. What one of them has written and closed, the other
opens, and must read: no old byte, size or name. The clients take turns, three rounds each.
Tells what was old, and ends with 1 then.

What is believed from an earlier look is what makes a reader stale; so it looks before the change as well, and where it says
so keeps the file open meanwhile."""
import mmap
import os
import random
import sys

what, one, other, rounds = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
chance = random.Random(os.environ.get("QM_SEED", "1"))
held = {}  # client: what its reader keeps open
stale = []


def write(path, data, flags=os.O_CREAT | os.O_TRUNC):
    fd = os.open(path, os.O_WRONLY | flags, 0o644)
    while data:
        data = data[os.write(fd, data):]
    os.close(fd)


def read_all(fd):
    parts = []
    while part := os.read(fd, 65536):
        parts.append(part)
    return b"".join(parts)


def read(path):
    fd = os.open(path, os.O_RDONLY)
    try:
        return read_all(fd)
    finally:
        os.close(fd)


def expect(number, subject, got, wanted):
    if got != wanted:
        stale.append(f"round {number}: {subject}: {got}, not {wanted}")


def shown(data):
    return f"{len(data)} bytes {data[:12]!r}"


def contents(number, length):
    """Bytes that no other round has, of this length."""
    word = b"%08d." % number
    return (word * (length // len(word) + 1))[:length]


def look(number, path, data):
    """What a reader that opens it now gets, and what it asks before and after."""
    expect(number, "size by name", os.stat(path).st_size, len(data))
    expect(number, "contents", shown(read(path)), shown(data))
    fd = os.open(path, os.O_RDONLY)
    expect(number, "size of what was opened", os.fstat(fd).st_size, len(data))
    os.close(fd)


def hold(client, path):
    """A reader that has had the file open since before the change keeps its pages and attributes there."""
    if client in held:
        os.close(held[client])
    held[client] = os.open(path, os.O_RDONLY)
    os.pread(held[client], 4096, 0)


def same_length(number, writer, reader):
    data = contents(number, 30000)
    write(f"{writer}/same", data, os.O_CREAT)
    look(number, f"{reader}/same", data)
    hold(reader, f"{reader}/same")


def same_time(number, writer, reader):
    """As same_length, by somebody who sets the time back (tar, rsync) or whose clock is behind: no attribute tells."""
    data = contents(number, 30000)
    write(f"{writer}/time", data, os.O_CREAT)
    os.utime(f"{writer}/time", (1e9, 1e9))
    look(number, f"{reader}/time", data)
    hold(reader, f"{reader}/time")


def other_length(number, writer, reader):
    data = contents(number, chance.randrange(1, 200000))
    write(f"{writer}/other", data)
    look(number, f"{reader}/other", data)
    hold(reader, f"{reader}/other")


def append(number, writer, reader):
    """A log: the reader opens it, and reads on to an end that has moved."""
    data = b"line %d\n" % number
    before = os.stat(f"{reader}/log").st_size if number else 0
    write(f"{writer}/log", data, os.O_CREAT | os.O_APPEND)
    expect(number, "the end", shown(read(f"{reader}/log")[before:]), shown(data))


def rename(number, writer, reader):
    data = contents(number, 5000 + number % 2)
    write(f"{writer}/.new", data)
    os.rename(f"{writer}/.new", f"{writer}/renamed")
    look(number, f"{reader}/renamed", data)
    expect(number, "the name before", os.path.exists(f"{reader}/.new"), False)
    hold(reader, f"{reader}/renamed")


def unlink(number, writer, reader):
    """A name that comes and goes, and what lists it."""
    name, data = "gone", contents(number, 100)
    expect(number, "a name before it is made", os.path.exists(f"{reader}/{name}"), False)
    write(f"{writer}/{name}", data)
    look(number, f"{reader}/{name}", data)
    expect(number, "the list", name in os.listdir(reader), True)
    os.unlink(f"{writer}/{name}")
    expect(number, "a name that is gone", os.path.exists(f"{reader}/{name}"), False)
    expect(number, "the list after", name in os.listdir(reader), False)
    os.mkdir(f"{writer}/{name}")
    expect(number, "a directory of that name", os.path.isdir(f"{reader}/{name}"), True)
    os.rmdir(f"{writer}/{name}")
    expect(number, "which is gone", os.path.exists(f"{reader}/{name}"), False)


def bound(number, writer, reader):
    """A file that is mounted itself (a subPath): the place has no name that could be looked up."""
    data = contents(number, chance.randrange(1, 100000))
    write(f"{writer}/file", data)
    look(number, f"{reader}/../bound", data)


def kept_open(number, writer, reader):
    """Not opened again: what read() gives where the time or size has changed."""
    path = f"{reader}/open"
    if number == 0:
        write(f"{writer}/open", contents(0, 1000))
    if reader not in held:
        hold(reader, path)
    data = contents(number, 1000 + number)
    write(f"{writer}/open", data, os.O_CREAT)
    os.lseek(held[reader], 0, os.SEEK_SET)
    expect(number, "through a file kept open", shown(read_all(held[reader])), shown(data))


def mapped(number, writer, reader):
    """One who has it mapped sees what was written when anybody on that node has opened it."""
    path, data = f"{reader}/mapped", contents(number, 20000)
    write(f"{writer}/mapped", data, os.O_CREAT)
    if reader not in held:
        hold(reader, path)
        held[reader, "map"] = mmap.mmap(held[reader], 20000, prot=mmap.PROT_READ)
    os.close(os.open(path, os.O_RDONLY))
    expect(number, "through a mapping", shown(held[reader, "map"][:]), shown(data))


run = {f.__name__: f for f in (same_length, same_time, other_length, append, rename, unlink, bound, kept_open, mapped)}[what]
for i in range(rounds):
    run(i, *((one, other) if i // 3 % 2 == 0 else (other, one)))
print(f"{len(stale)} of {rounds} rounds' answers were old")
print("\n".join(stale[:10]))
sys.exit(bool(stale))
