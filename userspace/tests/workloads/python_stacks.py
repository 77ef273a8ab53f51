# SPDX-License-Identifier: GPL-2.0
"""Allocate large blocks at the end of all kinds of calls, and say where that is.

python_stacks.py [wait]: a line of JSON per case: its name, how many blocks of how many bytes, and the
chain of functions and lines that leads there, as the interpreter itself has it. With "wait" it says
first that it is there, begins when it gets a line, and ends when it gets another.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import sys
import threading

BLOCK = 1 << 20
ROUNDS = 53

blocks = 0
chains = {}


def here(case):
    """The chain of the caller: innermost first."""
    frame = sys._getframe(1)
    chain = []
    while frame:
        code = frame.f_code
        chain.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    chains.setdefault(case, chain)
    return 0


def nested():
    def inner():
        return here("nested"), bytearray(BLOCK)

    return inner()


def recursive(depth):
    if depth:
        return recursive(depth - 1)
    return here("recursive"), bytearray(BLOCK)


def deep(depth):
    return deep(depth - 1) if depth else (here("deep"), bytearray(BLOCK))


def numbers():
    for _ in range(2):
        yield here("generator"), bytearray(BLOCK)


def through():
    yield from numbers()


def generator():
    iterator = through()
    return next(iterator)


def key(_value):
    return len((here("sorted"), bytearray(BLOCK)))


def sort():
    return sorted([3], key=key)


COMPARE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


@COMPARE
def compare(_a, _b):
    bool((here("callback"), bytearray(BLOCK)))
    return 0


libc = ctypes.CDLL(None)


def callback():
    array = (ctypes.c_int * 2)(1, 2)
    libc.qsort(array, ctypes.c_size_t(2), ctypes.c_size_t(4), compare)


async def awaited():
    return here("coroutine"), bytearray(BLOCK)


async def awaiting():
    return await awaited()


def coroutine():
    with contextlib.suppress(StopIteration):
        awaiting().send(None)


class Thing:
    def __init__(self):
        self.block = here("init"), bytearray(BLOCK)


class Größe(Thing):
    def __init__(self):
        super().__init__()


class Plain:
    @property
    def value(self):
        return here("property"), bytearray(BLOCK)

    def __enter__(self):
        return here("with"), bytearray(BLOCK)

    def __exit__(self, *_args):
        return None


def init():
    return Größe()


def looked_up(thing=Plain()):
    return thing.value


def entered(thing=Plain()):
    with thing as block:
        return block


def comprehension():
    return [(here("comprehension"), bytearray(BLOCK)) for _ in range(1)]


def anonymous():
    return (lambda: (here("lambda"), bytearray(BLOCK)))()


made = {}
exec(compile("def 数():\n    return here('exec'), bytearray(BLOCK)\n", "<made>", "exec"), globals(), made)


def executed():
    return made["数"]()


def calloc():
    """Not through the interpreter's own allocator, but C's."""
    return here("calloc"), libc_calloc(1, BLOCK)


libc_calloc = libc.calloc
libc_calloc.restype = ctypes.c_void_p
libc_calloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]


def one_thread():
    for _ in range(ROUNDS):
        bool((here("one thread"), bytearray(BLOCK)))


def other_thread():
    for _ in range(ROUNDS):
        bool((here("other thread"), bytearray(BLOCK)))


def threads():
    both = [threading.Thread(target=target) for target in (one_thread, other_thread)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()


def main():
    if sys.argv[1:] == ["wait"]:
        print(json.dumps({"ready": True}), flush=True)
        sys.stdin.readline()
    for _ in range(ROUNDS):
        nested()
        recursive(7)
        deep(61)
        generator()
        sort()
        callback()
        coroutine()
        init()
        looked_up()
        entered()
        comprehension()
        anonymous()
        executed()
        calloc()
    threads()
    for case, chain in chains.items():
        print(json.dumps({"case": case, "count": ROUNDS, "bytes": BLOCK, "chain": chain}), flush=True)
    if sys.argv[1:] == ["wait"]:
        print(json.dumps({"done": True}), flush=True)
        sys.stdin.readline()


# At the top of the file, in code that is gone when the program ends.
top = here("module"), bytearray(BLOCK)
main()
