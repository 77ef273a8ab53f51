# SPDX-License-Identifier: GPL-2.0
"""Touch fresh pages, each from another chain of callers, and as many at one line in a loop."""

import json
import mmap

PAGE = 4096
PAGES = 2053  # a prime: a step goes through all of them, and neighbours are touched by no neighbours
STEP = 7
LEVELS = 12
assert PAGES < 2**LEVELS


def fresh():
    memory = mmap.mmap(-1, PAGES * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)
    return memory


def left(path, levels, memory, at):
    if levels:
        (right if path & 1 else left)(path >> 1, levels - 1, memory, at)
    else:
        memory[at] = 1


def right(path, levels, memory, at):
    if levels:
        (right if path & 1 else left)(path >> 1, levels - 1, memory, at)
    else:
        memory[at] = 1


def by_paths():
    memory = fresh()
    for path in range(PAGES):
        left(path, LEVELS, memory, path * STEP % PAGES * PAGE)


def in_a_loop():
    memory = fresh()
    for number in range(PAGES):
        memory[number * STEP % PAGES * PAGE] = 1


by_paths()
in_a_loop()
print(json.dumps({"pages": PAGES}))
