# SPDX-License-Identifier: GPL-2.0
"""Running memtoll and the workloads, and witnesses that know nothing of memtoll."""

from __future__ import annotations

import ctypes
import errno
import functools
import json
import os
import pty
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import leftovers
from shape import check_report

TESTS: Final = Path(__file__).resolve().parent
ROOT: Final = TESTS.parent.parent
SOURCES: Final = TESTS / "workloads"
MEMTOLL: Final = Path(os.environ.get("MEMTOLL", ROOT / ".output" / "memtoll")).absolute()
WORKLOADS: Final = Path(os.environ.get("MEMTOLL_WORKLOADS", MEMTOLL.parent / "workloads")).absolute()

MIB: Final = 1 << 20
PAGE: Final = 4096
NOBODY: Final = 65534

# Seconds: longer, even beside busy neighbours, is a hang.
PATIENCE: Final = 240

# Nothing from the caller's environment may move the allocator's thresholds, or a program's threads.
CLEAN: Final = ("GLIBC_TUNABLES", "LD_PRELOAD", "OPENBLAS_NUM_THREADS", "SUDO_UID", "SUDO_GID")

# Every process a test started, so that the fixture can end what a failed test left.
started: list[subprocess.Popen[str]] = []


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    env = {name: value for name, value in os.environ.items() if name not in CLEAN and not name.startswith("MALLOC_")}
    return env | {"LC_ALL": "C", leftovers.OWNER: leftovers.owner()} | dict(extra or {})


def tool(name: str) -> str:
    """Path of a system tool; sbin is not in every user's PATH."""
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin")
    assert path, f"{name} is not installed"
    return path


def wait_until(condition: Callable[[], Any], what: str, seconds: float = PATIENCE, every: float = 0.02) -> Any:
    """every: what starts a process to ask is asked less often."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"waited {seconds} s in vain: {what}"
        time.sleep(every)


def spawn(command: Sequence[str | Path], env: Mapping[str, str] | None = None, **options: Any) -> subprocess.Popen[str]:
    """Start a process in a session of its own, to be ended with all its children by end()."""
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    process = subprocess.Popen(
        [str(word) for word in command], env=environment(env), text=True, start_new_session=True, **options
    )
    started.append(process)
    return process


def end(process: subprocess.Popen[str]) -> None:
    """Kill the session that spawn() made, by its number, and wait for its leader."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=60)
    tracing.discard(process.pid)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream and not stream.closed:
            stream.close()
    if process in started:
        started.remove(process)


@dataclass
class Result:
    """How a finished memtoll ended."""

    status: int
    stdout: str
    stderr: str

    @property
    def witness(self) -> list[dict[str, Any]]:
        """Lines of JSON a traced workload printed."""
        return [json.loads(line) for line in self.stdout.splitlines() if line.startswith("{")]


def finish(process: subprocess.Popen[str], seconds: float = PATIENCE) -> Result:
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        end(process)
        raise
    status = process.returncode
    end(process)
    return Result(status, out, err)


def memtoll(
    *args: str | Path, env: Mapping[str, str] | None = None, seconds: float = PATIENCE, cwd: Path | None = None
) -> Result:
    return finish(spawn([MEMTOLL, *args], env, cwd=cwd), seconds)


def _on_terminal(stream: str, *args: str | Path, env: Mapping[str, str]) -> tuple[str, Result]:
    """What it prints on one of its streams, a terminal; and the rest."""
    master, slave = pty.openpty()
    with open(slave, "wb") as terminal:
        process = spawn([MEMTOLL, *args], {"TERM": "xterm", **env}, **{stream: terminal})
    printed = b""
    with open(master, "rb", buffering=0) as screen, suppress(OSError):  # EIO: nobody writes any more
        while some := screen.read(65536):
            printed += some
    result = finish(process)
    assert result.status == 0
    return printed.decode(), result


def memtoll_on_terminal(*args: str | Path, env: Mapping[str, str]) -> str:
    """What it prints on standard output where that is a terminal."""
    return _on_terminal("stdout", *args, env=env)[0]


def memtoll_before_terminal(*args: str | Path, env: Mapping[str, str]) -> tuple[str, str]:
    """What it says on standard error where that is a terminal, and standard output, which is short."""
    said, result = _on_terminal("stderr", *args, env=env)
    return said, result.stdout


def assert_refused(result: Result, status: int, *names: str | Path) -> None:
    """The contract for failures: the documented status and one line that names the thing."""
    lines = result.stderr.splitlines()
    assert result.status == status, f"exit status {result.status}, not {status}: {result}"
    assert result.stdout == ""
    assert len(lines) == 1, f"not one line: {result.stderr!r}"
    assert lines[0].startswith("memtoll: "), lines[0]
    for name in names:
        assert str(name).lower() in lines[0].lower(), f"does not name {name}: {lines[0]!r}"


