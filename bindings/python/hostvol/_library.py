# SPDX-License-Identifier: Apache-2.0
"""libhostvol as ctypes sees it: the structures and functions of <hostvol/hostvol.h>, no more."""

import ctypes
import functools
import os

FORCE = 1
REPAIR = 1

LOG_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("message", ctypes.c_char * 500)]


class Options(ctypes.Structure):
    _fields_ = [
        ("size", ctypes.c_size_t),
        ("state_dir", ctypes.c_char_p),
        ("run_dir", ctypes.c_char_p),
        ("deadline_ms", ctypes.c_int),
        ("log", LOG_FUNCTION),
        ("log_userdata", ctypes.c_void_p),
        ("ip", ctypes.c_char_p),
        ("host", ctypes.c_void_p),
    ]


HANDLE = ctypes.c_void_p
TEXT = ctypes.c_char_p
FLAG = ctypes.c_bool
# Not c_char_p: ctypes would turn the pointer into bytes, and nobody could free it.
RET_TEXT = ctypes.POINTER(ctypes.c_void_p)
RET_ERROR = ctypes.POINTER(Error)

# name: what it takes before ret and err, which all of these end with
_CALLS = {
    "hostvol_open": [ctypes.POINTER(Options)],
    "hostvol_get_connector_properties_json": [HANDLE, FLAG, FLAG],
    "hostvol_connect_volume_json": [HANDLE, TEXT],
    "hostvol_disconnect_volume_json": [HANDLE, TEXT, ctypes.c_uint],
    "hostvol_get_device_path": [HANDLE, TEXT],
    "hostvol_extend_volume_json": [HANDLE, TEXT],
    "hostvol_plan_json": [HANDLE, TEXT],
    "hostvol_list_json": [HANDLE, TEXT],
    "hostvol_forget_json": [HANDLE, TEXT],
    "hostvol_recover_json": [HANDLE],
    "hostvol_audit_json": [HANDLE, ctypes.c_uint],
    "hostvol_drivers_json": [],
}


@functools.lru_cache(maxsize=None)
def load():
    """The library: HOSTVOL_LIBRARY names the file, else the dynamic linker finds it."""
    lib = ctypes.CDLL(os.environ.get("HOSTVOL_LIBRARY") or "libhostvol.so.0")
    for name, arguments in _CALLS.items():
        function = getattr(lib, name)
        function.restype = ctypes.c_int
        function.argtypes = [*arguments, RET_TEXT, RET_ERROR]
    for name in ("hostvol_close", "hostvol_cancel", "hostvol_free"):
        function = getattr(lib, name)
        function.restype = None
        function.argtypes = [ctypes.c_void_p]
    lib.hostvol_version.restype = ctypes.c_char_p
    lib.hostvol_version.argtypes = []
    return lib
