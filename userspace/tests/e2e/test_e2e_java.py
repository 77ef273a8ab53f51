# SPDX-License-Identifier: GPL-2.0
"""Java virtual machines that run already: asked for the names of their code, and let alone where that could harm."""

from __future__ import annotations

import json
import resource
import signal
import sqlite3
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

import interpreted
import jvm
from harness import (
    MIB,
    PATIENCE,
    SOURCES,
    Program,
    Recording,
    end,
    environment,
    lost,
    memtoll,
    query,
    record,
    start_record,
    tool,
    wait_slices,
    wait_until,
)
from releases import others

pytestmark = pytest.mark.root

KIB = 1024
FEW = 0.05
WHOLE = 0.95
# Rounds after which HotSpot has compiled what makes them: by far more than its thresholds, of some 15,000 calls.
COMPILED = 500_000
COMPILED_AT_ONCE = 5_000
# The collector's threads wait for one another without sleeping: where one has no CPU, for longer than the program runs.
ALONE = ("-Xmx256m", "-XX:ParallelGCThreads=1", "-XX:ConcGCThreads=1")
SHORT = "300ms"  # of what nothing is measured
SOMEBODY = 61681  # no user of any system
# Compiled, answer() is part of main() in some of the code: its name is that of the whole.
CASES = {"nested", "deep", "lambda", "constructor", "not ASCII", "default of an interface", "of types", "far"}
OWN = {"Clears.answer(int)", "Clears.main(java.lang.String[])"}


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("java")
    return jvm.build([SOURCES / f"{name}.java" for name in ("Breathes", "Chains", "Clears", "Keeps")], place)


def nameless(recording: Recording) -> float:
    """Of the samples in code that it made, the part in whose stacks some has no name: what it makes, and frees, beside
    its last map. Of stacks it would be more: of what runs five times a second each fault has one of its own.
    """
    ((part, samples),) = recording.query(
        "SELECT SUM(CASE WHEN nameless THEN samples ELSE 0 END), SUM(samples) FROM sample JOIN"
        " (SELECT stack_id, MAX(function = '') AS nameless FROM stack_frame JOIN frame USING (frame_id)"
        " WHERE kind = 'jit' GROUP BY stack_id) USING (stack_id)"
    )
    return float(part / samples)


def left_in(tmp: Path, pid: int) -> set[str]:
    names = {f"perf-{pid}.map", f".attach_pid{pid}"}
    return {path.name for path in tmp.iterdir() if path.name in names}


def goes_on(program: Program) -> None:
    """It was not harmed: it counts on, and ends by itself, with status 0, when it is asked to."""
    before = len(program.lines)
    wait_until(lambda: len(program.lines) > before + 1, "two more lines of the JVM")
    assert program.lines[-1]["rounds"] > program.lines[before - 1]["rounds"]
    program.go()
    program.last()


def test_code_that_it_made_has_names(out: Path, classes: Path) -> None:
    """As it was started by somebody who thought of no tracer: without frame pointers, and with its second compiler."""
    with jvm.started(classes, "Clears", str(MIB), options=(*ALONE, *jvm.AT_ONCE)) as program:
        jvm.compiled(program, COMPILED_AT_ONCE)
        recording = record(out, "--jvm-perfmap", "-d", "2s", "-p", str(program.pid), exact=False)
        assert "jvm-perfmap" not in recording.result.stderr
        assert not left_in(Path("/tmp"), program.pid)
        goes_on(program)
    assert recording.dominant == "zeroing", recording.report["verdict"]
    sentence = recording.report["verdict"]["sentence"]
    assert any(function in sentence for function in OWN), sentence
    top = max((site for site in recording.report["sites"] if site["toll"] == "zero.app"), key=lambda s: s["time_s"])
    called = [frame["function"] for frame in top["touched_at"]]
    assert "OptoRuntime::new_array_C" in " ".join(called) and OWN & set(called), called
    assert called[-1] in ("clone", "clone3", "start_thread"), called
    assert nameless(recording) < FEW


