# SPDX-License-Identifier: GPL-2.0
"""--redact of what records: no byte of what is hidden is ever in a file. The witness is the search of the bytes."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from harness import (
    MEMTOLL,
    MIB,
    Program,
    assert_refused,
    end,
    finish,
    integrity,
    memtoll,
    query,
    report,
    spawn,
    start_record,
    wait_attached,
    wait_until,
    workload,
)

pytestmark = pytest.mark.root

CALLS = 211
BLOCK = 10 * MIB + 4096


class Secret:
    """A program whose name, directory and argument are found in bytes, and the addresses of its code."""

    def __init__(self, directory: Path) -> None:
        self.name = f"mthidden{os.getpid()}"
        (directory / "inthisdirectory").mkdir()
        self.path = shutil.copy(workload("calloc_loop"), directory / "inthisdirectory" / self.name)
        self.names = {b"inthisdirectory", self.name[:15].encode(), b"calloc_loop"}
        self.words = {b"inthisdirectory", self.name[:15].encode(), str(BLOCK).encode()}

    def told(self, content: bytes) -> set[bytes]:
        return {word for word in self.words if word in content}

    def run(self, *args: str) -> Program:
        return Program(self.path, str(BLOCK), *args)


def code_of(pid: int, name: str) -> set[bytes]:
    """How the addresses of a program's code begin, as SQLite has integers: 64 KiB each."""
    found = set()
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        words = line.split(maxsplit=5)
        if len(words) == 6 and Path(words[5]).name == name and "x" in words[1]:
            first, last = (int(part, 16) >> 16 for part in words[0].split("-"))
            found |= {number.to_bytes(4, "big") for number in range(first, last + 1)}
    assert found
    return found


def test_record(tmp_path: Path, public_dir: Path) -> None:
    """... of a command, exactly: all of its calls are there, and nothing that tells whose they were."""
    secret, plain, out = Secret(public_dir), tmp_path / "plain.memtoll", tmp_path / "out.memtoll"
    for path, words in ((plain, []), (out, ["--redact"])):
        result = memtoll(
            "record", *words, "--overhead-limit", "none", "-o", path, "--", secret.path, str(BLOCK), str(CALLS)
        )
        assert result.status == 0, result
    assert secret.told(plain.read_bytes()) == secret.words
    assert secret.told(out.read_bytes()) == set()
    assert out.stat().st_mode & 0o777 == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {plain.name, out.name}
    assert integrity(out) == "ok"
    for path in (plain, out):
        assert query(path, "SELECT SUM(calls) FROM call WHERE call = 'calloc'") == [(CALLS,)]
    said = report(out)
    assert said["target"]["command"] == "program-1 ..." and said["complete"]
    assert [note for note in said["notes"] if note.startswith("redacted: ")]
    assert "Redacted: " in memtoll("report", out).stdout
    assert "Redacted: " not in memtoll("report", plain).stdout
    # Once more changes nothing that is told.
    assert re.search(r"^program-1 \.\.\. ", memtoll("report", "--redact", out).stdout, re.M)
    before = out.read_bytes()
    assert_refused(memtoll("symbolize", out), 1, out, "redacted", "--redact")
    assert out.read_bytes() == before


def test_addresses(tmp_path: Path, public_dir: Path) -> None:
    """Of one process, by both: its code is known by addresses in the one, and by numbers in the other."""
    secret, plain, out = Secret(public_dir), tmp_path / "plain.memtoll", tmp_path / "out.memtoll"
    with secret.run("0", "--seconds", "600", "--rest", "20000") as program:
        code = code_of(program.pid, secret.name)
        for path, words in ((plain, []), (out, ["--redact"])):
            assert memtoll("record", *words, "-d", "1s", "-o", path, "-p", str(program.pid)).status == 0
    assert [start for start in code if start in plain.read_bytes()]
    assert not [start for start in code if start in out.read_bytes()]
    (most,) = query(out, "SELECT MAX(address) FROM stack_frame")[0]
    assert 0 < most <= query(out, "SELECT COUNT(*) FROM stack_frame")[0][0]


