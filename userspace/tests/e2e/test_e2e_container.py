# SPDX-License-Identifier: GPL-2.0
"""A container without a runtime: namespaces and a root of its own, a cgroup and a file as Docker has them."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from harness import (
    MEMTOLL,
    MIB,
    Program,
    assert_refused,
    changed_text,
    finish,
    load,
    memtoll,
    spawn,
    tool,
    wait_attached,
    wait_until,
    workload,
)
from leftovers import noted
from swapping import CGROUPS

pytestmark = pytest.mark.root

NAME = "memtoll-test-web"
IDS = ("5c" * 32, "5d" * 32)  # 64 hexadecimal digits


@pytest.fixture
def jail(public_dir: Path) -> Path:
    """A root directory with a libc of its own."""
    program = workload("calloc_loop")
    listed = subprocess.run([tool("ldd"), str(program)], capture_output=True, text=True, timeout=20, check=True)
    for library in re.findall(r"(/\S+) \(0x", listed.stdout):
        copy = public_dir / library.lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, copy)
    shutil.copy(program, public_dir / "calloc_loop")
    return public_dir


@pytest.fixture
def parent() -> Iterator[Path]:
    """Where Docker's cgroups lie, in the hierarchy that memory is accounted in."""
    root = CGROUPS / "memory" if (CGROUPS / "memory").is_dir() else CGROUPS
    # Below a cgroup of the test's own: Docker itself may be there.
    parent = root / "memtoll-test-containers" / "docker"
    with noted("cgroup", parent.parent):
        parent.mkdir(parents=True)
        yield parent


def files(directory: Path, number: int, name: str) -> None:
    """What Docker keeps of it."""
    kept = directory / "docker" / "containers" / IDS[number]
    kept.mkdir(parents=True, mode=0o700)
    content = {"ID": IDS[number], "Name": f"/{name}", "Config": {"Image": "calloc:1", "Labels": {}}}
    (kept / "config.v2.json").write_text(json.dumps(content))


def seeing(directory: Path, *words: str | Path) -> list[str | Path]:
    """memtoll with that directory for its /var/lib."""
    mounted: list[str | Path] = ["sh", "-c", 'mount --bind "$0" /var/lib && exec "$@"', directory, MEMTOLL]
    return [tool("unshare"), "--mount", *mounted, *words]


@contextmanager
def container(parent: Path, jail: Path, number: int) -> Iterator[tuple[Program, int]]:
    """A program as process 1 of it, and its number here."""
    cgroup = parent / IDS[number]
    cgroup.mkdir()
    entered: list[str | Path] = ["sh", "-c", 'echo 0 >"$0"/cgroup.procs && exec "$@"', cgroup, tool("chroot"), jail]
    program = ["/calloc_loop", str(10 * MIB), "0", "--seconds", "100", "--rest", "1000"]
    spaces = ["--pid", "--mount", "--fork", "--kill-child"]
    with Program(tool("unshare"), *spaces, *entered, *program) as running:
        running.beats()
        (pid,) = (cgroup / "cgroup.procs").read_text().split()
        yield running, int(pid)
    wait_until(lambda: not (cgroup / "cgroup.procs").read_text(), "the container to end")
    cgroup.rmdir()


def calls(program: Program, more: int) -> None:
    """It makes so many from now on."""
    # The next line may have been written before, and be read late; the one after it was not.
    program.beats()
    program.beats()
    wanted = program.calls() + more
    wait_until(lambda: program.calls() >= wanted, f"{more} calls")


def test_container_by_name(out: Path, jail: Path, parent: Path, tmp_path: Path) -> None:
    """Recorded by name: what is said of it, names from its own root, and again when it comes back as another one."""
    kept = tmp_path / "lib"
    files(kept, 0, NAME)
    with ExitStack() as first:
        program, pid = first.enter_context(container(parent, jail, 0))
        tracer = spawn(seeing(kept, "record", "-o", out, "--overhead-limit", "none", "-c", NAME))
        wait_attached(tracer, pid)
        calls(program, 101)
    shutil.rmtree(kept / "docker" / "containers" / IDS[0])
    files(kept, 1, NAME)
    with container(parent, jail, 1) as (program, again):
        wait_attached(tracer, again)
        calls(program, 101)
        tracer.send_signal(signal.SIGINT)
        recording = load(out, finish(tracer))
        assert changed_text(again) == []
    assert recording.result.status == 0, recording.result
    assert f"container {NAME} has started again" in recording.result.stderr
    assert recording.query("SELECT value FROM meta WHERE key = 'container_restarts'") == [("1",)]
    report = recording.report
    assert report["target"]["container"] == NAME
    assert [(each["pid"], each["container"], each["pid_inside"]) for each in report["processes"]] == sorted(
        [(pid, NAME, 1), (again, NAME, 1)]
    )
    assert {each["id"] for each in report["containers"]} == set(IDS)
    assert {(each["runtime"], each["name"], each["image"]) for each in report["containers"]} == {
        ("docker", NAME, "calloc:1")
    }
    # The program and its libc are nowhere but below its own root.
    assert recording.dominant == "zeroing"
    assert recording.site("calloc_loop.c", "calloc", "calloc").calls > 200
    text = memtoll("report", "--full", out).stdout
    assert f"In container {NAME} (docker, image calloc:1)" in " ".join(text.split())
    assert f"in {NAME}, there process 1" in text


def test_names_that_do_not_tell(out: Path, parent: Path, tmp_path: Path) -> None:
    """Two of one name, and none."""
    for number in (0, 1):
        (parent / IDS[number]).mkdir()
        files(tmp_path / "lib", number, NAME)
    refusals = {
        NAME: f"2 containers are called '{NAME}': {NAME} (",
        NAME[:-1]: f"no cgroup and no container '{NAME[:-1]}'",
    }
    for name, said in refusals.items():
        result = finish(spawn(seeing(tmp_path / "lib", "record", "-o", out, "-d", "100ms", "-c", name)))
        assert_refused(result, 1, said)
    assert not out.exists()
