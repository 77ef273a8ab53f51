# SPDX-License-Identifier: GPL-2.0
"""Targets: running, forking, exec'ing, many-threaded, dying; by pid, by name, as a command."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import pytest

from chains import Stacks
from harness import (
    MIB,
    PAGE,
    Program,
    Recording,
    bpf_maps,
    bpf_variable,
    changed_text,
    finish,
    integrity,
    load,
    map_dump,
    map_entries,
    memtoll,
    query,
    record,
    record_several,
    start_record,
    stop,
    tool,
    uprobe_pages,
    wait_attached,
    wait_slices,
    wait_until,
    workload,
)

pytestmark = pytest.mark.root

TEN = 10 * MIB


def pid_of(*programs: Program) -> str:
    return ",".join(str(program.pid) for program in programs)


def ended_well(tracer: subprocess.Popen[str], out: Path) -> Recording:
    result = finish(tracer)
    assert result.status == 0, result
    recording = load(out, result)
    assert recording.complete
    return recording


def record_calls(out: Path, calls: int, programs: Sequence[Program], *options: str) -> Recording:
    """Attached until each of the programs has made so many calls more, however long that takes."""
    tracer = start_record(out, *options)
    for program in programs:
        wait_attached(tracer, program.pid)
        # The next line may have been written before, and be read late; the one after it was not.
        program.beats()
        program.beats()
    wanted = [program.calls() + calls for program in programs]
    wait_until(lambda: all(p.calls() >= n for p, n in zip(programs, wanted)), f"{calls} calls of each program")
    tracer.send_signal(signal.SIGINT)
    return ended_well(tracer, out)


def test_running_process_to_a_verdict(out: Path) -> None:
    calls = 503
    with Program(workload("calloc_loop"), str(TEN), "0", "--seconds", "100", "--rest", "1000") as program:
        program.beats()
        before = program.calls()
        recording = record_calls(out, calls, [program], "-p", str(program.pid))
        program.beats()
        made = program.calls() - before
    site = recording.site("calloc_loop.c", "calloc", "calloc")
    # What else a call does is a hundredth of the clearing of 10 MiB, on any machine.
    assert recording.dominant == "zeroing"
    # The pace lines came while it was attached, and the last of them a part of a beat before the end. A call that was
    # under way as the probes came is not seen.
    assert calls - 1 <= site.calls <= made
    # Long since grown, the heap's top is reused whole in every call, and no page faults.
    assert recording.toll("zero.libc", "bytes") == pytest.approx(site.bytes, rel=0.01)
    assert recording.toll("zero.kernel", "count") < 0.1 * site.calls
    assert recording.report["target"]["pids"] == [program.pid]
    assert recording.report["target"]["command"] == f"{workload('calloc_loop')} {TEN} 0 --seconds 100 --rest 1000"
    assert recording.report["target"]["observed_s"] <= recording.report["target"]["duration_s"] * 1.05


def test_two_pids(out: Path) -> None:
    loop: list[str | Path] = [workload("calloc_loop"), str(MIB), "0", "--seconds", "100", "--rest", "1000"]
    with Program(*loop) as one, Program(workload("churn"), "0", "--seconds", "100", "--rest", "1000") as two:
        recording = record_calls(out, 1009, [one, two], "--probes", "alloc", "-p", pid_of(one, two))
    assert sorted(recording.report["target"]["pids"]) == sorted([one.pid, two.pid])
    assert recording.site("calloc_loop.c", "calloc", "calloc").calls > 1000
    assert recording.site("churn.c", "malloc", "malloc").calls > 1000


@pytest.fixture
def named(public_dir: Path) -> Path:
    """A program with a name nobody else has."""
    return Path(shutil.copy(workload("churn"), public_dir / f"mtl{os.getpid()}"))


def test_by_name(out: Path, named: Path) -> None:
    with Program(named, "0", "--seconds", "100", "--rest", "1000") as program:
        recording = record_calls(out, 1009, [program], "--probes", "alloc", "-n", named.name)
    assert recording.report["target"]["pids"] == [program.pid]
    assert recording.site("churn.c", "malloc", "malloc").calls > 1000


def test_eight_threads_attached(out: Path) -> None:
    with Program(workload("threads8"), "7", "--wait") as program:
        tracer = start_record(out, "--probes", "alloc", "-p", str(program.pid), "--overhead-limit", "none")
        wait_attached(tracer, program.pid)
        program.go()
        truth = program.last()
    recording = ended_well(tracer, out)
    malloc = recording.site("threads8.c", "malloc", "malloc")
    calloc = recording.site("threads8.c", "calloc", "calloc")
    assert malloc.calls == truth["malloc"]
    assert calloc.calls == truth["calloc"]
    assert malloc.bytes + calloc.bytes == truth["bytes"]
    assert recording.site("threads8.c", "free", "free").calls == truth["free"]


def pages_touched_by(recording: Recording, function: str) -> int:
    stacks = Stacks(recording).by_id
    rows = recording.query("SELECT touched_stack, SUM(pages) FROM fault WHERE touched_stack <> 0 GROUP BY 1")
    return sum(pages for stack, pages in rows if stacks[stack].frames[0].function == function)


def test_more_threads_than_places(out: Path) -> None:
    """The kernel side has places for 512; the others' states are kept elsewhere."""
    recording = record(out, command=[workload("crowd"), "601", "31"])
    [truth] = recording.witness
    assert recording.site("crowd.c", "malloc", "malloc").calls == truth["malloc"] == 601 * 31
    assert pages_touched_by(recording, "touch") == truth["pages"] == 601 * 13


