# SPDX-License-Identifier: GPL-2.0
"""Bad days: a target that goes, stands still or is very large, a clock that steps, a machine without tracefs.

Whatever happens, the target is unharmed, the kernel holds nothing afterwards, and the recording is whole or not there.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from harness import (
    MEMTOLL,
    MIB,
    PATIENCE,
    Program,
    assert_refused,
    bpf_objects,
    changed_text,
    end,
    finish,
    integrity,
    load,
    memtoll,
    query,
    report,
    running_loop,
    spawn,
    start_record,
    tool,
    wait_attached,
    wait_gone,
    wait_more_slices,
    wait_slices,
    wait_until,
    workload,
)
from leftovers import noted
from stepping import Clock
from swapping import in_cgroup, make_cgroup

pytestmark = pytest.mark.root

TEN = 10 * MIB
CALLS = 53
# At so many moments of an attach, evenly from its start to its end, the target goes.
MOMENTS = 11
THREADS = 20_011


def held_objects(tracer: subprocess.Popen[str]) -> dict[str, set[int]]:
    with suppress(FileNotFoundError):
        return bpf_objects(tracer.pid)
    return {}


def wait_all_gone(held: dict[str, set[int]]) -> None:
    for kind, numbers in held.items():
        wait_gone(kind, numbers)


def test_target_dies_at_any_moment_of_the_attach(out: Path) -> None:
    """A recording of what there was of it, or one line; never a probe that stays."""
    with running_loop() as program:
        begun = time.monotonic()
        tracer = start_record(out, "-p", str(program.pid))
        wait_attached(tracer, program.pid)
        attached = time.monotonic() - begun
        tracer.send_signal(signal.SIGINT)
        assert finish(tracer).status == 0
    held: dict[str, set[int]] = {"prog": set(), "link": set()}
    for number in range(MOMENTS + 1):
        path = out.with_name(f"{number}.memtoll")
        with running_loop() as program:
            tracer = start_record(path, "-p", str(program.pid))
            if number < MOMENTS:
                with suppress(subprocess.TimeoutExpired):
                    tracer.wait(attached * number / MOMENTS)
            else:
                # At what moment the others die is by chance: this one has been attached to.
                wait_attached(tracer, program.pid)
            for kind, numbers in held_objects(tracer).items():
                held[kind] |= numbers
            program.process.kill()
            # Without -d it records until the target has ended.
            result = finish(tracer)
        if path.exists():
            assert result.status == 0, result
            assert integrity(path) == "ok"
            assert report(path)["complete"] is True
        else:
            assert result.status == 1, result
            (line,) = result.stderr.splitlines()
            assert str(program.pid) in line or "ended while attaching" in line
    assert held["prog"], "no tracer was seen at its attach"
    wait_all_gone(held)


PF_EXITING = 0x4


@contextmanager
def starved(pid: int) -> Iterator[None]:
    """It gets a few thousandths of a processor, as another wants all of it."""
    processor = min(os.sched_getaffinity(0))
    os.sched_setaffinity(pid, {processor})
    os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))
    # Where each session is a group of the scheduler's (sched(7)), that decides between the two.
    with suppress(FileNotFoundError):
        Path(f"/proc/{pid}/autogroup").write_text("19")
    other = spawn([tool("taskset"), "-c", str(processor), "sh", "-c", "echo; while :; do :; done"])
    assert other.stdout
    try:
        other.stdout.readline()
        yield
    finally:
        end(other)


def test_target_that_is_dying(out: Path) -> None:
    """Its exit has been told already, and it is still there, as it gives much memory back: it is not waited for."""
    with Program(workload("holder"), "full", "512") as program:
        stat = Path(f"/proc/{program.pid}/stat")
        with starved(program.pid):
            program.process.kill()
            wait_until(lambda: int(stat.read_text().rpartition(")")[2].split()[6]) & PF_EXITING, "it to begin to end")
            result = memtoll("record", "-o", out, "-p", str(program.pid))
    assert_refused(result, 1, str(program.pid))
    assert not out.exists()


# Its first thread ends when told to, as pthread_exit(3) allows, and the other one runs on.
HEADLESS = """
import ctypes, sys, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
sys.stdin.readline()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_first_thread_goes_before_the_others(out: Path) -> None:
    """The process is no zombie, though /proc calls it one: it is followed to its end, of which the kernel tells."""
    process = spawn([sys.executable, "-c", HEADLESS], stdin=subprocess.PIPE)
    assert process.stdin
    tracer = start_record(out, "-p", str(process.pid))
    wait_attached(tracer, process.pid)
    process.stdin.write("\n")
    process.stdin.flush()
    wait_until(lambda: "\nState:\tZ" in Path(f"/proc/{process.pid}/status").read_text(), "the first thread's end")
    wait_more_slices(out, 4)
    process.kill()
    assert finish(tracer).status == 0
    assert query(out, "SELECT exit_code FROM process") == [(signal.SIGKILL,)]


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T", "it to stop")
    yield
    os.kill(pid, signal.SIGCONT)


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """In a group of the freezer's: what cgroup.freeze, or that controller, does to a paused container."""
    two = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    group = Path("/sys/fs/cgroup" if two else "/sys/fs/cgroup/freezer") / f"memtoll-test-{os.getpid()}"
    switch, state = (group / "cgroup.freeze", group / "cgroup.events") if two else [group / "freezer.state"] * 2
    with noted("cgroup", group):
        group.mkdir()
        try:
            (group / "cgroup.procs").write_text(str(pid))
            switch.write_text("1" if two else "FROZEN")
            wait_until(lambda: ("frozen 1" if two else "FROZEN\n") in state.read_text(), "it to freeze")
            yield
        finally:
            switch.write_text("0" if two else "THAWED")
            (group.parent / "cgroup.procs").write_text(str(pid))
            wait_until(lambda: not (group / "cgroup.procs").read_text(), "it to leave")


