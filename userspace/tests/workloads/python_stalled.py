# SPDX-License-Identifier: GPL-2.0
"""A program with code from a file system that does not answer any more.

usage: python_stalled.py DIRECTORY CALLS

Mounts a file system of its own on DIRECTORY (fuse(4), in a mount namespace of its own), of one file, a copy of this
interpreter's first page, and maps it as code. Then the file system stands still: whoever opens the file waits until
this process ends. When a line comes, CALLS callocs and frees of 1 MiB follow, and it waits again.
"""

import ctypes
import mmap
import os
import signal
import struct
import sys

MIB = 1 << 20
CLONE_NEWNS = 0x20000
MS_NOSUID, MS_NODEV, MS_REC, MS_PRIVATE = 2, 4, 1 << 14, 1 << 18

# include/uapi/linux/fuse.h: requests, and how long the kernel may believe what it is told of files.
LOOKUP, FORGET, GETATTR, OPEN, READ, INIT, BATCH_FORGET = 1, 2, 3, 14, 15, 26, 42
VALID_SECONDS = 3600
ENOSYS = 38

libc = ctypes.CDLL(None, use_errno=True)
libc.calloc.restype = ctypes.c_void_p
libc.free.argtypes = [ctypes.c_void_p]


def checked(result: int) -> None:
    if result:
        sys.exit(os.strerror(ctypes.get_errno()))


def attributes(node: int, size: int) -> bytes:
    mode = 0o100755 if node == 2 else 0o040755
    return struct.pack("=6Q10I", node, size, 1, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer(kind: int, node: int, body: bytes, content: bytes) -> bytes | None:
    size = len(content)
    if kind == INIT:
        return struct.pack("=4I2H2I2H8I", 7, 31, 65536, 0, 16, 12, 65536, 1, 0, 0, *[0] * 8)
    if kind == LOOKUP:
        return struct.pack("=4Q2I", 2, 0, VALID_SECONDS, VALID_SECONDS, 0, 0) + attributes(2, size)
    if kind == GETATTR:
        return struct.pack("=Q2I", VALID_SECONDS, 0, 0) + attributes(node, size)
    if kind == OPEN:
        return struct.pack("=Q2I", 0, 0, 0)
    if kind == READ:
        _, offset, length = struct.unpack_from("=2QI", body)
        return content[offset : offset + length]
    return None


def serve(device: int, content: bytes) -> None:
    while True:
        request = os.read(device, 1 << 20)
        _, kind, unique, node = struct.unpack_from("=2I2Q", request)
        if kind in (FORGET, BATCH_FORGET):
            continue
        reply = answer(kind, node, request[40:], content)
        header = struct.pack("=IiQ", 16 + len(reply or b""), 0 if reply is not None else -ENOSYS, unique)
        os.write(device, header + (reply or b""))


def main() -> None:
    directory, calls = sys.argv[1], int(sys.argv[2])
    with open("/proc/self/exe", "rb") as file:
        content = file.read(4096)
    checked(libc.unshare(CLONE_NEWNS))
    checked(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None))
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other"
    checked(libc.mount(b"stalled", directory.encode(), b"fuse", MS_NOSUID | MS_NODEV, options.encode()))
    server = os.fork()
    if not server:
        serve(device, content)
    with open(f"{directory}/library.so", "rb") as file:
        code = mmap.mmap(file.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
    assert code[:4] == b"\x7fELF"
    os.kill(server, signal.SIGSTOP)
    os.waitpid(server, os.WUNTRACED)
    print('{"ready": true}', flush=True)
    sys.stdin.readline()
    for _ in range(calls):
        libc.free(libc.calloc(1, MIB))
    print(f'{{"calls": {calls}}}', flush=True)
    sys.stdin.readline()


main()