def test_exec_by_another_thread(out: Path) -> None:
    """It takes the first one's number; what it had open until then is not lost."""
    recording = record(out, command=[workload("crowd"), "3", "31", workload("churn"), "2003"])
    truth = recording.witness[0]
    assert recording.site("crowd.c", "malloc", "malloc").calls == truth["malloc"] == 3 * 31
    assert pages_touched_by(recording, "touch") == truth["pages"] == 4 * 13
    assert recording.site("churn.c", "malloc", "malloc").calls == 2003
    assert recording.site("churn.c", "free", "free").calls == 2003


def runs(pid: int, name: str) -> bool:
    with suppress(OSError):  # while one of its threads becomes that
        return Path(f"/proc/{pid}/exe").samefile(workload(name))
    return False


def record_past_exec(out: Path, command: Sequence[str | Path]) -> Recording:
    """Attached to what waits to go on and to become churn, until churn's probes are there and have been hit."""
    with Program(*command) as program:
        tracer = start_record(out, "--probes", "alloc", "-p", str(program.pid))
        wait_attached(tracer, program.pid)
        program.go()
        program.beats()
        wait_until(lambda: runs(program.pid, "churn"), "the exec")
        wait_attached(tracer, program.pid)
        program.beats()
        program.beats()
        tracer.send_signal(signal.SIGINT)
        return ended_well(tracer, out)


def test_exec_by_another_thread_of_an_attached_process(out: Path) -> None:
    """What was attached hung on the first thread, which is no more: it is attached anew."""
    churn = [str(workload("churn")), "0", "--seconds", "100", "--rest", "1000"]
    command = [str(workload("crowd")), "--wait", "3", "31", *churn]
    recording = record_past_exec(out, command)
    assert recording.site("crowd.c", "malloc", "malloc").calls == 3 * 31
    assert recording.site("churn.c", "malloc", "malloc").calls > 0, "its probes did not come back"


