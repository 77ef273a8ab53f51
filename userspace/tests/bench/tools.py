# SPDX-License-Identifier: GPL-2.0
"""Tracers as contenders: each attaches to one process, by its number, and goes away again."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import memleak

from harness import MEMTOLL, changed_text, end, environment, query, spawn, wait_until

BARE: Final = "bare"
DEFAULT: Final = "memtoll"
FULL: Final = "memtoll, no limit"
COMMAND: Final = "memtoll, as a command"
UNWALKED: Final = "memtoll, no limit, no stacks"
FLOOR_ENTRY: Final = "empty probes, entry"
FLOOR: Final = "empty probes, entry and return"
MEMLEAK: Final = "bcc memleak"
BPFTRACE: Final = "bpftrace"
HEAPTRACK: Final = "heaptrack"
STARTERS: Final = (HEAPTRACK, COMMAND)  # start the process themselves: prefix()
PERF_TRACE: Final = "perf trace -F"

MEMTOLL_OPTIONS: Final[dict[str, list[str]]] = {
    DEFAULT: [],
    FULL: ["--overhead-limit", "none"],
    # Blocks so large that none is followed: stacks are walked of sites only, by frame pointers.
    UNWALKED: ["--overhead-limit", "none", "--min-size", "1G"],
}

# The same functions, what memtoll writes down of each, as one would write it in a line.
BPFTRACE_PROGRAM: Final = """
uprobe:LIBC:malloc { @size[tid] = arg0; @start[tid] = nsecs; }
uprobe:LIBC:calloc { @size[tid] = arg0 * arg1; @start[tid] = nsecs; }
uretprobe:LIBC:malloc, uretprobe:LIBC:calloc /@start[tid]/ {
  @calls = count(); @bytes = sum(@size[tid]); @ns = sum(nsecs - @start[tid]); delete(@start[tid]); }
uprobe:LIBC:free { @frees = count(); }
tracepoint:exceptions:page_fault_user /pid == PID/ { @faults = count(); }
"""


class CannotAttach(Exception):
    """With the tool's own words."""


