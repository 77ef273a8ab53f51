# SPDX-License-Identifier: GPL-2.0
"""Fixtures. Tests marked root trace real processes; without root they fail, they are not skipped."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

import harness

# No single test may hold the whole run up.
TEST_SECONDS = 90


@pytest.fixture(autouse=True)
def _root_or_fail(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("root") and os.geteuid() != 0:
        pytest.fail("needs root; use -m 'not root' for the tests that do not", pytrace=False)


@pytest.fixture(autouse=True)
def _binary() -> None:
    if not os.access(harness.MEMTOLL, os.X_OK):
        pytest.fail(f"{harness.MEMTOLL} is not built: run make", pytrace=False)


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


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Where a recording may go; does not exist yet."""
    return tmp_path / "a.memtoll"


@pytest.fixture(scope="session")
def mmap_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program without any allocator."""
    path = tmp_path_factory.mktemp("freestanding") / "mmap_only"
    flags = "-std=gnu11 -O1 -g -fno-omit-frame-pointer -ffreestanding -fno-stack-protector -fno-pie -no-pie"
    subprocess.run(
        [
            "gcc",
            *flags.split(),
            "-nostdlib",
            "-static",
            "-o",
            str(path),
            str(harness.SOURCES / "freestanding/mmap_only.c"),
        ],
        check=True,
        timeout=60,
    )
    return path


@pytest.fixture
def public_dir() -> Iterator[Path]:
    """A directory every user can enter; pytest's own are for one user."""
    path = Path(tempfile.mkdtemp(prefix="memtoll-test-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)