class Program:
    """A running workload, its lines of JSON and their witness; ended when the block is left."""

    def __init__(self, *command: str | Path, env: Mapping[str, str] | None = None) -> None:
        self.lines: list[dict[str, Any]] = []
        self.process = spawn(command, env, stdin=subprocess.PIPE, stderr=None)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        stdout = self.process.stdout
        assert stdout
        try:
            for line in stdout:
                if line.startswith("{"):
                    self.lines.append(json.loads(line))
        except ValueError:  # closed while reading: the test is over
            pass

    def __enter__(self) -> Program:
        try:
            wait_until(lambda: self.lines or self.process.poll() is not None, "the workload's first line")
            if not self.lines:
                self.reader.join(timeout=60)
            assert self.lines, f"the workload ended without a line, with status {self.process.poll()}"
        except BaseException:
            end(self.process)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=60)
        self.reader.join(timeout=60)
        end(self.process)

    @property
    def pid(self) -> int:
        return self.process.pid

    def go(self) -> None:
        """Let a workload go on that waits for a line."""
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def last(self, seconds: float = PATIENCE) -> dict[str, Any]:
        """Wait for a successful end; its last line."""
        assert self.process.wait(timeout=seconds) == 0
        self.reader.join(timeout=60)
        return self.lines[-1]

    def calls(self) -> int:
        """Calls so far, as the pace lines have it."""
        return next((int(line["calls"]) for line in reversed(self.lines) if "calls" in line), 0)

    def beats(self, seconds: float = PATIENCE) -> None:
        """The program is alive and allocates: its count goes up."""
        before = self.calls()
        wait_until(lambda: self.calls() > before, "the program's next pace line", seconds)

    def speed(self, since_ns: int, until_ns: int) -> float:
        """Best calls per CPU second between two times of CLOCK_MONOTONIC: a neighbour only ever slows down."""
        paces = [line for line in self.lines if "pace" in line and since_ns <= line["time_ns"] <= until_ns]
        speeds = sorted(
            (b["calls"] - a["calls"]) * 1e9 / (b["cpu_ns"] - a["cpu_ns"])
            for a, b in zip(paces, paces[1:])
            if b["cpu_ns"] > a["cpu_ns"]
        )
        assert len(speeds) >= 3, f"{len(speeds)} pace lines are too few to tell a speed"
        return float(speeds[-1])


# Its first thread stands still, as in a read that never ends; its others go on. A process of its own, for whoever
# traces gets the exit before a parent does. include/uapi/linux/ptrace.h: SEIZE, INTERRUPT; __WALL.
HOLD = """
import ctypes, os, sys
pid = int(sys.argv[1])
call = ctypes.CDLL(None, use_errno=True).ptrace
call.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
for request in (0x4206, 0x4207):
    if call(request, pid, None, None):
        sys.exit("gone")
print(os.WIFSTOPPED(os.waitpid(pid, 0x40000000)[1]), flush=True)
os.waitpid(pid, 0x40000000)
"""


def ask(program: Program, what: str) -> dict[str, Any]:
    """What a holder says next."""
    before = len(program.lines)
    stdin = program.process.stdin
    assert stdin
    stdin.write(what + "\n")
    stdin.flush()
    wait_until(lambda: len(program.lines) > before, f"the answer to {what}")
    return program.lines[before]


def hold(pid: int) -> bool:
    """False: it has ended before."""
    holder = spawn([sys.executable, "-c", HOLD, str(pid)])
    assert holder.stdout
    return holder.stdout.readline() == "True\n"


def workload(name: str) -> Path:
    path = WORKLOADS / name
    assert path.exists(), f"{path} is not built: run make"
    return path


def site_line(source: str, marker: str) -> int:
    """Number of the line that carries /* SITE marker */."""
    lines = (SOURCES / source).read_text().splitlines()
    found = [number for number, line in enumerate(lines, 1) if f"/* SITE {marker} */" in line]
    assert len(found) == 1, f"{source}: SITE {marker} stands {len(found)} times"
    return found[0]


def own_frame(frames: Iterable[dict[str, Any]]) -> dict[str, Any] | None:
    """The frame nearest to the call that belongs to a workload, and not to an allocator it preloads."""
    files = ((Path(frame["file"]), frame) for frame in frames)
    return next(
        (
            frame
            for file, frame in files
            if file.parent.name in ("workloads", "freestanding") and not file.name.startswith("lib")
        ),
        None,
    )


