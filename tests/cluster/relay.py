#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""relay.py [--to PORT | --proxy [USER:PASSWORD]] - a relay on a free loopback port, which it prints.

--to PORT   forwards every connection to that port of 127.0.0.1.
--proxy     is an HTTP proxy: CONNECT, with that user where one is given, else 407.

Prints a line "connect WHERE" for each connection that it carries on. SIGUSR1 cuts those that are there in
half: they stay open, but nothing passes any more. New ones are carried on as before.
"""
import base64
import signal
import socket
import sys
import threading

frozen = threading.Event()  # replaced by SIGUSR1: each connection knows the one it began with
current = frozen


def cut(signum, frame):
    global current
    current.set()
    current = threading.Event()


def pump(source, sink, cut_off):
    try:
        while True:
            data = source.recv(65536)
            if cut_off.is_set():
                threading.Event().wait()  # neither passes it on nor closes
            if not data:
                break
            sink.sendall(data)
    except OSError:
        pass
    for s in (source, sink):
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def carry(client, host, port, greeting=b''):
    server = socket.create_connection((host, port))
    client.sendall(greeting)
    print(f'connect {host}:{port}', flush=True)
    for a, b in ((client, server), (server, client)):
        threading.Thread(target=pump, args=(a, b, current), daemon=True).start()


def proxy(client, user):
    head = b''
    while not head.endswith(b'\r\n\r\n'):
        byte = client.recv(1)
        if not byte:
            return
        head += byte
    lines = head.decode().split('\r\n')
    method, where, _ = lines[0].split(' ')
    wanted = 'Proxy-Authorization: Basic ' + base64.b64encode((user or '').encode()).decode()
    if method != 'CONNECT' or (user and wanted not in lines):
        client.sendall(b'HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')
        client.close()
        return
    host, port = where.rsplit(':', 1)
    carry(client, host.strip('[]'), int(port), b'HTTP/1.1 200 Connection established\r\n\r\n')


def serve(client):
    try:
        if sys.argv[1] == '--to':
            carry(client, '127.0.0.1', int(sys.argv[2]))
        else:
            proxy(client, sys.argv[2] if len(sys.argv) > 2 else None)
    except OSError:
        client.close()


def main():
    signal.signal(signal.SIGUSR1, cut)
    listener = socket.create_server(('127.0.0.1', 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client,), daemon=True).start()


main()