def test_fork(out: Path) -> None:
    recording = record(out, command=[workload("forker")])
    truth = recording.witness[-1]
    assert recording.site("forker.c", "parent", "calloc").calls == truth["parent"]
    assert recording.site("forker.c", "child", "calloc").calls == truth["children"]
    roles = dict(recording.query("SELECT pid, role FROM process"))
    assert roles[truth["pid"]] == "target"
    assert {roles[pid] for pid in truth["child_pids"]} == {"child"}
    check = recording.report["checks"]["minor_faults"]
    assert check["ours"] == pytest.approx(check["kernel"], rel=0.01)


def test_processes_of_one_service_share_their_sites(out: Path) -> None:
    """Forked, or each a program at addresses of its own: one stack of one binary is one site for all of them."""
    services = {"fork": ("service", "fork", "31"), "exec": ("service", "exec", "97")}
    recording, said = record_several(out, services)
    workers = sum(line["workers"] for line in said.values())
    small, large = (sum(line[size] for line in said.values()) for size in ("small", "large"))
    is_small = "call = 'malloc' AND calls > 0 AND bytes = 1009 * calls"
    query = "SELECT COUNT(DISTINCT stack_id), SUM(calls), COUNT(DISTINCT pid) FROM call WHERE "
    assert recording.query(query + is_small) == [(1, small, workers)]
    is_theirs = f"call = 'free' AND pid IN (SELECT pid FROM call WHERE {is_small})"
    assert recording.query(query + is_theirs) == [(1, small, workers)]
    blocks = recording.query("SELECT COUNT(DISTINCT stack_id), SUM(made), COUNT(DISTINCT pid) FROM block")
    assert blocks[0][0] <= 2 and blocks[0][1:] == (large, workers)
    assert recording.site("service.c", "large", "malloc").calls == large
    query = "SELECT COUNT(DISTINCT touched_stack), SUM(pages) FROM fault WHERE allocated_call = 'malloc'"
    touched = recording.query(query)
    # Each block has 25 pages, the first or last of which it may share with the one before, or with the heap's top.
    assert touched[0][0] <= 8 and 23 * large <= touched[0][1] <= 26 * large


def test_children_of_a_process_that_has_ended(out: Path) -> None:
    """On one processor the parent has often exited, and its exit event come, before its child runs at all."""
    recording = record(out, command=[tool("taskset"), "-c", "0", workload("orphans"), "53"])
    assert recording.witness[-1]["reaped"] == 2 * 53
    assert recording.site("orphans.c", "calloc", "calloc").calls == 53


def test_fork_of_an_attached_process(out: Path) -> None:
    """Nobody holds the children of a running process: what they call before they are probed is missed,
    and the loss says of how many. Their faults are counted from the fork on."""
    with Program(workload("forker"), "100000", "--wait") as program:
        tracer = start_record(out, "-p", str(program.pid), "--overhead-limit", "none")
        wait_attached(tracer, program.pid)
        program.go()
        truth = program.last()
    recording = ended_well(tracer, out)
    children = recording.query("SELECT count(*) FROM process WHERE role = 'child'")[0][0]
    assert children == len(truth["child_pids"])
    assert recording.site("forker.c", "parent", "calloc").calls == truth["parent"]
    assert recording.site("forker.c", "child", "calloc").calls <= truth["children"]
    assert recording.report["losses"]["late_attach"] == children
    check = recording.report["checks"]["minor_faults"]
    assert check["ours"] == pytest.approx(check["kernel"], rel=0.01)


