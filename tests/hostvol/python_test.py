# SPDX-License-Identifier: Apache-2.0
"""The Python package, on the built library and LOCAL. python.sh runs it; prints TAP.

HOSTVOL_TEST_DIR is an empty directory, HOSTVOL_TEST_LOOP a loop device of 16 MiB if there is one.
"""

import contextlib
import ctypes
import errno
import fcntl
import gc
import json
import os
import shutil
import sys
import threading
import unittest

import hostvol

DIR = os.environ["HOSTVOL_TEST_DIR"]
LOOP = os.environ.get("HOSTVOL_TEST_LOOP")
SIZE = 16 << 20


class MallInfo(ctypes.Structure):
    _names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in _names.split()]


def allocated():
    """Bytes that malloc has given out in this process."""
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = MallInfo
    gc.collect()
    info = mallinfo2()
    return info.uordblks + info.hblkhd


def local(path, volume_id="v1", **fields):
    data = {"devicePath": path, "volumeId": volume_id}
    return {"driverVolumeType": "LOCAL", "data": data, **fields}


class TestHostvol(unittest.TestCase):
    def setUp(self):
        self.base = os.path.join(DIR, self._testMethodName)
        os.mkdir(self.base)
        self.addCleanup(shutil.rmtree, self.base)
        self.file = os.path.join(self.base, "file")
        with open(self.file, "wb") as f:
            f.truncate(SIZE)
        self.host = self.open()
        self.addCleanup(self.host.close)

    def open(self, **options):
        return hostvol.Hostvol(f"{self.base}/state", f"{self.base}/run", **options)

    @contextlib.contextmanager
    def fails(self, code, words):
        with self.assertRaises(hostvol.HostvolError) as caught:
            yield caught
        self.assertEqual(caught.exception.errno, code, caught.exception)
        self.assertRegex(str(caught.exception), words)

    def test_version(self):
        self.assertRegex(hostvol.version(), r"^\d+\.\d+\.\d+$")

    def test_properties(self):
        with self.open(ip="192.0.2.77") as host:
            seen = host.properties(do_local_attach=True)
        self.assertEqual((seen["osType"], seen["ip"]), ("LINUX", "192.0.2.77"))
        self.assertTrue(seen["doLocalAttach"])
        self.assertFalse(self.host.properties()["doLocalAttach"])

    def test_drivers(self):
        names = {driver["name"]: driver for driver in self.host.drivers()}
        self.assertIn("LOCAL", names)
        self.assertEqual(hostvol.drivers(), self.host.drivers())

    def test_whole_way(self):
        record = self.host.connect(local(self.file))
        self.assertEqual((record["state"], record["path"]), ("attached", self.file))
        self.assertFalse(record.other_options)
        self.assertEqual(self.host.device_path("v1"), self.file)
        self.assertEqual([r["health"] for r in self.host.list()], ["ok"])
        self.assertEqual(self.host.list("v2"), [])
        self.assertEqual(self.host.plan("v1")["steps"], ["remove the record"])
        self.assertEqual(self.host.audit(), [])
        self.assertEqual(self.host.recover(), [])
        with self.fails(errno.EBUSY, "is what was connected"):
            self.host.forget("v1")
        self.assertEqual(self.host.forget("v2"), [])
        ended = {"volumeId": "v1", "consumer": "", "path": self.file}
        self.assertEqual(self.host.disconnect(record), ended)
        self.assertEqual(self.host.disconnect(record)["path"], "")
        self.assertEqual(self.host.list(), [])

    def test_extend(self):
        self.host.connect(local(self.file))
        os.truncate(self.file, 2 * SIZE)
        self.assertEqual(self.host.extend("v1")["size"], 2 * SIZE)

    def test_extend_what_is_gone(self):
        self.host.connect(local(self.file))
        os.unlink(self.file)
        with self.fails(errno.ENOENT, "cannot use"):
            self.host.extend("v1")

    @unittest.skipUnless(LOOP, "needs root and loop devices")
    def test_loop_device(self):
        self.assertEqual(self.host.connect(local(LOOP))["path"], LOOP)
        self.assertEqual(self.host.extend("v1")["size"], SIZE)
        self.assertEqual(self.host.disconnect("v1", force=True)["path"], LOOP)

    def test_consumers(self):
        for consumer in ("a", "b"):
            self.host.connect(local(self.file, consumer=consumer))
        self.assertEqual(sorted(r["consumer"] for r in self.host.list("v1")), ["a", "b"])
        self.host.disconnect({"volumeId": "v1", "consumer": "a"})
        self.assertEqual([r["consumer"] for r in self.host.list("v1")], ["b"])

    def test_text_beyond_ascii(self):
        record = self.host.connect(local(self.file, "Bänd-ü-卷"))
        self.assertEqual(record["volumeId"], "Bänd-ü-卷")
        self.assertEqual(self.host.device_path("Bänd-ü-卷"), self.file)

    def test_errors(self):
        with self.fails(errno.ENOENT, "no-such is not connected"):
            self.host.device_path("no-such")
        with self.fails(errno.EINVAL, "devicePath"):
            self.host.connect({"driverVolumeType": "LOCAL", "data": {}})
        with self.fails(errno.EINVAL, "no driver"):
            self.host.connect({"driverVolumeType": "NOSUCH", "data": {}})
        with self.fails(errno.ENOENT, "cannot use"):
            self.host.connect(local(self.base + "/gone"))
        with self.fails(errno.EINVAL, "path"):
            hostvol.Hostvol(state_dir="not/absolute")
        self.assertIsInstance(hostvol.HostvolError(1, ""), OSError)

    def test_log(self):
        lines = []
        host = self.open(log=lambda level, line: lines.append((level, line)))
        self.addCleanup(host.close)
        # no name server is asked for a name that cannot be one
        portal = {"targetPortal": "no..name:3260", "targetIqn": "iqn.2024-01.org.example:a"}
        with self.fails(errno.EHOSTUNREACH, "no..name"):
            host.connect({"driverVolumeType": "ISCSI", "data": {**portal, "targetLun": 1}})
        self.assertEqual(lines, [(2, "the portal no..name has no address")])

    def test_nul(self):
        self.host.connect(local(self.file))
        with self.fails(errno.EINVAL, "NUL"):
            self.host.device_path("v1\0v2")
        with self.fails(errno.EINVAL, "."):
            self.host.disconnect("v1\0v2")
        self.assertEqual(len(self.host.list()), 1)

    def test_closed(self):
        self.host.close()
        self.host.close()
        with self.fails(errno.EBADF, "closed"):
            self.host.list()

    def test_a_handle_that_never_opened_is_forgotten_quietly(self):
        seen = []
        hook, sys.unraisablehook = sys.unraisablehook, seen.append
        try:
            with self.assertRaises(TypeError):
                hostvol.Hostvol(state_dir=1)
            gc.collect()
        finally:
            sys.unraisablehook = hook
        self.assertEqual(seen, [])

    def test_no_memory_is_lost(self):
        self.host.connect(local(self.file))

        def round_trip():
            for _ in range(300):
                self.host.drivers()
                self.host.list()
                self.host.device_path("v1")
                with contextlib.suppress(hostvol.HostvolError):
                    self.host.extend("v2")
                self.open().close()
        text = len(json.dumps(self.host.drivers()))
        round_trip()
        before = allocated()
        round_trip()
        # one text in ten that is not freed would be more than this
        self.assertLess(allocated() - before, 30 * text)

    def test_cancel(self):
        self.host.connect(local(self.file))
        [record] = os.listdir(f"{self.base}/state/attachments")
        lock = f"{self.base}/run/locks/record-{record.split('.')[0]}"
        caught = []

        def disconnect():
            try:
                self.host.disconnect("v1")
            except hostvol.HostvolError as e:
                caught.append(e)
        with open(lock, "w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            thread = threading.Thread(target=disconnect)
            thread.start()
            while thread.is_alive():
                self.host.cancel()  # only ends what is under way
                thread.join(0.02)
            self.assertEqual([e.errno for e in caught], [errno.ECANCELED], caught)
        self.assertEqual(self.host.disconnect("v1")["path"], self.file)


class TapResult(unittest.TestResult):
    def say(self, word, test, more=""):
        print(f"{word} {self.testsRun} - {test.id().split('.', 1)[1]}{more}", flush=True)

    def addSuccess(self, test):
        super().addSuccess(test)
        self.say("ok", test)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.say("ok", test, f" # SKIP {reason}")

    def addError(self, test, err):
        super().addError(test, err)
        self.bad(test, self.errors[-1][1])

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.bad(test, self.failures[-1][1])

    def bad(self, test, trace):
        self.say("not ok", test)
        print("# " + trace.replace("\n", "\n# "), flush=True)


if __name__ == "__main__":
    tests = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    print(f"1..{tests.countTestCases()}")
    sys.exit(not tests.run(TapResult()).wasSuccessful())
