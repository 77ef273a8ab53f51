# SPDX-License-Identifier: GPL-2.0
"""Allocate in a forked child, and in another interpreter that the child then becomes.

usage: python_forks.py FIFO FIFO FIFO
It waits at the end of the first part, before the second and at its end, each time until a FIFO has been opened for
writing and closed again: whoever names the lines reads them in this process, which then becomes another or ends.
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


def wait(number):
    with open(sys.argv[1 + number]) as fifo:
        fifo.read()


if sys.argv[4:] == ["again"]:
    wait(1)
    after_exec()
    wait(2)
else:
    child = os.fork()
    if not child:
        in_child()
        wait(0)
        os.execv(sys.executable, [sys.executable, __file__, *sys.argv[1:4], "again"])
    print(json.dumps({"child": child, "count": ROUNDS, "status": os.waitpid(child, 0)[1]}))
