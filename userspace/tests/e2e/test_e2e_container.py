# SPDX-License-Identifier: GPL-2.0
"""A container without a runtime: namespaces and a root of its own, a cgroup and a file as Docker has them."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from containers import make_calls, put_program, seeing
from faults import Faults
from harness import (
    MIB,
    Program,
    assert_refused,
    changed_text,
    finish,
    load,
    memtoll,
    query,
    spawn,
    start_record,
    tool,
    wait_attached,
    wait_slices,
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
    put_program(workload("calloc_loop"), public_dir)
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


def test_container_by_name(out: Path, jail: Path, parent: Path, tmp_path: Path) -> None:
    """Recorded by name: what is said of it, names from its own root, and again when it comes back as another one."""
    kept = tmp_path / "lib"
    files(kept, 0, NAME)
    with ExitStack() as first:
        program, pid = first.enter_context(container(parent, jail, 0))
        tracer = spawn(seeing(kept, "/var/lib", "record", "-o", out, "--overhead-limit", "none", "-c", NAME))
        wait_attached(tracer, pid)
        make_calls(program, 101)
    shutil.rmtree(kept / "docker" / "containers" / IDS[0])
    files(kept, 1, NAME)
    with container(parent, jail, 1) as (program, again):
        wait_attached(tracer, again)
        make_calls(program, 101)
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
        result = finish(spawn(seeing(tmp_path / "lib", "/var/lib", "record", "-o", out, "-d", "100ms", "-c", name)))
        assert_refused(result, 1, said)
    assert not out.exists()


def test_who_gives_its_memory_back_has_ended(out: Path, parent: Path) -> None:
    """Its cgroup lists it as long as that takes, which several looks may see."""
    cgroup, pages = parent / "large", 500_009
    cgroup.mkdir()
    enters = 'echo 0 >"$0"/cgroup.procs && echo {} && read -r line && exec "$@"'
    with Program(tool("sh"), "-c", enters, cgroup, workload("touch"), str(pages), "small", "w") as program:
        wait_until(lambda: bool(program.lines), "it to be in its cgroup")
        tracer = start_record(out, "--overhead-limit", "none", "-c", str(cgroup))
        wait_attached(tracer, program.pid)
        program.go()
        program.last()
    wait_until(lambda: not (cgroup / "cgroup.procs").read_text(), "it to be gone")
    wait_slices(out, query(out, "SELECT MAX(slice) FROM slice")[0][0] + 1)
    tracer.send_signal(signal.SIGINT)
    recording = load(out, finish(tracer))
    cgroup.rmdir()
    assert recording.report["losses"]["pids_reused"] == 0
    assert recording.query("SELECT COUNT(*) FROM process") == [(1,)]
    assert Faults(recording).touched("touch.c", "write").of("zero").faults == pages
