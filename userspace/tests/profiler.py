# SPDX-License-Identifier: GPL-2.0
"""A profiler of our own, as a witness of time spent in some of the kernel's functions: perf_event_open(2)."""

from __future__ import annotations

import bisect
import ctypes
import mmap
import os
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

PERF_EVENT_OPEN: Final = 298
SOFTWARE, CPU_CLOCK = 1, 0
SAMPLE_IP, SAMPLE_TID = 1, 2
RECORD_SAMPLE: Final = 9
PAGES: Final = 1 << 10  # of a CPU's ring: a quarter of a million samples
DATA_HEAD: Final = 1024  # in its first page, struct perf_event_mmap_page
PERIOD_NS: Final = 250_000

libc = ctypes.CDLL(None, use_errno=True)


@dataclass
class Profile:
    """samples: by process, the addresses of the instructions that were met each PERIOD_NS on a CPU."""

    samples: dict[int, list[int]] = field(default_factory=dict)

    def kernel_ns(self, pid: int, *functions: str) -> float:
        """What the process's threads took in these functions themselves, not in what they call."""
        table = kernel_functions()
        starts = [start for start, _ in table]
        at = [bisect.bisect_right(starts, ip) - 1 for ip in self.samples.get(pid, []) if ip >> 63]
        return PERIOD_NS * sum(table[place][1] in functions for place in at if place >= 0)


def kernel_functions() -> list[tuple[int, str]]:
    lines = [line.split() for line in Path("/proc/kallsyms").read_text().splitlines()]
    return sorted((int(address, 16), name) for address, kind, name, *_ in lines if kind in "tTwW")


def _open(cpu: int) -> int:
    # struct perf_event_attr, PERF_ATTR_SIZE_VER0
    attr = struct.pack("<IIQQQQQIIQ", SOFTWARE, 64, CPU_CLOCK, PERIOD_NS, SAMPLE_IP | SAMPLE_TID, 0, 0, 0, 0, 0)
    fd = libc.syscall(PERF_EVENT_OPEN, attr, -1, cpu, -1, 8)  # PERF_FLAG_FD_CLOEXEC
    if fd < 0:
        raise OSError(ctypes.get_errno(), f"perf_event_open on CPU {cpu}")
    return int(fd)


def _records(ring: mmap.mmap) -> Iterator[tuple[int, int]]:
    """Addresses and processes of the samples in a ring that nobody has read yet."""
    (head,) = struct.unpack_from("<Q", ring, DATA_HEAD)
    assert head <= PAGES * mmap.PAGESIZE, "the ring is full: samples were lost"
    at = mmap.PAGESIZE
    while at < mmap.PAGESIZE + head:
        kind, _, size = struct.unpack_from("<IHH", ring, at)
        if kind == RECORD_SAMPLE:
            ip, pid, _ = struct.unpack_from("<QII", ring, at + 8)
            yield ip, pid
        at += size


@contextmanager
def profiled() -> Iterator[Profile]:
    """All CPUs; the samples are there at the end."""
    profile = Profile()
    with ExitStack() as stack:
        rings = []
        for cpu in sorted(os.sched_getaffinity(0)):
            fd = _open(cpu)
            stack.callback(os.close, fd)
            rings.append(stack.enter_context(mmap.mmap(fd, (1 + PAGES) * mmap.PAGESIZE)))
        yield profile
        for ring in rings:
            for ip, pid in _records(ring):
                profile.samples.setdefault(pid, []).append(ip)