@dataclass(frozen=True)
class Site:
    """What memtoll says of one call in a workload's source, over all stacks that lead there."""

    calls: int = 0
    bytes: int = 0
    freed: int = 0
    live_bytes: int = 0
    function: str = ""


def file_written(path: Path) -> tuple[int, int]:
    """Another value where the file is another one, or was written to."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns


@dataclass
class Recording:
    path: Path
    result: Result
    witness: list[dict[str, Any]] = field(default_factory=list)
    written: tuple[int, int] = field(init=False)

    def __post_init__(self) -> None:
        self.written = file_written(self.path)

    @functools.cached_property
    def report(self) -> dict[str, Any]:
        """Made, and its shape checked, where something is asked of it: of what has many stacks it is dear."""
        assert file_written(self.path) == self.written, f"{self.path} was written to since"
        return report(self.path)

    @property
    def complete(self) -> bool:
        return self.query("SELECT value FROM meta WHERE key = 'complete'") == [("1",)]

    def site(self, source: str, marker: str, *calls: str) -> Site:
        """Rows of allocations made by these functions at that marked line; exactly there."""
        line = site_line(source, marker)
        total = Site()
        for row in self.report["allocations"]:
            frame = own_frame(row["allocated_at"])
            if row["call"] not in calls or not frame:
                continue
            if Path(frame["file"]).name != source or frame["line"] != line:
                continue
            total = Site(
                total.calls + row["calls"],
                total.bytes + row["bytes"],
                total.freed + (row["freed"] or 0),
                total.live_bytes + (row["live_bytes"] or 0),
                frame["function"],
            )
        return total

    def toll(self, name: str, figure: str) -> Any:
        value = self.report["toll"][name][figure]
        return 0 if value is None else value

    @property
    def dominant(self) -> str:
        return str(self.report["verdict"]["dominant"])

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        return query(self.path, sql)


# The connections of query(): the first of them is the first to go.
connected: dict[tuple[Path, int], sqlite3.Connection] = {}
CONNECTED_MOST: Final = 4


def query(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """The connection stays for what is asked next: to read all of a recording's views takes longer than any answer."""
    file = path, path.stat().st_ino
    if file not in connected:
        while len(connected) >= CONNECTED_MOST:
            connected.pop(next(iter(connected))).close()
        connected[file] = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=60)
    return connected[file].execute(sql).fetchall()


def lost(path: Path, name: str) -> int:
    """A loss that this version knows: of a name that is none nothing would ever be lost."""
    ((known, total),) = query(
        path,
        f"SELECT (SELECT COUNT(*) FROM loss_kind WHERE name = '{name}'),"
        f" (SELECT TOTAL(count) FROM loss WHERE name = '{name}')",
    )
    assert known, f"no loss is called {name}"
    return int(total)