def test_short_processes(out: Path, tmp_path: Path) -> None:
    """Every call of each, one stack to the program's start; and what the kernel keeps of them goes with them."""
    runs, calls = 211, 7
    script = tmp_path / "runs"
    script.write_text(
        f"#!/bin/sh\ni=0\nwhile [ $i -lt {runs} ]; do {workload('calloc_loop')} {MIB} {calls}; i=$((i + 1)); done\n"
        "echo all; read _\n"
    )
    script.chmod(0o755)
    tracer = start_record(out, "--probes", "alloc", "--", script, stdin=subprocess.PIPE)
    assert tracer.stdin and tracer.stdout
    while tracer.stdout.readline() != "all\n":
        assert tracer.poll() is None
    living = {int(pid) for pid in Path(f"/proc/{tracer.pid}/task/{tracer.pid}/children").read_text().split()}

    def kept() -> set[int]:
        stacks = (entry["formatted"]["value"]["tgid"] for entry in map_entries(tracer.pid, "stacks"))
        return {*stacks, *(entry["formatted"]["key"]["tgid"] for entry in map_entries(tracer.pid, "calls"))}

    wait_until(lambda: kept() <= living, "stacks and sums of the dead to leave the kernel", every=0.5)
    maps = bpf_maps(tracer.pid)
    wait_until(
        lambda: len(map_dump(maps["processes"])) == len(living), "rows of the dead to leave the kernel", every=0.2
    )
    # By which all others are passed over: one too few, and a child is.
    assert sum(bpf_variable(maps["memtoll_.bss"], "process_filter")) == len(living)
    tracer.stdin.write("\n")
    tracer.stdin.close()
    tracer.stdin = None
    recording = ended_well(tracer, out)
    assert recording.query("SELECT count(*) FROM process WHERE role = 'child'") == [(runs,)]
    assert recording.site("calloc_loop.c", "calloc", "calloc").calls == runs * calls
    assert recording.query(
        "SELECT complete, count(*) FROM stack WHERE stack_id IN (SELECT stack_id FROM stack_frame JOIN frame"
        " USING (frame_id) WHERE function = 'clear_block') GROUP BY complete"
    ) == [(1, 1)]


def test_programs_that_start_as_before(out: Path, tmp_path: Path) -> None:
    """Held at each system call of the loader the first time, and hardly after that; no call is missed either way, nor
    with another library before the rest, nor where the signal is blocked that the loader's word comes by."""
    program, runs = workload("starter"), 7
    again = f"i=1; while [ $i -lt {runs} ]; do {program}; i=$((i + 1)); done"
    script = tmp_path / "runs"
    script.write_text(
        f"#!/bin/sh\n{program}; {again}\nenv LD_PRELOAD={workload('libfront.so')} sh -c '{program}; {program}'\n"
        f"env --block-signal=URG {program}\nenv --ignore-signal=URG {program}\n"
    )
    script.chmod(0o755)
    recording = record(out, "--probes", "alloc", command=[script])
    truth = recording.witness
    assert len(truth) == runs + 4
    for marker in ("early", "calloc"):
        assert recording.site("starter.c", marker, "calloc").calls == sum(run["calls"] for run in truth)
    assert recording.query(
        "SELECT complete, count(*) FROM stack WHERE stack_id IN (SELECT stack_id FROM stack_frame JOIN frame"
        " USING (frame_id) WHERE function = 'allocate_early') GROUP BY complete"
    ) == [(1, 1)]
    first, *alike = truth[:runs]
    # A loader of a C program makes over twenty system calls, with a stop before and after each.
    assert first["switches"] > 40
    assert all(run["switches"] < first["switches"] / 2 for run in alike), truth
    preloaded, again_preloaded, blocked, ignored = truth[runs:]
    assert again_preloaded["switches"] < preloaded["switches"] / 2
    assert blocked["switches"] > 40
    assert ignored["switches"] < first["switches"] / 2


