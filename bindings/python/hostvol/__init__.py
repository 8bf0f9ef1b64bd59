# SPDX-License-Identifier: Apache-2.0
"""Connects volumes of any protocol to this host, by libhostvol.

    from hostvol import Hostvol

    with Hostvol() as host:
        record = host.connect({"driverVolumeType": "NFS",
                               "data": {"export": "192.0.2.10:/data", "volumeId": "v1"}})
        print(record["path"])
        host.disconnect(record)

What goes in and out are dicts, the JSON that <hostvol/hostvol.h> describes. A call that fails
raises HostvolError. Calls block without holding the interpreter's lock; threads may share a Hostvol.
"""

import ctypes
import errno
import json
import os
import threading

from . import _library

__all__ = ["Hostvol", "HostvolError", "Record", "drivers", "version"]


class HostvolError(OSError):
    """errno says what kind of failure, message in one sentence what, on what, why, and what to do.

    result holds what a failed call gave all the same, as extend() does where only some paths
    failed; else it is None.
    """

    def __init__(self, code, message, result=None):
        super().__init__(code, message)
        self.message = message
        self.result = result

    def __str__(self):
        return self.message


class Record(dict):
    """An attachment record; a dict. other_options is True where the volume was connected before
    with other options, which stay in force."""

    other_options = False


def _text(value, what):
    """As the library takes it. A NUL would cut the text off, and another volume might be meant."""
    if value is None:
        return None
    encoded = os.fsencode(value)
    if b"\0" in encoded:
        raise HostvolError(errno.EINVAL, f"{what} must not contain a NUL")
    return encoded


def _dump(value):
    return json.dumps(value, allow_nan=False).encode()


def _volume(volume):
    """A dict, or the id of a volume without a consumer's name."""
    return _dump({"volumeId": volume} if isinstance(volume, str) else volume)


def _call(name, *arguments, parse=json.loads):
    """(status, what it gave); the text is freed whatever happens."""
    lib = _library.load()
    text = ctypes.c_void_p()
    error = _library.Error()
    status = getattr(lib, name)(*arguments, ctypes.byref(text), ctypes.byref(error))
    try:
        result = parse(ctypes.string_at(text.value).decode()) if text.value else None
    finally:
        lib.hostvol_free(text)
    if status < 0:
        message = error.message.decode(errors="replace") or os.strerror(-status)
        raise HostvolError(-status, message, result)
    return status, result


def drivers():
    """The drivers of this library: names, aliases, parameters, which are supported."""
    return _call("hostvol_drivers_json")[1]


def version():
    return _library.load().hostvol_version().decode()


class Hostvol:
    """A handle. state_dir, run_dir, deadline (seconds of each call) and ip are hostvol_open()'s
    options; log is called with a level (0 debug, 1 info, 2 warning) and a line of text."""

    def __init__(self, state_dir=None, run_dir=None, deadline=None, ip=None, log=None):
        self._handle = None
        self._users = 0  # calls under way: the handle must outlive them
        self._idle = threading.Condition()
        # referenced as long as the library may call it
        self._log = _library.LOG_FUNCTION(
            (lambda level, message, _: log(level, message.decode(errors="replace"))) if log else 0
        )
        options = _library.Options(
            size=ctypes.sizeof(_library.Options),
            state_dir=_text(state_dir, "state_dir"),
            run_dir=_text(run_dir, "run_dir"),
            deadline_ms=0 if deadline is None else max(1, int(deadline * 1000)),
            log=self._log,
            ip=_text(ip, "ip"),
        )
        handle = ctypes.c_void_p()
        error = _library.Error()
        status = _library.load().hostvol_open(
            ctypes.byref(options), ctypes.byref(handle), ctypes.byref(error)
        )
        if status < 0:
            raise HostvolError(-status, error.message.decode(errors="replace"))
        self._handle = handle

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None):
            self.close()

    def close(self):
        """Waits for the calls of other threads, which cancel() ends sooner. What is connected stays
        connected."""
        with self._idle:
            self._idle.wait_for(lambda: self._users == 0)
            handle, self._handle = self._handle, None
        if handle:
            _library.load().hostvol_close(handle)

    def _use(self):
        with self._idle:
            if not self._handle:
                raise HostvolError(errno.EBADF, "this Hostvol is closed; open another")
            self._users += 1
            return self._handle

    def _release(self):
        with self._idle:
            self._users -= 1
            self._idle.notify_all()

    def _call(self, name, *arguments, parse=json.loads):
        handle = self._use()
        try:
            return _call(name, handle, *arguments, parse=parse)
        finally:
            self._release()

    def properties(self, multipath=False, do_local_attach=False):
        """What a storage backend wants to know of this host before it exports a volume to it."""
        return self._call("hostvol_get_connector_properties_json", multipath, do_local_attach)[1]

    def connect(self, connection):
        """Connects a volume for its consumer; gives the Record, whose "path" is the device,
        directory or file. Connecting what is connected gives the same path again."""
        status, result = self._call("hostvol_connect_volume_json", _dump(connection))
        record = Record(result)
        record.other_options = status > 0
        return record

    def disconnect(self, volume, force=False):
        """Ends a consumer's use of a volume: a connection info, a record, {"volumeId", "consumer"}
        or a volume id. In the answer "path" is "" where it was not connected. A volume in use is
        refused with EBUSY unless forced, which may lose data that is not yet written."""
        flags = _library.FORCE if force else 0
        return self._call("hostvol_disconnect_volume_json", _volume(volume), flags)[1]

    def device_path(self, volume_id):
        """The path of a connected volume, verified again."""
        text = _text(volume_id, "volume_id")
        return self._call("hostvol_get_device_path", text, parse=str)[1]

    def extend(self, volume_id):
        """Makes this host see that the storage has grown the volume; gives its size and, where the
        protocol has them, what came of each path."""
        return self._call("hostvol_extend_volume_json", _text(volume_id, "volume_id"))[1]

    def plan(self, volume):
        """What disconnecting it would do now, and who uses it. Changes nothing."""
        return self._call("hostvol_plan_json", _volume(volume))[1]

    def list(self, volume_id=None):
        """The records, with their "health"; of one volume or of all."""
        return self._call("hostvol_list_json", _text(volume_id, "volume_id"))[1]

    def forget(self, volume):
        """Ends every consumer's use of a volume whose place another one has taken, so that the
        next connect takes what is there: a person's word. EBUSY while it works, or is used. As for
        disconnect(): the id, or a connection info with the secrets that its driver needs."""
        return self._call("hostvol_forget_json", _volume(volume))[1]

    def recover(self):
        """Undoes or finishes what died in the middle; says what it did."""
        return self._call("hostvol_recover_json")[1]

    def audit(self, repair=False):
        """Finds what interrupted calls left behind and no record names; takes it away if asked."""
        return self._call("hostvol_audit_json", _library.REPAIR if repair else 0)[1]

    def drivers(self):
        """As the module's drivers()."""
        return drivers()

    def cancel(self):
        """From another thread: the calls under way end soon with ECANCELED, and undo what they
        did. Later calls are not touched."""
        handle = self._use()
        try:
            _library.load().hostvol_cancel(handle)
        finally:
            self._release()
