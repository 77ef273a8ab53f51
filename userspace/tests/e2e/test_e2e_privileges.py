# SPDX-License-Identifier: GPL-2.0
"""As few privileges as it takes: which do, which are kept for how long, and none of them for a command."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import sqlite3
import struct
import subprocess
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest

from harness import (
    MEMTOLL,
    MIB,
    NOBODY,
    Program,
    assert_refused,
    end,
    finish,
    load,
    memtoll,
    record,
    spawn,
    start_record,
    tool,
    wait_attached,
    wait_slices,
    wait_until,
    workload,
)

pytestmark = pytest.mark.root

FOUR = ("bpf", "perfmon", "sys_ptrace", "dac_read_search")
# For one's own programs; before 6.15 CAP_PERFMON does not stand for CAP_SYS_PTRACE there.
ENOUGH = FOUR[: 2 if tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= (6, 15) else 3]
# include/uapi/linux/capability.h
NUMBERS = {"chown": 0, "dac_read_search": 2, "sys_ptrace": 19, "sys_admin": 21, "syslog": 34}
NUMBERS |= {"perfmon": 38, "bpf": 39}


def with_only(*names: str) -> list[str]:
    """nobody, with these capabilities as a service manager or pam_cap gives them, and no way to get others."""
    text = ",".join(["-all", *(f"+{name}" for name in names)])
    user = [tool("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return [*user, f"--inh-caps={text}", f"--ambient-caps={text}", f"--bounding-set={text}"]


def bits(*names: str) -> int:
    return sum(1 << NUMBERS[name] for name in names)


def capabilities(pid: int, kind: str = "CapPrm") -> list[int]:
    """Of each thread."""
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):
            lines = (task / "status").read_text().splitlines()
            found += [int(line.split()[1], 16) for line in lines if line.startswith(kind)]
    return found


@pytest.fixture(name="home")
def fixture_home(public_dir: Path) -> Path:
    """nobody's, with a memtoll that he may run."""
    home = public_dir / "home"
    home.mkdir()
    os.chown(home, NOBODY, NOBODY)
    shutil.copy(MEMTOLL, home / "memtoll")
    return home


def as_nobody(home: Path, args: Sequence[str | Path], *names: str) -> subprocess.Popen[str]:
    return spawn([*with_only(*names), home / "memtoll", *args], {"HOME": str(home)})


