# SPDX-License-Identifier: GPL-2.0
"""Targets that cannot be traced: one clear line, status 1, nothing created. And stat and doctor."""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import shutil
import signal
import sys
import termios
import threading
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import pytest

from harness import (
    MEMTOLL,
    MIB,
    NOBODY,
    PAGE,
    Program,
    Result,
    assert_refused,
    changed_text,
    end,
    finish,
    integrity,
    memtoll,
    memtoll_on_terminal,
    record,
    report,
    spawn,
    start_record,
    tool,
    wait_attached,
    wait_slices,
    wait_until,
    workload,
)
from shape import INTERVAL, check_report, check_shape

pytestmark = pytest.mark.root

PF_KTHREAD = 0x00200000


def refused(result: Result, out: Path, *names: str | Path, status: int = 1) -> None:
    assert_refused(result, status, *names)
    assert not list(out.parent.glob(out.name + "*")), "a file was left behind"


def dead_pid() -> int:
    """A number that was a process's a moment ago."""
    process = spawn(["true"])
    process.wait(timeout=60)
    end(process)
    return process.pid


def test_no_such_pid(out: Path) -> None:
    pid = dead_pid()
    refused(memtoll("record", "-o", out, "-p", str(pid)), out, str(pid))


def test_pid_beyond_all(out: Path) -> None:
    refused(memtoll("record", "-o", out, "-p", "2147483647"), out, "2147483647")


def test_one_bad_pid_of_two(out: Path) -> None:
    pid = dead_pid()
    with Program(workload("sleeper")) as program:
        refused(memtoll("record", "-o", out, "-p", f"{program.pid},{pid}"), out, str(pid))
        assert changed_text(program.pid) == []


def kernel_thread() -> int | None:
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            flags = int((entry / "stat").read_text().rpartition(")")[2].split()[6])
        except OSError:
            continue
        if flags & PF_KTHREAD:
            return int(entry.name)
    return None


def test_kernel_thread(out: Path) -> None:
    pid = kernel_thread()
    if pid is None:
        pytest.skip("this pid namespace has no kernel thread")
    refused(memtoll("record", "-o", out, "-p", str(pid)), out, str(pid), "kernel thread")


def test_zombie(out: Path) -> None:
    with Program(workload("zombie_maker")) as program:
        pid = program.lines[0]["zombie"]
        refused(memtoll("record", "-o", out, "-p", str(pid)), out, str(pid), "zombie")


# Its first thread ends, as pthread_exit(3) allows, and another one runs on.
HEADLESS = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_first_thread_has_ended(out: Path) -> None:
    process = spawn([sys.executable, "-c", HEADLESS])
    stat = Path(f"/proc/{process.pid}/stat")
    wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z", "the first thread's end")
    assert process.poll() is None
    refused(memtoll("record", "-o", out, "-p", str(process.pid)), out, str(process.pid), "first thread")
    end(process)


def test_begun_and_stopped_in_the_middle_of_faults(out: Path) -> None:
    """Only one that is under way just then can be in one count, ours or the kernel's, and not in the other."""

    def taken() -> int:
        return int(Path(f"/proc/{program.pid}/stat").read_text().rpartition(")")[2].split()[7])

    program = spawn([workload("storms"), "advise", str(10**9), "1", str(16 * MIB)])
    wait_until(lambda: taken() > 10_000, "a program that takes faults")
    before = taken()
    recording = record(out, "-d", "1s", "-p", str(program.pid))
    after = taken()
    end(program)
    check = recording.report["checks"]["minor_faults"]
    assert abs(check["difference"]) <= 2, check
    assert 0 < check["kernel"] <= after - before


def test_name_of_nobody(out: Path) -> None:
    refused(memtoll("record", "-o", out, "-n", "mtl-no-such-name"), out, "mtl-no-such-name")


