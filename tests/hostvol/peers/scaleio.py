#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A ScaleIO gateway: scaleio.py DIR DEVICE

Serves HTTPS on loopback with DIR/server.pem, writes its port to DIR/port. It knows the volume VOLUME,
user and PASSWORD below, gives tokens, maps and unmaps to GUID, and makes and removes the link below
/dev/disk/by-id as the kernel driver and udev would. DIR/mode (JSON) changes how it behaves; every
request is added to DIR/asked, secrets that were sent in a wrong place would show there."""
import base64
import http.server
import json
import os
import ssl
import sys
import threading
import time
import urllib.parse

folder, device = sys.argv[1], sys.argv[2]
VOLUME, NAME = "e3c2a5f400000001", "vol/data one"
GUID = "9E56672F-2F4B-4A42-BFF4-88B6846FBFDA"
USER, PASSWORD = "admin", 'pa"ss\\word, with: all'
LINK = "/dev/disk/by-id/emc-vol-14dbbf5617523654-" + VOLUME
tokens = set()
limits = {}
lock = threading.Lock()


def mode():
    try:
        with open(folder + "/mode") as f:
            return json.load(f)
    except FileNotFoundError:
        return {}


class Gateway(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, status, value, raw=None):
        body = raw if raw is not None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def error(self, status, message, code):
        self.reply(status, {"message": message, "httpStatusCode": status, "errorCode": code})

    def credentials(self):
        kind, _, text = self.headers.get("Authorization", "").partition(" ")
        user, _, secret = base64.b64decode(text).decode().partition(":")
        return (user, secret) if kind == "Basic" else ("", "")

    def handle_one(self, body):
        how = mode()
        with open(folder + "/asked", "a") as f:
            f.write("%s %s %s\n" % (self.command, self.path, body))
        user, secret = self.credentials()
        if self.path == "/api/login":
            if how.get("login"):
                return self.error(how["login"], "Unauthorized", 0)
            if (user, secret) != (USER, PASSWORD):
                return self.error(401, "Unauthorized", 0)
            token = "YWRtaW46" + os.urandom(12).hex()
            tokens.add(token)
            return self.reply(200, token)
        if how.get("expire"):
            tokens.clear()
            os.unlink(folder + "/mode")
        if user != USER or secret not in tokens:
            return self.error(how.get("denied", 401), "Unauthorized", 0)
        if how.get("hang"):
            time.sleep(how["hang"])
        if self.path.startswith("/api/types/Volume/instances/getByName::"):
            name = urllib.parse.unquote(urllib.parse.unquote(self.path.split("::", 1)[1]))
            if "id" in how:
                return self.reply(200, how["id"])
            if name != NAME:
                return self.error(500, "Could not find the volume", 79)
            return self.reply(200, VOLUME)
        prefix = "/api/instances/Volume::" + VOLUME + "/action/"
        if not self.path.startswith(prefix):
            return self.error(500, "Could not find the volume", 79)
        action, sent = self.path[len(prefix):], json.loads(body)
        if action in how:
            status, message, code = how[action]
            return self.error(status, message, code)
        if how.get("raw"):
            return self.reply(how["raw"][0], None, how["raw"][1].encode())
        if sent.get("guid") != GUID:
            return self.error(500, "Could not find the SDC", 77)
        return self.act(action, sent, how)

    def act(self, action, sent, how):
        there = os.path.lexists(LINK)
        if action == "addMappedSdc":
            if there:
                return self.error(500, "The volume is already mapped to this SDC", how.get("already", 81))
            if how.get("appear") != "never":
                threading.Timer(how.get("after", 0), os.symlink, (how.get("target", device), LINK)).start()
        elif action == "removeMappedSdc":
            if not there:
                return self.error(500, "The volume is not mapped to SDC", how.get("absent", 84))
            if not how.get("stay"):
                threading.Timer(how.get("after", 0), os.unlink, (LINK,)).start()
        elif action == "setMappedSdcLimits":
            limits.update(sent)
            with open(folder + "/limits", "w") as f:
                json.dump(sent, f, sort_keys=True)
        else:
            return self.error(404, "No such action", 0)
        return self.reply(200, {})

    def do_GET(self):
        with lock:
            self.handle_one("")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        with lock:
            self.handle_one(body)


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        pass  # a client that gave up


def main():
    server = Server(("127.0.0.1", 0), Gateway)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder + "/server.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    with open(folder + "/port.new", "w") as f:
        f.write(str(server.server_port))
    os.rename(folder + "/port.new", folder + "/port")
    server.serve_forever()


main()