def integrity(path: Path) -> str:
    """What the sqlite3 shell, not our library, thinks of the file; a writer's commit is waited for.

    A writer that was ended in a commit leaves a journal, which is rolled back in a copy.
    """

    def check(*words: str | Path) -> str:
        done = subprocess.run(
            [tool("sqlite3"), "-cmd", ".timeout 60000", *words, "PRAGMA integrity_check"],
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        return (done.stdout + done.stderr).strip()

    said = check("-readonly", path)
    journal = path.with_name(f"{path.name}-journal")
    if "readonly database" not in said or not journal.exists():
        return said
    with tempfile.TemporaryDirectory() as copies:
        for file in (path, journal):
            shutil.copy(file, copies)
        return check(Path(copies) / path.name)


def report(path: Path) -> dict[str, Any]:
    result = memtoll("report", path, "--json")
    assert result.status == 0, result
    data = json.loads(result.stdout)
    assert isinstance(data, dict)
    check_report(data)
    return data


def load(path: Path, result: Result) -> Recording:
    return Recording(path, result, result.witness)


def record(
    path: Path,
    *args: str,
    command: Sequence[str | Path] = (),
    env: Mapping[str, str] | None = None,
    exact: bool = True,
    status: int = 0,
) -> Recording:
    """memtoll record. exact: no overhead limit, so counts must be exact.

    env is given to the command by env(1), not to memtoll, whose own allocator it must not touch.
    """
    words: list[str | Path] = ["record", "-o", path, *args]
    if exact:
        words += ["--overhead-limit", "none"]
    if command:
        words.append("--")
        if env:
            words += ["env", *(f"{name}={value}" for name, value in env.items())]
        words += command
    result = memtoll(*words)
    assert result.status == status, result
    recording = load(path, result)
    assert recording.complete
    assert recording.query("PRAGMA integrity_check") == [("ok",)]
    return recording


def record_several(
    path: Path, commands: Mapping[str, Sequence[object]], *args: str
) -> tuple[Recording, dict[str, dict[str, Any]]]:
    """Workloads one after the other in one recording, whose start is most of what a short one takes; and by name what
    each said, which has its pid.
    """
    lines = [shlex.join([str(workload(str(words[0]))), *map(str, words[1:])]) for words in commands.values()]
    recording = record(path, *args, command=["sh", "-c", " && ".join(lines)])
    assert len(recording.witness) == len(commands), recording.witness
    return recording, dict(zip(commands, recording.witness))


def start_record(path: Path, *args: str | Path, **options: Any) -> subprocess.Popen[str]:
    """memtoll record, in the background; without overhead limit unless one is named."""
    limit = () if "--overhead-limit" in args else ("--overhead-limit", "none")
    return spawn([MEMTOLL, "record", "-o", path, *limit, *args], **options)


# Witnesses for "nothing left behind".


def changed_text(pid: int, module: str = "libc.so.6") -> list[int]:
    """File offsets at which a mapped library's code differs from its file: where breakpoints are."""
    changed: list[int] = []
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            words = line.split(maxsplit=5)
            if len(words) < 6 or "x" not in words[1] or Path(words[5].strip()).name != module:
                continue
            first, last = (int(part, 16) for part in words[0].split("-"))
            offset = int(words[2], 16)
            memory.seek(first)
            live = memory.read(last - first)
            with open(f"/proc/{pid}/map_files/{first:x}-{last:x}", "rb") as file:
                file.seek(offset)
                stored = file.read(last - first)
            # Most pages are alike: byte by byte only where one is not.
            for page in range(0, min(len(live), len(stored)), PAGE):
                ours, theirs = live[page : page + PAGE], stored[page : page + PAGE]
                if ours != theirs:
                    changed += [offset + page + i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b]
    return changed


def uprobe_pages(pid: int) -> int:
    """Pages the kernel added to a process for its uprobes."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    total = 0
    for line in maps.splitlines():
        if line.endswith("[uprobes]"):
            first, last = (int(part, 16) for part in line.split()[0].split("-"))
            total += (last - first) // PAGE
    return total


def bpf_objects(pid: int) -> dict[str, set[int]]:
    """Programs and links a process holds, by the kernel's numbers, from its descriptors."""
    held: dict[str, set[int]] = {"prog": set(), "link": set()}
    for info in Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            text = info.read_text()
        except OSError:
            continue
        link = re.search(r"^link_id:\s*(\d+)", text, re.M)
        prog = re.search(r"^prog_id:\s*(\d+)", text, re.M)
        if link:
            held["link"].add(int(link[1]))
        if prog:
            held["prog"].add(int(prog[1]))
    return held


def are_gone(kind: str, numbers: set[int]) -> bool:
    return not numbers & kernel_objects(kind)


def wait_gone(kind: str, numbers: set[int]) -> None:
    wait_until(functools.partial(are_gone, kind, numbers), f"the {kind}s {numbers} to go")


def bpf_maps(pid: int) -> dict[str, int]:
    """Numbers of the maps that a process holds, by the kernel's names for them."""
    held: set[int] = set()
    for info in Path(f"/proc/{pid}/fdinfo").iterdir():
        # Closed meanwhile, or a map that has gone since: not one that is asked for, which stays.
        with suppress(OSError):
            held |= {int(number) for number in re.findall(r"^map_id:\s*(\d+)", info.read_text(), re.M)}
    done = subprocess.run([bpftool(), "-j", "map", "show"], capture_output=True, text=True, timeout=60, check=False)
    # One that went while the list was made ends it.
    assert done.returncode == 0 or done.stdout.startswith("["), done
    return {row["name"]: row["id"] for row in json.loads(done.stdout) if row["id"] in held and "name" in row}


def map_dump(number: int) -> list[dict[str, Any]]:
    done = subprocess.run(
        [bpftool(), "-j", "map", "dump", "id", str(number)], capture_output=True, text=True, timeout=60, check=True
    )
    entries = json.loads(done.stdout)
    assert isinstance(entries, list)
    return entries


def map_entries(pid: int, name: str) -> list[dict[str, Any]]:
    """What is in a map that a process holds, by its type information; of several of that name, of all."""
    held: set[int] = set()
    for info in Path(f"/proc/{pid}/fdinfo").iterdir():
        # Closed meanwhile, or a map that has gone since: not the one that is asked for, which stays.
        with suppress(OSError):
            held |= {int(number) for number in re.findall(r"^map_id:\s*(\d+)", info.read_text(), re.M)}

    def asked(*words: str) -> Any:
        done = subprocess.run([bpftool(), "-j", "map", *words], capture_output=True, text=True, timeout=60, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else {}

    named = [number for number in sorted(held) if asked("show", "id", str(number)).get("name") == name]
    assert named, f"no map {name}"
    return [entry for number in named for entry in asked("dump", "id", str(number))]


def bpf_variable(number: int, name: str) -> Any:
    """Of the map that a section of variables is."""
    (entry,) = map_dump(number)
    (rows,) = entry["formatted"]["value"].values()
    return next(row[name] for row in rows if name in row)


@functools.cache
def bpftool() -> str:
    """The real tool: Ubuntu's /usr/sbin/bpftool refuses kernels it has no package for."""
    candidates = [tool("bpftool"), *map(str, Path("/usr/lib").glob("linux-tools*/*/bpftool"))]
    for path in candidates:
        if subprocess.run([path, "version"], capture_output=True, timeout=30, check=False).returncode == 0:
            return path
    raise AssertionError("bpftool does not run")


# bpf(2): its number by machine, and its commands for the number after one.
BPF_CALL: Final = {"x86_64": 321, "aarch64": 280}
NEXT_ID: Final = {"prog": 11, "link": 31}


def kernel_objects(kind: str) -> set[int]:
    """Numbers of all programs or links the kernel has now.

    Asked of the kernel, as bpftool would, but for the numbers alone: bpftool opens each, and ends its list at one that
    is just being made (EAGAIN), which then lacks whatever comes after.
    """
    call = ctypes.CDLL(None, use_errno=True).syscall
    found: set[int] = set()
    attributes = (ctypes.c_uint32 * 3)()
    while call(BPF_CALL[os.uname().machine], NEXT_ID[kind], attributes, ctypes.sizeof(attributes)) == 0:
        attributes[0] = attributes[1]
        found.add(attributes[1])
    assert ctypes.get_errno() == errno.ENOENT, os.strerror(ctypes.get_errno())
    return found


def stop(tracer: subprocess.Popen[str]) -> None:
    tracer.send_signal(signal.SIGSTOP)
    stat = Path(f"/proc/{tracer.pid}/stat")
    wait_until(lambda: stat.read_text().rsplit(")", 1)[1].split()[0] == "T", "the tracer to stop")


CAP_SYS_NICE: Final = 23
FIRST: Final = -10  # PRIORITY_NICE in host/priority.h

# Tracers that have been seen to come first: later they may step back.
tracing: set[int] = set()


def traces(tracer: subprocess.Popen[str]) -> bool:
    """All that it attaches is attached: only then does it come before others on the CPU, where it may."""
    if tracer.pid not in tracing:
        try:
            status = Path(f"/proc/{tracer.pid}/status").read_text()
            nice = os.getpriority(os.PRIO_PROCESS, tracer.pid)
        except OSError:  # it has ended
            return False
        allowed = int(status.partition("CapEff:")[2].split()[0], 16) >> CAP_SYS_NICE & 1
        if not allowed or nice <= FIRST:
            tracing.add(tracer.pid)
    return tracer.pid in tracing


def running_loop() -> Program:
    """10 MiB, calloc and free, again and again, for longer than any test; it rests 20 ms each time."""
    return Program(workload("calloc_loop"), str(10 * MIB), "0", "--seconds", "600", "--rest", "20000")


def wait_attached(tracer: subprocess.Popen[str], pid: int) -> None:
    """Until breakpoints stand in the target's libc, and whatever else the tracer attaches is attached, too."""

    def ready() -> bool:
        assert tracer.poll() is None, f"memtoll ended too early: {finish(tracer)}"
        return traces(tracer) and bool(changed_text(pid))  # the latter compares all of the code: last

    wait_until(ready, "breakpoints in the target")


def wait_slices(path: Path, count: int, seconds: float = PATIENCE) -> None:
    """Until that many slices are in a recording that is being written."""

    def there() -> bool:
        try:
            return bool(query(path, "SELECT count(*) FROM slice")[0][0] >= count)
        except (OSError, sqlite3.Error):
            return False

    wait_until(there, f"{count} slices in {path}", seconds)


def wait_more_slices(path: Path, more: int) -> None:
    """Until so many have been added: what had happened by now is in them."""
    wait_slices(path, int(query(path, "SELECT count(*) FROM slice")[0][0]) + more)
