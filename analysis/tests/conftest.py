# SPDX-License-Identifier: GPL-2.0
"""Fixtures. Tests marked root trace real processes; without root they fail, they are not skipped."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest

import facts
import harness
from busy import busy_recording

ANALYSIS = Path(__file__).resolve().parent.parent
RECORDINGS = Path(__file__).resolve().parent / "recordings"
TEST_SECONDS = 120

Cli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def _root_or_fail(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("root") and os.geteuid() != 0:
        pytest.fail("needs root; use -m 'not root' for the tests that do not", pytrace=False)


@pytest.fixture(autouse=True)
def _time_limit() -> Iterator[None]:
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


@pytest.fixture(scope="session", params=sorted(facts.SCENARIOS))
def scenario(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every recording of facts.py by turns."""
    path = tmp_path_factory.mktemp("facts") / f"{request.param}.memtoll"
    facts.SCENARIOS[request.param](path).database.close()
    return path


@pytest.fixture
def heap_blocks(tmp_path: Path) -> Path:
    """Casebook 1, 10 MiB."""
    path = tmp_path / "heap-blocks.memtoll"
    facts.heap_blocks(path).database.close()
    return path


@pytest.fixture(scope="session")
def _busy_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("busy") / "busy.memtoll"
    busy_recording(path)
    return path


@pytest.fixture
def busy(tmp_path: Path, _busy_once: Path) -> Path:
    """Many slices, processes and kinds of facts, with losses; see busy.py."""
    return Path(shutil.copy(_busy_once, tmp_path))


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ANALYSIS), "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8"}


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """python3 -m memtoll, as its user runs it."""

    def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "memtoll", *map(str, words)],
            capture_output=True,
            text=True,
            env=environment(),
            cwd=tmp_path,
            timeout=60,
            stdin=subprocess.DEVNULL,
            check=False,
        )

    return run