def test_short_processes_of_a_running_one(out: Path) -> None:
    """Gone before anything of their code was read: a recording does not grow by what is not known of them."""
    # In batches, the next one when the last is in the recording: else how many there are at once, and so what the
    # kernel side has to hold, is the machine's.
    batches, runs = 3, 211
    batch = f"read _; i=0; while [ $i -lt {runs} ]; do /bin/true; i=$((i + 1)); done"
    with Program("sh", "-c", "; ".join(["echo '{}'", *batches * [batch], "read _"])) as program:

        def met(least: int) -> bool:
            return bool(query(out, "SELECT count(*) FROM process WHERE role = 'child'")[0][0] >= least)

        tracer = start_record(out, "-p", str(program.pid), "--probes", "faults,mappings")
        wait_slices(out, 1)
        for made in range(1, batches + 1):
            program.go()
            wait_until(partial(met, made * runs), f"{made} batches to be met")
        tracer.send_signal(signal.SIGINT)
        recording = ended_well(tracer, out)
    assert recording.query("SELECT count(*) FROM process WHERE role = 'child'") == [(batches * runs,)]
    named = "SELECT stack_id FROM stack_frame JOIN frame USING (frame_id) WHERE function <> '' OR module <> ''"
    for table, stack, count in (("fault", "touched_stack", "faults"), ("map_call", "stack_id", "calls")):
        rows = recording.query(
            f"SELECT {stack}, sum({count}) FROM {table} WHERE {stack} NOT IN ({named}) GROUP BY {stack}"
        )
        assert sum(found for _, found in rows) > batches * runs, table
        assert len(rows) < batches * runs, table
    check = recording.report["checks"]["minor_faults"]
    assert check["ours"] == pytest.approx(check["kernel"], rel=0.05)


def test_a_storm_of_programs(out: Path) -> None:
    """More than are paid for: all are counted, with their faults and their time, and few are held or looked at."""
    runs = 1009
    # So low a limit pays for 8 a second, which any machine starts.
    recording = record(out, "--overhead-limit", "1", command=[workload("starts"), str(runs)], exact=False)
    (truth,) = recording.witness
    ((started, seen, ended),) = recording.query(
        "SELECT count(*), sum(executable <> ''), count(end_ns) FROM process WHERE role = 'child'"
    )
    losses = recording.report["losses"]
    assert started == ended == truth["started"] == runs
    assert losses["programs_passed"] > 0
    # Held from their start; too late for that; and not at all. How many depends on how fast they come.
    assert runs - losses.get("programs_passed", 0) - losses.get("late_attach", 0) >= 256
    assert seen >= 256
    ((faults, cpu_ns),) = recording.query(
        "SELECT sum(minor_faults), sum(cpu_ns) FROM process_slice JOIN process USING (pid) WHERE role = 'child'"
    )
    assert faults == truth["child_faults"]
    assert cpu_ns / 1e9 == pytest.approx(truth["child_seconds"], rel=0.1)
    check = recording.report["checks"]["minor_faults"]
    assert check["ours"] == pytest.approx(check["kernel"], rel=0.01)


def test_a_storm_of_programs_that_live(out: Path) -> None:
    """However many of them were looked at when it ends, each has its row, and those that were not are counted."""
    command = ["bash", "-c", "for i in {1..347}; do sleep 3 & done; wait"]
    result = memtoll("record", "-o", out, "-d", "2s", "--", *command)
    assert result.status in (0, 4), result  # so many may be more than there is room for
    recording = load(out, result)
    ((without, unseen),) = recording.query(
        "SELECT (SELECT count(*) FROM fault WHERE pid NOT IN (SELECT pid FROM process)),"
        " (SELECT count(*) FROM process WHERE role = 'child' AND executable = '')"
    )
    assert without == 0
    losses = recording.report["losses"]
    assert unseen <= losses.get("programs_passed", 0) + losses.get("late_attach", 0)


# Static, so that it holds its allocator itself; what stands before main moves all that comes after it.
REWRITTEN = """
#include <stdlib.h>
__attribute__((noinline, used)) void before(void) { __asm__ volatile(".fill PADDING, 1, 0x90"); }
void *volatile sink;
int main(void) { for (int i = 0; i < 1009; i++) { sink = calloc(1, 64); free(sink); } return 0; }
"""