def test_killed(tmp_path: Path, public_dir: Path) -> None:
    """While it records, and when it is killed, there is an empty file; an old one stays as it was."""
    secret, out, old = Secret(public_dir), tmp_path / "out.memtoll", tmp_path / "old.memtoll"
    with secret.run("0", "--seconds", "600", "--rest", "20000") as program:
        assert memtoll("record", "--redact", "-d", "500ms", "-o", old, "-p", str(program.pid)).status == 0
        before = old.read_bytes()
        for path, words in ((out, []), (old, ["--force"])):
            tracer = start_record(path, "--redact", *words, "-p", str(program.pid))
            wait_attached(tracer, program.pid)
            program.beats()
            deleted = [
                link
                for link in (str(entry.readlink()) for entry in Path(f"/proc/{tracer.pid}/fd").iterdir())
                if link.startswith("/") and link.endswith(" (deleted)") and not link.startswith("/memfd:")
            ]
            assert deleted == [], "a temporary file"
            os.kill(tracer.pid, signal.SIGKILL)
            end(tracer)
        beside = tmp_path / f"{old.name}.tmp-{tracer.pid}"
        assert {path.name for path in tmp_path.iterdir()} == {out.name, old.name, beside.name}
    assert (out.stat().st_size, beside.stat().st_size) == (0, 0)
    assert old.read_bytes() == before
    assert_refused(memtoll("report", out), 1, out, "empty")
    # Of a signal that can be taken the recording ends, whole.
    out.unlink()
    with secret.run("0", "--seconds", "600", "--rest", "20000") as program:
        tracer = start_record(out, "--redact", "-p", str(program.pid))
        wait_attached(tracer, program.pid)
        program.beats()
        tracer.send_signal(signal.SIGTERM)
        assert finish(tracer).status == 0
    assert report(out)["complete"]
    assert secret.told(out.read_bytes()) == set()


def test_full(tmp_path: Path, public_dir: Path) -> None:
    """What has become too large ends, and is written."""
    secret, out = Secret(public_dir), tmp_path / "out.memtoll"
    # Each program has rows of its own.
    loop = f"while {secret.path} {BLOCK} 3; do :; done"
    words = ("--redact", "--max-size", "2M", "--probes", "alloc,faults", "-o", out, "--", "sh", "-c", loop)
    result = memtoll("record", "--overhead-limit", "none", *words)
    assert result.status == 0, result
    assert "--max-size" in result.stderr
    assert out.stat().st_size < 2 * MIB
    assert query(out, "SELECT value FROM meta WHERE key = 'end_reason'") == [("size limit",)]
    assert secret.told(out.read_bytes()) == set()


def test_top(tmp_path: Path, public_dir: Path) -> None:
    """What it prints and what it writes, of a target; the file is empty until the end."""
    secret, out, lines = Secret(public_dir), tmp_path / "out.memtoll", tmp_path / "lines"
    with secret.run("0", "--seconds", "600", "--rest", "20000") as program:
        words = ["--json", "-I", "500ms", "-o", str(out), "-n", secret.name]
        with lines.open("wb") as printed:
            top = spawn([MEMTOLL, "top", "--redact", *words], stdout=printed)
        wait_until(lambda: "zero.libc" in lines.read_text().rpartition('"sites"')[2], "its site")
        assert out.stat().st_size == 0
        top.send_signal(signal.SIGTERM)
        assert top.wait(timeout=120) == 0
        end(top)
        told = [json.loads(line) for line in lines.read_text().splitlines()]
        assert not secret.names & secret.told(lines.read_bytes())
        assert {line["target"] for line in told} == {"program"}
        rows = [(row["name"], row["command"]) for line in told for row in line["processes"]]
        assert set(rows) == {("program-1", "program-1 ...")}
        places = {site["allocated_at"] for line in told for site in line["sites"] if site["toll"] == "zero.libc"}
        assert any(re.match(r"calloc: file-\d+\.c:\d+ \(clear_block\)", place) for place in places), places
        result = memtoll("top", "--redact", "--batch", "--count", "2", "-p", str(program.pid))
        assert "(clear_block)" in result.stdout
        assert not secret.names & secret.told(result.stdout.encode())
    assert {path.name for path in tmp_path.iterdir()} == {out.name, lines.name}
    assert secret.told(out.read_bytes()) == set()
    assert query(out, "SELECT value FROM meta WHERE key IN ('redacted', 'complete')") == [("1",), ("1",)]


