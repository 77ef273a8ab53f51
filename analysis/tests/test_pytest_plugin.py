# SPDX-License-Identifier: GPL-2.0
"""The plugin: what it says of a test's bounds, with tracers that do anything, and of real ones with the real one."""

from __future__ import annotations

import os
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import memtoll
from pytest_memtoll.bounds import FAULTS, SUBJECTS, BadBound, parsed
from pytest_memtoll.judge import judge

import harness
from facts import FAULT_NS, MS, Facts
from hostile import hostile
from package import ANALYSIS
from prepared import Prepared

PAGE = resource.getpagesize()
WORDS = ("-p", "pytest_memtoll", "-p", "no:cacheprovider", "-rA")
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def prepare(work: Path, tests: str) -> dict[str, str]:
    """Tests for pytest, and its environment."""
    if tests:
        (work / "test_it.py").write_text(tests)
    (work / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "MEMTOLL"))}
    return env | {"PYTHONPATH": str(ANALYSIS), "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8"}


def run_alone(work: Path, *words: str, tests: str = "", user: int | None = None) -> subprocess.CompletedProcess[str]:
    """pytest with the plugin, on tests of its own, in an interpreter of its own; as another user."""
    return subprocess.run(
        [sys.executable, "-m", "pytest", *WORDS, *words],
        cwd=work, capture_output=True, text=True, timeout=100, env=prepare(work, tests), check=False, user=user,
        group=user, extra_groups=None if user is None else [],
    )  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """As run_alone, forked from a process that has imported pytest and pandas (prepared.py)."""
    made = Prepared(tmp_path_factory.mktemp("pytest"), "pytest")
    # Others' plugins would be imported anew each time; one test has them.
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}

    def run(work: Path, *words: str, tests: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        return made.run([*WORDS, *words], work, prepare(work, tests) | alone | environment)

    yield run
    made.close()


def outcome(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    """How many passed, failed, ..."""
    last = next(line for line in reversed(done.stdout.splitlines()) if re.search(r" in [\d.]+s", line))
    words = {"error": "errors"}
    return {words.get(word, word): int(count) for count, word in re.findall(r"(\d+) (\w+)", last.split(" in ")[0])}


# ---- bounds


def test_bounds() -> None:
    found = {bound.name: bound for bound in parsed({"zero_bytes": "10MiB", "faults": 7, "swap_in_count": 0})}
    assert (found["zero_bytes"].most, found["zero_bytes"].measure) == (10 << 20, "bytes")
    assert found["zero_bytes"].tolls == ("zero.kernel", "zero.libc")
    assert (found["faults"].most, found["faults"].tolls, found["faults"].measure) == (7, FAULTS, "count")
    assert (found["swap_in_count"].most, found["swap_in_count"].tolls) == (0, ("swap.in",))
    sizes = {"0": 0, "1.5K": 1536, "64 KiB": 65536, "2GiB": 2 << 30, "7B": 7, "1T": 1 << 40}
    assert {text: parsed({"cow_bytes": text})[0].most for text in sizes} == sizes
    assert parsed({"map_bytes": 4097})[0].most == 4097


def test_tolls_are_tolls() -> None:
    assert {toll for tolls in SUBJECTS.values() for toll in tolls} | set(FAULTS) <= set(memtoll.frames.TOLLS)


@pytest.mark.parametrize(
    "marked",
    [
        {"zero": 1}, {"zeros_bytes": 1}, {"zero_time": 1}, {"compute_count": 1}, {"_bytes": 1},
        {"zero_bytes": "10 apples"}, {"zero_bytes": "10MB"}, {"zero_bytes": ""}, {"zero_bytes": -1},
        {"zero_bytes": 1.5}, {"zero_bytes": None}, {"zero_bytes": True}, {"zero_bytes": "\u0661K"},
        {"faults": "10"}, {"faults": -1}, {"faults": True}, {"alloc_count": 1.0},
    ],
)  # fmt: skip
def test_what_is_no_bound(marked: dict[str, Any]) -> None:
    with pytest.raises(BadBound, match=next(iter(marked))):
        parsed(marked)


# ---- what a recording says


def made(path: Path, *, lost: str = "", complete: bool = True, differ: int = 0) -> Path:
    """1009 pages zeroed in each of two slices, by calls of two lines of a file."""
    facts = Facts(path)
    facts.prices()
    facts.process()
    facts.allocator()
    for number in (1, 2):
        facts.slice(number)
        for line, share in ((11, 1000), (29, 9)):
            stack = facts.stack(("malloc", "", 0), (f"load{line}", "/src/load.c", line), ("main", "/src/main.c", 5))
            facts.fault(
                "zero", share, FAULT_NS + 100, slice=number, allocated_stack=stack, allocated_call="malloc",
                touched_stack=stack,
            )  # fmt: skip
            facts.call("malloc", stack, 13, slice=number, bytes=13 * PAGE, cpu_ns=MS)
        facts.cpu(500 * MS, minor=1009 + differ, number=number)
    if lost:
        facts.row("loss_kind", name=lost, meaning="what it is", remedy="what to do")
        facts.row("loss", slice=1, name=lost, count=3)
    facts.meta(format="1", target_command="x", **({"complete": "1"} if complete else {}))
    facts.save()
    facts.database.close()
    return path


def said(path: Path, start_ns: int = 0, **marked: Any) -> tuple[str, str]:
    return judge(path, parsed(marked), start_ns)


@pytest.mark.slow
def test_within_and_over(tmp_path: Path) -> None:
    path = made(tmp_path / "x.memtoll")
    bytes_ = 2018 * PAGE
    assert said(path, zero_bytes=bytes_, faults=2018, alloc_count=52, cow_count=0) == ("", "")
    over, doubt = said(path, zero_bytes=bytes_ - 1, faults=2018)
    assert doubt == ""
    first, *sites = over.splitlines()
    assert first.startswith(f"zero: {bytes_:,} bytes (7.88 MiB), at most {bytes_ - 1:,} bytes")
    assert f"(zero_bytes={bytes_ - 1})" in first
    assert sites == [
        f"  {2000 * PAGE:,} bytes (7.81 MiB), 2,000 x zero.kernel by malloc at load11 (/src/load.c:11)",
        f"  {18 * PAGE:,} bytes (72.0 KiB), 18 x zero.kernel by malloc at load29 (/src/load.c:29)",
    ]
    over, _ = said(path, faults=2017, alloc_count=51)
    assert [line for line in over.splitlines() if not line.startswith("  ")] == [
        "faults: 2,018, at most 2,017 (faults=2017)",
        "alloc: 52, at most 51 (alloc_count=51)",
    ]


@pytest.mark.slow
def test_what_was_before_the_test_is_not_of_it(tmp_path: Path) -> None:
    path = made(tmp_path / "x.memtoll")
    with memtoll.open(path) as rec:
        end_ns = int(rec.timeline["end_ns"].min())
    assert said(path, end_ns, faults=1009) == ("", "")
    assert "faults: 1,009, at most 1,008" in said(path, end_ns, faults=1008)[0]


@pytest.mark.parametrize(
    ("lost", "bounds", "decided"),
    [
        ("ring_faults", {"faults": 9999}, False),
        ("ring_faults", {"zero_bytes": "1GiB"}, False),
        ("ring_faults", {"map_count": 9}, True),
        ("calls_full", {"alloc_count": 9999}, False),
        ("calls_full", {"zero_libc_bytes": "1GiB"}, False),
        ("calls_full", {"cow_count": 9}, True),
        ("maps_full", {"map_count": 9}, False),
        ("thread_state", {"map_count": 9}, False),
        ("something_new", {"cow_count": 9}, False),
        ("stacks_full", {"faults": 9999}, True),
        ("unwind_row", {"faults": 9999}, True),
        ("python_walk", {"faults": 9999}, True),
        ("ring_sample", {"faults": 9999}, True),
        ("runs_unstored", {"faults": 9999}, True),
    ],
)
def test_losses_are_never_green(tmp_path: Path, lost: str, bounds: dict[str, Any], decided: bool) -> None:
    """Those of the same counts; names and stacks are no counts."""
    over, doubt = said(made(tmp_path / "x.memtoll", lost=lost), **bounds)
    assert over == ""
    assert doubt == ("" if decided else f"3 {lost} were lost (what it is; what to do)")


def test_over_is_over_with_losses(tmp_path: Path) -> None:
    assert "faults: 2,018, at most 9" in said(made(tmp_path / "x.memtoll", lost="ring_faults"), faults=9)[0]


@pytest.mark.slow
def test_other_doubts(tmp_path: Path) -> None:
    assert said(made(tmp_path / "a", complete=False), cow_count=9) == ("", "the recording was not finished")
    assert said(made(tmp_path / "b", differ=500), faults=9999) == (
        "",
        "minor_faults do not agree with the kernel's count",
    )
    assert said(made(tmp_path / "b2", differ=500), map_count=9) == ("", "")
    hostile(tmp_path / "c")
    _, doubt = said(tmp_path / "c", cow_count=0)
    assert "cow was not captured: " in doubt and doubt.isprintable()


def test_text_of_others_is_data(tmp_path: Path) -> None:
    hostile(tmp_path / "x")
    over, _ = said(tmp_path / "x", faults=0)
    assert len(over.splitlines()) == 4
    assert all(line.isprintable() for line in over.splitlines())


# ---- with tracers that do anything


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    """A tracer that writes a recording made before, or says something, and ends with a status."""
    directory = tmp_path / "fake"
    directory.mkdir()
    tracer = directory / "memtoll"
    tracer.write_text(
        f"#!{sys.executable} -IS\n"
        "import pathlib, shutil, signal, sys\n"
        "here = pathlib.Path(__file__).parent\n"
        "if (here / 'says').exists():\n"
        "    sys.stderr.write((here / 'says').read_text())\n"
        "if (here / 'made').exists():\n"
        "    out = pathlib.Path(sys.argv[sys.argv.index('-o') + 1])\n"
        "    signal.signal(signal.SIGINT, lambda *_: sys.exit(int((here / 'status').read_text())))\n"
        "    shutil.copy(here / 'made', out.with_suffix('.part'))\n"
        "    out.with_suffix('.part').rename(out)\n"
        "    (here / 'pid').write_text(sys.argv[sys.argv.index('-p') + 1])\n"
        "    while True:\n"
        "        signal.pause()\n"
        "sys.exit(int((here / 'status').read_text()))\n"
    )
    tracer.chmod(0o755)
    (directory / "status").write_text("0")
    return directory


PASSING = "import pytest\n@pytest.mark.memtoll(faults=9)\ndef test_it():\n    print('it ran')\n"


@pytest.mark.slow
def test_the_tracer_follows_pytest(run: Run, tmp_path: Path, fake: Path) -> None:
    made(fake / "made")
    tests = PASSING.replace("print('it ran')", "import os; print('pid', os.getpid())")
    # Others' plugins beside it.
    done = run(tmp_path, "--memtoll", str(fake / "memtoll"), tests=tests, PYTEST_DISABLE_PLUGIN_AUTOLOAD="")
    assert outcome(done) == {"passed": 1}, done.stdout
    assert f"pid {(fake / 'pid').read_text()}\n" in done.stdout


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize("there", [False, True])
@pytest.mark.slow
def test_where_nothing_can_be_traced(run: Run, tmp_path: Path, fake: Path, required: bool, there: bool) -> None:
    """Skipped with the reason, or failed where that is asked for; and it was not run."""
    (fake / "status").write_text("3")
    (fake / "says").write_text("memtoll: first line\nmemtoll: no privileges\x1b[31m: use sudo\n")
    words = ["--memtoll-required"] if required else []
    done = run(tmp_path, "--memtoll", str(fake / ("memtoll" if there else "nothing")), *words, tests=PASSING)
    assert outcome(done) == ({"failed": 1} if required else {"skipped": 1}), done.stdout
    assert done.returncode == (1 if required else 0)
    assert (r"no privileges?[31m: use sudo" if there else "there is no program") in done.stdout
    assert "it ran" not in done.stdout and "\x1b" not in done.stdout


@pytest.mark.parametrize("status", ["1", "2", "-9"])
@pytest.mark.slow
def test_a_tracer_that_fails_at_once(run: Run, tmp_path: Path, fake: Path, status: str) -> None:
    (fake / "status").write_text(status)
    (fake / "says").write_text("memtoll: what is wrong\n")
    done = run(tmp_path, "--memtoll", str(fake / "memtoll"), tests=PASSING)
    assert outcome(done) == {"errors": 1} and done.returncode == 1
    assert "undecided, the test was not run: what is wrong" in done.stdout


@pytest.mark.slow
def test_a_tracer_that_is_no_program(run: Run, tmp_path: Path, fake: Path) -> None:
    (fake / "memtoll").write_bytes(b"\x7fELF of another machine")
    done = run(tmp_path, "--memtoll", str(fake / "memtoll"), tests=PASSING)
    assert outcome(done) == {"errors": 1} and done.returncode == 1
    assert f"the test was not run: {fake}/memtoll: Exec format error" in done.stdout


@pytest.mark.parametrize("case", ["lossy", "loss", "damaged", "incomplete"])
@pytest.mark.slow
def test_undecided_is_an_error(run: Run, tmp_path: Path, fake: Path, case: str) -> None:
    """Even of a test that is expected to fail."""
    made(fake / "made", lost="ring_faults" if case == "loss" else "", complete=case != "incomplete")
    if case == "lossy":
        (fake / "status").write_text("4")
        (fake / "says").write_text("memtoll: losses exceed 1 %\n")
    elif case == "damaged":
        with closing(sqlite3.connect(fake / "made")) as database, database:
            database.execute("UPDATE slice SET end_ns = 'x'")
    tests = PASSING.replace("@pytest.mark.m", "@pytest.mark.xfail\n@pytest.mark.m")
    done = run(tmp_path, "--memtoll", str(fake / "memtoll"), tests=tests)
    assert outcome(done) == {"errors": 1} and done.returncode == 1, done.stdout
    assert "UNDECIDED test_it.py::test_it" in done.stdout
    reason = {"lossy": "losses exceed 1 %", "loss": "3 ring_faults were lost", "damaged": "Error|damaged|Damaged"}
    assert re.search(f"memtoll: undecided: .*(?:{reason.get(case, 'not finished')})", done.stdout), done.stdout


@pytest.mark.slow
def test_a_test_that_fails_by_itself(run: Run, tmp_path: Path, fake: Path) -> None:
    """Says why, as always, and its tracer ends."""
    made(fake / "made")
    tests = (
        "import pytest, unittest\n"
        "@pytest.mark.memtoll(faults=0)\ndef test_plain():\n    assert 1 == 2\n"
        "class TestIt(unittest.TestCase):\n"
        "    @pytest.mark.memtoll(faults=0)\n    def test_case(self):\n        self.assertEqual(3, 4)\n"
        "@pytest.mark.memtoll(faults=0)\ndef test_skipped():\n    pytest.skip('not today')\n"
    )
    done = run(tmp_path, "--memtoll", str(fake / "memtoll"), tests=tests)
    assert outcome(done) == {"failed": 2, "skipped": 1}
    assert "assert 1 == 2" in done.stdout and "3 != 4" in done.stdout and "not today" in done.stdout


@pytest.mark.slow
def test_what_a_mark_says(run: Run, tmp_path: Path, fake: Path) -> None:
    tests = (
        "import pytest\n"
        "@pytest.mark.memtoll\ndef test_nothing():\n    pass\n"
        "@pytest.mark.memtoll(1)\ndef test_nameless():\n    pass\n"
        "@pytest.mark.memtoll(zero='x')\ndef test_unknown():\n    pass\n"
        "def test_unmarked():\n    pass\n"
    )
    done = run(tmp_path, "--memtoll", str(fake / "memtoll"), tests=tests)
    assert outcome(done) == {"failed": 3, "passed": 1}
    for words in ("memtoll: no bound is given", "memtoll: 1 has no name", "memtoll: zero is no bound"):
        assert words in done.stdout
    assert not (fake / "pid").exists()


@pytest.mark.slow
def test_marks_of_class_and_function(run: Run, tmp_path: Path, fake: Path) -> None:
    """The closest one counts, the others' other bounds too."""
    made(fake / "made", lost="maps_full")
    tests = (
        "import pytest\n"
        "@pytest.mark.memtoll(map_count=9, faults='x')\nclass TestIt:\n"
        "    @pytest.mark.memtoll(faults=9)\n    def test_it(self):\n        pass\n"
    )
    done = run(tmp_path, "--memtoll", str(fake / "memtoll"), tests=tests)
    assert outcome(done) == {"errors": 1}
    assert "maps_full" in done.stdout


@pytest.mark.slow
def test_recordings_are_kept_where_asked(run: Run, tmp_path: Path, fake: Path) -> None:
    made(fake / "made")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    keep = tmp_path / "keep"
    binary = str(fake / "memtoll")
    done = run(tmp_path, "--memtoll", binary, "--memtoll-keep", str(keep), tests=PASSING, TMPDIR=str(scratch))
    assert outcome(done) == {"passed": 1}
    (kept,) = keep.glob("test_it.py__test_it-*/test.memtoll")
    assert kept.read_bytes() == (fake / "made").read_bytes()
    assert outcome(run(tmp_path, "--memtoll", binary, TMPDIR=str(scratch))) == {"passed": 1}
    assert not list(scratch.glob("memtoll*"))


@pytest.mark.slow
def test_what_a_test_leaves_behind_keeps_nobody_waiting(tmp_path: Path, fake: Path) -> None:
    """A process that has all that pytest has open; it ends when pytest does."""
    made(fake / "made")
    tests = (
        "import os, pytest\n@pytest.mark.memtoll(faults=9)\ndef test_it():\n"
        "    end, mine = os.pipe()\n    os.set_inheritable(mine, False)\n"
        "    if not os.fork():\n        os.close(mine)\n        os.read(end, 1)\n        os._exit(0)\n"
    )
    assert outcome(run_alone(tmp_path, "--memtoll", str(fake / "memtoll"), tests=tests)) == {"passed": 1}


@pytest.mark.slow
def test_where_the_test_is_by_then(run: Run, tmp_path: Path, fake: Path) -> None:
    """Paths of the command line are of where pytest was started; marks may come of fixtures; warnings may be errors."""
    made(fake / "made", lost="maps_full")
    (tmp_path / "else").mkdir()
    name = "test_" + "\u6d4b" * 60
    tests = (
        "import pytest\n@pytest.fixture\ndef away(monkeypatch, request):\n    monkeypatch.chdir('else')\n"
        "    request.node.add_marker(pytest.mark.memtoll(map_count=9))\n"
        f"def {name}(away):\n    print('it ran')\n"
    )
    done = run(tmp_path, "-W", "error", "--memtoll", "fake/memtoll", "--memtoll-keep", "keep", tests=tests)
    assert outcome(done) == {"errors": 1} and "maps_full" in done.stdout, done.stdout
    assert len(list(tmp_path.glob("keep/*/test.memtoll"))) == 1


@pytest.mark.slow
def test_help_says_how(run: Run, tmp_path: Path) -> None:
    done = run(tmp_path, "--help")
    assert "--memtoll-required" in done.stdout
    done = run(tmp_path, "--markers")
    assert "@pytest.mark.memtoll(zero_bytes=" in done.stdout


# ---- with the real one

REAL = """
import resource

import pytest

BLOCKS = 30


def make_rows():
    return [bytearray(1 << 20) for _ in range(BLOCKS)]


def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


@pytest.fixture
def costly():
    before = [bytearray(1 << 20) for _ in range(50)]
    yield before
    after = [bytearray(1 << 20) for _ in range(50)]
    del after


@pytest.mark.memtoll(faults=0, zero_bytes="10MiB")
def test_over(costly):
    before = faults()
    rows = make_rows()
    print("the kernel counts", faults() - before)


@pytest.mark.memtoll(zero_bytes="40MiB", alloc_bytes="40MiB")
def test_within(costly):
    make_rows()


# Of fixtures of 100 MiB; pytest itself may need a page now and then.
@pytest.mark.memtoll(zero_bytes="64KiB", faults=16, map_count=2, swap_in_count=0)
def test_nothing(costly):
    pass
"""


@pytest.mark.root
def test_real_tests(tmp_path: Path) -> None:
    """The figures of the test alone, by the kernel's own count; the site with function, file and line."""
    done = run_alone(tmp_path, "--memtoll", str(harness.MEMTOLL), tests=REAL)
    assert outcome(done) == {"failed": 1, "passed": 2}, done.stdout + done.stderr
    witness = int(re.search(r"the kernel counts (\d+)", done.stdout)[1])  # type: ignore[index]
    assert witness >= 30 * (1 << 20) // PAGE // 2
    count = re.search(r"^faults: ([\d,]+), at most 0 \(faults=0\)$", done.stdout, re.MULTILINE)
    assert count, done.stdout
    # What print and pytest do around it is of the call, too.
    assert witness <= int(count[1].replace(",", "")) <= witness + 64
    size = re.search(r"^zero: ([\d,]+) bytes \(30\.\d MiB\), at most 10,485,760 bytes", done.stdout, re.MULTILINE)
    assert size, done.stdout
    line = 1 + REAL.splitlines().index("    return [bytearray(1 << 20) for _ in range(BLOCKS)]")
    place = rf"x zero\.kernel by malloc at make_rows\S* \({re.escape(str(tmp_path))}/test_it\.py:{line}\)"
    assert re.search(place, done.stdout), done.stdout


@pytest.mark.root
def test_without_privileges(tmp_path: Path) -> None:
    """The real one's reason."""
    work = Path(tempfile.mkdtemp(prefix="memtoll-plugin-"))
    try:
        work.chmod(0o777)
        binary = shutil.copy(harness.MEMTOLL, work / "memtoll")
        done = run_alone(work, "--memtoll", str(binary), tests=PASSING, user=harness.NOBODY)
        assert outcome(done) == {"skipped": 1}, done.stdout + done.stderr
        assert re.search(r"SKIPPED .*memtoll: .+", done.stdout)
    finally:
        shutil.rmtree(work)


@pytest.mark.root
def test_nothing_is_left_behind(tmp_path: Path) -> None:
    """pytest is killed in the middle of a test: its tracer ends."""
    tests = "import os, pytest, signal\n@pytest.mark.memtoll(faults=9)\ndef test_it():\n    os.kill(os.getpid(), 9)\n"
    keep = tmp_path / "keep"
    done = run_alone(tmp_path, "--memtoll", str(harness.MEMTOLL), "--memtoll-keep", str(keep), tests=tests)
    assert done.returncode == -9
    (path,) = keep.glob("*/test.memtoll")

    def finished() -> bool:
        with memtoll.open(path) as rec:
            return bool(rec.complete)

    harness.wait_until(finished, "the tracer to end")