@pytest.mark.parametrize("still", [stopped, frozen])
def test_target_stands_still(out: Path, still: Callable[[int], AbstractContextManager[None]]) -> None:
    """Attached to, recorded and left as any other: it has no part in that. What it does afterwards is seen."""
    with running_loop() as program:
        with still(program.pid):
            tracer = start_record(out, "-p", str(program.pid))
            wait_attached(tracer, program.pid)
            wait_slices(out, 2)
            assert query(out, "SELECT coalesce(sum(calls), 0) FROM call") == [(0,)]
        wait_until(lambda: query(out, "SELECT coalesce(sum(calls), 0) FROM call")[0][0] > 10, "calls")
        with still(program.pid):
            tracer.send_signal(signal.SIGINT)
            assert finish(tracer).status == 0
            assert not changed_text(program.pid)
        program.beats()
    assert integrity(out) == "ok"
    assert report(out)["complete"] is True


def test_tracer_stands_still_for_a_minute(out: Path) -> None:
    """The target does not wait for it. What happened meanwhile is all counted: the kernel does that, not the tracer."""
    with Program(workload("calloc_loop"), str(TEN), "0", "--seconds", "61", "--rest", "20000", "--wait") as program:
        tracer = start_record(out, "-p", str(program.pid))
        wait_attached(tracer, program.pid)
        held = held_objects(tracer)
        with stopped(tracer.pid):
            program.go()
            calls = program.last()["calls"]
        result = finish(tracer)
    assert result.status == 0, result
    assert query(out, "SELECT sum(calls) FROM call WHERE call = 'calloc'") == [(calls,)]
    assert integrity(out) == "ok"
    assert report(out)["complete"] is True
    assert held["prog"]
    wait_all_gone(held)


# It goes on until it has all that another process had.
GREEDY = """
import sys
print("{}", flush=True)
pid = sys.stdin.readline().strip()
held = []
while "VmRSS" in open(f"/proc/{pid}/status").read():
    held.append(bytearray(b"x" * 4096 * 16))
"""


