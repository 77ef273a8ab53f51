# SPDX-License-Identifier: GPL-2.0
"""memtoll watch on bad days: targets that come and go ten times a second, a clock that is set back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from harness import PATIENCE, Program, bpf_objects, end, integrity, query, spawn, wait_gone, wait_until, workload
from stepping import Clock
from watching import Watch

pytestmark = pytest.mark.root

BLOCK = 200 << 10
PROCESSES = 101
CALLS = 53
EVERY_S = 0.1


def held_by_worker(pid: int) -> dict[str, set[int]]:
    """What the process that records for it has in the kernel: one of them, where two take turns."""
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with suppress(OSError):
            held = bpf_objects(int(child))
            if held["prog"]:
                return held
    return {}


def test_ten_targets_a_second(tmp_path: Path, public_dir: Path) -> None:
    """Each runs as it would, whenever in its life it was found; what was found is in a recording that is whole."""
    program = Path(shutil.copy(workload("calloc_loop"), public_dir / f"mtt{os.getpid()}"))
    watch = Watch(tmp_path)
    watch.start(f"-n {program.name}", "-I 1s", "--rotate 3s", "--overhead-limit none")
    wait_until(lambda: watch.told(), "the first interval")
    running: list[subprocess.Popen[str]] = []
    begun = time.monotonic()
    for number in range(PROCESSES):
        # So many a second is what is asked for: there is nothing to wait for.
        time.sleep(max(0, begun + number * EVERY_S - time.monotonic()))
        running.append(spawn([program, str(BLOCK), str(CALLS), "--rest", "4000"]))
    calls = 0
    for process in running:
        said, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said
        calls += json.loads(said.splitlines()[-1])["calls"]
        end(process)
    assert calls == PROCESSES * CALLS
    wait_until(lambda: watch.value("processes", target=program.name) == 0, "the watch to see that they are gone")
    held = wait_until(lambda: held_by_worker(watch.process.pid), "what records")
    watch.end()
    for kind, numbers in held.items():
        wait_gone(kind, numbers)
    assert watch.value("recording_failures_total") == 0
    assert watch.value("unwatched_seconds_total") == 0
    found: set[int] = set()
    counted = 0
    for path in watch.recordings():
        assert integrity(path) == "ok"
        assert query(path, "SELECT value FROM meta WHERE key = 'complete'") == [("1",)]
        rows = query(path, "SELECT pid, SUM(calls) FROM call WHERE call = 'calloc' GROUP BY pid")
        found |= {pid for pid, _ in rows}
        counted += sum(number for _, number in rows)
    assert found <= {process.pid for process in running}
    # One that runs while two recordings count is in both.
    assert len(found) > 0 and CALLS <= counted <= 2 * calls


def wait_intervals(watch: Watch, more: int) -> None:
    before = len(watch.told())
    wait_until(lambda: len(watch.told()) >= before + more, f"{more} intervals")


def test_clock_is_set_back(tmp_path: Path, public_dir: Path) -> None:
    """No recording takes another's place, and no interval is of negative length."""
    program = Path(shutil.copy(workload("sleeper"), public_dir / f"mtu{os.getpid()}"))
    watch, clock = Watch(tmp_path), Clock(tmp_path)
    options = [f"-n {program.name}", "-I 1s", "--rotate 1h"]
    with Program(program):
        watch.start(*options, environment=clock.environment)
        wait_until(lambda: watch.value("processes", target=program.name) == 1, "the first interval")
        for ahead_s in (-3600, 3600):
            clock.set(ahead_s)
            wait_intervals(watch, 2)
            watch.reload(*options)
        watch.end()
    told = watch.told()
    assert [line["interval"] for line in told] == list(range(1, len(told) + 1))
    assert all(line["start"] < line["end"] for line in told)
    # They are told by the clock as it is then.
    assert any(after["end"] < before["start"] for before, after in zip(told, told[1:]))
    made = list(dict.fromkeys(line["recording"] for line in told))
    # By their names the second is the oldest.
    assert [path.name for path in watch.recordings()] == [made[1], made[0], made[2]]
    starts = []
    for path in watch.recordings():
        assert integrity(path) == "ok"
        ((first, last),) = query(path, "SELECT min(start_ns), max(end_ns) FROM slice")
        starts.append((path.name, first))
        assert first < last
    assert [name for name, _ in sorted(starts, key=lambda start: start[1])] == made
    assert watch.value("unwatched_seconds_total") == 0