def of_chains(chain: interpreted.Chain) -> interpreted.Chain:
    """As a Throwable says it: without parameters, others' methods, and objects of lambdas."""
    named = [(function.split("(")[0], line) for function, line in chain]
    return tuple(frame for frame in named if frame[0].startswith("Chains") and "/0x" not in frame[0])


@pytest.mark.parametrize(
    ("release", "options"),
    [("", ("-Xint",)), ("", ()), *others((release, ("-Xint",)) for release in jvm.RELEASES)],
    ids=str,
)
def test_every_chain_is_the_interpreters(out: Path, classes: Path, release: str, options: tuple[str, ...]) -> None:
    """Unasked, by what HotSpot has for debuggers; the witness is Java's own trace."""
    # What is not interpreted has not run often enough to be compiled.
    command = (jvm.of(release), *options, "-Xmx256m", "-Dstdout.encoding=UTF-8", "-Dfile.encoding=UTF-8")
    traced = ("--overhead-limit", "none", "--probes", "alloc")
    recording = interpreted.traced(out, *command, "-cp", classes, "Chains", options=traced, stays=True)
    witness = [line for line in recording.witness if "case" in line]
    assert {line["case"] for line in witness} == CASES
    found: dict[interpreted.Chain, int] = defaultdict(int)
    for chain, size in interpreted.allocated(recording, "java", witness[0]["bytes"]).items():
        found[of_chains(chain)] += size
    for case in witness:
        chain = tuple((function, line) for function, line in case["chain"])
        if case["case"] == "deep":
            # Those named are the innermost of Java's, a few of its own library among them.
            named = max(len(kept) for kept in found if kept == chain[: len(kept)])
            assert interpreted.DEPTH - 10 < named < interpreted.DEPTH < len(chain), (named, chain)
            chain = chain[:named]
        assert found.pop(chain, 0) == case["count"] * case["bytes"], (case, found)
    assert not [chain for chain in found if chain], found
    assert interpreted.woven(recording)
    assert lost(out, "python_unreadable") == 0, recording.report["losses"]
    files = {file for (file,) in recording.query("SELECT file FROM frame WHERE function LIKE 'Chains.%'")}
    assert files == {"Chains.java"}
    functions = {function for (function,) in recording.query("SELECT function FROM frame WHERE kind = 'java'")}
    assert {"Chains$Shape.draw(int[][], java.lang.String)", "Chains.main(java.lang.String[])"} <= functions


@pytest.mark.parametrize("release", others(jvm.RELEASES))
def test_clearing_of_newer_releases(out: Path, classes: Path, release: str) -> None:
    """As above, of what has another code cache, another compiler and another collector."""
    with jvm.started(classes, "Clears", str(MIB), options=(*ALONE, *jvm.AT_ONCE), release=release) as program:
        jvm.compiled(program, COMPILED_AT_ONCE)
        recording = record(out, "--jvm-perfmap", "-d", "2s", "-p", str(program.pid), exact=False)
        assert "jvm-perfmap" not in recording.result.stderr
        goes_on(program)
    verdict = recording.report["verdict"]
    assert recording.dominant == "zeroing", verdict
    assert any(function in verdict["sentence"] for function in OWN), verdict
    assert any("In Java" in row["text"] for row in verdict["advice"]), verdict
    assert nameless(recording) < FEW