def with_file(home: Path, args: Sequence[str | Path], *names: str) -> subprocess.Popen[str]:
    """nobody, who has nothing, and a memtoll whose file has these (setcap NAMES=ep)."""
    mask = bits(*names)
    # struct vfs_cap_data of version 2, effective (include/uapi/linux/capability.h)
    words = (0x02000001, mask & 0xFFFFFFFF, 0, mask >> 32, 0)
    os.setxattr(home / "memtoll", "security.capability", struct.pack("<5I", *words))
    user = [tool("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    return spawn([*user, home / "memtoll", *args], {"HOME": str(home)})


@pytest.mark.parametrize("given", [as_nobody, with_file])
def test_enough_for_a_command(home: Path, given: Callable[..., subprocess.Popen[str]]) -> None:
    """Everything is exact; and of what memtoll was given, or its file for good, the command has nothing."""
    out = home / "a.memtoll"
    program = shutil.copy(workload("calloc_loop"), home / "calloc_loop")
    script = f"grep -E 'Cap(Prm|Eff|Amb)' /proc/self/status; exec {program} {MIB} 211"
    args: list[str | Path] = ["record", "-o", out, "--overhead-limit", "none", "--", "sh", "-c", script]
    result = finish(given(home, args, *ENOUGH))
    assert result.status == 0, result
    assert [int(line.split()[1], 16) for line in result.stdout.splitlines() if line.startswith("Cap")] == [0, 0, 0]
    assert out.stat().st_uid == NOBODY
    recording = load(out, result)
    site = recording.site("calloc_loop.c", "calloc", "calloc")
    assert (site.calls, site.freed) == (211, 211)
    checks = recording.report["checks"]
    assert checks["minor_faults"]["ours"] == pytest.approx(checks["minor_faults"]["kernel"], rel=0.01)
    assert recording.query("SELECT * FROM not_captured") == []


def test_four_do_for_a_process_of_root(home: Path) -> None:
    out = home / "a.memtoll"
    with Program(workload("forker"), "100000", "--wait") as program:
        args: list[str | Path] = ["record", "-p", str(program.pid), "-o", out, "--overhead-limit", "none"]
        tracer = as_nobody(home, args, *FOUR)
        wait_attached(tracer, program.pid)
        assert all(has | bits(*FOUR) == bits(*FOUR) for has in capabilities(tracer.pid))
        program.go()
        truth = program.last()
    recording = load(out, finish(tracer))
    assert recording.result.status == 0, recording.result
    assert recording.site("forker.c", "parent", "calloc").calls == truth["parent"]
    check = recording.report["checks"]["minor_faults"]
    assert check["ours"] == pytest.approx(check["kernel"], rel=0.01)


def test_enough_of_the_file_for_the_doctor(home: Path) -> None:
    """It lists what there is, and which of that it has."""
    result = finish(with_file(home, ["doctor", "--json"], *ENOUGH))
    assert result.status == 0, result
    found = json.loads(result.stdout)
    assert found["works"] is True
    assert {each["name"] for each in found["capabilities"] if each["has"]} == {f"cap_{name}" for name in ENOUGH}
    needs = {each["name"]: each["need"] for each in found["capabilities"]}
    assert {name for name, need in needs.items() if need == "always"} == {f"cap_{name}" for name in ENOUGH}
    assert all(each["reason"] and each["until"] for each in found["capabilities"])


def test_the_doctor_of_a_process_says_what_there_was() -> None:
    """Its probes are tried, after which nothing of it is kept."""
    with Program(workload("calloc_loop"), str(MIB), "3", "--wait") as program:
        result = memtoll("doctor", "--json", "-p", str(program.pid))
    assert result.status == 0, result
    has = {each["name"] for each in json.loads(result.stdout)["capabilities"] if each["has"]}
    assert has >= {f"cap_{name}" for name in FOUR}


@pytest.mark.parametrize("lacking", ENOUGH)
def test_what_is_missing_is_named(home: Path, lacking: str) -> None:
    marker = home / "ran"
    args: list[str | Path] = ["record", "-o", home / "a.memtoll", "--", "touch", marker]
    result = finish(as_nobody(home, args, *(name for name in FOUR if name != lacking)))
    assert_refused(result, 3, f"cap_{lacking}", "root")
    assert not any(f"cap_{name}" in result.stderr for name in FOUR if name != lacking)
    assert sorted(path.name for path in home.iterdir()) == ["memtoll"]


@pytest.mark.parametrize("lacking", FOUR[len(ENOUGH) :])
def test_what_is_missing_for_another_users_process(home: Path, public_dir: Path, lacking: str) -> None:
    """That of root, whose program nobody else may read."""
    program = Path(shutil.copy(workload("sleeper"), public_dir / "sleeper"))
    program.chmod(0o700)
    with Program(program) as running:
        args: list[str | Path] = ["record", "-o", home / "a.memtoll", "-p", str(running.pid)]
        result = finish(as_nobody(home, args, *(name for name in FOUR if name != lacking)))
    assert_refused(result, 3, f"cap_{lacking}", str(running.pid))
    assert sorted(path.name for path in home.iterdir()) == ["memtoll"]


def test_root_keeps_what_it_follows_by(out: Path) -> None:
    """While it records: in every thread, and not only for now."""
    gone = bits("sys_admin", "syslog")
    with Program(workload("sleeper")) as program:
        tracer = start_record(out, "-p", str(program.pid))
        wait_slices(out, 1)
        kept = capabilities(tracer.pid)
        main = int(Path(f"/proc/{tracer.pid}/status").read_text().split("CapEff:")[1].split()[0], 16)
        tracer.send_signal(signal.SIGINT)
        assert finish(tracer).status == 0
    assert len(kept) >= 3
    assert not any(has & gone for has in kept)
    assert main & bits(*FOUR) == bits(*FOUR)


def test_root_keeps_nothing_when_all_is_counted() -> None:
    """What is left to do is to print."""
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    command: list[str | Path] = [
        MEMTOLL,
        "stat",
        "--json",
        "--probes",
        "alloc",
        "--",
        workload("calloc_loop"),
        str(MIB),
        "53",
    ]
    tracer = spawn(command, stdout=writing)
    os.close(writing)
    wait_until(lambda: not any(capabilities(tracer.pid)), "all to be counted")
    assert not any(capabilities(tracer.pid, "CapEff"))
    assert tracer.poll() is None, "it had more to say than the pipe takes"
    with os.fdopen(reading) as rest:
        assert '{"format":' in rest.read()
    assert tracer.wait(timeout=60) == 0
    end(tracer)


def test_roots_command_is_roots(out: Path) -> None:
    shown = ["grep", "CapEff", "/proc/self/status"]
    plain = subprocess.run(shown, capture_output=True, text=True, check=True, timeout=60).stdout
    assert record(out, "--probes", "faults", command=shown).result.stdout == plain


def test_a_recording_is_read_without_privileges(out: Path) -> None:
    """To open it root may read any file, and nothing else; when it is read, nothing at all is left."""
    record(out, "--probes", "alloc", command=[workload("sites")])
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    with closing(sqlite3.connect(out)) as database:
        database.execute("BEGIN EXCLUSIVE")
        reader = spawn([MEMTOLL, "report", "--json", out], stdout=writing)
        os.close(writing)
        wait_until(lambda: capabilities(reader.pid) == [bits("dac_read_search")], "the recording to be opened")
        database.execute("COMMIT")
    wait_until(lambda: capabilities(reader.pid) == [0], "the recording to be read")
    assert capabilities(reader.pid, "CapEff") == [0]
    assert reader.poll() is None, "it had more to say than the pipe takes"
    with os.fdopen(reading) as rest:
        assert rest.read().startswith('{"format":')
    assert reader.wait(timeout=60) == 0
    end(reader)


def test_a_recording_of_another_user(home: Path) -> None:
    """Root reads what is another's, in a directory of his: that needs a privilege until it is open."""
    out = home / "a.memtoll"
    record(out, "--probes", "faults", command=["true"])
    os.chown(out, NOBODY, NOBODY)
    home.chmod(0o700)
    assert memtoll("report", out).status == 0
