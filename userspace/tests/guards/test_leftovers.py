# SPDX-License-Identifier: GPL-2.0
"""A run that is killed half way leaves nothing behind that the next one does not take down; what is in use stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import leftovers
from harness import MIB, TESTS, Program, end, spawn, wait_until, workload
from swapping import OutOfMemory, in_cgroup, limit_swap, memory_with_swap

pytestmark = [pytest.mark.root, pytest.mark.machine]

# How many lines in a row the kernel's log takes: nobody's result depends on it.
SETTING = Path("/proc/sys/kernel/printk_ratelimit_burst")

# Changes the machine in every way that tests do, tells what it did, and waits for its end.
RUN = """
import json, os, subprocess, sys, time
from contextlib import ExitStack
from pathlib import Path
from harness import MIB, spawn
from leftovers import noted
from swapping import in_cgroup, make_cgroup, swap_file, swap_zram

setting, place = Path(sys.argv[1]), Path(sys.argv[2])
with ExitStack() as stack:
    file = swap_file(stack, 4 * MIB)
    zram = swap_zram(stack, 4 * MIB)
    cgroup = make_cgroup(stack, 16 * MIB)
    (cgroup / "below").mkdir()
    stack.enter_context(noted("setting", setting, setting.read_text()))
    setting.write_text(str(int(setting.read_text()) + 1))
    stack.enter_context(noted("mount", place))
    subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
    inside = spawn(in_cgroup(cgroup / "below", "sleep", "60"))
    # A server makes itself independent of who started it.
    server = spawn(["setsid", "-w", "sleep", "60"], stdout=None)
    while str(inside.pid) not in (cgroup / "below/cgroup.procs").read_text().split():
        time.sleep(0.01)
    pids = [inside.pid, server.pid]
    print(json.dumps({"file": str(file), "zram": str(zram), "cgroup": str(cgroup), "pids": pids}), flush=True)
    time.sleep(60)
"""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "mounted"
    path.mkdir()
    with leftovers.noted("mount", path):
        yield path


def swaps() -> set[str]:
    return {line.split()[0] for line in Path("/proc/swaps").read_text().splitlines()[1:]}


def there(made: dict[str, Any], place: Path) -> dict[str, bool]:
    return {
        "swap file": Path(made["file"]).exists(),
        "its directory": Path(made["file"]).parent.exists(),
        "swap on": bool({made["file"], made["zram"]} & swaps()),
        "zram": Path("/sys/block", Path(made["zram"]).name).exists(),
        "cgroup": Path(made["cgroup"]).exists(),
        "mount": os.path.ismount(place),
        "processes": any(leftovers.start_of(pid) for pid in made["pids"]),
        "notes": any(made["pid"] == int(note.name.split(".")[1]) for note in leftovers.NOTES.glob("*.json")),
    }


def test_killed_half_way(place: Path) -> None:
    before = SETTING.read_text()
    run = spawn([sys.executable, "-B", "-c", RUN, SETTING, place], {"PYTHONPATH": str(TESTS)}, stderr=None)
    assert run.stdout
    made = {**json.loads(run.stdout.readline()), "pid": run.pid}
    try:
        # Alive, nothing of it is touched.
        leftovers.take_down()
        state = there(made, place)
        assert all(state.values()), state
        assert SETTING.read_text() != before
        # Another tree's run that begins now would be the one that says it.
        with leftovers.taking_down():
            # The run alone: what it started goes on.
            run.send_signal(signal.SIGKILL)
            run.wait(timeout=60)
            assert all(leftovers.start_of(pid) for pid in made["pids"])
            said = leftovers.take_down_here()
    finally:
        end(run)
    assert {"swap", "zram", "cgroup", "directory", "setting", "mount", "process"} <= {word.split()[0] for word in said}
    state = there(made, place)
    assert not any(state.values()), state
    assert SETTING.read_text() == before


def test_out_of_memory_is_reported() -> None:
    """A test that fails by it says so: it may try again."""
    words = [sys.executable, "-c", f"b'x' * {64 * MIB}"]
    left: list[Path] = []

    def fill() -> None:
        with memory_with_swap("file", 16 * MIB, 4 * MIB) as cgroup:
            left.append(cgroup)
            limit_swap(cgroup, 16 * MIB, 4 * MIB)
            assert subprocess.run(in_cgroup(cgroup, *words), check=False).returncode == 0

    with pytest.raises(OutOfMemory):
        fill()
    assert not left[0].exists()


def own_notes() -> set[Path]:
    """This process's: other workers make theirs, and take them away, meanwhile."""
    return set(leftovers.NOTES.glob(f"*.{os.getpid()}.*"))


def test_failed_test_is_cleaned_up(tmp_path: Path) -> None:
    """By itself, and not by the next run: nothing is noted any more."""
    notes = own_notes()
    with (
        pytest.raises(AssertionError, match="the test's"),
        memory_with_swap("file", 16 * MIB, 4 * MIB) as cgroup,
        Program(*in_cgroup(cgroup, workload("sleeper"))),
    ):
        raise AssertionError("the test's")
    assert not cgroup.exists()
    assert own_notes() == notes


def test_failed_cleanup_stays_noted(tmp_path: Path) -> None:
    """A mount that somebody is in: the note waits until it can be obeyed."""
    place = tmp_path / "mounted"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True, timeout=60)
    with leftovers.noted("mount", place):
        with Program("sh", "-c", 'cd "$1" && echo "{}" && exec sleep 60', "sh", place):
            with pytest.raises(subprocess.CalledProcessError), leftovers.noted("mount", place):
                pass
            kept = [note for note in leftovers.NOTES.glob("*.json") if str(place) in note.read_text()]
            assert len(kept) == 2
        max(kept).unlink()
    assert not os.path.ismount(place)


def test_runs_wait_for_each_other() -> None:
    """This test is alone with the machine: another process that wants it waits until that ends."""
    words = "import leftovers\nprint('{}', flush=True)\nwith leftovers.alone():\n    print('{}', flush=True)"
    with Program(sys.executable, "-B", "-c", words, env={"PYTHONPATH": str(TESTS)}) as other:
        # It sleeps in flock(2): what it waits for is in the kernel's list.
        lock = f":{(leftovers.NOTES / 'machine.lock').stat().st_ino} "

        def waits() -> bool:
            lines = [line for line in Path("/proc/locks").read_text().splitlines() if lock in line]
            return any("->" in line and f" {other.pid} " in line for line in lines)

        wait_until(waits, "the other to want the machine", 60)
        assert len(other.lines) == 1