@pytest.mark.parametrize("release", ["", *others([max(jvm.RELEASES)])])
def test_clearing_outside_of_the_heap(out: Path, classes: Path, release: str) -> None:
    """Memory of malloc's, which the virtual machine clears itself."""
    with jvm.started(classes, "Clears", str(MIB), "direct", options=(*ALONE, *jvm.AT_ONCE), release=release) as program:
        jvm.compiled(program, COMPILED_AT_ONCE)
        recording = record(out, "--jvm-perfmap", "-d", "2s", "-p", str(program.pid), exact=False)
        goes_on(program)
    verdict = recording.report["verdict"]
    assert recording.dominant == "zeroing", verdict
    said = " ".join([verdict["sentence"], *(row["text"] for row in verdict["advice"])])
    assert "Clears.answerDirectly(int)" in said or "Clears.main(java.lang.String[])" in said, verdict
    mallocs = [
        site for site in recording.report["sites"] if site["call"] == "malloc" and site["toll"].startswith("zero")
    ]
    assert mallocs, recording.report["sites"]


@pytest.mark.parametrize("release", ["", *others(["21"])])
def test_array_that_is_kept(out: Path, classes: Path, release: str) -> None:
    with jvm.started(classes, "Keeps", str(MIB), release=release) as program:
        recording = record(out, "--jvm-perfmap", "-d", "1s", "-p", str(program.pid), exact=False)
        goes_on(program)
    assert recording.dominant == "compute", recording.report["verdict"]
    assert [row["code"] for row in recording.report["verdict"]["advice"]] == ["none"]
    assert names(out) & {"Keeps.work(byte[], int)", "Keeps.main(java.lang.String[])"}


@pytest.mark.parametrize("preserved", [False, True])
def test_frame_pointers_make_stacks_whole(out: Path, classes: Path, preserved: bool) -> None:
    """What the report says of stacks that end in code without them, for a JVM that is not asked for its code."""
    options = ("-Xmx256m", *(["-XX:+PreserveFramePointer"] if preserved else []))
    with jvm.started(classes, "Clears", str(16 * KIB), options=options) as program:
        # Compiled by then: what is interpreted has frame pointers.
        jvm.compiled(program, COMPILED)
        recording = record(out, "-d", "2s", "-p", str(program.pid), exact=False)
        goes_on(program)
    said = [note for note in recording.report["notes"] if "end in code made at run time" in note]
    stacks = recording.report["stacks"]
    if preserved:
        assert not said and stacks["whole_share"] >= WHOLE, stacks
        return
    (note,) = said
    assert "-XX:+PreserveFramePointer" in note and "--jvm-perfmap" in note
    share = int(note.removeprefix("stacks of ").split(" %")[0])
    assert share <= 100 * sum(stacks["stopped"].values()) + 1, (note, stacks)


def test_map_that_was_there(out: Path, classes: Path) -> None:
    """It is the JVM's to write, and nobody else's to remove."""
    with jvm.started(classes, "Clears", str(16 * KIB)) as program:
        path = Path(f"/tmp/perf-{program.pid}.map")
        path.write_text("")
        try:
            recording = record(out, "--jvm-perfmap", "-d", SHORT, "-p", str(program.pid), exact=False)
            assert "Clears.main(java.lang.String[])" in path.read_text()
        finally:
            path.unlink()
        assert "jvm-perfmap" not in recording.result.stderr
        goes_on(program)


def test_link_in_place_of_the_map(out: Path, tmp_path: Path, classes: Path) -> None:
    """The JVM would write to what it leads to."""
    victim = tmp_path / "victim"
    victim.write_text("kept")
    with jvm.started(classes, "Clears", str(16 * KIB)) as program:
        link = Path(f"/tmp/perf-{program.pid}.map")
        link.symlink_to(victim)
        try:
            recording = record(out, "--jvm-perfmap", "-d", SHORT, "-p", str(program.pid), exact=False)
        finally:
            link.unlink()
        assert f"process {program.pid} has a socket or a map in its /tmp that is not its own" in recording.result.stderr
        assert not Path(f"/tmp/.java_pid{program.pid}").exists()
        goes_on(program)
    assert victim.read_text() == "kept"


