# SPDX-License-Identifier: GPL-2.0
"""What a model may ask for: texts of recordings, of one directory, and nothing else."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import memtoll
from memtoll.agent import Refused, Room, tracer

from facts import MIB
from harness import MEMTOLL, Program, workload
from hostile import endless, forged, hostile
from package import Cli


@pytest.fixture(scope="module")
def web1(heap_blocks_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Casebook 1, of a host; for those who change nothing."""
    path = Path(shutil.copy(heap_blocks_once, tmp_path_factory.mktemp("web1")))
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("INSERT OR REPLACE INTO meta VALUES ('host', 'web1')")
    return path


@pytest.fixture
def room(tmp_path: Path, web1: Path) -> Room:
    """Two recordings, one of them below; a third, and a text, are outside."""
    inside = tmp_path / "inside"
    (inside / "below").mkdir(parents=True)
    for name in ("inside/one", "inside/below/two", "outside"):
        shutil.copy(web1, tmp_path / f"{name}.memtoll")
    return Room(inside)


Tool = Callable[[str], str]


def tools(room: Room) -> list[Tool]:
    """Those that take a recording."""
    return [
        room.open_recording, room.verdict, room.site_stacks, lambda name: room.compare(name, "one.memtoll"),
        lambda name: room.compare("one.memtoll", name), lambda name: room.explain("first-touch", name),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name",
    ["../outside.memtoll", "below/../../outside.memtoll", "/etc/passwd", "link.memtoll", "folder/outside.memtoll",
     "chain.memtoll", "../missing.memtoll", "."],
)  # fmt: skip
def test_nothing_outside_is_read(room: Room, name: str) -> None:
    """By dots, by a whole path, by links to files, to directories and to links."""
    (room.directory / "link.memtoll").symlink_to("../outside.memtoll")
    (room.directory / "chain.memtoll").symlink_to("link.memtoll")
    (room.directory / "folder").symlink_to("..")
    for tool in tools(room):
        with pytest.raises(memtoll.Error) as refused:
            tool(name)
        assert "calloc" not in str(refused.value) and "\n" not in str(refused.value)
        assert name == "." or isinstance(refused.value, Refused)
    listed = room.recordings()
    assert {line.split()[-1] for line in listed.splitlines()} == {"one.memtoll", "below/two.memtoll"}


@pytest.mark.slow
def test_a_link_that_stays_inside_is_read(room: Room) -> None:
    (room.directory / "again.memtoll").symlink_to("below/two.memtoll")
    assert room.verdict("again.memtoll") == room.verdict("below/two.memtoll") == room.verdict("one.memtoll")


@pytest.mark.slow
def test_no_device_and_no_pipe_is_opened(room: Room) -> None:
    os.mkfifo(room.directory / "pipe.memtoll")
    for name in ("pipe.memtoll", "below", "missing.memtoll", "a\0b", "\ud800", "x" * 5000, "../" * 2000):
        for tool in tools(room):
            with pytest.raises(memtoll.Error):
                tool(name)


@pytest.mark.slow
def test_what_the_tools_say(room: Room) -> None:
    opened = room.open_recording("one.memtoll")
    assert "command: ./calloc_loop 10485760 3001\n" in opened and "state: whole\n" in opened
    assert room.verdict("one.memtoll").startswith("verdict: zeroing ")
    assert "left_out: " in room.verdict("one.memtoll", 400) and len(room.verdict("one.memtoll", 400)) < 400
    stacks = room.site_stacks("one.memtoll", 1)
    assert (
        "zero.libc calloc" in stacks and "allocated_at:\n  calloc" in stacks and "round_once calloc_loop.c:42" in stacks
    )
    compared = room.compare("one.memtoll", "below/two.memtoll", 1, 2)
    assert "Time per unit of work" in compared and "zero.libc" in compared
    codes = room.explain().splitlines()
    assert len(codes) > 20 and any(line.startswith("calloc-reuse-memset: ") for line in codes)
    assert "Given there: it can save at most" in room.explain("calloc-reuse-memset", "one.memtoll")
    assert "Not given there." in room.explain("cow", "one.memtoll")
    assert "keep one buffer" in " ".join(room.explain("calloc-reuse-memset").split())