def test_a_program_that_is_written_over(out: Path, tmp_path: Path) -> None:
    """The same file, another program: a probe where the old one had its calloc would break it."""
    for name, padding in (("old", 16), ("new", 16387)):
        source = tmp_path / f"{name}.c"
        source.write_text(REWRITTEN.replace("PADDING", str(padding)))
        subprocess.run([tool("gcc"), "-O1", "-static", source, "-o", source.with_suffix("")], check=True, timeout=60)
    steps = ('cat "$1/old" > "$1/run"', 'chmod +x "$1/run"', '"$1/run"', 'cat "$1/new" > "$1/run"', '"$1/run"')
    script = " && ".join((*steps, 'echo "{}"'))
    recording = record(out, "--probes", "alloc", command=["sh", "-c", script, "sh", tmp_path])
    assert recording.witness == [{}], "the program was broken"
    rows = recording.query(
        "SELECT pid, SUM(c.calls) FROM call c JOIN process p USING (pid)"
        " WHERE p.executable LIKE '%/run' AND c.call = 'calloc' AND c.bytes = 64 * c.calls GROUP BY pid"
    )
    assert [count for _, count in rows] == [1009, 1009]


def test_exec_of_an_attached_process(out: Path) -> None:
    recording = record_past_exec(
        out, [workload("execer"), "--wait", workload("churn"), "0", "--seconds", "100", "--rest", "1000"]
    )
    assert recording.site("execer.c", "calloc", "calloc").calls == 1019
    assert recording.site("churn.c", "malloc", "malloc").calls > 0, "the new program's allocator was not found"


@pytest.mark.parametrize("before", [("execer", "--wait"), ("crowd", "--wait", "3", "31")], ids=["itself", "a thread"])
def test_exec_while_it_is_attached(out: Path, before: tuple[str, ...]) -> None:
    """Its probes are there and it is no target yet, as others get theirs first: nobody reports its exec."""
    churn = [str(workload("churn")), "0", "--seconds", "100", "--rest", "1000"]
    with ExitStack() as stack:
        first = stack.enter_context(Program(workload(before[0]), *before[1:], *churn))
        reader = [tool("python3"), "-c", 'print("{}", flush=True); input()']
        others = [stack.enter_context(Program(*reader)) for _ in range(7)]
        tracer = start_record(out, "--probes", "alloc", "-p", pid_of(first, *others))
        wait_until(lambda: changed_text(first.pid), "its probes", every=0.001)
        tracer.send_signal(signal.SIGSTOP)
        try:
            first.go()
            wait_until(lambda: runs(first.pid, "churn"), "the exec")
            first.beats()
        finally:
            tracer.send_signal(signal.SIGCONT)
        wait_attached(tracer, first.pid)
        first.beats()
        first.beats()
        tracer.send_signal(signal.SIGINT)
        recording = ended_well(tracer, out)
    assert recording.site("churn.c", "malloc", "malloc").calls > 0, "the new program's allocator was not found"
    assert recording.query(f"SELECT comm, executable FROM process WHERE pid = {first.pid}") == [
        ("churn", str(workload("churn").resolve()))
    ]


def test_exit_while_traced(out: Path) -> None:
    recording = record(out, command=[workload("quitter"), "211", "200000", "7"])
    site = recording.site("quitter.c", "calloc", "calloc")
    assert (site.calls, site.bytes, site.freed) == (211, 211 * 200000, 0)
    assert site.live_bytes == 211 * 200000
    assert recording.query("SELECT value FROM meta WHERE key = 'exit_status'") == [("7",)]
    pid = recording.witness[-1]["pid"]
    (ended, code), *rest = recording.query(f"SELECT end_ns, exit_code FROM process WHERE pid = {pid}")
    assert not rest
    assert ended is not None
    assert os.waitstatus_to_exitcode(code) == 7