def test_top_whole_machine(tmp_path: Path, public_dir: Path) -> None:
    """Neither programs nor cgroups have their names; the test knows its process by the pid."""
    lines, name = tmp_path / "lines", f"mthidden{os.getpid()}"
    path = shutil.copy(workload("touch"), public_dir / name)
    with lines.open("wb") as out:
        top = spawn([MEMTOLL, "top", "--redact", "--json", "-I", "500ms"], stdout=out)
    wait_until(lambda: lines.read_bytes().count(b"\n"), "the first line")
    groups = {line.split(":")[2] for line in Path("/proc/self/cgroup").read_text().splitlines()}
    toucher = subprocess.run([path, "7919", "small", "w"], check=True, capture_output=True, text=True, timeout=60)
    pid = json.loads(toucher.stdout.splitlines()[-1])["pid"]
    wait_until(lambda: f'"pid":{pid},' in lines.read_text(), "its pages")
    top.send_signal(signal.SIGINT)
    assert top.wait(timeout=60) == 0
    end(top)
    told = [json.loads(line) for line in lines.read_text().splitlines()]
    rows = [row for line in told for row in line["processes"]]
    (mine,) = {(row["name"], row["command"]) for row in rows if row["pid"] == pid}
    assert re.fullmatch(r"program-\d+", mine[0]) and mine[1] == f"{mine[0]} ..."
    assert name[:15] not in lines.read_text()
    pushes = [row[which] for line in told for row in line["pushes"] for which in ("pusher", "victim")]
    shown = {*pushes, *(row["cgroup"] for row in rows)}
    assert all(re.fullmatch(r"(group-\d+|/|\(.*\))( \(kswapd\))?", text) for text in shown), shown
    assert not shown & (groups - {"/"})


def test_watch(tmp_path: Path, public_dir: Path) -> None:
    """Each recording; names in metrics and lines are those that were asked for. Without the watch the last one is
    redacted as well.
    """
    secret, kept, lines = Secret(public_dir), tmp_path / "kept", tmp_path / "lines"
    prom = tmp_path / "memtoll.prom"
    with secret.run("0", "--seconds", "600", "--rest", "20000") as program:
        words = ["-n", secret.name, "-I", "1s", "-o", str(kept), "--metrics", str(prom), f"--json={lines}"]
        watch = spawn([MEMTOLL, "watch", "--redact", *words])
        wait_until(lambda: lines.exists() and lines.read_text(), "the first interval")
        program.beats()
        (part,) = kept.glob(".*.part")
        assert part.stat().st_size == 0
        watch.send_signal(signal.SIGHUP)
        wait_until(lambda: list(kept.glob("watch-*")), "the first recording")
        wait_until(lambda: re.search(r"^memtoll_place_seconds_total\{.*calloc", prom.read_text(), re.M), "its places")
        wait_until(lambda: len({json.loads(line)["recording"] for line in lines.read_text().splitlines()}) > 1, "more")
        watch.kill()
        wait_until(lambda: not list(kept.glob(".*.part")), "the end of the last one")
        end(watch)
    recordings = sorted(kept.glob("watch-*"))
    assert len(recordings) >= 2
    for path in recordings:
        assert secret.told(path.read_bytes()) == set()
        assert query(path, "SELECT value FROM meta WHERE key IN ('redacted', 'complete')") == [("1",), ("1",)]
    assert not [word for word in ("calloc_loop.c", "inthisdirectory") if word in prom.read_text() + lines.read_text()]
