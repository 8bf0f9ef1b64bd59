# SPDX-License-Identifier: Apache-2.0
"""Times os-brick's connect and disconnect for bench/hostvol: KIND one|two; a round for each line that it reads."""
import os
import sys
import time

from oslo_concurrency import lockutils

os.makedirs("/run/brick", exist_ok=True)
lockutils.set_defaults("/run/brick")
import os_brick
from oslo_config import cfg

cfg.CONF([])
os_brick.setup(cfg.CONF)
from os_brick import privileged

privileged.default.set_client_mode(False)  # as root, without its helper daemon
from os_brick.initiator import connector
from os_brick.initiator.connectors import nvmeof

kind, two = sys.argv[1], sys.argv[2] == "two"
read = nvmeof.sysfs_property


def without_source(name, path):
    value = read(name, path)
    return value.split(",src_addr=")[0] if value and name == "address" else value


nvmeof.sysfs_property = without_source
if kind == "ISCSI":
    name = "brick-paths" if two else "brick-iscsi"
    iqn, portal = "iqn.2026-01.net.example:t1", "127.0.0.1:3260"
    volume = dict(target_portal=portal, target_iqn=iqn, target_lun=0, auth_method="CHAP", auth_username="alice",
                  auth_password="in-secret-one", target_discovered=False, volume_id="v")
    if two:
        volume.update(target_portals=[portal, "127.0.0.2:3260"], target_iqns=[iqn, iqn], target_luns=[0, 0])
else:
    name = "brick-nvme"
    volume = dict(target_nqn="nqn.2026-01.net.example:s1", vol_uuid="3f1c2a9e-0000-4000-8000-000000000001",
                  portals=[["127.0.0.1", "4420", "tcp"]])
brick = connector.InitiatorConnector.factory(kind, None, use_multipath=two, device_scan_attempts=3)
print("ready", flush=True)
for _ in sys.stdin:
    begin = time.monotonic()
    device = brick.connect_volume(volume)
    print(name, "connect", int((time.monotonic() - begin) * 1e6))
    with open(os.path.realpath(device["path"]), "rb") as f:
        f.read(512)
    begin = time.monotonic()
    brick.disconnect_volume(volume, device)
    print(name, "disconnect", int((time.monotonic() - begin) * 1e6), flush=True)
