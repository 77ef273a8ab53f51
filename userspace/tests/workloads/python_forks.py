# SPDX-License-Identifier: GPL-2.0
"""Allocate in a forked child, and in another interpreter that the child then becomes.

usage: python_forks.py FIFO
The second one waits until something is written to the FIFO.
"""

import json
import os
import sys

BLOCK = 1 << 20
ROUNDS = 31


def in_child():
    for _ in range(ROUNDS):
        bytearray(BLOCK)


def after_exec():
    for _ in range(ROUNDS):
        bytearray(BLOCK)


if sys.argv[2:] == ["again"]:
    with open(sys.argv[1]) as fifo:
        fifo.read()
    after_exec()
else:
    child = os.fork()
    if not child:
        in_child()
        os.execv(sys.executable, [sys.executable, __file__, sys.argv[1], "again"])
    print(json.dumps({"child": child, "count": ROUNDS, "status": os.waitpid(child, 0)[1]}))
