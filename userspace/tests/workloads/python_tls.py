# SPDX-License-Identifier: GPL-2.0
"""A client that reads a TLS stream with large buffers through pyOpenSSL: casebook 3.

usage: python_tls.py PORT BYTES RECVS
Says when it is connected, and reads when it gets a line. Stays until its standard input ends: of what is gone no line
is read.
"""

import inspect
import json
import socket
import sys
import warnings

warnings.simplefilter("ignore")  # old versions are old

from OpenSSL import SSL, version  # noqa: E402

port, size, count = map(int, sys.argv[1:])
context = SSL.Context(SSL.SSLv23_METHOD)
plain = socket.create_connection(("127.0.0.1", port))
tls = SSL.Connection(context, plain)
tls.set_connect_state()
tls.do_handshake()
print('{"ready": true}', flush=True)
sys.stdin.readline()
got = 0
for _ in range(count):
    got += len(tls.recv(size))  # /* SITE receives */
lines, first = inspect.getsourcelines(SSL.Connection.recv)
print(
    json.dumps(
        {
            "version": version.__version__,
            "recvs": count,
            "bytes": got,
            "file": SSL.__file__,
            "first": first,
            "last": first + len(lines) - 1,
        }
    ),
    flush=True,
)
sys.stdin.read()
