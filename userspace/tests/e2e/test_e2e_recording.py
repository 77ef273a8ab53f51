# SPDX-License-Identifier: GPL-2.0
"""The file: how a recording ends, what survives, who owns it, what damage to it does."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import pytest

from harness import (
    MEMTOLL,
    MIB,
    NOBODY,
    PAGE,
    PATIENCE,
    Program,
    Recording,
    assert_refused,
    bpf_objects,
    changed_text,
    end,
    finish,
    hold,
    integrity,
    kernel_objects,
    load,
    memtoll,
    query,
    record,
    report,
    running_loop,
    spawn,
    start_record,
    tool,
    uprobe_pages,
    wait_attached,
    wait_gone,
    wait_slices,
    wait_until,
    workload,
)

pytestmark = pytest.mark.root

TEN = 10 * MIB


# At so many moments, evenly from the start to the end of a recording.
KILLED = 7


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    path = tmp_path_factory.mktemp("small") / "small.memtoll"
    return record(path, command=[workload("calloc_loop"), str(TEN), "53"])


def untouched(program: Program) -> bool:
    return not changed_text(program.pid)


def kill(tracer: subprocess.Popen[str], held: dict[str, set[int]]) -> None:
    for kind, numbers in bpf_objects(tracer.pid).items():
        held[kind] |= numbers
    os.kill(tracer.pid, signal.SIGKILL)


def assert_gone(program: Program, held: dict[str, set[int]]) -> None:
    """A healthy target, and nothing left in the kernel."""
    wait_until(partial(untouched, program), "the breakpoints to go")
    for kind, numbers in held.items():
        wait_gone(kind, numbers)
    program.beats()
    assert uprobe_pages(program.pid) <= 1


def kill_at_work(out: Path, program: Program) -> None:
    """A valid file, and no probe."""
    tracer = start_record(out, "-p", str(program.pid))
    wait_attached(tracer, program.pid)
    wait_slices(out, 2)
    before = bpf_objects(tracer.pid)
    listed = {kind: kernel_objects(kind) for kind in before}
    held = bpf_objects(tracer.pid)
    for kind in before:
        # The link that counts system calls is made and ended with each window: it may be in one list only.
        stayed = before[kind] & held[kind]
        assert stayed, f"the witness sees no {kind}"
        assert stayed <= listed[kind]
        held[kind] |= before[kind]
    kill(tracer, held)
    result = finish(tracer)
    assert result.status == -signal.SIGKILL
    assert_gone(program, held)
    assert integrity(out) == "ok"
    recording = Recording(out, result)
    assert recording.report["complete"] is False
    # Of so little time anything may dominate.
    assert recording.toll("zero.libc", "count") > 0
    assert recording.site("calloc_loop.c", "calloc", "calloc").calls > 10


def test_kill_9_at_any_moment(out: Path) -> None:
    """Of attaching, recording and detaching: a recording or none, and the next one works as the first."""
    with running_loop() as program:
        # At what moment the others are killed is by chance: this one is seen at work.
        kill_at_work(out.with_name("0.memtoll"), program)
        words = ("-d", "100ms", "-p", str(program.pid))
        begun = time.monotonic()
        assert finish(start_record(out, *words)).status == 0
        whole = time.monotonic() - begun
        data = report(out)
        assert data["complete"] is True and data["calls"]["calloc"] > 0
        held: dict[str, set[int]] = {"prog": set(), "link": set()}
        for number in range(1, KILLED + 1):
            path = out.with_name(f"{number}.memtoll")
            tracer = start_record(path, *words)
            with suppress(subprocess.TimeoutExpired):
                tracer.wait(whole * number / KILLED)
            if tracer.poll() is None:
                kill(tracer, held)
            assert finish(tracer).status in (0, -signal.SIGKILL)
            if path.exists():
                # Also where a commit was under way.
                assert memtoll("report", path).status == 0
        assert_gone(program, held)
    names = {file.name.removesuffix("-journal") for file in out.parent.iterdir()}
    assert names <= {out.name, *(f"{number}.memtoll" for number in range(KILLED + 1))}


def test_kill_9_of_a_commands_tracer(out: Path) -> None:
    """The command outlives its tracer: what it is told to do it does when that is gone."""
    tracer = start_record(out, "--", workload("calloc_loop"), str(TEN), "53", "--wait", stdin=subprocess.PIPE)
    wait_slices(out, 1)
    os.kill(tracer.pid, signal.SIGKILL)
    tracer.wait(timeout=60)
    # communicate() ends when the command has closed its end of the pipe too.
    lines = tracer.communicate("\n", timeout=PATIENCE)[0].splitlines()
    end(tracer)
    assert '"loop_cpu_ns"' in lines[-1], "the command did not reach its end"
    assert integrity(out) == "ok"
    assert report(out)["complete"] is False


def test_signals_end_what_is_stuck(tmp_path: Path) -> None:
    """Whatever holds the tracer up: it ends, with all its probes, and says so. Of each signal, side by side."""
    with running_loop() as one, running_loop() as other:
        traced = []
        for program, number in ((one, signal.SIGINT), (other, signal.SIGTERM)):
            path = tmp_path / f"{number.name}.memtoll"
            tracer = start_record(path, "-p", str(program.pid))
            wait_attached(tracer, program.pid)
            wait_slices(path, 2)
            held = bpf_objects(tracer.pid)
            assert hold(tracer.pid)
            tracer.send_signal(number)
            traced.append((path, program, tracer, held))
        for path, program, tracer, held in traced:
            result = finish(tracer)
            assert result.status == 1
            assert "did not get on" in result.stderr
            assert_gone(program, held)
            assert integrity(path) == "ok"
            assert report(path)["complete"] is False


def test_duration_ends_what_is_stuck(out: Path) -> None:
    with running_loop() as program:
        # Where the machine is slow it may be over before it can be held: again, for longer.
        for seconds in (2, 8, 32, 64):
            tracer = start_record(out, "--force", "-d", f"{seconds}s", "-p", str(program.pid))
            wait_slices(out, 1)
            if hold(tracer.pid):
                break
            finish(tracer)
        result = finish(tracer, 2 * seconds + 120)
        assert result.status == 1
        # The latter where it was held a moment before its end.
        assert "did not get on" in result.stderr or "was being written" in result.stderr
        wait_until(lambda: not changed_text(program.pid), "the breakpoints to go")
        program.beats()


def test_signal_ends_recording_of_a_command(out: Path) -> None:
    tracer = start_record(out, "--", workload("calloc_loop"), str(TEN), "0", "--seconds", "600", "--rest", "20000")
    wait_slices(out, 1)
    tracer.send_signal(signal.SIGINT)
    # Whether the command is ended or left alone, the recording ends now, not when it does.
    assert tracer.wait(timeout=PATIENCE) == 0
    end(tracer)
    assert report(out)["complete"] is True


def test_max_size(out: Path) -> None:
    """The command goes on for ever; the recording ends by itself, whole, and never was larger with its journal."""
    limit, largest = 4 * MIB, 0
    loop = f"while :; do {workload('calloc_loop')} {MIB} 7; sleep 0.02; done"
    tracer = start_record(out, "--max-size", "4M", "--probes", "alloc,faults", "--", "sh", "-c", loop)

    def ended() -> bool:
        nonlocal largest
        size = 0
        for path in (out, Path(f"{out}-journal")):
            with suppress(FileNotFoundError):
                size += path.stat().st_size
        largest = max(largest, size)
        return tracer.poll() is not None

    wait_until(ended, "the recording to reach its limit")
    result = finish(tracer)
    assert result.status == 0, result
    assert [line for line in result.stderr.splitlines() if "--max-size" in line and str(out) in line], result
    assert 2 * MIB < largest <= limit
    recording = load(out, result)
    assert recording.complete
    assert integrity(out) == "ok"
    facts = dict(recording.query("SELECT key, value FROM meta"))
    assert facts["end_reason"] == "size limit"
    assert [(int(facts["end_ns"]),)] == recording.query("SELECT max(end_ns) FROM slice")
    # Of the last slice, too, everything is there: the stacks are written last.
    nameless = "SELECT count(*) FROM call WHERE stack_id NOT IN (SELECT stack_id FROM stack) AND stack_id <> 0"
    assert recording.query(nameless) == [(0,)]
    assert "--max-size" in memtoll("report", "--full", out).stdout


def test_readable_while_being_written(out: Path) -> None:
    """By whom the recording belongs to behind sudo as well, should the tracer be killed: the journal is theirs, too."""
    owner, journal = 65533, Path(f"{out}-journal")

    def given() -> bool:
        with suppress(FileNotFoundError):
            return journal.stat().st_uid == owner
        return False

    with running_loop() as program:
        names = {"SUDO_UID": str(owner), "SUDO_GID": str(owner)}
        tracer = start_record(out, "-p", str(program.pid), env=names)
        wait_slices(out, 2)
        first = report(out)
        assert integrity(out) == "ok"
        wait_until(given, "the journal, which is there for some milliseconds of each second", every=0.001)
        wait_slices(out, 3)
        second = report(out)
        assert tracer.poll() is None
        tracer.send_signal(signal.SIGINT)
        result = finish(tracer)
    assert result.status == 0, result
    assert out.stat().st_uid == owner
    assert first["complete"] is False
    assert first["verdict"]["dominant"] == "zeroing"
    assert first["calls"]["calloc"] < second["calls"]["calloc"] <= report(out)["calls"]["calloc"]
    assert integrity(out) == "ok"


def test_header_and_views(small: Recording) -> None:
    assert small.query("PRAGMA application_id") == [(0x6D746F6C,)]
    assert small.query("PRAGMA user_version") == [(1,)]
    views = {name for (name,) in small.query("SELECT name FROM sqlite_master WHERE type = 'view'")}
    assert {"toll", "sites", "verdict", "checks"} <= views
    assert small.query("SELECT value FROM meta WHERE key = 'complete'") == [("1",)]
    assert not list(small.path.parent.glob(small.path.name + "-*")), "a journal was left behind"


def test_mode(small: Recording) -> None:
    assert small.path.stat().st_mode & 0o7777 == 0o600
    assert small.path.stat().st_uid == os.geteuid()


def test_default_name_owner_and_mode(tmp_path: Path) -> None:
    """Without -o the file is in the current directory and standard error says where. It is for the user behind sudo,
    whatever the umask, and for nobody else.
    """
    env = {"SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY)}
    old = os.umask(0)
    try:
        result = memtoll("record", "--probes", "alloc", "--", "true", cwd=tmp_path, env=env)
    finally:
        os.umask(old)
    assert result.status == 0, result
    (path,) = tmp_path.iterdir()
    assert path.suffix == ".memtoll"
    assert path.name in result.stderr
    assert (path.stat().st_uid, path.stat().st_gid) == (NOBODY, NOBODY)
    assert path.stat().st_mode & 0o7777 == 0o600
    assert report(path)["complete"] is True


def ran_marker(tmp_path: Path) -> tuple[Path, list[str]]:
    """A command that shows that it was run."""
    marker = tmp_path / "ran"
    return marker, ["--", "touch", str(marker)]


def test_existing_file_is_kept(out: Path, tmp_path: Path) -> None:
    out.write_text("precious")
    marker, command = ran_marker(tmp_path)
    assert_refused(memtoll("record", "-o", out, *command), 1, out)
    assert out.read_text() == "precious"
    assert not marker.exists(), "the command ran although nothing could be recorded"


def test_force_replaces(out: Path) -> None:
    out.write_text("dispensable")
    recording = record(out, "--force", "--probes", "alloc", command=[workload("calloc_loop"), str(TEN), "11"])
    assert recording.site("calloc_loop.c", "calloc", "calloc").calls == 11
    assert out.stat().st_mode & 0o7777 == 0o600
    assert [path.name for path in out.parent.iterdir()] == [out.name], "something was left beside it"


def test_force_keeps_the_old_file_when_the_recording_fails(out: Path) -> None:
    out.write_text("precious")
    assert_refused(memtoll("record", "--force", "-o", out, "-p", "999999999"), 1, "999999999")
    assert out.read_text() == "precious"
    assert [path.name for path in out.parent.iterdir()] == [out.name]


@pytest.mark.parametrize("force", [False, True], ids=["plain", "force"])
@pytest.mark.parametrize("dangling", [False, True], ids=["to-file", "dangling"])
def test_symlink_is_not_followed(out: Path, tmp_path: Path, force: bool, dangling: bool) -> None:
    aim = tmp_path / "aim"
    if not dangling:
        aim.write_text("precious")
    out.symlink_to(aim)
    marker, command = ran_marker(tmp_path)
    result = memtoll("record", *(["--force"] if force else []), "-o", out, *command)
    assert_refused(result, 1, out)
    assert out.is_symlink()
    assert not marker.exists()
    if dangling:
        assert not aim.exists()
    else:
        assert aim.read_text() == "precious"


@pytest.mark.parametrize(
    "place", ["/nonexistent/a.memtoll", "/sys/a.memtoll", "/proc/version/a.memtoll", "/proc/a.memtoll"]
)
def test_directory_that_cannot_be_written(tmp_path: Path, place: str) -> None:
    marker, command = ran_marker(tmp_path)
    assert_refused(memtoll("record", "-o", place, *command), 1, place)
    assert not marker.exists()


def test_output_is_a_directory(tmp_path: Path) -> None:
    marker, command = ran_marker(tmp_path)
    assert_refused(memtoll("record", "-o", tmp_path, *command), 1, tmp_path)
    assert not marker.exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[tuple[int, Path, Path]]:
    """A file system of 16 MiB that only a mount namespace of ours sees.

    Gives the process that holds the namespace, the directory as it is called in there and its
    name from outside. The mount goes with the last process of the namespace.
    """
    inside = tmp_path / "disk"
    inside.mkdir()
    script = 'mount -t tmpfs -o size=16m,mode=0700 memtoll-test "$1" && echo mounted && read -r line'
    holder = spawn(
        [tool("unshare"), "-m", "--propagation", "private", "sh", "-c", script, "sh", inside], stdin=subprocess.PIPE
    )
    assert holder.stdout
    try:
        assert holder.stdout.readline() == "mounted\n"
        yield holder.pid, inside, Path(f"/proc/{holder.pid}/root{inside}")
    finally:
        end(holder)


def slices_inside(holder: int, path: Path) -> int:
    """SQLite follows /proc/PID/root as a symbolic link, to our own root: it is asked inside."""
    done = subprocess.run(
        [tool("nsenter"), "-m", "-t", str(holder), tool("sqlite3"), "-readonly", path, "SELECT count(*) FROM slice"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return int(done.stdout or 0)


def fill(directory: Path) -> None:
    """Leave no byte."""
    with (directory / "filler").open("wb", buffering=0) as file:
        for size in (MIB, PAGE):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


def test_disk_fills_up(small_disk: tuple[int, Path, Path], tmp_path: Path) -> None:
    holder, inside, outside = small_disk
    with running_loop() as program:
        command: list[str | Path] = [
            tool("nsenter"),
            "-m",
            "-t",
            str(holder),
            MEMTOLL,
            "record",
            "-o",
            inside / "a.memtoll",
        ]
        tracer = spawn([*command, "-p", str(program.pid), "-d", "200s"])
        wait_attached(tracer, program.pid)
        wait_until(lambda: slices_inside(holder, inside / "a.memtoll") >= 2, "2 slices")
        fill(outside)
        result = finish(tracer)
        assert changed_text(program.pid) == []
        program.beats()
    assert_refused(result, 1, "a.memtoll", "space")
    # Nothing lost: every slice up to then is there.
    for name in outside.glob("a.memtoll*"):
        shutil.copy(name, tmp_path / name.name)
    saved = tmp_path / "a.memtoll"
    assert integrity(saved) == "ok"
    assert query(saved, "SELECT count(*) FROM slice")[0][0] >= 2
    data = report(saved)
    assert data["complete"] is False
    assert data["verdict"]["dominant"] == "zeroing"


def test_losses_are_reported(out: Path) -> None:
    """A tracer that is held up loses records: they are counted, shown, and the exit status says so."""
    with Program(workload("churn"), "0", "--seconds", "600", "--size", "70000") as program:
        tracer = start_record(out, "-p", str(program.pid), "--buffer", "1M", "--probes", "alloc")
        wait_attached(tracer, program.pid)
        wait_slices(out, 1)
        os.kill(tracer.pid, signal.SIGSTOP)
        try:
            held = program.calls()
            wait_until(lambda: program.calls() > held + 50_000, "more calls than the buffer holds")
        finally:
            os.kill(tracer.pid, signal.SIGCONT)
        tracer.send_signal(signal.SIGINT)
        result = finish(tracer)
    assert result.status == 4, result
    recording = load(out, result)
    lost = {name: count for name, count in recording.report["losses"].items() if count}
    assert lost
    assert any(name in result.stderr for name in lost), (lost, result.stderr)
    assert recording.complete
    text = memtoll("report", "--full", out)
    assert any(name in text.stdout for name in lost)


def leave_one_file(pid: int) -> None:
    """Lower a process's limit of open files until one number is free; never raise it again."""
    used = {int(entry.name) for entry in Path(f"/proc/{pid}/fd").iterdir()}
    free = [number for number in range(len(used) + 2) if number not in used]
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (min(soft, free[1]), hard))