def find(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin")


def programs() -> dict[str, str | None]:
    return {
        MEMLEAK: find("memleak-bpfcc") or find("memleak"),
        BPFTRACE: find("bpftrace"),
        HEAPTRACK: find("heaptrack"),
        PERF_TRACE: find("perf"),
    }


def installed(contender: str) -> bool:
    return programs().get(contender, "built") is not None


def allocator_of(pid: int) -> str:
    """The library whose malloc the process calls: another than libc's comes before it."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    mapped = dict.fromkeys(line.split(maxsplit=5)[5] for line in lines if "/" in line)
    for name in (r"lib(je|tc)malloc\S*\.so|libmimalloc\S*\.so", r"libc\.so\.6"):
        for path in mapped:
            if re.match(name, Path(path).name):
                return path
    raise CannotAttach("no library with an allocator is mapped")


def stop(process: subprocess.Popen[str]) -> None:
    """As a user would, then as nobody likes to."""
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=20)
    end(process)


@contextmanager
def running(
    command: Sequence[str | Path],
    ready: Callable[[], object],
    variables: dict[str, str] | None = None,
    **options: Any,
) -> Iterator[subprocess.Popen[str]]:
    # What it says is read at the end only, and goes to a file: a full pipe would stop it.
    process = spawn(command, {"PYTHONUNBUFFERED": "1", **(variables or {})}, **options)
    try:

        def there() -> bool:
            if process.poll() is not None:
                _, err = process.communicate()
                raise CannotAttach((err or "").strip()[-200:] or f"exit status {process.returncode}")
            return bool(ready())

        wait_until(there, f"{command[0]} to attach", 40)
        yield process
        there()  # to the end: what has given up meanwhile has cost nothing
    finally:
        stop(process)


def recording(scratch: Path) -> Path:
    return scratch / f"{len(list(scratch.iterdir()))}.memtoll"


@contextmanager
def tracefs() -> Iterator[None]:
    """Where the other tools look for tracepoints; memtoll needs no mount."""
    place = Path("/sys/kernel/tracing")
    if (place / "events").exists():
        yield
        return
    run(["mount", "-t", "tracefs", "tracefs", place])
    try:
        yield
    finally:
        # Who came upon it meanwhile keeps it for as long as its files are open.
        run(["umount", "--lazy", place])


@contextmanager
def attached(
    contender: str,
    pid: int,
    scratch: Path,
    said: dict[str, list[float]] | None = None,
    workers: Sequence[int] = (),
) -> Iterator[None]:
    """The contender traces the process while the block runs. said: its own word on its overhead, percent.

    workers: children that were there before, which memtoll traces with it; those that come are followed.
    """
    if contender == BARE or contender in STARTERS:
        yield
        return
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL}
    if contender in MEMTOLL_OPTIONS:
        out = recording(scratch)
        pids = ",".join(map(str, [pid, *workers]))
        command = [str(MEMTOLL), "record", "-p", pids, "-o", str(out), *MEMTOLL_OPTIONS[contender]]

        def slices() -> bool:
            try:
                return bool(query(out, "SELECT COUNT(*) FROM slice")[0][0])
            except Exception:  # not there yet, or being made
                return False

        with running(command, slices, **quiet):
            yield
        if said is not None:
            told = json.loads(run([MEMTOLL, "report", "--json", out]))["overhead"]["estimated_pct"]
            said.setdefault(contender, []).append(told)
        out.unlink(missing_ok=True)
        return
    if contender in (FLOOR, FLOOR_ENTRY):
        helper = MEMTOLL.parent / "bench" / "empty_probes"
        mode = "return" if contender == FLOOR else "entry"
        with running([helper, str(pid), mode], lambda: changed_text(pid), stdin=subprocess.PIPE, **quiet):
            yield
        return
    path = programs()[contender]
    assert path
    if contender == PERF_TRACE:
        command = [path, "trace", "-F", "all", "--no-syscalls", "-p", str(pid), "-o", str(scratch / "perf.out")]

        def counting() -> bool:
            try:
                return any("perf_event" in str(fd.readlink()) for fd in Path(f"/proc/{process_id[0]}/fd").iterdir())
            except FileNotFoundError:  # closed since it was listed
                return False

        process_id: list[int] = []
        process = spawn(command, None, **quiet)
        process_id.append(process.pid)
        try:
            wait_until(lambda: process.poll() is not None or counting(), "perf trace to attach", 20)
            if process.poll() is not None:
                raise CannotAttach(process.communicate()[1].strip()[-200:])
            yield
        finally:
            stop(process)
        return
    library = allocator_of(pid)
    variables: dict[str, str] = {}
    if contender == MEMLEAK:
        shim = Path(__file__).with_name("memleak.py")
        # The bindings are the distribution's, for the distribution's Python.
        command = ["/usr/bin/python3", str(shim), path, "-p", str(pid), "-O", library, "3600"]
        try:
            tree = memleak.headers(scratch)
        except FileNotFoundError as error:
            raise CannotAttach(str(error)) from error
        if tree:
            variables["BCC_KERNEL_SOURCE"] = str(tree)
    else:
        program = BPFTRACE_PROGRAM.replace("LIBC", library).replace("PID", str(pid))
        command = [path, "-p", str(pid), "-e", program]
    with running(command, lambda: len(changed_text(pid, Path(library).name)) >= 3, variables, **quiet):
        yield


def prefix(contender: str, scratch: Path) -> list[str]:
    """What stands before a command that the contender has to start itself."""
    if contender == COMMAND:
        return [str(MEMTOLL), "record", "-o", str(recording(scratch)), "--"]
    if contender != HEAPTRACK:
        return []
    path = programs()[HEAPTRACK]
    assert path
    # It writes where it stands.
    return ["env", "-C", str(scratch), path]


def cpu_ns(pid: int) -> int:
    """CPU time of all threads of a process, those that have ended too: its CPU clock (clock_getcpuclockid(3))."""
    import time

    return time.clock_gettime_ns((~pid << 3) | 2)


def run(command: Sequence[str | Path], text: str | None = None, seconds: float = 120) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(
        words, input=text, capture_output=True, text=True, timeout=seconds, env=environment(), check=False
    )
    assert done.returncode == 0, done
    return done.stdout
