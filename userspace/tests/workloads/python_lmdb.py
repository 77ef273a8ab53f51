# SPDX-License-Identifier: GPL-2.0
"""A database of LMDB, which reads through a mapping of its file: made, or one row of each leaf looked up, in passes.

usage: python_lmdb.py make FILE
       python_lmdb.py FILE PASS...

A pass is "scan" or "random", each with ":alone" for MDB_NORDAHEAD, which maps the file with MADV_RANDOM, and with
":N" for N rows only; or "wait", for a line on standard input. Before that, and in the end, it prints how many rows it
looked up since, and in how many major faults.
"""

import json
import random
import resource
import struct
import sys

import lmdb

LEAVES = 37_003
ROWS_PER_LEAF = 4
PAD = 960  # so many bytes of a row that four fill a leaf


def key_of(row):
    return struct.pack(">Q", row)


def make(path):
    with lmdb.open(path, subdir=False, lock=False, map_size=1 << 30, sync=False) as database:
        with database.begin(write=True) as change:
            rows = ((key_of(row), key_of(row) * (PAD // 8)) for row in range(LEAVES * ROWS_PER_LEAF))
            change.cursor().putmulti(rows, append=True)
        database.sync(True)
        print(json.dumps(database.stat()))


def look(view, leaf):
    return view.get(key_of(leaf * ROWS_PER_LEAF))[0]  # LOOK


def one_pass(path, number, words):
    leaves = list(range(LEAVES))
    if words[0] == "random":
        random.Random(number).shuffle(leaves)
    counts = [int(word) for word in words if word.isdigit()]
    leaves = leaves[: counts[0] if counts else LEAVES]
    database = lmdb.open(path, subdir=False, lock=False, readonly=True, readahead="alone" not in words)
    with database, database.begin(buffers=True) as view:
        for leaf in leaves:
            look(view, leaf)
    return len(leaves)


def majors():
    return resource.getrusage(resource.RUSAGE_SELF).ru_majflt


def main():
    used, before = 0, majors()
    for number, word in enumerate(sys.argv[2:]):
        if word == "wait":
            print(json.dumps({"used": used, "majflt": majors() - before}), flush=True)
            sys.stdin.readline()
            used, before = 0, majors()
        else:
            used += one_pass(sys.argv[1], number, word.split(":"))
    print(json.dumps({"used": used, "majflt": majors() - before}), flush=True)


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    main()
