#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""oci.py OUT LAYER…: an OCI image of layers (tar files, plain or gzip), as an archive OUT or, where OUT ends in "/", as a
directory. A variable of its environment (ENV) says where it comes from. QM_OCI_ARCH names another architecture than
this machine's."""
import gzip, hashlib, io, json, os, platform, sys, tarfile

blobs = {}


def put(data, kind, **more):
    digest = hashlib.sha256(data).hexdigest()
    blobs["blobs/sha256/" + digest] = data
    return {"mediaType": kind, "digest": "sha256:" + digest, "size": len(data), **more}


def main(out, *paths):
    arch = os.environ.get("QM_OCI_ARCH") or {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    layers, ids = [], []
    for path in paths:
        data = open(path, "rb").read()
        packed = data[:2] == b"\x1f\x8b"
        layers.append(put(data, "application/vnd.oci.image.layer.v1.tar" + ("+gzip" if packed else "")))
        ids.append("sha256:" + hashlib.sha256(gzip.decompress(data) if packed else data).hexdigest())
    config = {"architecture": arch, "os": "linux", "config": {"Env": ["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "FROM=image"]},
              "rootfs": {"type": "layers", "diff_ids": ids}}
    manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": put(json.dumps(config).encode(), "application/vnd.oci.image.config.v1+json"), "layers": layers}
    index = {"schemaVersion": 2, "manifests": [put(json.dumps(manifest).encode(), manifest["mediaType"],
                                                   platform={"architecture": arch, "os": "linux"})]}
    blobs["index.json"] = json.dumps(index).encode()
    blobs["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
    if out.endswith("/"):
        for name, data in blobs.items():
            os.makedirs(os.path.dirname(out + name), exist_ok=True)
            open(out + name, "wb").write(data)
        return
    with tarfile.open(out, "w") as tar:
        for name, data in blobs.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))


main(*sys.argv[1:])