@pytest.mark.machine
def test_tracer_is_killed_for_its_memory(out: Path) -> None:
    """Its cgroup is full, and it is whom the kernel ends: as kill -9, which it is."""
    with ExitStack() as stack, running_loop() as program:
        box = make_cgroup(stack, 256 * MIB)
        greedy = stack.enter_context(Program(*in_cgroup(box, tool("python3"), "-c", GREEDY)))
        tracer = spawn(in_cgroup(box, MEMTOLL, "record", "-p", str(program.pid), "-o", out))
        wait_attached(tracer, program.pid)
        wait_slices(out, 2)
        held = held_objects(tracer)
        # The kernel prefers it to all others, as a user may ask it to.
        Path(f"/proc/{tracer.pid}/oom_score_adj").write_text("1000")
        assert greedy.process.stdin
        greedy.process.stdin.write(f"{tracer.pid}\n")
        greedy.process.stdin.flush()
        assert finish(tracer).status == -signal.SIGKILL
        assert held["prog"]
        wait_all_gone(held)
        wait_until(lambda: not changed_text(program.pid), "the breakpoints to go")
        program.beats()
    assert integrity(out) == "ok"
    assert report(out)["complete"] is False


def test_three_tracers_of_one_target(tmp_path: Path) -> None:
    """Each counts all, and says that another one is in the price that it pays."""
    paths = [tmp_path / f"{number}.memtoll" for number in range(3)]
    with Program(workload("calloc_loop"), str(TEN), str(CALLS), "--wait") as program:
        tracers = [start_record(path, "-p", str(program.pid)) for path in paths]
        for tracer in tracers:
            wait_attached(tracer, program.pid)
        held = [held_objects(tracer) for tracer in tracers]
        program.go()
        program.process.wait(timeout=PATIENCE)
        for tracer in tracers:
            assert finish(tracer).status == 0
    for path in paths:
        assert query(path, "SELECT sum(calls) FROM call WHERE call = 'calloc'") == [(CALLS,)]
    for objects in held:
        assert objects["prog"]
        wait_all_gone(objects)


def test_clock_steps(out: Path, tmp_path: Path) -> None:
    """Times in a recording are of the clock that does not step: nothing lasts negative hours."""
    clock = Clock(tmp_path)
    begun = time.monotonic()
    with Program(workload("calloc_loop"), str(TEN), str(CALLS), "--wait") as program:
        tracer = start_record(out, "-p", str(program.pid), env=clock.environment)
        wait_attached(tracer, program.pid)
        for ahead_s in (-3600, 3600):
            wait_more_slices(out, 1)
            clock.set(ahead_s)
        wait_more_slices(out, 2)
        program.go()
        result = finish(tracer)
    took = time.monotonic() - begun
    assert result.status == 0, result
    ((first, last, backwards),) = query(out, "SELECT min(start_ns), max(end_ns), sum(end_ns < start_ns) FROM slice")
    assert not backwards
    assert 0 < last - first < took * 1e9
    assert query(out, "SELECT sum(calls) FROM call WHERE call = 'calloc'") == [(CALLS,)]


@pytest.mark.machine
def test_twenty_thousand_threads(out: Path) -> None:
    """All alive at once, and each is counted. Two such programs would have more than pid_max of them."""
    with Program(workload("crowd"), "--wait", str(THREADS), "3") as program:
        tracer = start_record(out, "-p", str(program.pid))
        wait_attached(tracer, program.pid)
        held = held_objects(tracer)
        program.go()
        recording = load(out, finish(tracer))
    assert recording.result.status == 0, recording.result
    assert recording.site("crowd.c", "malloc", "malloc").calls == 3 * THREADS
    assert held["prog"]
    wait_all_gone(held)


def test_without_tracefs(out: Path) -> None:
    """Nor debugfs: neither is needed, or the kernel could not be traced in most containers."""
    hidden = 'for where in /sys/kernel/tracing /sys/kernel/debug; do umount -lR $where 2>/dev/null; done; exec "$@"'
    unshare: list[str | Path] = [tool("unshare"), "--mount", "--propagation", "private", "sh", "-c", hidden, "sh"]
    with Program(workload("calloc_loop"), str(TEN), str(CALLS), "--wait") as program:
        tracer = spawn([*unshare, MEMTOLL, "record", "-o", out, "-p", str(program.pid)])
        wait_attached(tracer, program.pid)
        held = held_objects(tracer)
        program.go()
        result = finish(tracer)
    assert result.status == 0, result
    assert held["prog"]
    wait_all_gone(held)
    assert query(out, "SELECT sum(calls) FROM call WHERE call = 'calloc'") == [(CALLS,)]
