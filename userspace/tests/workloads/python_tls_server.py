# SPDX-License-Identifier: GPL-2.0
"""Sends a TLS stream to everybody who asks, on loopback, until it is ended.

usage: python_tls_server.py CERTIFICATE KEY
"""

import json
import socketserver
import ssl
import sys

context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
RECORD = bytes(16384)  # as much as a TLS record takes


class Stream(socketserver.BaseRequestHandler):
    def handle(self):
        try:
            with context.wrap_socket(self.request, server_side=True) as tls:
                while True:
                    tls.sendall(RECORD)
        except OSError:  # the client has had enough
            pass


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


with Server(("127.0.0.1", 0), Stream) as server:
    print(json.dumps({"port": server.server_address[1]}), flush=True)
    server.serve_forever()