def test_of_another_user_in_its_own_namespaces(out: Path, public_dir: Path) -> None:
    """As in a container: its /tmp, its number, and its root, who is not ours and answers nobody else."""
    tmp = public_dir / "tmp"
    tmp.mkdir()
    tmp.chmod(0o1777)
    jvm.build([SOURCES / "Clears.java"], tmp)
    within = (
        *(tool("setpriv"), f"--reuid={SOMEBODY}", f"--regid={SOMEBODY}", "--clear-groups", tool("unshare")),
        *("--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"),
        *("sh", "-c", 'mount --bind "$0" /tmp && exec "$@"', str(tmp)),
    )
    with jvm.started(Path("/tmp"), "Clears", str(4 * KIB), within=within) as program:
        assert program.lines[0]["pid"] == 1
        (pid,) = Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()
        recording = record(out, "--jvm-perfmap", "-d", "1s", "-p", pid, exact=False)
        assert "jvm-perfmap" not in recording.result.stderr
        assert (tmp / ".java_pid1").is_socket() and not left_in(tmp, 1)
        goes_on(program)
    assert nameless(recording) < FEW
    assert OWN & {row[0] for row in recording.query("SELECT function FROM frame WHERE kind = 'jit'")}


# ---- let alone ----


@contextmanager
def talking(path: Path, *command: str | Path, env: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """All that it says is in a file: a JVM's answer to a signal as well."""
    with path.open("w") as said:
        process = subprocess.Popen(
            [str(word) for word in command],
            env=environment(env),
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
    try:
        wait_until(lambda: "rounds" in path.read_text() or process.poll() is not None, "its first line")
        yield process
    finally:
        end(process)


@pytest.mark.parametrize(
    ("options", "env", "reason"),
    [
        (["-XX:+DisableAttachMechanism"], {}, "was started with -XX:+DisableAttachMechanism"),
        ([], {"JAVA_TOOL_OPTIONS": "-XX:+DisableAttachMechanism"}, "was started with -XX:+DisableAttachMechanism"),
    ],
    ids=["option", "environment"],
)
def test_that_does_not_want_to_be_asked(
    out: Path, tmp_path: Path, classes: Path, options: list[str], env: dict[str, str], reason: str
) -> None:
    said = tmp_path / "said"
    command: list[str | Path] = [tool("java"), *jvm.QUICK, *options, "-cp", classes, "Clears", str(16 * KIB)]
    with talking(said, *command, env=env) as process:
        recording = record(out, "--jvm-perfmap", "-d", SHORT, "-p", str(process.pid), exact=False)
        (line,) = [line for line in recording.result.stderr.splitlines() if "--jvm-perfmap" in line]
        assert f"process {process.pid} {reason}" in line and "no names" in line
        assert not left_in(Path("/tmp"), process.pid) and not Path(f"/tmp/.java_pid{process.pid}").exists()
        before = json.loads([line for line in said.read_text().splitlines() if line.startswith("{")][-1])
        process.communicate("\n", timeout=PATIENCE)
        assert process.returncode == 0
    assert "thread dump" not in said.read_text()
    after = json.loads(said.read_text().splitlines()[-1])
    assert after["rounds"] > before["rounds"]


def test_that_listens_already_gets_no_signal(out: Path, tmp_path: Path, classes: Path) -> None:
    """With -Xrs SIGQUIT would end it: so it listens from its start on."""
    said = tmp_path / "said"
    command: list[str | Path] = [tool("java"), "-Xrs", *jvm.QUICK, "-cp", classes, "Clears", str(16 * KIB)]
    with talking(said, *command, env={}) as process:
        assert Path(f"/tmp/.java_pid{process.pid}").is_socket()
        recording = record(out, "--jvm-perfmap", "-d", "1s", "-p", str(process.pid), exact=False)
        assert "jvm-perfmap" not in recording.result.stderr
        process.communicate("\n", timeout=PATIENCE)
        assert process.returncode == 0
    assert nameless(recording) < FEW


# Executable memory of a file of that name. SIGQUIT ends it, or is counted: by who is no HotSpot.
NO_JVM = """
import json, mmap, signal, sys
with open(sys.argv[1], "rb") as file:
    code = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE)
signals = []
if sys.argv[2] == "catches":
    signal.signal(signal.SIGQUIT, lambda *_: signals.append(1))
print(json.dumps({"ready": 1}), flush=True)
sys.stdin.readline()
print(json.dumps({"signals": len(signals)}), flush=True)
"""


@pytest.mark.parametrize("how", ["dies of SIGQUIT", "catches"])
def test_what_is_no_jvm_gets_no_signal(out: Path, tmp_path: Path, how: str) -> None:
    library = tmp_path / "libjvm.so"
    library.write_bytes(bytes(4096))
    with Program(sys.executable, "-c", NO_JVM, library, how) as program:
        recording = record(out, "--jvm-perfmap", "-d", SHORT, "-p", str(program.pid), exact=False)
        assert f"process {program.pid} neither listens nor handles SIGQUIT" in recording.result.stderr
        assert not left_in(Path("/tmp"), program.pid)
        program.go()
        assert program.last()["signals"] == 0


# The same with a socket, as a JVM has. In a child: who listens is another process than the file says.
LISTENS = """
import json, mmap, os, socket, sys
with open(sys.argv[1], "rb") as file:
    code = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE)
name = f"/tmp/.java_pid{os.getpid()}"
child = os.fork() if sys.argv[2] == "of another process" else 0
if not child:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(name)
    listening.listen()
    print(json.dumps({"ready": 1}), flush=True)
if not child and sys.argv[2] == "without an end":
    connection, _ = listening.accept()
    try:
        while True:
            connection.sendall(bytes(65536))
    except OSError:
        pass
if child:
    os.waitpid(child, 0)
else:
    sys.stdin.readline()
    os.unlink(name)
    print(json.dumps({"end": 1}), flush=True)
"""


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("that does not answer", "did not answer in time"),
        ("without an end", "has no Compiler.perfmap"),
        ("of another process", "a map in its /tmp that is not its own"),
    ],
)
def test_what_listens_like_a_jvm(out: Path, tmp_path: Path, how: str, reason: str) -> None:
    """It is not waited for without end, nor listened to without end; and not asked again."""
    library = tmp_path / "libjvm.so"
    library.write_bytes(bytes(4096))
    with Program(sys.executable, "-c", LISTENS, library, how) as program:
        recording = record(out, "--jvm-perfmap", "-d", SHORT, "-p", str(program.pid), exact=False)
        assert f"process {program.pid} " in recording.result.stderr and reason in recording.result.stderr
        program.go()
        wait_until(lambda: "end" in program.lines[-1], "its end")
    assert not Path(f"/tmp/.java_pid{program.pid}").exists()


