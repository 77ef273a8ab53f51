# SPDX-License-Identifier: GPL-2.0
"""memtoll watch: a closer look that begins and ends by its condition, the bound on the disk, cgroups that come back."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from harness import MIB, Program, end, integrity, query, spawn, wait_until, workload
from leftovers import noted
from swapping import CGROUPS, in_cgroup, memory_with_swap
from watching import Watch

pytestmark = pytest.mark.root

BLOCK = 200 << 10
KEPT = 16 * MIB  # the least that --keep takes


def copy_of(program: str, letter: str, directory: Path) -> Path:
    """Under a name that nobody else has."""
    return Path(shutil.copy(workload(program), directory / f"mtb{letter}{os.getpid()}"))


def test_closer_look_by_its_condition(tmp_path: Path, public_dir: Path) -> None:
    """It begins when zeroing is most of the interval and ends when that is over, long before --detail-for."""
    program = copy_of("calloc_loop", "c", public_dir)
    watch = Watch(tmp_path)
    with Program(program, str(BLOCK), "0", "--wait", "--seconds", "600", "--rest", "1000") as loop:
        condition = "--when '(zeroing.share > 0.5 or swap.share > 0.5) and rss.bytes > 1 for 1s'"
        words = [f"-n {program.name}", "-I 1s", "--rotate 1h", "--overhead-limit none", "--detail-limit none"]
        watch.start(*words, condition, "--detail-for 1h")
        wait_until(lambda: watch.value("processes", target=program.name) == 1, "the first interval")
        loop.go()
        wait_until(lambda: watch.value("detailed") == 1, "the closer look")
        os.kill(loop.pid, signal.SIGSTOP)
        wait_until(lambda: watch.value("recordings_total", kind="detailed") == 1, "its end")
        wait_until(lambda: watch.value("detailed") == 0, "an ordinary recording")
        os.kill(loop.pid, signal.SIGCONT)
        # For --detail-pause none begins, whatever is the case.
        before = len(watch.told())
        wait_until(lambda: len(watch.told()) >= before + 3, "three intervals")
        assert watch.value("detailed") == 0
        watch.end()
    assert ["-detail" in path.name for path in watch.recordings()] == [False, True, False]
    assert watch.value("triggers_total") == 1
    assert watch.value("unwatched_seconds_total") == 0


@pytest.mark.machine
def test_closer_look_by_pressure(tmp_path: Path, public_dir: Path) -> None:
    """The kernel's own figure of waiting for memory, of the whole machine; what waits needs not be the target."""
    program = copy_of("sleeper", "p", public_dir)
    watch = Watch(tmp_path)
    with ExitStack() as stack:
        box = stack.enter_context(memory_with_swap("file"))
        stack.enter_context(Program(program))
        watch.start(f"-n {program.name}", "-I 1s", "--rotate 1h", "--when 'psi.memory.some > 0.5 for 1s'")
        wait_until(lambda: watch.value("processes", target=program.name) == 1, "the first interval")
        # Passes over more than fits, until somebody has seen it.
        stack.callback(end, spawn(in_cgroup(box, workload("pagez"), "12", "100000", "--random")))
        wait_until(lambda: watch.value("detailed") == 1, "the closer look")
        some = Path("/proc/pressure/memory").read_text().splitlines()[0]
        assert float(some.split()[1].removeprefix("avg10=")) > 0.5
        watch.end()
    # Other tests' pressure may have begun it before.
    assert "-detail" in watch.recordings()[-1].name
    assert watch.value("triggers_total") == 1


def test_bound_on_the_disk(tmp_path: Path, public_dir: Path) -> None:
    """Of those of an earlier watch, which was allowed more, the oldest go; what is somebody else's stays."""
    program = copy_of("sleeper", "d", public_dir)
    watch = Watch(tmp_path)
    with Program(program):
        words = [f"-n {program.name}", "-I 1s", f"--keep {KEPT}"]
        watch.start(*words)
        wait_until(lambda: watch.value("processes", target=program.name) == 1, "the first interval")
        watch.end()
        (made,) = watch.recordings()
        with closing(sqlite3.connect(made)) as recording:
            recording.execute("CREATE TABLE ballast AS SELECT randomblob(?) AS bytes", (4 * MIB,))
            recording.commit()
        old = [made.with_name(f"watch-20260101T00000{second}.000Z.memtoll") for second in range(5)]
        for path in old:
            shutil.copy(made, path)
        made.unlink()
        strangers = [watch.kept / name for name in ("mine.memtoll", "watch-20260101T000000.900Z.memtoll")]
        shutil.copy(old[0], strangers[0])
        strangers[1].write_bytes(bytes(4 * MIB))  # no recording
        watch.prom.unlink()
        watch.start(*words)
        wait_until(lambda: watch.value("processes", target=program.name) == 1, "the first interval")
        watch.end()
    removed = int(watch.value("recordings_removed_total") or 0)
    # Five are too many, and beside the new one there is room for some.
    assert 1 < removed < len(old)
    assert [path.exists() for path in old] == [False] * removed + [True] * (len(old) - removed)
    kept = [*old[removed:], watch.recordings()[-1]]
    assert watch.value("recordings_kept") == len(kept)
    assert watch.value("kept_bytes") == sum(path.stat().st_blocks * 512 for path in kept) <= KEPT
    assert all(path.stat().st_size > MIB for path in strangers)
    assert integrity(kept[-1]) == "ok"


def test_cgroup_that_comes_back(tmp_path: Path) -> None:
    """It is not there when the watch begins, has two lives, and each one's calls are its own."""
    root = CGROUPS / "memory" if (CGROUPS / "memory").is_dir() else CGROUPS
    cgroup = root / f"memtoll-test-watched-{os.getpid()}"
    watch = Watch(tmp_path)
    calls = (307, 503)
    with noted("cgroup", cgroup):
        watch.start(f"-c {cgroup.name}", "-I 1s", "--rotate 1h", "--overhead-limit none")
        wait_until(watch.told, "an interval without it")
        assert watch.value("processes", target=cgroup.name) == 0
        for number in calls:
            cgroup.mkdir()
            words = in_cgroup(cgroup, workload("calloc_loop"), str(BLOCK), str(number), "--wait")
            with Program(*words) as program:
                wait_until(lambda: watch.value("processes", target=cgroup.name) == 1, "its process")
                program.go()
                program.last()
            wait_until(lambda: watch.value("processes", target=cgroup.name) == 0, "its end")
            wait_until(lambda: not (cgroup / "cgroup.procs").read_text(), "the kernel to see it")
            cgroup.rmdir()
        watch.end()
    (recording,) = watch.recordings()
    sql = "SELECT SUM(calls) FROM call WHERE call = 'calloc' GROUP BY pid ORDER BY 1"
    # The blocks of what writes a line are not of that size; those before it was seen are none of the loop's.
    sums = [calls for (calls,) in query(recording, sql)]
    assert sums == list(calls), sums
