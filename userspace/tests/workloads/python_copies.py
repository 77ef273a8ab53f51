# SPDX-License-Identifier: GPL-2.0
"""Fill memory with small objects, fork, and look at them in each child, which writes to what it only reads.

usage: python_copies.py OBJECTS CHILDREN collect|walk [freeze]
collect: a child's collector goes over them. walk: its code does. freeze: before the fork they are taken out of the
collector's sight. At the end one line of JSON: the faults of the children's looks, by the kernel's count.
"""

import gc
import json
import os
import resource
import sys

count, children, what, *rest = sys.argv[1:]
held = [[number] for number in range(int(count))]
gc.collect()
gc.disable()
if rest == ["freeze"]:
    gc.freeze()


def look():
    if what == "collect":
        gc.collect()
        return
    for each in held:
        each[0]


def in_child(writer):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    look()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    os.write(writer, str(after - before).encode())
    os._exit(0)


reader, writer = os.pipe()
faults = 0
for _ in range(int(children)):
    if not (child := os.fork()):
        in_child(writer)
    if os.waitpid(child, 0)[1]:
        sys.exit(1)
    faults += int(os.read(reader, 32))
print(json.dumps({"pid": os.getpid(), "faults": faults, "objects": int(count)}))
