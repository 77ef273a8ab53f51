# SPDX-License-Identifier: GPL-2.0
"""Programs that harm whoever traces them: what is asked of them is bounded, the rest is counted as the loss it is."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from harness import (
    MIB,
    SOURCES,
    Program,
    Recording,
    finish,
    load,
    memtoll,
    record_several,
    start_record,
    wait_more_slices,
    wait_slices,
    wait_until,
    workload,
)

pytestmark = pytest.mark.root

# Of a prime number none is missing by chance.
CALLS = 1009


def peak_bytes(pid: int) -> int:
    """What a process has had resident at most: proc_pid_status(5)."""
    peak = re.search(r"^VmHWM:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.M)
    assert peak
    return int(peak[1]) * 1024


def make_calls(program: Program) -> None:
    """Let the program make its calls, all while it is traced."""
    program.go()
    wait_until(lambda: program.calls() == CALLS, "the program's calls")


def ended(out: Path, tracer: subprocess.Popen[str]) -> Recording:
    tracer.send_signal(signal.SIGINT)
    result = finish(tracer)
    # Not by the watchdog, which ends what does not get on with status 1.
    assert result.status == 0, result
    return load(out, result)


def test_as_many_mappings_as_there_may_be(out: Path, tmp_path: Path) -> None:
    with Program(workload("mappings"), tmp_path, "61", str(CALLS)) as program:
        tracer = start_record(out, "-p", str(program.pid))
        wait_slices(out, 1)
        make_calls(program)
        [mapped] = [line["mapped"] for line in program.lines if "mapped" in line]
        peak = peak_bytes(tracer.pid)
        recording = ended(out, tracer)
    assert recording.site("mappings.c", "calloc", "calloc").calls == CALLS
    assert recording.report["losses"]["unwind_full"] > mapped // 2 > 2**14
    # 55 MiB of an ordinary program.
    assert peak < 150 * MIB


def test_memory_that_never_answers(out: Path) -> None:
    """What is read of it is a name of a Python file; the call that it was for is counted all the same. Nobody waits for
    a page of userfaultfd that is not there: reads of /proc/PID/mem do not ask its handler.
    """
    with Program("/usr/bin/python3", "-B", SOURCES / "python_withheld.py", str(CALLS)) as program:
        tracer = start_record(out, "-p", str(program.pid))
        wait_slices(out, 1)
        make_calls(program)
        # The slice that needs the name is written while the program holds it back.
        wait_more_slices(out, 1)
        recording = ended(out, tracer)
    calls = recording.query(f"SELECT SUM(calls) FROM call WHERE call = 'calloc' AND bytes = calls * {MIB}")
    assert calls == [(CALLS,)]
    losses = recording.report["losses"]
    assert losses["python_unreadable"] > 0 and losses["memory_given_up"] == 0
    assert "python_unreadable" in memtoll("report", "--full", out).stdout


def test_file_system_that_never_answers(out: Path, tmp_path: Path) -> None:
    with Program("/usr/bin/python3", "-B", SOURCES / "python_stalled.py", tmp_path, str(CALLS)) as program:
        tracer = start_record(out, "-p", str(program.pid))
        wait_slices(out, 1)
        make_calls(program)
        recording = ended(out, tracer)
    calls = recording.query(f"SELECT SUM(calls) FROM call WHERE call = 'calloc' AND bytes = calls * {MIB}")
    assert calls == [(CALLS,)]
    assert recording.report["losses"]["memory_given_up"] > 0


def test_processes_that_are_not_as_expected(out: Path) -> None:
    """Code without a name, memory of two processes, names of any bytes, and hardly a system call allowed."""
    kinds = ["memfd", "borrower", "renamer"]
    # Where seccomp may refuse what a return probe does (host/seccomp.h), it would end there.
    if not (6, 11) <= tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) < (6, 14):
        kinds.append("locked")
    recording, said = record_several(out, {kind: ["oddities", kind, CALLS] for kind in kinds})
    assert recording.result.stderr.splitlines()[-1] == f"memtoll: wrote {out}"
    for kind in kinds:
        calls = recording.query(
            f"SELECT SUM(calls) FROM call WHERE pid = {said[kind]['pid']} AND call = 'calloc' AND bytes = calls * 70000"
        )
        assert calls == [(CALLS,)], kind
    child = said["borrower"]["child"]
    mapped = recording.query(f"SELECT call, SUM(calls) FROM map_call WHERE pid = {child} GROUP BY call ORDER BY call")
    assert mapped == [("mmap", CALLS), ("munmap", CALLS)]
    text = memtoll("report", "--full", out).stdout
    assert all(each.isprintable() for each in text.replace("\n", ""))
