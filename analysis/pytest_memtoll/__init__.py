# SPDX-License-Identifier: GPL-2.0
"""Tests that fail when they cost more memory work than they may.

    @pytest.mark.memtoll(zero_bytes="10MiB", faults=4000)
    def test_load():
        load()

The test runs while `memtoll record -p` follows the process that pytest is, and counts from the moment in which it is
called until it returns: its fixtures are not in it, other threads and children of the process are. It fails where a
bound is exceeded, with the sites; it is an error, "undecided", where something was lost that may have been more; and
it is skipped where this user or this kernel cannot trace.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from .bounds import BadBound, Bound, parsed

MARK: Final = "memtoll"
DOC: Final = (
    'memtoll(zero_bytes="10MiB", faults=1000, ...): fail where the test costs more. Bounds: faults, and zero, '
    "zero_kernel, zero_libc, swap_in, cow, file_fault, file_read, alloc, map with _bytes or _count after it."
)
# Exit status of memtoll: this kernel or these privileges cannot do it.
CANNOT: Final = 3
# What the helper says when all is attached: tracer.py.
READY: Final = b"ready\n"
# What is said to it when the test is over.
END: Final = b"end\n"
LINE_BYTES: Final = 64
SLICE: Final = "100ms"
UNDECIDED: Final = "memtoll_undecided"


class Undecided(Exception):
    """Neither within its bounds nor beyond them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("memtoll", "tests with bounds on their memory's cost")
    group.addoption(
        "--memtoll",
        metavar="PATH",
        help="the binary that traces (default: $MEMTOLL, or memtoll of $PATH)",
    )
    group.addoption(
        "--memtoll-required", action="store_true", help="where it cannot trace a marked test fails, and is not skipped"
    )
    group.addoption("--memtoll-keep", metavar="DIR", help="keep the recordings of marked tests in this directory")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", DOC)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """When its fixtures are there, which may have marked it."""
    whole = getattr(item.runtest, "func", None) is _traced  # it is run once more
    if item.get_closest_marker(MARK) and not whole:
        # Around the call itself, in whatever way the kind of item makes it.
        item.runtest = functools.partial(_traced, item, item.runtest)  # type: ignore[method-assign]


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    outcome: Any = yield
    if call.excinfo is not None and isinstance(call.excinfo.value, Undecided):
        report = outcome.get_result()
        # Whatever else was expected of the test.
        report.outcome, report.longrepr = "failed", str(call.excinfo.value)
        report.__dict__.pop("wasxfail", None)
        setattr(report, UNDECIDED, True)


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    return ("error", "E", "UNDECIDED") if getattr(report, UNDECIDED, False) else None


def _bounds(item: pytest.Item) -> list[Bound]:
    """Those of the closest mark count where several have one of a name."""
    marked: dict[str, Any] = {}
    for mark in reversed(list(item.iter_markers(MARK))):
        if mark.args:
            raise BadBound(f"{mark.args[0]!r} has no name: zero_bytes='10MiB' has one")
        marked |= mark.kwargs
    if not marked:
        raise BadBound("no bound is given")
    return parsed(marked)


def _traced(item: pytest.Item, runtest: Callable[[], object]) -> None:
    bounds: list[Bound] = []
    failed = ""
    try:
        bounds = _bounds(item)
    except BadBound as error:
        failed = f"memtoll: {error}"
    if not failed:
        with _directory(item) as (recording, kept):
            start_ns, status = _record(item, recording, runtest)
            over, doubt = _judged(recording, bounds, start_ns)
            seen = f"\nrecorded: {recording}" if kept else ""
            if not over and (doubt or status):
                raise Undecided(f"memtoll: undecided: {doubt or _said(recording, status)}{seen}")
            failed = f"memtoll: more than the test may cost\n{over}{seen}" if over else ""
    if failed:
        pytest.fail(failed, pytrace=False)


def _judged(recording: Path, bounds: list[Bound], start_ns: int) -> tuple[str, str]:
    """What is over, and why it cannot be said; each '' where it is not so."""
    try:
        # Of what pandas warns is nothing to the test, whose warnings may be errors.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from .judge import judge

            return judge(recording, bounds, start_ns)
    except Exception as error:  # whatever it is, nothing is known of the test
        return "", f"{type(error).__name__}: {' '.join(str(error).split())}"


@contextmanager
def _directory(item: pytest.Item) -> Iterator[tuple[Path, bool]]:
    """Where a test is recorded, and whether that stays."""
    keep = item.config.getoption("--memtoll-keep")
    if keep:
        # The test may be in another directory by now.
        whole = item.config.invocation_params.dir / keep
        whole.mkdir(parents=True, exist_ok=True)
        name = "".join(c if c.isascii() and (c.isalnum() or c in "-._") else "_" for c in item.nodeid)[-150:]
        place = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=whole))
        yield place / "test.memtoll", True
        return
    place = Path(tempfile.mkdtemp(prefix="memtoll-test-"))
    try:
        yield place / "test.memtoll", False
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _cannot(item: pytest.Item, why: str) -> None:
    if item.config.getoption("--memtoll-required"):
        pytest.fail(f"memtoll: {why}", pytrace=False)
    pytest.skip(f"memtoll: {why}")


def _binary(item: pytest.Item) -> str:
    given = item.config.getoption("--memtoll") or os.environ.get("MEMTOLL") or "memtoll"
    # As the shell takes it, but from where pytest was started.
    found = shutil.which(str(item.config.invocation_params.dir / given) if os.sep in given else given)
    if not found:
        _cannot(item, f"there is no program {given}")
    return str(found)


def _record(item: pytest.Item, recording: Path, runtest: Callable[[], object]) -> tuple[int, int]:
    """Run the test while it is recorded: when it began, and the tracer's exit status."""
    command = [_binary(item), "record", "-p", str(os.getpid()), "--overhead-limit", "none", "--slice", SLICE]
    helper = [sys.executable, "-I", "-S", str(Path(__file__).with_name("tracer.py")), str(recording), _log(recording)]
    # Without buffers and decoders: from here to the test's end nothing is allocated for them.
    tracer = subprocess.Popen(
        [*helper, *command, "-o", str(recording)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )  # fmt: skip
    assert tracer.stdin and tracer.stdout
    said = tracer.stdout.fileno()
    try:
        first = os.read(said, LINE_BYTES)
        if first != READY:
            _not_started(item, recording, first)
        start_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        runtest()
    finally:
        # Not only closed: a process that the test leaves behind may have it, too.
        with suppress(BrokenPipeError):
            tracer.stdin.write(END)
        tracer.stdin.close()
        last = os.read(said, LINE_BYTES)
        tracer.stdout.close()
        tracer.wait()
    return start_ns, _status(last)


def _status(said: bytes) -> int:
    """The tracer's exit status in the line that ends the helper; -1: there is none."""
    word, _, status = said.decode("ascii", "replace").strip().partition(" ")
    return int(status) if word == "ended" and status.lstrip("-").isdigit() else -1


def _not_started(item: pytest.Item, recording: Path, said: bytes) -> None:
    status = _status(said)
    if status == CANNOT:
        _cannot(item, _said(recording, status))
    raise Undecided(f"memtoll: undecided, the test was not run: {_said(recording, status)}")


def _log(recording: Path) -> str:
    return str(recording.with_suffix(".log"))


def _said(recording: Path, status: int) -> str:
    """The last line of the tracer's."""
    try:
        lines = Path(_log(recording)).read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        lines = []
    text = next((line for line in reversed(lines) if line.strip()), f"memtoll ended with status {status}")
    return "".join(c if c.isprintable() else "?" for c in text.removeprefix("memtoll: "))