def test_name_of_several(out: Path, public_dir: Path) -> None:
    name = f"mts{os.getpid()}"
    program = shutil.copy(workload("sleeper"), public_dir / name)
    with Program(program) as one, Program(program) as two:
        refused(memtoll("record", "-o", out, "-n", name), out, name, str(one.pid), str(two.pid))
        assert changed_text(one.pid) == changed_text(two.pid) == []


def test_tracer_does_not_match_itself(out: Path) -> None:
    """A name that only the tracer has matches nothing."""
    path = shutil.copy(MEMTOLL, out.parent / "mtl-itself")
    refused(finish(spawn([path, "record", "-o", out, "-n", "mtl-itself"])), out, "mtl-itself")


@pytest.mark.parametrize("command", ["/nonexistent/program", "mtl-no-such-program", "/etc/passwd", "/"])
def test_command_that_cannot_be_run(out: Path, command: str) -> None:
    refused(memtoll("record", "--probes", "alloc", "-o", out, "--", command), out, command)


def test_stat_of_a_command_that_cannot_be_run() -> None:
    assert_refused(memtoll("stat", "--probes", "alloc", "--", "/nonexistent/program"), 1, "/nonexistent/program")


def as_nobody(binary: Path | str, *args: str | Path) -> Result:
    user = [tool("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return finish(spawn([*user, binary, *args]))


def test_without_root(public_dir: Path) -> None:
    """As another user than root, with a directory of his own: privileges are what is missing."""
    binary = shutil.copy(MEMTOLL, public_dir / "memtoll")
    home = public_dir / "home"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    marker = home / "ran"
    refused(as_nobody(binary, "record", "-o", home / "a.memtoll", "--", "touch", marker), home / "a", "root", status=3)
    assert_refused(as_nobody(binary, "stat", "--", "touch", marker), 3, "root")
    assert not marker.exists()


def test_root_without_the_capability(out: Path) -> None:
    """As in a container: sudo is not what is missing."""
    less = [tool("setpriv"), "--bounding-set=-sys_admin,-bpf", "--inh-caps=-sys_admin,-bpf"]
    result = finish(spawn([*less, MEMTOLL, "record", "-o", out, "--", "true"]))
    refused(result, out, "cap_bpf", status=3)
    assert "sudo" not in result.stderr


def test_own_limits_are_not_the_commands(out: Path) -> None:
    few = ["/bin/sh", "-c", 'ulimit -S -n 64; exec "$@"', "sh"]
    shown = "ulimit -S -n; grep SigIgn /proc/self/status | cut -f 2"
    result = finish(spawn([*few, MEMTOLL, "record", "-o", out, "--", "/bin/sh", "-c", shown]))
    assert result.status == 0, result
    descriptors, ignored = result.stdout.split()
    assert descriptors == "64"
    assert not int(ignored, 16) >> (signal.SIGXFSZ - 1) & 1


def test_a_file_that_may_not_grow(out: Path) -> None:
    """RLIMIT_FSIZE is an error of the write: said in a line, what was recorded is kept, and no signal ends it."""
    with Program(workload("calloc_loop"), str(10 * MIB), "0", "--seconds", "600", "--rest", "20000") as program:
        tracer = start_record(out, "-p", str(program.pid))
        wait_slices(out, 2)
        resource.prlimit(tracer.pid, resource.RLIMIT_FSIZE, (2 * PAGE, 2 * PAGE))
        result = finish(tracer)
        program.beats()
    assert result.status == 1, result
    (line,) = result.stderr.splitlines()
    assert str(out) in line and "File too large" in line and "recorded up to slice" in line
    assert integrity(out) == "ok"
    assert report(out)["complete"] is False


def test_without_root_usage_is_still_usage(public_dir: Path) -> None:
    binary = shutil.copy(MEMTOLL, public_dir / "memtoll")
    assert as_nobody(binary, "record", "-d", "0", "--", "true").status == 2


# stat


def test_stat_prints_the_table() -> None:
    """... and, where it is asked to, without the names of files and arguments."""
    result = memtoll("stat", "--full", "--redact", "--", workload("calloc_loop"), str(10 * MIB), "211")
    assert result.status == 0, result
    for word in ("zero.libc", "zero.kernel", "map", "compute", "Zeroing", "clear_block"):
        assert word in result.stdout
    # The first line is the workload's own.
    said = result.stdout.split("\n", 1)[1]
    assert "program-1 ..." in said
    for word in ("calloc_loop", str(10 * MIB), str(MEMTOLL.parent)):
        assert word not in said


def test_stat_passes_the_status_on(tmp_path: Path) -> None:
    result = memtoll("stat", "--probes", "alloc", "--", "sh", "-c", "exit 255", cwd=tmp_path)
    assert result.status == 255, result
    assert list(tmp_path.iterdir()) == [], "stat left a file"


def test_stat_leaves_stdout_to_the_command(tmp_path: Path) -> None:
    out = tmp_path / "stat.json"
    words = ("stat", "--probes", "faults", f"--json={out}", "--", "sh", "-c", "echo mine; exit 7")
    result = memtoll(*words)
    assert (result.status, result.stdout) == (7, "mine\n"), result
    check_report(json.loads(out.read_text()))
    assert out.stat().st_mode & 0o777 == 0o600
    assert_refused(memtoll(*words), 1, out, "--force")
    assert_refused(memtoll("stat", "-o", tmp_path / "no" / "a.txt", "--", "true"), 1, "does not exist")
    assert list(tmp_path.iterdir()) == [out]


def test_stat_without_colors() -> None:
    printed = memtoll_on_terminal("stat", "--", "true", env={"NO_COLOR": "1"})
    assert "checks ok" in printed and "\x1b" not in printed


def test_stat_of_a_killed_command() -> None:
    """As the shell tells it: 128 and the signal's number."""
    result = memtoll("stat", "--probes", "alloc", "--", "sh", "-c", "kill -TERM $$")
    assert result.status == 128 + signal.SIGTERM, result


def test_record_does_not_pass_the_status_on(out: Path) -> None:
    result = memtoll("record", "--probes", "alloc", "-o", out, "--", "sh", "-c", "exit 7")
    assert result.status == 0
    assert result.stderr.endswith(f"wrote {out}; the command exited 7\n")
    assert memtoll("report", out).stdout.splitlines()[0].endswith(", exited 7")


def test_stat_of_a_running_process() -> None:
    with Program(workload("calloc_loop"), str(10 * MIB), "0", "--seconds", "600", "--rest", "20000") as program:
        result = memtoll("stat", "-p", str(program.pid), "-d", "1s")
        assert changed_text(program.pid) == []
        program.beats()
    assert result.status == 0, result
    assert "zero.libc" in result.stdout
    assert "clear_block" in result.stdout


def lines_on_terminal(*words: str | Path, ended_at: bytes = b"") -> tuple[int, str]:
    """Status and stderr of a recording where that is a wide terminal; SIGINT when it has written so much."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(master, (24, 132))
    with open(slave, "wb") as terminal:
        tracer = spawn([MEMTOLL, *words], {"TERM": "xterm"}, stderr=terminal)
    said = b""
    with open(master, "rb", buffering=0) as screen, suppress(OSError):  # EIO: nobody writes any more
        while some := screen.read(65536):
            if ended_at and ended_at not in said and ended_at in said + some:
                tracer.send_signal(signal.SIGINT)
            said += some
    return tracer.wait(timeout=60), said.decode()


def test_a_terminal_shows_what_goes_on(out: Path) -> None:
    with Program(workload("calloc_loop"), str(10 * MIB), "0", "--seconds", "600", "--rest", "20000") as program:
        pid = str(program.pid)
        for _ in range(7):
            status, said = lines_on_terminal("record", "--probes", "faults", "-o", out, "-p", pid, ended_at=b"loading")
            if "ended while attaching" in said:
                break
            # Where the machine is busy: all was attached by the time of the interrupt, or the watchdog ended it.
            for left in out.parent.glob(out.name + "*"):
                left.unlink()
        assert status == 1 and said.endswith("memtoll: ended while attaching: nothing was recorded\r\n"), said
        assert not list(out.parent.glob(out.name + "*"))
        status, said = lines_on_terminal(
            "record", "--probes", "faults,samples", "-o", out, "-p", pid, ended_at=b" %  losses "
        )
    assert status == 0 and said.endswith(f"\r\x1b[Kmemtoll: wrote {out}\r\n"), said
    assert f"attaching to pid {pid}: " in said and "ending: " in said
    # The verdict so far, of all its time after a look or two.
    line = rf"recording pid {pid} \(\^C ends\)  \d+ s  (compute|zeroing) \d+ %  .*overhead \d+\.\d %"
    line += "  losses (none|little)"
    assert re.search(line, said), said


def test_stat_ends_by_signal(tmp_path: Path) -> None:
    """Lines of intervals are there while it runs; they follow each other, and add up to the report."""
    out, before = tmp_path / "lines.json", time.time()
    with Program(workload("calloc_loop"), str(10 * MIB), "0", "--seconds", "600", "--rest", "20000") as program:
        tracer = spawn([MEMTOLL, "stat", "-I", "1s", f"--json={out}", "-p", str(program.pid)])
        wait_attached(tracer, program.pid)
        wait_until(lambda: out.exists() and out.read_text().count("\n"), "the first interval")
        program.beats()
        tracer.send_signal(signal.SIGINT)
        result = finish(tracer)
    assert (result.status, result.stdout) == (0, ""), result
    *lines, report = [json.loads(line) for line in out.read_text().splitlines()]
    check_report(report)
    for number, (line, last) in enumerate(zip(lines, [{"end_s": 0, "end": None}, *lines]), 1):
        check_shape(line, INTERVAL)
        assert (line["interval"], line["start_s"]) == (number, last["end_s"])
        assert last["end"] in (None, line["start"])
    assert before - 1 < datetime.fromisoformat(lines[0]["start"]).timestamp() < time.time()
    assert len(lines) >= 2 and report["toll"]["zero.libc"]["count"] > 0
    for toll in ("zero.libc", "zero.kernel", "cow", "file.fault"):
        assert sum(line["toll"][toll]["count"] for line in lines) == report["toll"][toll]["count"]


def test_command_has_the_callers_streams(out: Path) -> None:
    """The command reads our standard input and writes our standard output and error, unchanged."""
    tracer = spawn(
        [MEMTOLL, "record", "--probes", "alloc", "-o", out, "--", "sh", "-c", "cat; echo to-stderr >&2"], stdin=-1
    )
    killer = threading.Timer(100, tracer.kill)
    killer.start()
    try:
        stdout, stderr = tracer.communicate("one\ntwo\n", timeout=120)
    finally:
        killer.cancel()
    end(tracer)
    assert tracer.returncode == 0
    assert stdout == "one\ntwo\n"
    assert "to-stderr\n" in stderr


# doctor


def test_doctor() -> None:
    result = memtoll("doctor")
    assert result.status == 0, result
    assert result.stdout.splitlines()[0] == "memtoll works here."
    assert "page_fault" in result.stdout
    assert "What probes would cost" not in result.stdout, "of no process"
    assert "\x1b[" not in result.stdout
    assert [line for line in result.stdout.splitlines() if len(line) > 80] == []


def test_doctor_json() -> None:
    result = memtoll("doctor", "--json")
    assert result.status == 0, result
    assert isinstance(json.loads(result.stdout), dict)


def test_doctor_names_allocator_and_instructions() -> None:
    """free is not probed at its first instruction where the kernel would single-step it."""
    with Program(workload("sleeper")) as program:
        result = memtoll("doctor", "-p", str(program.pid))
        assert changed_text(program.pid) == []
    assert result.status == 0, result
    for word in ("glibc", "malloc", "calloc", "free"):
        assert word in result.stdout


def test_doctor_of_no_process() -> None:
    pid = dead_pid()
    assert_refused(memtoll("doctor", "-p", str(pid)), 1, str(pid))