def test_killed_while_traced(out: Path) -> None:
    with Program(workload("calloc_loop"), str(TEN), "0", "--seconds", "100", "--rest", "1000") as program:
        tracer = start_record(out, "--probes", "alloc", "-p", str(program.pid))
        wait_attached(tracer, program.pid)
        program.beats()
        os.kill(program.pid, signal.SIGKILL)
        # Waits for the child: a zombie is no process any more, but its number is still taken.
        program.process.wait(timeout=60)
        recording = ended_well(tracer, out)
    assert recording.site("calloc_loop.c", "calloc", "calloc").calls > 0
    (code,) = recording.query(f"SELECT exit_code FROM process WHERE pid = {program.pid}")[0]
    assert os.waitstatus_to_exitcode(code) == -signal.SIGKILL


FIRST, SECOND, THIRD = 1009, 4003, 2003


def step(program: Program, said: str) -> int:
    """The workload does what is next: whom it says that of."""
    program.go()
    wait_until(lambda: any(said in line for line in program.lines), f"the workload to say {said}")
    return int(next(line[said] for line in program.lines if said in line))


def pages_of(recording: Recording, pid: int) -> int:
    return int(
        recording.query(f"SELECT COALESCE(SUM(faults), 0) FROM fault WHERE pid = {pid} AND class = 'zero'")[0][0]
    )


def test_who_gets_the_number_is_not_traced(out: Path) -> None:
    """The traced process ends while the tracer is stopped, and another has its number when it goes on."""
    with Program(workload("namesake"), str(FIRST), str(SECOND), str(THIRD)) as program:
        pid = step(program, "child")
        tracer = start_record(out, "-p", str(pid), "--overhead-limit", "none")
        wait_attached(tracer, pid)
        stop(tracer)
        assert step(program, "other") == pid
        tracer.send_signal(signal.SIGCONT)
        recording = ended_well(tracer, out)
    assert FIRST <= pages_of(recording, pid) < FIRST + 100
    assert recording.report["losses"]["pids_reused"] == 0
    check = recording.report["checks"]["minor_faults"]
    assert check["ours"] == pytest.approx(check["kernel"], rel=0.01)


def test_who_gets_the_number_is_traced_as_a_child(out: Path) -> None:
    """Both are children of the traced process: the end of the first, heard of late, is not the second's."""
    with Program(workload("namesake"), str(FIRST), str(SECOND), str(THIRD)) as program:
        tracer = start_record(out, "-p", str(program.pid), "--overhead-limit", "none")
        wait_attached(tracer, program.pid)
        stop(tracer)
        pid = step(program, "child")
        assert step(program, "other") == pid
        tracer.send_signal(signal.SIGCONT)
        # By the end of that slice it has heard of both, whatever came before.
        wait_slices(out, 2)
        step(program, "ended")
        program.last()
        recording = ended_well(tracer, out)
    assert FIRST + SECOND + THIRD <= pages_of(recording, pid) < FIRST + SECOND + THIRD + 300
    # One row for both, and it is said.
    assert recording.report["losses"]["pids_reused"] == 1
    check = recording.report["checks"]["minor_faults"]
    assert check["ours"] == pytest.approx(check["kernel"], rel=0.01)


def test_an_end_that_goes_untold(out: Path) -> None:
    """The tracer is stopped, its buffer full, the process ends: it is missed, and all that was lost is counted."""
    with Program(workload("pairs"), "--pairs", "2003", "--every", "1", "--size", "65536", "--wait") as program:
        tracer = start_record(out, "-p", str(program.pid), "--buffer", "64K")
        wait_attached(tracer, program.pid)
        stop(tracer)
        program.go()
        made = program.last()["callocs"]
        tracer.send_signal(signal.SIGCONT)
        result = finish(tracer)
    assert result.status == 4, result
    recording = load(out, result)
    losses = recording.report["losses"]
    assert losses["ring_process"] >= 1
    assert recording.query("SELECT SUM(calls) FROM call WHERE call = 'calloc'") == [(made,)]
    # It may be that none was.
    ((told,),) = recording.query("SELECT COALESCE(SUM(made) + SUM(freed), 0) FROM block WHERE call = 'calloc'")
    assert told + losses["ring_block"] + losses["frees_unmatched"] == 2 * made
    assert recording.query(f"SELECT end_ns > 0, exit_code FROM process WHERE pid = {program.pid}") == [(1, None)]
    # The calibration's own, which the small buffer did not hold, are not the program's.
    assert losses["ring_faults"] <= program.lines[-1]["minflt"]


