# SPDX-License-Identifier: GPL-2.0
"""Rules of every test, here and in analysis/tests: who may run it, for how long, what stays, what it may say.

A test passes, fails, or is undecided: the machine, or a guest, was not in a state in which the question could be put.
Undecided is no pass. It is listed with its reason, and `make test-measure` and `make test-kernels` end with a status
of their own for it; a test of `make test` is never undecided.
"""

from __future__ import annotations

import functools
import os
import resource
import signal
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final, NoReturn

import pytest
from _pytest.terminal import TerminalReporter

import harness
import leftovers
import margins
import measuring

# No single test may hold the whole run up. Three busy neighbours make it four times as long.
TEST_SECONDS: Final = 90 * 4
# Those that change the machine (swap, huge pages) or read its counters exclude each other, and nothing else.
MACHINE: Final = "machine"
# Files whose tests take minutes on one worker: begun last, they would be waited for alone.
LONG: Final = (
    *("test_extras.py", "test_notebooks.py", "test_e2e_java.py", "test_e2e_mishaps.py"),
    *("test_open.py", "test_page_browser.py"),
)
# In cli, of how it is built and what that needs: not the binary's to show.
BUILDING: Final = ("test_cli_build.py", "test_cli_deps.py")
UNDECIDED: Final = "undecided: "
# In which measurements may begin, counted from the session's start. Unset: whenever it is their turn.
MEASURE_SECONDS: Final = "MEMTOLL_MEASURE_SECONDS"
BEGUN: Final = time.monotonic()
SPENT: Final = pytest.StashKey[float]()
PROCESSOR_S: Final = "processor_s"  # a property of each test in the results, for run

# Each worker reads all tests: what they were compiled to, asserts rewritten, is kept, but not in the tree.
sys.pycache_prefix = str(harness.MEMTOLL.parent / ("pycache-margins" if margins.directory() else "pycache"))
sys.dont_write_bytecode = False


def undecided(reason: str) -> NoReturn:
    """End a test that measures the machine, or a guest, without an answer."""
    pytest.skip(UNDECIDED + reason)


def unless_others_are_busy(test: Callable[..., None]) -> Callable[..., None]:
    """What fails beside others' work is undecided: that it is they is then as likely as that it is memtoll."""

    @functools.wraps(test)
    def run(*args: Any, **named: Any) -> None:
        others = measuring.Others()
        try:
            test(*args, **named)
        except AssertionError as error:
            busy = others.processors()
            if busy <= measuring.OTHERS:
                raise
            undecided(f"others kept {busy:.2f} processors busy; without them it would fail: {error}")

    return run


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Beside others' work each measurement takes as long as it may: what has not begun in time does not begin."""
    limit = os.environ.get(MEASURE_SECONDS)
    if limit and item.get_closest_marker("measure") and time.monotonic() - BEGUN > float(limit):
        undecided(f"no time was left for it: {MEASURE_SECONDS}={limit}")


def processor_seconds() -> float:
    """Of this process and of all that it started and that have ended."""
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    item.stash[SPENT] = processor_seconds()
    yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """What a machine that others use, too, cannot spoil: which tests are dear. Fixtures count where they are made."""
    yield
    item.user_properties.append((PROCESSOR_S, f"{processor_seconds() - item.stash[SPENT]:.2f}"))


def is_undecided(report: pytest.TestReport | pytest.CollectReport) -> bool:
    return report.skipped and isinstance(report.longrepr, tuple) and UNDECIDED in report.longrepr[2]


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    return ("undecided", "u", "UNDECIDED") if is_undecided(report) else None


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Which one failed, as soon as it has: the rest may take minutes."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\nFAILED {report.nodeid}", flush=True)


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    for report in terminalreporter.getreports("undecided"):
        terminalreporter.write_line(f"UNDECIDED {report.nodeid}: {report.longrepr[2].partition(UNDECIDED)[2]}")


def group_of(item: pytest.Item) -> str:
    """Tests of a file share what took long to make, so that they stay together on one worker."""
    marker = item.get_closest_marker("xdist_group")
    if marker:
        return str(marker.args[0])
    return MACHINE if item.get_closest_marker(MACHINE) else item.nodeid.partition("::")[0]


def is_command_line(item: pytest.Item) -> bool:
    folder, _, name = item.nodeid.partition("::")[0].rpartition("/")
    return folder.endswith("tests/cli") and name not in BUILDING and item.get_closest_marker("root") is None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest chains first: what excludes each other, then LONG, what traces, and the rest.

    Of what traces, files whose tests wait have names alike: in no order they wait beside others' work.
    """
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group_of(item)))
        if is_command_line(item):
            item.add_marker(pytest.mark.command_line)
        if isinstance(item, pytest.Function) and item.get_closest_marker("measure"):
            item.obj = unless_others_are_busy(item.obj)
    items.sort(
        key=lambda item: (
            group_of(item) != MACHINE,
            item.nodeid.partition("::")[0].rpartition("/")[2] not in LONG,
            item.get_closest_marker("root") is None,
            zlib.crc32(group_of(item).encode()) if item.get_closest_marker("root") else 0,
        )
    )


def pytest_configure(config: pytest.Config) -> None:
    """Workers are their run's: where that is killed they end with it, whatever they are at."""
    if not hasattr(config, "workerinput"):
        os.environ[leftovers.OWNER] = leftovers.owner()
    if place := margins.directory():
        config.pluginmanager.register(margins.Collector(place))


def pytest_sessionstart(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput") and os.geteuid() == 0:
        for what in leftovers.take_down():
            print(f"left by a run that was killed, taken down now: {what}")


@pytest.fixture(autouse=True)
def _root_or_fail(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("root") and os.geteuid() != 0:
        pytest.fail("needs root; use -m 'not root' for the tests that do not", pytrace=False)


@pytest.fixture(autouse=True)
def _the_machine(request: pytest.FixtureRequest, _root_or_fail: None) -> Iterator[None]:
    """Within a run those tests stay on one worker; here they wait for those of another run, too."""
    if request.node.get_closest_marker(MACHINE):
        with leftovers.alone():
            yield
    else:
        yield


@pytest.fixture(autouse=True)
def _time_limit(_the_machine: None) -> Iterator[None]:
    def over(_signal: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"the test took more than {TEST_SECONDS} s")

    old = signal.signal(signal.SIGALRM, over)
    signal.alarm(TEST_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, old)


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    yield
    for process in list(harness.started):
        harness.end(process)