def test_stopped_one_gets_no_signal(out: Path, classes: Path) -> None:
    """It would handle it when it goes on, when nobody waits any more."""
    with jvm.started(classes, "Clears", str(16 * KIB)) as program:
        program.process.send_signal(signal.SIGSTOP)
        try:
            wait_until(lambda: "\nState:\tT" in Path(f"/proc/{program.pid}/status").read_text(), "it to stop")
            recording = record(out, "--jvm-perfmap", "-d", SHORT, "-p", str(program.pid), exact=False)
        finally:
            program.process.send_signal(signal.SIGCONT)
        assert f"process {program.pid} is stopped" in recording.result.stderr
        assert not Path(f"/tmp/.java_pid{program.pid}").exists()
        goes_on(program)


def test_nobody_to_ask() -> None:
    result = memtoll("stat", "--jvm-perfmap", "--", "/bin/true")
    assert result.status == 0
    assert "--jvm-perfmap: no process that was recorded is a Java virtual machine" in result.stderr


def test_unasked_nobody_is(out: Path, classes: Path) -> None:
    """Without the option the report says that there is one."""
    with jvm.started(classes, "Clears", str(16 * KIB)) as program:
        recording = record(out, "-d", "1s", "-p", str(program.pid), exact=False)
        assert not Path(f"/tmp/.java_pid{program.pid}").exists() and not left_in(Path("/tmp"), program.pid)
        goes_on(program)
    assert nameless(recording) > 1 - FEW
    assert any("--jvm-perfmap" in note for note in recording.report["notes"]), recording.report["notes"]