def test_command_is_not_counted_after_the_recording(out: Path) -> None:
    """It runs on while its probes are taken away: for longer than it was recorded, here."""
    recording = record(out, "-d", "300ms", command=[workload("calloc_loop"), str(10 * MIB), "1000003"])
    assert recording.dominant == "zeroing"
    assert recording.report["checks"]["minor_faults"]["ok"], recording.report["checks"]


def test_a_command_that_starts_others_as_it_ends(out: Path) -> None:
    """The recording is over, its probes are gone, and ptrace tells of what the command runs to put things in order."""
    script = "trap 'for i in 1 2 3; do /bin/true; sleep 0.1; done; exit 0' TERM; while :; do sleep 0.1; done"
    record(out, "-d", "300ms", command=["sh", "-c", script], exact=False)


def test_killed_command(out: Path) -> None:
    """The traced command is killed; its recording ends well and says how it died."""
    command: list[str | Path] = [workload("calloc_loop"), str(TEN), "0", "--seconds", "100", "--rest", "1000", "--wait"]
    tracer = start_record(out, "--probes", "alloc", "--", *command)
    assert tracer.stdout
    line = tracer.stdout.readline()
    found = re.search(r'"pid": (\d+)', line)
    assert found, line
    os.kill(int(found[1]), signal.SIGKILL)
    recording = ended_well(tracer, out)
    (code,) = recording.query(f"SELECT exit_code FROM process WHERE pid = {found[1]}")[0]
    assert os.waitstatus_to_exitcode(code) == -signal.SIGKILL


def test_no_known_allocator(out: Path, mmap_only: Path) -> None:
    """Faults, mapping, its own mappings as allocations, and a sentence that says why there are no others."""
    rounds, pages = 53, 2003
    recording = record(out, command=[mmap_only, str(rounds), str(pages)])
    assert "allocator" in recording.result.stderr + memtoll("report", "--full", out).stdout
    assert recording.toll("zero.kernel", "pages") == pytest.approx(rounds * pages, abs=60)
    assert recording.toll("map", "count") >= 2 * rounds
    (mapped,) = recording.report["allocations"]
    assert (mapped["call"], mapped["calls"], mapped["bytes"]) == ("mmap", rounds, rounds * pages * PAGE)
    assert (mapped["freed"], mapped["live_bytes"]) == (rounds, 0)
    # 106,159 first touches with a store each, and nothing between them.
    assert recording.dominant == "zeroing"
    text = str(recording.report["sites"][0]["touched_at"])
    assert "touch_pages" in text


def test_probes_come_and_go_and_others_are_left_alone(out: Path) -> None:
    """A neighbour with the same libc sees no breakpoint while another process is traced, and that one none after it.

    The witness for 'no probe left' does see a probe that is there.
    """
    churn: list[str | Path] = [workload("churn"), "0", "--seconds", "60", "--rest", "1000"]
    # It comes before others as long as it takes little: wait_attached waits for that. When it steps back:
    # test_priority.c, test_session_loop.c.
    assert os.getpriority(os.PRIO_PROCESS, 0) > -10
    with Program(*churn) as target, Program(*churn) as neighbour:
        assert changed_text(target.pid) == []
        tracer = start_record(out, "--probes", "alloc", "-p", str(target.pid))
        wait_attached(tracer, target.pid)
        assert changed_text(neighbour.pid) == []
        tracer.send_signal(signal.SIGTERM)
        assert ended_well(tracer, out).site("churn.c", "malloc", "malloc").calls > 0
        assert integrity(out) == "ok"
        assert changed_text(target.pid) == []
        assert uprobe_pages(target.pid) <= 1
        target.beats()
