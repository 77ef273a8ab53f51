# SPDX-License-Identifier: GPL-2.0
"""Swap and memory cgroups of a test's own, taken down again whatever happens.

Swap that the machine had before stays as it was: ours has a higher priority and so is filled first.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from harness import MEMTOLL, MIB, tool
from leftovers import noted

LIMIT: Final = 80 * MIB
SWAP_BYTES: Final = 800 * MIB
CGROUPS: Final = Path("/sys/fs/cgroup")
ZRAM: Final = Path("/sys/class/zram-control")

# Above what anybody else gives: priorities end at 32767 (SWAP_FLAG_PRIO_MASK).
PRIORITY: Final = "32767"


def run(*words: str | Path) -> None:
    done = subprocess.run([tool(str(words[0])), *words[1:]], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, (words, done.stderr)


def swap_on(stack: ExitStack, area: Path) -> Path:
    run("mkswap", area)
    stack.enter_context(noted("swap", area))
    run("swapon", "-p", PRIORITY, area)
    return area


def swap_file(stack: ExitStack, size: int = SWAP_BYTES) -> Path:
    # Beside the build: a temporary directory may be in memory, where no swap file can be.
    folder = MEMTOLL.parent / f"swap.{os.getpid()}.{time.monotonic_ns()}"
    stack.enter_context(noted("directory", folder))
    folder.mkdir(mode=0o700)
    file = folder / "swap"
    with file.open("wb") as out:
        os.posix_fallocate(out.fileno(), 0, size)
    file.chmod(0o600)
    return swap_on(stack, file)


def swap_zram(stack: ExitStack, size: int = SWAP_BYTES) -> Path:
    """A zram device of our own: reading hot_add makes one and tells its number."""
    if not ZRAM.is_dir():
        run("modprobe", "zram")
    number = (ZRAM / "hot_add").read_text().strip()
    stack.enter_context(noted("zram", number))
    Path(f"/sys/block/zram{number}/disksize").write_text(str(size))
    return swap_on(stack, Path(f"/dev/zram{number}"))


def swap_area(stack: ExitStack, kind: str, size: int = SWAP_BYTES) -> Path:
    """Swap of a kind: 'file' or 'zram'. Off and gone when the stack is left."""
    return {"file": swap_file, "zram": swap_zram}[kind](stack, size)


def limit_of(cgroup: Path) -> Path:
    """The control of a cgroup's limit."""
    (control,) = (path for name in ("memory.max", "memory.limit_in_bytes") if (path := cgroup / name).exists())
    return control


def set_limit(cgroup: Path, limit: int) -> bool:
    """The kernel frees what is above it, and gives up for now (EBUSY) where that takes long."""
    try:
        limit_of(cgroup).write_text(str(limit))
    except OSError:
        return False
    return True


def limit_swap(cgroup: Path, limit: int, size: int) -> None:
    """A machine may have swap of its own, which its processes would take as well."""
    if (cgroup / "memory.swap.max").exists():
        (cgroup / "memory.swap.max").write_text(str(size))
    else:
        (cgroup / "memory.memsw.limit_in_bytes").write_text(str(limit + size))


def make_cgroup(stack: ExitStack, limit: int = LIMIT, swap: bool = False) -> Path:
    """A memory cgroup with a limit, version 1 or 2, whichever the machine mounts.

    Without swap it has none of another test's either: what is over the limit are then files.
    """
    name = f"memtoll-test-{os.getpid()}"
    if (CGROUPS / "memory").is_dir():
        cgroup = CGROUPS / "memory" / name
    else:
        (CGROUPS / "cgroup.subtree_control").write_text("+memory")
        cgroup = CGROUPS / name
    stack.enter_context(noted("cgroup", cgroup))
    cgroup.mkdir()
    assert set_limit(cgroup, limit)
    if not swap:
        for control in ("memory.swappiness", "memory.swap.max"):
            if (cgroup / control).exists():
                (cgroup / control).write_text("0")
    return cgroup


def slow_disk(stack: ExitStack, what: str, per_s: int, box: Path | None = None) -> Path:
    """A cgroup whose processes have so many reads a second ("iops"), or bytes ("bps"), of the disk below the build.

    Else how fast it is today is measured. Of version 2, where a process is in one cgroup only, it is the box.
    """
    device = MEMTOLL.parent.stat().st_dev
    limit = f"{os.major(device)}:{os.minor(device)}"
    if (CGROUPS / "blkio").is_dir():
        top, control, text, box = CGROUPS / "blkio", f"blkio.throttle.read_{what}_device", f"{limit} {per_s}", None
    else:
        top, control, text = CGROUPS, "io.max", f"{limit} r{what}={per_s}"
        (top / "cgroup.subtree_control").write_text("+io")
    cgroup = box or top / f"memtoll-test-disk-{os.getpid()}"
    if not box:
        stack.enter_context(noted("cgroup", cgroup))
        cgroup.mkdir()
    # Data on something that is no block device cannot be slowed down; its own speed has to do.
    with suppress(OSError):
        (cgroup / control).write_text(text)
    return cgroup


class OutOfMemory(Exception):
    """The kernel has killed a process of the cgroup, though there was room on swap: no test's doing.

    It gives up after sixteen rounds of reclaim that freed nothing (MAX_RECLAIM_RETRIES in mm/memcontrol.c), as may
    happen where every page has just been used.
    """


def oom_kills(cgroup: Path) -> int:
    (events,) = (path for name in ("memory.events", "memory.oom_control") if (path := cgroup / name).exists())
    rows = dict(line.split() for line in events.read_text().splitlines())
    return int(rows["oom_kill"])


@contextmanager
def memory_with_swap(kind: str = "file", limit: int = LIMIT, size: int = SWAP_BYTES) -> Iterator[Path]:
    """A cgroup whose processes have so much memory, and swap of that kind."""
    with ExitStack() as stack:
        swap_area(stack, kind, size)
        cgroup = make_cgroup(stack, limit, swap=True)
        try:
            yield cgroup
        except Exception as error:
            if oom_kills(cgroup):
                raise OutOfMemory(f"the kernel killed a process of {cgroup.name}") from error
            raise


def in_cgroup(cgroup: Path, *words: str | Path) -> list[str]:
    """A command that moves itself into the cgroup first."""
    return ["sh", "-c", f'echo $$ > {cgroup}/cgroup.procs && exec "$@"', "sh", *map(str, words)]


def vmstat() -> dict[str, int]:
    rows = (line.split() for line in Path("/proc/vmstat").read_text().splitlines())
    return {name: int(value) for name, value in rows}


def swapped_in(cgroup: Path) -> int:
    """Pages of the cgroup that came back, from wherever they were kept; what was read ahead is among them.

    The kernel's own count, as pswpin, zswpin and swpin_zero of /proc/vmstat are, but of nobody else.
    """
    rows = dict(line.split() for line in (cgroup / "memory.stat").read_text().splitlines())
    # Before Linux 5.9 all of the page cache and no anonymous memory was counted here.
    return int(rows["workingset_refault_anon"])