def test_windows_that_could_not_be_opened_are_counted(out: Path) -> None:
    """An event for each CPU sees faults end: where there is no file left for one it is said."""
    with running_loop() as program:
        tracer = start_record(out, "-p", str(program.pid))
        wait_attached(tracer, program.pid)
        wait_slices(out, 1)

        def told() -> int:
            leave_one_file(tracer.pid)
            rows = query(out, "SELECT COALESCE(SUM(count), 0) FROM loss WHERE name = 'window_shut'")
            return int(rows[0][0])

        wait_until(told, "a window that was not opened", every=0.2)
        hard = resource.prlimit(tracer.pid, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(tracer.pid, resource.RLIMIT_NOFILE, (hard, hard))
        tracer.send_signal(signal.SIGINT)
        result = finish(tracer)
    assert result.status == 0, result
    recording = load(out, result)
    assert recording.report["losses"]["window_shut"] > 0
    assert re.search(r"window_shut [\d,]+ \(moments at which", memtoll("report", "--full", out).stdout)


def cut_points(size: int) -> list[int]:
    return [1, 15, 99, 100, 512, PAGE, PAGE + 1, size // 2, size // 2 // PAGE * PAGE, size - PAGE, size - 1]


def test_truncated_recordings(small: Recording, tmp_path: Path) -> None:
    whole = small.path.read_bytes()
    for size in cut_points(len(whole)):
        path = tmp_path / f"cut.{size}.memtoll"
        path.write_bytes(whole[:size])
        for options in ([], ["--json"]):
            assert_refused(memtoll("report", path, *options), 1, path)
        assert path.read_bytes() == whole[:size], "report changed the file"


def test_damaged_recordings(small: Recording, tmp_path: Path) -> None:
    """Whatever is in the file, report ends by itself, and with one line where it fails."""
    whole = small.path.read_bytes()
    path = tmp_path / "damaged.memtoll"
    for start in range(0, len(whole), max(PAGE, len(whole) // 24)):
        path.write_bytes(whole[:start] + b"\xff" * 64 + whole[start + 64 :])
        result = memtoll("report", path, "--json")
        assert result.status in (0, 1), (start, result)
        if result.status == 1:
            lines = result.stderr.splitlines()
            assert len(lines) == 1, (start, result)
            assert lines[0].startswith("memtoll: "), (start, result)
            assert str(path) in lines[0]


def test_recording_of_a_later_format(small: Recording, tmp_path: Path) -> None:
    path = Path(shutil.copy(small.path, tmp_path / "later.memtoll"))
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 2")
        database.commit()
    assert_refused(memtoll("report", path), 1, path)


def test_recording_without_its_tables(small: Recording, tmp_path: Path) -> None:
    path = Path(shutil.copy(small.path, tmp_path / "bare.memtoll"))
    with closing(sqlite3.connect(path)) as database:
        database.execute("DROP TABLE call")
        database.commit()
    assert_refused(memtoll("report", path), 1, path)


def test_report_text(small: Recording) -> None:
    result = memtoll("report", "--full", small.path)
    assert result.status == 0
    assert result.stderr == ""
    assert small.report["verdict"]["sentence"] in " ".join(result.stdout.split())
    for word in ("zero.libc", "zero.kernel", "clear_block", "calloc_loop.c"):
        assert word in result.stdout
    assert "\x1b[" not in result.stdout, "escape sequences although standard output is no terminal"
    assert max(map(len, result.stdout.splitlines())) <= 200


def test_report_sites_option(small: Recording) -> None:
    one = memtoll("report", small.path, "--sites", "1")
    assert one.status == 0
    assert len(one.stdout) <= len(memtoll("report", small.path, "--sites", "50").stdout)
    assert "clear_block" in one.stdout


def test_report_does_not_change_the_file(small: Recording) -> None:
    before = small.path.read_bytes()
    memtoll("report", small.path)
    memtoll("report", small.path, "--json")
    assert small.path.read_bytes() == before
    assert not list(small.path.parent.glob(small.path.name + "-*"))


def test_report_needs_no_root(small: Recording, public_dir: Path) -> None:
    path = Path(shutil.copy(small.path, public_dir / "a.memtoll"))
    path.chmod(0o444)
    binary = shutil.copy(MEMTOLL, public_dir / "memtoll")
    user = [tool("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    result = finish(spawn([*user, binary, "report", path, "--json"]))
    assert result.status == 0, result


def test_folded(small: Recording) -> None:
    result = memtoll("report", small.path, "--folded", "zero.libc")
    assert result.status == 0, result
    stacks = [line.rpartition(" ") for line in result.stdout.splitlines()]
    assert stacks
    weights = {stack: int(weight) for stack, _, weight in stacks}
    heaviest = max(weights, key=lambda stack: weights[stack])
    assert "main;" in heaviest
    assert "clear_block" in heaviest
    seconds = sum(weights.values()) / 1e6
    assert seconds == pytest.approx(small.toll("zero.libc", "time_s"), rel=0.05)


def test_output_that_cannot_be_written(small: Recording) -> None:
    """A full standard output is a failure, not silence."""
    with Path("/dev/full").open("w") as full:
        result = finish(spawn([MEMTOLL, "report", small.path, "--json"], stdout=full))
    assert result.status == 1, result
    assert result.stderr.startswith("memtoll: ")
