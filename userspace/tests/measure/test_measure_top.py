# SPDX-License-Identifier: GPL-2.0
"""How soon the live view has something to say, and what that of the whole machine takes."""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import struct
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from harness import BPF_CALL, MEMTOLL, MIB, Program, end, spawn, tool, uprobe_pages, wait_until, workload
from measuring import Bound, settle

pytestmark = [pytest.mark.root, pytest.mark.measure]


def test_first_screen_within_a_second_of_the_attach() -> None:
    """It has a process and a site by then: what a line of --json has, the screen has."""

    def once() -> Mapping[str, float]:
        with Program(workload("calloc_loop"), str(10 * MIB), "0", "--seconds", "100", "--rest", "1000") as program:
            before = uprobe_pages(program.pid)
            top = spawn([MEMTOLL, "top", "--json", "-p", str(program.pid)])
            try:
                wait_until(lambda: uprobe_pages(program.pid) > before, "the first breakpoint", every=0.002)
                attached = time.monotonic()
                assert top.stdout
                line = json.loads(top.stdout.readline())
                told = time.monotonic()
            finally:
                top.send_signal(signal.SIGINT)
                end(top)
        assert line["verdict"]["most"] == "zeroing"
        assert [process["pid"] for process in line["processes"]] == [program.pid] and line["sites"]
        return {"seconds from the attach": told - attached}

    settle(once, {"seconds from the attach": Bound(most=1)}, 45)


# bpf(2): run times are counted until the descriptor that it gives is closed.
BPF_ENABLE_STATS = 32
# What the kernel does around a program that a tracepoint calls, which its count of run time leaves out.
AROUND_S = 50e-9


@contextmanager
def run_times() -> Iterator[None]:
    attributes = struct.pack("<I60x", 0)
    counting = ctypes.CDLL(None, use_errno=True).syscall(
        BPF_CALL[os.uname().machine], BPF_ENABLE_STATS, attributes, len(attributes)
    )
    assert counting >= 0, os.strerror(ctypes.get_errno())
    try:
        yield
    finally:
        os.close(counting)


def programs_s(pid: int) -> float:
    """What the programs that a process holds have run for, by the kernel's count."""
    found: dict[str, tuple[int, int]] = {}
    for info in Path(f"/proc/{pid}/fdinfo").iterdir():
        with suppress(OSError):
            figures = dict(re.findall(r"^(\w+):\s*(\d+)", info.read_text(), re.M))
            if "run_time_ns" in figures:
                found[figures["prog_id"]] = int(figures["run_time_ns"]), int(figures["run_cnt"])
    assert found
    return sum(ns / 1e9 + runs * AROUND_S for ns, runs in found.values())


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_whole_machine_takes_less_than_a_hundredth(tmp_path: Path) -> None:
    """Of all processors, in its programs and itself, beside one that clears without end and others that only start."""

    def once() -> Mapping[str, float]:
        lines = tmp_path / "lines"
        with lines.open("w") as out:
            top = spawn([MEMTOLL, "top", "--json"], stdout=out)
            try:
                wait_until(lambda: lines.stat().st_size > 0, "the first line")
                began, before = time.monotonic(), programs_s(top.pid) + processor_s(top.pid)
                time.sleep(4)
                took, after = time.monotonic() - began, programs_s(top.pid) + processor_s(top.pid)
            finally:
                top.send_signal(signal.SIGINT)
                end(top)
        return {"share of the machine": (after - before) / took / len(os.sched_getaffinity(0))}

    with ExitStack() as stack:
        stack.enter_context(run_times())
        stack.enter_context(Program(workload("calloc_loop"), str(10 * MIB), "0", "--seconds", "300"))
        starting = spawn(["sh", "-c", f"while :; do {tool('true')}; done"])
        stack.callback(end, starting)
        settle(once, {"share of the machine": Bound(most=0.01)}, 60)
