# SPDX-License-Identifier: GPL-2.0
"""A Python program of whose memory a part is never there.

usage: python_withheld.py CALLS

The name of its code's file fills pages, and faults on the second of them are for userfaultfd(2) to answer, which
nobody does: whoever waits for the name waits until this process ends. When a line comes, CALLS callocs and frees of
1 MiB follow in that code, and it waits again.
"""

import ctypes
import mmap
import os
import sys

SYS_USERFAULTFD = 323  # x86-64
# include/uapi/linux/userfaultfd.h
UFFD_API, UFFDIO_API, UFFDIO_REGISTER, MODE_MISSING = 0xAA, 0xC018AA3F, 0xC020AA00, 1
MADV_DONTNEED = 4
MIB = 1 << 20

SOURCE = """
def work(calls):
    for _ in range(calls):
        libc.free(libc.calloc(1, MIB))
"""

libc = ctypes.CDLL(None, use_errno=True)
libc.calloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def withhold(page: int) -> None:
    descriptor = libc.syscall(SYS_USERFAULTFD, os.O_CLOEXEC)
    api = (ctypes.c_uint64 * 3)(UFFD_API, 0, 0)
    region = (ctypes.c_uint64 * 4)(page, mmap.PAGESIZE, MODE_MISSING, 0)
    libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p]
    if (
        descriptor < 0
        or libc.ioctl(descriptor, UFFDIO_API, api)
        or libc.ioctl(descriptor, UFFDIO_REGISTER, region)
        or libc.madvise(page, mmap.PAGESIZE, MADV_DONTNEED)
    ):
        sys.exit(f"userfaultfd: {os.strerror(ctypes.get_errno())}")


def main() -> None:
    calls = int(sys.argv[1])
    # Long enough for a mapping of its own.
    exec(compile(SOURCE, "x" * MIB, "exec"), globals())
    work = globals()["work"]
    withhold(id(work.__code__.co_filename) // mmap.PAGESIZE * mmap.PAGESIZE + mmap.PAGESIZE)
    print('{"ready": true}', flush=True)
    sys.stdin.readline()
    work(calls)
    print(f'{{"calls": {calls}}}', flush=True)
    sys.stdin.readline()


main()