@pytest.mark.parametrize(
    "asked",
    [
        lambda room: room.verdict("one.memtoll", 1), lambda room: room.verdict("one.memtoll", 10**9),
        lambda room: room.site_stacks("one.memtoll", 0), lambda room: room.site_stacks("one.memtoll", 999),
        lambda room: room.compare("one.memtoll", "one.memtoll", 1, 0), lambda room: room.explain("no-such-code"),
        lambda room: room.compare("one.memtoll", "one.memtoll", float("nan"), float("nan")),
        lambda room: room.record(1, 1, "new"),
    ],
)  # fmt: skip
def test_what_is_refused(room: Room, asked: Callable[[Room], str]) -> None:
    with pytest.raises(memtoll.Error) as refused:
        asked(room)
    assert "\n" not in str(refused.value)
    assert sorted(path.name for path in room.directory.iterdir()) == ["below", "one.memtoll"]


@pytest.mark.slow
def test_hostile_recordings(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are data; what never ends is ended; a verdict of the file's own is not read."""
    hostile(room.directory / "names.memtoll")
    shutil.copy(room.directory / "one.memtoll", room.directory / "endless.memtoll")
    endless(room.directory / "endless.memtoll")
    shutil.copy(room.directory / "one.memtoll", room.directory / "forged.memtoll")
    forged(room.directory / "forged.memtoll")
    said = [
        room.open_recording("names.memtoll"), room.verdict("names.memtoll", 20_000), room.recordings(),
        *(room.site_stacks("names.memtoll", rank) for rank in range(1, 5)),
    ]  # fmt: skip
    for text in said:
        assert text.isascii() and all(line.isprintable() for line in text.splitlines())
    with monkeypatch.context() as limits:
        limits.setattr(memtoll.opening, "STEPS", 3_000_000)
        limits.setattr(memtoll.opening, "STEPS_PER_BYTE", 0)
        with pytest.raises(memtoll.DamagedRecording, match="asks for more"):
            room.verdict("endless.memtoll")
    assert room.verdict("forged.memtoll") == room.verdict("one.memtoll")


@pytest.mark.parametrize(
    ("pid", "seconds", "name"),
    [(0, 1, "new"), (-1, 1, "new"), (1, 61, "new"), (1, 0, "new"), (1, float("inf"), "new"), (1, float("nan"), "new"),
     (1, 1, "../new"), (1, 1, ""), (1, 1, "a b"), (1, 1, "x" * 65), (1, 1, "a/b")],
)  # fmt: skip
def test_what_is_not_recorded(room: Room, pid: int, seconds: float, name: str) -> None:
    """The tracer would be this file's name: it is not even started."""
    allowed = Room(room.directory, "/nonexistent/memtoll")
    with pytest.raises(memtoll.Error, match=r"^(?!.*nonexistent)"):
        allowed.record(pid, seconds, name)


@pytest.mark.root
def test_a_process_is_recorded(room: Room) -> None:
    """By the real tracer; a name that is taken is not replaced."""
    with Program(workload("calloc_loop"), str(MIB), "0", "--seconds", "600") as program:
        said = Room(room.directory, str(MEMTOLL)).record(program.pid, 1.0, "new")
        assert said.startswith("recording: new.memtoll\nverdict: zeroing ") and "calloc_loop.c" in said
        assert "command: " in room.open_recording("new.memtoll") and "new.memtoll" in room.recordings()
        before = (room.directory / "new.memtoll").stat().st_mtime_ns
        with pytest.raises(memtoll.Error, match="exists"):
            Room(room.directory, str(MEMTOLL)).record(program.pid, 1.0, "new")
        assert (room.directory / "new.memtoll").stat().st_mtime_ns == before


def test_a_tracer_that_fails_is_told_of(room: Room, tmp_path: Path) -> None:
    failing = tmp_path / "failing"
    failing.write_text('#!/bin/sh\necho "memtoll: no such process: $*" >&2\nexit 1\n')
    failing.chmod(0o755)
    with pytest.raises(
        memtoll.Error, match=r"status 1: memtoll: no such process: record -p 7 -d 1500ms -o .*new.memtoll"
    ):
        Room(room.directory, str(failing)).record(7, 1.5, "new")


def test_the_tracer_is_looked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MEMTOLL", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(memtoll.Error, match="MEMTOLL"):
        tracer()
    monkeypatch.setenv("MEMTOLL", "/opt/memtoll")
    assert tracer() == "/opt/memtoll"


def test_without_the_extra(cli: Cli, tmp_path: Path) -> None:
    done = cli("mcp", tmp_path)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (1, "", 1)
    assert "memtoll[mcp]" in done.stderr
