# SPDX-License-Identifier: GPL-2.0
"""Cleared memory from cffi, again and again: casebook 3 in its simplest form."""

import json
import sys

import cffi

BYTES = 10 << 20
ROUNDS = 1511

ffi = cffi.FFI()
line = 0


def fill():
    global line
    line = sys._getframe().f_lineno + 1
    return ffi.new("char[]", BYTES)


for _ in range(ROUNDS):
    fill()
print(json.dumps({"count": ROUNDS, "bytes": BYTES, "line": line, "file": fill.__code__.co_filename}))
