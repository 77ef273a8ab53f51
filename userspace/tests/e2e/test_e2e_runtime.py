# SPDX-License-Identifier: GPL-2.0
"""A container that a real runtime makes (runc), as its callers have it do: cgroups, mounts, and what they write."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from containers import make_calls, put_program, seeing
from harness import MIB, Program, changed_text, finish, load, memtoll, spawn, tool, wait_attached, workload
from leftovers import noted
from swapping import CGROUPS

pytestmark = pytest.mark.root

ID = "7e" * 32  # 64 hexadecimal digits
GROUP = f"memtoll-test-runtime-{os.getpid()}"  # of each of those that test at the same time
POD = "8d2c5f0e-6a3b-4d17-9c41-0b7e5a92f3d6"
TASKS = "containerd/io.containerd.runtime.v2.task/k8s.io"


@pytest.fixture
def groups() -> Iterator[str]:
    """Below which the runtime makes its cgroups, in each hierarchy: Docker itself may be beside it."""
    unified = (CGROUPS / "cgroup.controllers").exists()
    hierarchies = [CGROUPS] if unified else [each for each in CGROUPS.iterdir() if not each.is_symlink()]
    with ExitStack() as stack:
        for hierarchy in hierarchies:
            stack.enter_context(noted("cgroup", hierarchy / GROUP))
        yield f"/{GROUP}"


def bundle(place: Path, cgroup: str, annotations: dict[str, str]) -> None:
    """A root directory with a libc of its own, and what is to run in it (runtime-spec, config.md)."""
    root = place / "rootfs"
    root.mkdir()
    put_program(workload("calloc_loop"), root)
    (root / "proc").mkdir()
    config: dict[str, Any] = {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 0, "gid": 0},
            "args": ["/calloc_loop", str(10 * MIB), "0", "--seconds", "100", "--rest", "1000"],
            "cwd": "/",
            "noNewPrivileges": True,
        },
        "root": {"path": "rootfs", "readonly": True},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}],
        "annotations": annotations,
        "linux": {
            "cgroupsPath": cgroup,
            "namespaces": [{"type": kind} for kind in ("pid", "mount", "ipc", "uts")],
        },
    }
    (place / "config.json").write_text(json.dumps(config))


@contextmanager
def container(place: Path, cgroup: str) -> Iterator[tuple[Program, int]]:
    """The bundle's program as process 1 of its container, and its number here."""
    runc: list[str | Path] = [tool("runc"), "--root", place.parent / "runc"]
    procs = (CGROUPS / "memory" if (CGROUPS / "memory").is_dir() else CGROUPS) / cgroup.lstrip("/") / "cgroup.procs"
    with ExitStack() as stack:
        # Where this did not get to its end: that of runc is not that of the container.
        remove = stack.enter_context(ExitStack())
        remove.callback(lambda: subprocess.run([*runc, "delete", "--force", ID], check=True, timeout=60))
        running = stack.enter_context(Program(*runc, "run", "--bundle", place, ID))
        running.beats()
        (pid,) = procs.read_text().split()
        yield running, int(pid)
        subprocess.run([*runc, "kill", ID, "KILL"], check=True, timeout=60)
        # runc ends with its program, and has taken the container down by then.
        running.process.wait(timeout=60)
        remove.pop_all()
    assert not procs.exists()


def test_docker_restarts_it(out: Path, public_dir: Path, groups: str) -> None:
    """`docker restart`: the same container, its cgroup made anew; the recording goes on, however soon that is."""
    cgroup, place = f"{groups}/docker/{ID}", public_dir / "bundle"
    place.mkdir()
    bundle(place, cgroup, {})
    kept = public_dir / "lib" / "docker" / "containers" / ID
    kept.mkdir(parents=True)
    content = {"ID": ID, "Name": "/memtoll-test-web", "Config": {"Image": "calloc:1", "Labels": {}}}
    (kept / "config.v2.json").write_text(json.dumps(content))
    seen = set()
    with ExitStack() as first:
        program, pid = first.enter_context(container(place, cgroup))
        words: list[str | Path] = ["record", "-o", out, "--overhead-limit", "none", "-c", "memtoll-test-web"]
        tracer = spawn(seeing(public_dir / "lib", "/var/lib", *words))
        wait_attached(tracer, pid)
        make_calls(program, 101)
        seen.add((pid, "memtoll-test-web", 1))
    with container(place, cgroup) as (program, pid):
        wait_attached(tracer, pid)
        make_calls(program, 101)
        seen.add((pid, "memtoll-test-web", 1))
        tracer.send_signal(signal.SIGINT)
        recording = load(out, finish(tracer))
        assert changed_text(pid) == []
    assert recording.result.status == 0, recording.result
    assert recording.result.stderr.count("container memtoll-test-web has started again") == 1
    assert recording.query("SELECT value FROM meta WHERE key = 'container_restarts'") == [("1",)]
    report = recording.report
    # The runtime itself is in it for a moment.
    assert seen <= {(each["pid"], each["container"], each["pid_inside"]) for each in report["processes"]}
    assert [(each["id"], each["runtime"], each["image"]) for each in report["containers"]] == [
        (ID, "docker", "calloc:1")
    ]
    # The program and its libc are nowhere but below its own root.
    assert recording.dominant == "zeroing"
    assert recording.site("calloc_loop.c", "calloc", "calloc").calls > 200


def test_container_of_a_pod(out: Path, public_dir: Path, groups: str) -> None:
    """As containerd runs those of Kubernetes: the bundle that it gives the runtime is what tells their names."""
    cgroup = f"{groups}/kubepods/burstable/pod{POD}/{ID}"
    place = public_dir / "run" / TASKS / ID
    place.mkdir(parents=True)
    told = {
        "container-type": "container",
        "container-name": "web",
        "image-name": "registry.example/calloc:1",
        "sandbox-name": "shop-0",
        "sandbox-namespace": "sales",
        "sandbox-uid": POD,
    }
    bundle(place, cgroup, {f"io.kubernetes.cri.{name}": value for name, value in told.items()})
    with container(place, cgroup) as (program, pid):
        words: list[str | Path] = ["record", "-o", out, "--overhead-limit", "none", "-c", "sales/shop-0/web"]
        tracer = spawn(seeing(public_dir / "run", "/run", *words))
        wait_attached(tracer, pid)
        make_calls(program, 101)
        tracer.send_signal(signal.SIGINT)
        recording = load(out, finish(tracer))
        assert changed_text(pid) == []
    assert recording.result.status == 0, recording.result
    (process,) = recording.report["processes"]
    assert (process["pid"], process["pid_inside"]) == (pid, 1)
    (told_of,) = recording.report["containers"]
    assert (told_of["id"], told_of["runtime"], told_of["name"], told_of["image"]) == (
        (ID, "containerd", "web", "registry.example/calloc:1")
    )
    assert (told_of["pod"], told_of["namespace"]) == ("shop-0", "sales")
    assert recording.dominant == "zeroing"
    assert recording.site("calloc_loop.c", "calloc", "calloc").calls > 100
    text = " ".join(memtoll("report", "--full", out).stdout.split())
    assert "In container sales/shop-0/web (containerd, image registry.example/calloc:1)" in text
