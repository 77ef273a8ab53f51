# SPDX-License-Identifier: GPL-2.0
"""Java where it depends on what else the machine does: how fast code is told of, and what is pushed out in time."""

from __future__ import annotations

import itertools
import re
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

import jvm
from harness import MIB, SOURCES, finish, record, start_record, wait_until
from suite import undecided
from swapping import in_cgroup, make_cgroup, swap_area

pytestmark = [pytest.mark.root, pytest.mark.measure]

# Objects that stay alive, in a cgroup of as much memory.
ALIVE_MIB: Final = 160
COLLECTIONS: Final = 5
# Rounds after which nothing more is compiled.
COMPILED: Final = 1_000_003
ASKED: Final = re.compile(r"^\[([0-9.]+)s\].*executing command jcmd", re.MULTILINE)
# After eight seconds the next question comes after eight more, or for new code.
SELDOM_S: Final = 7
IN_LATER_HALF: Final = """
    SELECT TOTAL(s.samples) FILTER (WHERE k.stopped = ''), TOTAL(s.samples) FROM sample s JOIN stack k USING (stack_id)
    WHERE s.slice > (SELECT MAX(slice) FROM sample) / 2"""
# What its threads run, and what stops the program for it.
COLLECTORS: Final = re.compile(r"GangWorker::|WorkerThread::run|VM_\w*Collect\w*::doit")


@pytest.mark.parametrize("release", ["", *jvm.RELEASES])
def test_whole_stacks_of_java(tmp_path: Path, release: str) -> None:
    """
    Before the JVM has told what code it made, stacks end there: it has made it all when this begins, and has told of
    it in the first half, however busy the computer is.
    """
    classes = jvm.build([SOURCES / "Clears.java"], tmp_path)
    with jvm.started(classes, "Clears", str(16 << 10), options=("-Xmx256m",), release=release) as program:
        jvm.compiled(program, COMPILED)
        recording = record(tmp_path / "a.memtoll", "--jvm-perfmap", "-d", "5s", "-p", str(program.pid), exact=False)
    ((whole, samples),) = recording.query(IN_LATER_HALF)
    assert samples >= 20 and whole >= 0.9 * samples, (whole, samples, recording.report["stacks"])


def gaps(log: Path) -> list[float]:
    """Between questions, by the JVM's own log, in seconds."""
    times = [float(found) for found in ASKED.findall(log.read_text())]
    return [0.0, *(after - before for before, after in itertools.pairwise(times))]


def test_new_code_is_asked_for(tmp_path: Path) -> None:
    """After 1, 2, 4, 8 s and so on, but where code comes that it has not told of."""
    classes = jvm.build([SOURCES / "Turns.java"], tmp_path)
    log = tmp_path / "jvm.log"
    options = ("-Xmx256m", *jvm.AT_ONCE, f"-Xlog:attach=debug:file={log}")
    with jvm.started(classes, "Turns", str(16 << 10), options=options, release=max(jvm.RELEASES)) as program:
        tracer = start_record(tmp_path / "a.memtoll", "--jvm-perfmap", "-p", str(program.pid))
        wait_until(lambda: gaps(log)[-1] > SELDOM_S, "two questions that are seconds apart")
        before = gaps(log)
        program.go()
        wait_until(lambda: len(gaps(log)) > len(before), "one more")
        tracer.send_signal(signal.SIGINT)
        result = finish(tracer)
        program.go()
        program.last()
    assert result.status == 0, result
    # Nobody would have asked again before twice the time.
    assert gaps(log)[len(before)] < before[-1], gaps(log)


@pytest.mark.machine
@pytest.mark.parametrize("release", ["", "21"])
def test_collector_that_touches_what_is_on_swap(out: Path, tmp_path: Path, release: str) -> None:
    """The program has made its objects and looks at none of them again; the witness is the collector's own log."""
    classes = jvm.build([SOURCES / "Collects.java"], tmp_path)
    # By one thread: of several the kernel finds, now and then, nothing in time.
    options = ("-XX:+UseSerialGC", f"-Xms{2 * ALIVE_MIB}m", f"-Xmx{2 * ALIVE_MIB}m", "-Xlog:gc")
    java = (jvm.of(release), *options, "-cp", classes, "Collects", str(ALIVE_MIB), str(COLLECTIONS))
    with ExitStack() as stack:
        swap_area(stack, "zram")
        cgroup = make_cgroup(stack, ALIVE_MIB * MIB, swap=True)
        recording = record(out, command=in_cgroup(cgroup, *java), exact=False)
    if "ended by signal 9" in recording.result.stderr:
        undecided("the kernel found nothing to push out in time, and killed it")
    assert recording.result.stdout.count("Pause Full (System.gc())") == COLLECTIONS
    assert recording.dominant == "swap", recording.report["verdict"]
    given = {row["code"]: row["text"] for row in recording.report["verdict"]["advice"]}
    assert "In Java the collector touches them" in given["swap-in"] and "-Xmx below" in given["swap-in"], given
    faults = recording.toll("swap.in", "count")
    by_collector = sum(
        site["count"]
        for site in recording.report["sites"]
        if site["toll"] == "swap.in" and any(COLLECTORS.search(frame["function"]) for frame in site["touched_at"])
    )
    assert by_collector > 0.5 * faults, (by_collector, faults)