def names(path: Path) -> set[str]:
    return {row[0] for row in query(path, "SELECT function FROM frame WHERE kind = 'jit'")}


def test_command_that_is_one(out: Path, classes: Path) -> None:
    """It starts meanwhile, is not ready at first, and has ended before anybody could ask at the end."""
    command: list[str | Path] = [tool("java"), *jvm.QUICK, "-cp", classes, "Clears", str(16 * KIB)]
    tracer = start_record(out, "--jvm-perfmap", "--", *command, stdin=subprocess.PIPE)
    try:
        wait_slices(out, 1)
        wait_until(lambda: OWN & names(out), "names in the recording")
        _, said = tracer.communicate("\n", timeout=PATIENCE)
        assert tracer.returncode == 0 and "jvm-perfmap" not in said, said
    finally:
        end(tracer)
    assert OWN & names(out)


ROUNDS, HELD_MIB, LARGEST_MIB = 7, 192, 448


@pytest.mark.parametrize("release", ["", *others(["21"])])
@pytest.mark.parametrize("least", [16, LARGEST_MIB])
def test_heap_that_is_given_back_is_kept_by_its_least_size(out: Path, classes: Path, least: int, release: str) -> None:
    """What the advice of a storm says of Java: it holds."""
    # On a machine with one processor it would be another collector's.
    heap = ["-XX:+UseG1GC", f"-Xms{least}m", f"-Xmx{LARGEST_MIB}m"]
    command: list[str | Path] = [jvm.of(release), *heap, "-cp", classes, "Breathes", str(ROUNDS), str(HELD_MIB)]
    recording = record(out, command=command, exact=False)
    assert recording.witness[-1]["rounds"] == ROUNDS
    again = sum(row["again_bytes"] for row in recording.report["giveback"])
    filled_again = (ROUNDS - 1) * HELD_MIB * MIB
    if least < HELD_MIB:
        assert again > 0.4 * filled_again
    else:
        assert again < 0.05 * filled_again


def judged(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """What a view says: of tables that report makes of views, as nested they take seconds to be planned."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript(memtoll("report", "--views").stdout)
        return database.execute(sql).fetchall()


def faults(*options: str) -> int:
    """Of a JVM that only starts, by the kernel's count."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
    subprocess.run([tool("java"), *options, "-version"], stderr=subprocess.DEVNULL, timeout=60, check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - before


def test_heap_that_is_touched_in_advance(out: Path) -> None:
    """It is the JVM that does, as it was told to: no first touch of the program's."""
    heap = 512 * MIB
    options = ("-XX:+UseG1GC", f"-Xms{heap}", f"-Xmx{heap}", "-XX:+AlwaysPreTouch")
    recording = record(out, command=[tool("java"), *options, "-version"], exact=False)
    assert recording.dominant == "zeroing", recording.report["verdict"]
    given = {row["code"]: row for row in recording.report["verdict"]["advice"]}
    assert "first-touch" not in given, given
    assert "-XX:+AlwaysPreTouch" in given["pretouched"]["text"]
    ((touched,),) = judged(out, "SELECT pretouched_bytes FROM pretouch_measure")
    assert heap <= touched < 1.2 * heap
    # Huge pages, which the advice speaks of.
    if "[never]" not in Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text():
        assert faults(*options, "-XX:+UseTransparentHugePages") < 0.5 * faults(*options)
